"""Tables of what a head writes hold the facts of the head that was made to bring them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from capacity.errors import CapacityError
from capacity.layer import LayerConfig, layer_rank_assumed
from capacity.recall import HeldTables, fact_attribution, head_table
from capacity.transformer import capture
from capacity.transformer.activations.embedding_values import values_of_embeddings
from tests.recall import tiny_language_models as tiny
from tests.recall.components import constructed

LAYER, HEAD = constructed.SUBJECT_HEAD
TEMPLATES = {"capital": "The capital of {subject} is {object}."}


def tables(**where: Any) -> HeldTables:
    return head_table(
        constructed.model(),
        constructed.tokenizer(),
        constructed.facts(),
        constructed.TEMPLATES,
        **where,
    )


def test_the_head_of_subjects_holds_all_facts_in_as_many_directions() -> None:
    found = tables(layer=LAYER, head=HEAD)
    rows = found.summary().query("read == 'attention'")
    assert rows["held"].tolist() == [6, 6]
    assert rows["accuracy"].tolist() == rows["accuracy_calibrated"].tolist() == [1, 1]
    # six one-hot vectors minus their mean have rank 5, and a line orders them in two ways at most
    assert rows["rank"].tolist() == [5, 5]
    assert rows["directions"].between(2, 5).all()
    shares = found.by_rank([1, 5]).query("read == 'attention' and r == 5")
    assert (shares["accuracy_calibrated"] == 1).all()
    first = found.by_rank([1]).query("read == 'attention'")
    # two facts at most, those at the ends of the line
    assert (first["accuracy_calibrated"] <= 2 / 6).all()
    assert "layer 1, head 2 holds 6 of 6 facts of capital in" in str(found)


def test_another_head_holds_few_facts_and_the_layer_holds_what_its_head_does() -> None:
    other = tables(layer=LAYER, head=HEAD + 1).summary().query("read == 'attention'")
    assert (other["held"] < 6).all()
    assert tables(layer=LAYER).summary().query("read == 'attention'")["held"].tolist() == [6, 6]


def test_the_table_is_the_heads_own_part_of_the_logits() -> None:
    model, tokenizer = tiny.llama()
    db = tiny.facts().select(predicates="capital")
    parts = fact_attribution(model, tokenizer, db, TEMPLATES, contrast="mean").table
    for layer, head in ((0, 1), (1, 0)):
        (one, *_) = head_table(model, tokenizer, db, TEMPLATES, layer=layer, head=head).tables
        own = one.logits[one.prompts.prompt, one.prompts.own]
        contrast = own - one.logits.mean(1)[one.prompts.prompt]
        of = parts.query("layer == @layer and head == @head").set_index("fact")["part"]
        np.testing.assert_allclose(contrast, of[one.prompts.facts], atol=1e-6)
    (one,) = head_table(model, tokenizer, db, TEMPLATES, layer=1, component="feed_forward").tables
    of = parts.query("layer == 1 and component == 'feed_forward'").set_index("fact")["part"]
    contrast = (
        one.logits[one.prompts.prompt, one.prompts.own] - one.logits.mean(1)[one.prompts.prompt]
    )
    np.testing.assert_allclose(contrast, of[one.prompts.facts], atol=1e-6)


def test_the_circuit_is_what_the_head_writes_of_the_subject_with_an_attention_of_one() -> None:
    model, tokenizer = tiny.gpt2()
    db = tiny.facts().select(predicates="capital")
    found = {t.read: t for t in head_table(model, tokenizer, db, TEMPLATES, layer=1, head=1).tables}
    prompts = found["subject"].prompts
    for k, ids in enumerate(prompts.ids):
        captured = capture(model, torch.tensor([ids]))
        layer, norm = captured.layers[1], captured.steps[-1]
        at = int(prompts.subject_at[k])
        # GPT-2's last LayerNorm, with its scale fixed, maps u to gain (u - mean(u)) / scale
        for read, v in (("subject", layer.v[0, 1, at]), ("attention", layer.z[0, 1, -1])):
            u = v @ layer.W_O[1]
            u = norm.gain * (u - u.mean()) / norm.scale[0, -1]  # pyright: ignore
            logits = u @ model.lm_head.weight[list(prompts.tokens)].T
            np.testing.assert_allclose(found[read].logits[k], logits.detach(), atol=1e-9)


def test_values_at_embeddings_are_those_of_the_layer_that_reads_them() -> None:
    model, _ = tiny.llama()
    tokens = torch.tensor([[0, 5, 7, 9]])
    embedded = model.model.embed_tokens(tokens)
    for number, layer in enumerate(model.model.layers):
        found = values_of_embeddings(model, {"input_ids": tokens}, number)
        # one group of keys and values, for two heads
        v = layer.self_attn.v_proj(layer.input_layernorm(embedded)).detach()
        torch.testing.assert_close(found[0, 0], v[0], atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(found[0, 1], v[0], atol=1e-6, rtol=1e-5)
    # the first layer reads embeddings anyway
    own = capture(model, tokens).layers[0].v
    torch.testing.assert_close(values_of_embeddings(model, {"input_ids": tokens}, 0), own)


@pytest.mark.parametrize("family", [tiny.gpt2, tiny.llama])
def test_the_rank_of_a_heads_table_is_at_most_its_dimension(family: Any) -> None:
    model, tokenizer = family()
    db = tiny.facts()
    found = head_table(
        model,
        tokenizer,
        db,
        {**TEMPLATES, "borders": "{subject} borders {object}."},
        layer=0,
        head=0,
        candidates="all",
    )
    # d_head 8, and numbers of subjects and candidates below
    for one in found.tables:
        n = len(one.prompts.ids)
        assert one.rank <= min(8, n - 1, len(one.prompts.tokens))
        np.testing.assert_allclose(one.of_rank(one.rank), one.calibrated, atol=1e-6)
        assert 1 <= one.n_directions <= one.rank
    shape = LayerConfig(16, 1, 8, 8)
    assert found.shape == shape
    assert found.rank_assumed == layer_rank_assumed(shape) == 24
    assert found.size_by_law is not None


def test_probabilities_are_among_the_object_and_wrong_candidates() -> None:
    model, tokenizer = tiny.llama()
    found = head_table(model, tokenizer, tiny.facts().select(predicates="borders"),
                       {"borders": "{subject} borders {object}."}, layer=1)  # fmt: skip
    one = found.tables[0]
    logits = found.logits("borders").to_numpy() * 100
    # Norway borders Japan and Guinea-Bissau: the other right answer doesn't count against one
    expected = []
    for own, k, wrong in zip(one.prompts.own, one.prompts.prompt, one.prompts.wrong, strict=True):
        z = np.exp(logits[k] - logits[k].max())
        expected.append(z[own] / (z[own] + z[wrong].sum()) >= 0.9)
    assert one.share(logits, 0.9) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"layer": 2}, "from 0 to 1; got 2"),
        ({"layer": 0, "head": 4}, "from 0 to 3; got 4"),
        ({"layer": -1}, "layer"),
        ({"layer": 0, "component": "mixers"}, "component"),
        ({"layer": 0, "head": 0, "component": "feed_forward"}, "omitted"),
    ],
)
def test_places_that_arent_there_are_refused(where: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        tables(**where)


def test_thresholds_are_checked() -> None:
    found = tables(layer=LAYER, head=HEAD)
    with pytest.raises(CapacityError, match="tau"):
        found.summary(0.3)
    with pytest.raises(CapacityError, match="ranks"):
        found.by_rank([0])
