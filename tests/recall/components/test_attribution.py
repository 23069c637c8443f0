"""Parts of logits sum to them, and name the head that brings the facts of a model made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from capacity import Database
from capacity.errors import CapacityError, InvalidArgumentError, PrecisionWarning
from capacity.plots import plot_matrices
from capacity.recall import FactAttribution, fact_attribution
from capacity.recall.components.prompts import (
    PREDICATE,
    REST,
    SUBJECT,
    Asking,
    nearest_places,
    places_of,
    prompts_of,
)
from capacity.transformer import Normed, capture
from tests.recall import tiny_language_models as tiny
from tests.recall.components import constructed

TEMPLATES = {
    "capital": "The capital of {subject} is {object}.",
    "borders": "{subject} borders {object}.",
}
FAMILIES = {"GPT-2": tiny.gpt2, "Llama": tiny.llama, "Mistral": tiny.mistral}


def logits_after(model: Any, ids: tuple[int, ...]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0, -1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("contrast", ["runner-up", "mean"])
def test_parts_sum_to_the_models_own_contrast(family: str, contrast: Any) -> None:
    model, tokenizer = FAMILIES[family]()
    found = fact_attribution(
        model, tokenizer, tiny.facts(), TEMPLATES, contrast=contrast, batch_size=3
    )
    assert found.off < 1e-6
    sums = found.table.groupby(["fact", "template"])["part"].sum()
    _, groups, _ = prompts_of(
        model, tokenizer, tiny.facts(), Asking(TEMPLATES), caller="fact_attribution"
    )
    for prompts in groups:
        for i, fact in enumerate(prompts.facts.tolist()):
            # one run of the model for each prompt, unpadded
            z = logits_after(model, prompts.ids[prompts.prompt[i]])[list(prompts.tokens)].numpy()
            wrong = z[prompts.wrong[i]]
            less = wrong.max() if contrast == "runner-up" else z.mean()
            own = z[prompts.own[i]]
            assert sums[fact, prompts.template.text] == pytest.approx(own - less, abs=1e-5)
            row = found.sums.query("fact == @fact and sum == 'model'").iloc[0]
            assert row["right"] == (own > wrong.max())


def test_parts_of_heads_by_source_are_those_of_values_averaged_by_hand() -> None:
    model, tokenizer = tiny.llama()
    found = fact_attribution(model, tokenizer, tiny.facts(), TEMPLATES, contrast="mean")
    _, groups, _ = prompts_of(model, tokenizer, tiny.facts(), Asking(TEMPLATES), caller="x")
    prompts = next(one for one in groups if one.predicate == "capital")
    fact, k, own = (int(x[1]) for x in (prompts.facts, prompts.prompt, prompts.own))
    captured = capture(model, torch.tensor([prompts.ids[k]]))
    u = model.lm_head.weight[list(prompts.tokens)]
    contrast = (u[own] - u.mean(0)).detach()
    # an RMSNorm: e = gain x / scale, and W_U reads e
    norm = captured.steps[-1]
    assert isinstance(norm, Normed)
    table = found.table.query("component == 'head'").set_index(["fact", "layer", "head"])
    parts = table.to_dict("index")
    for number, layer in enumerate(captured.layers):
        for head in range(2):
            for source, name in ((SUBJECT, "subject"), (PREDICATE, "predicate"), (REST, "rest")):
                mine = torch.tensor([s == source for s in prompts.sources[k]])
                z = (layer.pattern[0, head, -1] * mine) @ layer.v[0, head]
                written = (z @ layer.W_O[head]) * norm.gain / norm.scale[0, -1]
                row = parts[fact, number, head]
                assert row[f"from_{name}"] == pytest.approx(float(written @ contrast), abs=1e-6)


@pytest.fixture(scope="module")
def by_hand() -> FactAttribution:
    return fact_attribution(
        constructed.model(), constructed.tokenizer(), constructed.facts(), constructed.TEMPLATES
    )


def test_the_head_that_was_made_to_bring_the_facts_is_named(by_hand: FactAttribution) -> None:
    assert len(by_hand.known) == 12
    assert by_hand.heads() == [constructed.SUBJECT_HEAD]
    first = by_hand.by_component().groupby("predicate").head(1)
    assert [*zip(first["layer"], first["head"], strict=True)] == [constructed.SUBJECT_HEAD] * 2
    # it brings all facts, from the subject's token alone, and no other head brings many
    assert (first["right"] == 1).all()
    np.testing.assert_allclose(first["from_subject"], first["part"], rtol=0.03)
    others = by_hand.by_component().query("component == 'head'").iloc[2:]
    assert (others["part"].abs() < 0.05 * first["part"].min()).all()


def test_parts_by_layer_and_by_sum_are_those_of_the_components(by_hand: FactAttribution) -> None:
    table = by_hand.table
    by_layer = by_hand.by_layer(known=False)
    for row in tiny.rows_of(by_layer):
        of = table[(table["layer"] == row.layer) & (table["predicate"] == row.predicate)]
        heads = of[of["component"] == "head"]["part"].sum() / 6
        assert row.heads == pytest.approx(heads)
    sources = by_layer["from_subject"] + by_layer["from_predicate"] + by_layer["from_rest"]
    np.testing.assert_allclose(sources, by_layer["heads"], atol=1e-12)
    whole = table.groupby("component")["part"].sum()
    sums = by_hand.sums.groupby("sum")["part"].sum()
    assert sums["heads"] == pytest.approx(whole["head"])
    assert sums["subject"] + sums["predicate"] + sums["rest"] == pytest.approx(whole["head"])
    assert sums["model"] == pytest.approx(table["part"].sum())
    biases = ["attention_bias", "bias"]
    assert sums["biases"] == pytest.approx(whole[biases].sum())


def test_matrices_have_the_mean_parts_of_heads_and_feed_forwards(
    by_hand: FactAttribution,
) -> None:
    matrices = by_hand.matrices()
    assert list(matrices) == ["capital", "currency"]
    for predicate in matrices:
        matrix = matrices[predicate]
        assert list(matrix.columns) == ["0", "1", "2", "3", "feed-forward"]
        of = by_hand.by_component().query("predicate == @predicate and component == 'head'")
        best = of.iloc[0]
        part = matrix.to_dict("index")[best["layer"]][str(best["head"])]
        assert part == pytest.approx(float(best["part"]))
        assert matrix.drop(columns="feed-forward").max().max() == pytest.approx(best["part"])


@pytest.mark.slow
def test_the_picture_is_drawn(by_hand: FactAttribution) -> None:
    figure = plot_matrices(by_hand.matrices(), of="part of the logit")
    # one panel for each predicate, and the bar
    assert len(figure.axes) == 3


def test_among_all_objects_neither_subject_nor_predicate_brings_a_fact_alone() -> None:
    # without noise, what the subject's head writes for its capital and its currency is the same
    found = fact_attribution(
        constructed.model(noise=0.0),
        constructed.tokenizer(),
        constructed.facts(),
        constructed.TEMPLATES,
        candidates="all",
    )
    shares = found.by_sum().set_index(["predicate", "sum"])["right"]
    for predicate in ("capital", "currency"):
        assert shares[predicate, "model"] == 1
        assert shares[predicate, "subject"] == 0
        assert shares[predicate, "predicate"] == 0
        assert shares[predicate, "subject + predicate"] == 1


def test_results_are_the_same_for_any_batch_size_and_the_model_is_left_as_it_was() -> None:
    model, tokenizer = tiny.llama()
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one = fact_attribution(model, tokenizer, tiny.facts(), TEMPLATES, batch_size=1)
    two = fact_attribution(model, tokenizer, tiny.facts(), TEMPLATES, batch_size=64)
    pd.testing.assert_frame_equal(one.table, two.table, atol=1e-6)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_subject_in_several_tokens_is_the_subjects() -> None:
    model, tokenizer = tiny.llama()
    _, groups, notes = prompts_of(model, tokenizer, tiny.facts(), Asking(TEMPLATES), caller="x")
    for prompts in groups:
        for subject, ids, sources in zip(prompts.subjects, prompts.ids, prompts.sources,
                                         strict=True):  # fmt: skip
            of = [token for token, source in zip(ids, sources, strict=True) if source == SUBJECT]
            assert tokenizer.decode(of).strip() == subject
            # <s> is no word of the template
            assert [i for i, source in enumerate(sources) if source == REST] == [0]
            text = prompts.template.text.partition("{object}")[0].replace("{subject}", subject)
            assert tokenizer.decode(ids[1:]).strip() == text.strip()
    assert notes == (
        "borders: 4 facts, 3 first tokens of candidates.",
        "capital: 5 facts, 5 first tokens of candidates.",
    )


def test_places_of_a_template_are_the_same_for_any_subject() -> None:
    short, long = [REST, 1, 0, 1], [REST, 1, 0, 0, 0, 1]
    assert set(places_of(short)) <= set(places_of(long))
    assert nearest_places(places_of(long), places_of(short)) == [
        (3, 0), (2, 0), (1, 0), (1, 0), (1, 0), (0, 0)
    ]  # fmt: skip
    assert nearest_places(places_of(short), places_of(long)) == places_of(short)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"templates": {"capital": "{object} is the capital of {subject}"}}, "before {object}"),
        ({"templates": {"capital": "Oslo {object}"}}, "must contain {subject}"),
        ({"contrast": "best"}, "contrast"),
        ({"batch_size": 0}, "batch_size"),
        ({"candidates": ["Oslo"]}, "must contain the object of every fact"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], said: str) -> None:
    model, tokenizer = tiny.gpt2()
    db = tiny.facts().select(predicates="capital")
    given = {"templates": {"capital": TEMPLATES["capital"]}, **given}
    with pytest.raises(CapacityError, match=said):
        fact_attribution(model, tokenizer, db, given.pop("templates"), **given)


def test_models_that_arent_causal_are_refused() -> None:
    db = tiny.facts().select(predicates="capital")
    for family in ("BERT", "T5"):
        model, tokenizer = tiny.MODELS[family]()
        with pytest.raises(InvalidArgumentError, match="must be causal"):
            fact_attribution(model, tokenizer, db, {"capital": TEMPLATES["capital"]})


def test_candidates_that_begin_with_one_token_are_refused() -> None:
    model, tokenizer = tiny.gpt2()
    db = Database.from_triples([("Norway", "borders", "Guinea"), ("Peru", "borders",
                                                                  "Guinea-Bissau")])  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="must begin with several tokens"):
        fact_attribution(model, tokenizer, db, {"borders": "{subject} borders {object}."})


def test_a_model_in_half_precision_is_copied_to_float32() -> None:
    model, tokenizer = tiny.llama()
    exact = fact_attribution(model.float(), tokenizer, tiny.facts(), TEMPLATES)
    with pytest.warns(PrecisionWarning):
        found = fact_attribution(model.bfloat16(), tokenizer, tiny.facts(), TEMPLATES)
    assert next(model.parameters()).dtype == torch.bfloat16
    # weights of 8 bits
    np.testing.assert_allclose(found.table["part"], exact.table["part"], atol=0.2)
