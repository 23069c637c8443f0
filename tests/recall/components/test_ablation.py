"""Facts are lost without the head that was made to bring them, and not without random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from capacity import Database
from capacity.errors import CapacityError, InvalidArgumentError
from capacity.recall import (
    AblationTest,
    ablation_test,
    fact_attribution,
    head_table,
    mean_attention,
)
from capacity.recall.components.prompts import Asking, prompts_of
from capacity.recall.components.replaced import Outputs, facts_right, like_random
from capacity.transformer import ablated, capture
from capacity.transformer.activations.fixed_attention import fixed_attention
from tests.recall import tiny_language_models as tiny
from tests.recall.components import constructed

TEMPLATES = {"capital": "The capital of {subject} is {object}."}


def without(mode: Any = "mean", **options: Any) -> AblationTest:
    return ablation_test(
        constructed.model(),
        constructed.tokenizer(),
        constructed.facts(),
        constructed.TEMPLATES,
        **{"n_heads": [1], "n_random": 3, "mode": mode, **options},
    )


@pytest.mark.parametrize("mode", ["mean", "zero", "resample"])
def test_facts_are_lost_without_their_head_and_kept_without_others(mode: Any) -> None:
    found = without(mode)
    assert found.heads == (constructed.SUBJECT_HEAD,)
    chosen = found.table.query("set == 'chosen'")
    random = found.table.query("set == 'random'")
    # without it the mean over subjects, nothing or another subject's object is left
    assert (chosen["most"] <= 1 / 3).all()
    assert (random["least"] == 1).all()
    # half of six subjects
    n_facts = dict(zip(chosen["predicate"], chosen["n_facts"], strict=True))
    assert n_facts == {"all": 6, "capital": 3, "currency": 3}
    assert len(found.chosen_on) == 3
    for some in found.random[1]:
        ((layer, head),) = some
        assert layer == 1
        assert head != 2


def test_heads_that_are_passed_are_judged_on_all_facts() -> None:
    found = without("zero", heads=[constructed.PREDICATE_HEAD, constructed.SUBJECT_HEAD],
                    n_heads=[1, 2])  # fmt: skip
    chosen = found.table.query("set == 'chosen' and predicate == 'all'").set_index("n_heads")
    # among the predicate's objects the head of predicates isn't needed
    assert chosen["kept"].to_dict() == {1: 1.0, 2: pytest.approx(chosen["kept"][2])}
    assert chosen["kept"][2] <= 1 / 3
    assert chosen["n_facts"].tolist() == [12, 12]
    assert found.chosen_on == ()


def test_the_same_seed_has_the_same_result() -> None:
    one, two, other = (without(seed=seed, n_random=1) for seed in (3, 3, 4))
    assert one.table.equals(two.table)
    assert one.random == two.random
    assert one.chosen_on != other.chosen_on


def asked_of(model: Any, tokenizer: Any) -> Any:
    _, (prompts,), _ = prompts_of(
        model, tokenizer, tiny.facts().select(predicates="capital"), Asking(TEMPLATES), caller="x"
    )
    return prompts


@pytest.mark.parametrize("family", [tiny.gpt2, tiny.llama])
def test_nothing_written_is_what_ablated_does(family: Any) -> None:
    model, tokenizer = family()
    prompts = asked_of(model, tokenizer)
    heads = [(0, 1), (1, 0)]
    outputs = Outputs(model, prompts, range(len(prompts.ids)), 2)
    context = outputs.context(model, heads, "zero", np.random.default_rng(0))
    own = facts_right(model, prompts, 2, context)
    with ablated(model, heads):
        assert (own == facts_right(model, prompts, 1)).all()


def test_of_one_subject_the_mean_and_a_resample_are_what_the_model_writes() -> None:
    model, tokenizer = tiny.llama()
    prompts = asked_of(model, tokenizer)
    for row in range(len(prompts.ids)):
        outputs = Outputs(model, prompts, [row], 2)
        for mode in ("mean", "resample"):
            with outputs.context(model, [(0, 0), (1, 1)], mode, np.random.default_rng(0))(
                [row], len(prompts.ids[row])
            ):
                found = model(torch.tensor([prompts.ids[row]])).logits
            torch.testing.assert_close(
                found, model(torch.tensor([prompts.ids[row]])).logits, atol=1e-5, rtol=1e-3
            )


def test_random_heads_are_of_the_same_layers_or_of_the_nearest_that_have_some() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert {a for a, _ in like_random([(3, 0), (3, 1)], {2: 4, 3: 4}, rng)} == {3}
        found = [*like_random([(3, 0), (3, 1)], {1: 4, 2: 1, 3: 3}, rng)]
        assert sorted(a for a, _ in found) == [2, 3]
        assert not {(3, 0), (3, 1)} & {*found}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "nothing"}, "mode"),
        ({"n_heads": []}, "got none"),
        ({"n_heads": [5]}, "at most 4"),
        ({"heads": [(0, 9)]}, "no"),
        ({"heads": [(0, 1), (0, 1)]}, "different"),
        ({"heads": [3]}, "pairs"),
        ({"n_random": 0}, "n_random"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(CapacityError, match=said):
        without(**options)


def test_a_model_that_knows_nothing_is_refused() -> None:
    model = constructed.model(noise=0.0, strength=-1.0)
    for function in (ablation_test, mean_attention):
        with pytest.raises(InvalidArgumentError, match="must know"):
            function(model, constructed.tokenizer(), constructed.facts(), constructed.TEMPLATES)


def test_mean_attention_of_a_model_without_queries_changes_nothing() -> None:
    # its attention is uniform anyway
    found = mean_attention(
        constructed.model(), constructed.tokenizer(), constructed.facts(), constructed.TEMPLATES
    )
    assert found.table["layer"].fillna(-1).tolist() == [0, 1, -1] * 2
    assert (found.table["kept"] == 1).all()
    assert (found.table["n_facts"] == 6).all()


def test_mean_attention_loses_facts_that_queries_and_keys_bring() -> None:
    three = zip(constructed.SUBJECTS[:3], constructed.CAPITALS, strict=False)
    db = Database.from_triples([(s, "capital", o) for s, o in three])
    asked = constructed.by_attention(), constructed.tokenizer(), db, constructed.CAPITAL
    kept = mean_attention(*asked).table.set_index("layer")["kept"]
    # the mean of others is the same attention for all: of three facts one at most is left, while
    # the first layer's attention is uniform
    assert kept[0] == 1
    assert kept[1] <= 1 / 3
    # values bring none of them: the head's circuit at the subject writes nothing
    found = head_table(*asked, layer=1, head=1).summary().set_index("read")["held"]
    assert found["attention"] == 3
    assert found["subject"] == 0


def test_fixed_attention_averages_values_by_what_is_given() -> None:
    model, _ = tiny.llama()
    tokens = torch.tensor([[0, 5, 7, 9], [0, 6, 6, 8]])
    captured = capture(model, tokens)
    own = {number: layer.pattern for number, layer in enumerate(captured.layers)}
    with fixed_attention(model, own):
        same = model(tokens).logits
    torch.testing.assert_close(same, model(tokens).logits, atol=1e-6, rtol=1e-5)
    swapped = {1: own[1].flip(0)}
    with fixed_attention(model, swapped):
        other = model.model(tokens).last_hidden_state
    layer = captured.layers[1]
    z = torch.einsum("bhij,bhjv->bhiv", swapped[1], layer.v)
    written = torch.einsum("bhiv,hvd->bid", z, layer.W_O)
    stack = model.model.layers[1]
    hidden = model.model(tokens, output_hidden_states=True).hidden_states[1]
    middle = hidden + written
    last = model.model.norm(middle + stack.mlp(stack.post_attention_layernorm(middle)))
    torch.testing.assert_close(other, last, atol=1e-5, rtol=1e-4)


def test_a_pattern_of_another_shape_or_layer_is_refused() -> None:
    model, _ = tiny.llama()
    tokens = torch.tensor([[0, 5, 7, 9]])
    pattern = capture(model, tokens).layers[0].pattern
    for layers, said in (({0: pattern[:, :, :3, :3]}, "shape"), ({7: pattern}, "from 0 to 1")):
        with pytest.raises(InvalidArgumentError, match=said), fixed_attention(model, layers):
            model(tokens)
    # nothing is left behind
    torch.testing.assert_close(capture(model, tokens).layers[0].pattern, pattern)


def test_mean_attention_of_layers_that_arent_there_is_refused() -> None:
    layers: Sequence[Sequence[int]] = ([7], [])
    for some in layers:
        with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
            mean_attention(constructed.model(), constructed.tokenizer(), constructed.facts(),
                           constructed.TEMPLATES, layers=some)  # fmt: skip


def test_what_attribution_ranks_first_is_what_the_test_ablates() -> None:
    found = fact_attribution(
        constructed.model(), constructed.tokenizer(), constructed.facts(), constructed.TEMPLATES
    )
    assert found.heads(1) == [*without().heads]
