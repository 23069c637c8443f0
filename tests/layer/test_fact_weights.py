"""Weights of facts in the loss, by the caller or by Zipf's law."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError, MultiValuedError
from capacity.evaluator import evaluate_objects
from capacity.layer import (
    AttentionLayer,
    Compute,
    LayerConfig,
    Recipe,
    train,
    train_many,
    zipf_weights,
)
from capacity.layer.recall import log_probabilities, pair_logits
from capacity.sweep import Run, make_plan, train_run
from tests.tiers import examples

CONFIG = LayerConfig(4, 2, 2, 2)
BEFORE = "cdd9d3e1cf8abad47460315d0b1a1fafc40c509c23585fc16a90e9ddf89492e4"
DB = random_database(3, triples=(30, 60))
DOUBLE: dict[str, Any] = {"dtype": torch.float64}


def weights_after(
    engine: str, db: Database, recipe: Recipe, weights: Any = None
) -> tuple[list[torch.Tensor], float]:
    layer = AttentionLayer(CONFIG, db.n_tokens, seed=2, **DOUBLE)
    training = train(layer, db, recipe, Compute(engine, "float64"), weights=weights)
    return [p.detach() for p in layer.parameters()], training.loss


@settings(max_examples=examples(8), deadline=None)
@given(st.data())
def test_engines_agree_on_any_weights(data: st.DataObject) -> None:
    positions: Any = data.draw(st.sampled_from(["both", "object"]))
    recipe = Recipe(positions=positions, epochs=20, stop_tau=0)
    weights = data.draw(st.lists(st.floats(1e-3, 1e3), min_size=DB.n_facts, max_size=DB.n_facts))
    (a, loss_a), (b, loss_b) = (
        weights_after(engine, DB, recipe, weights) for engine in ("reference", "tape")
    )
    assert loss_a == pytest.approx(loss_b, rel=1e-9)
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-7)


@pytest.mark.parametrize("engine", ["reference", "tape"])
@pytest.mark.parametrize("positions", ["both", "object"])
def test_whole_weights_are_copies_of_facts(engine: str, positions: Any) -> None:
    # the loss of facts that come 3, 1, 2 times is the mean over these six sentences
    db = Database.from_triples([("a", "p", "x"), ("a", "q", "y"), ("b", "p", "y")])
    copies = np.array([3, 1, 2])
    layer = AttentionLayer(CONFIG, db.n_tokens, seed=1, **DOUBLE)
    sentences = torch.as_tensor(np.repeat(db.token_triples, copies, axis=0).astype(np.int64))
    log_p = layer(sentences[:, :2]).log_softmax(-1)
    each = -log_p.gather(2, sentences[:, 1:, None])[:, :, 0]
    loss = each.mean() if positions == "both" else each[:, 1].mean()
    recipe = Recipe(epochs=0, positions=positions)
    trained = train(layer, db, recipe, Compute(engine, "float64"), weights=copies * 7.5)
    assert trained.loss == pytest.approx(loss.item(), rel=1e-12)


@pytest.mark.parametrize("engine", ["reference", "tape"])
def test_equal_weights_are_none(engine: str) -> None:
    recipe = Recipe(epochs=15)
    given_, none = (weights_after(engine, DB, recipe, w)[0] for w in (np.full(DB.n_facts, 5), None))
    for x, y in zip(given_, none, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-10)


def test_batches_weigh_facts_too() -> None:
    # at such a rate no weight moves, and the mean of the batches' losses is that over all facts
    weights = zipf_weights(DB.n_facts, 1.0)
    layer = AttentionLayer(CONFIG, DB.n_tokens, **DOUBLE)
    recipe = Recipe(epochs=1, batch_size=7, learning_rate=1e-12, stop_tau=0)
    batched = train(layer, DB, recipe, Compute("reference", "float64"), weights=weights)
    whole = train(layer, DB, Recipe(epochs=0), Compute("reference", "float64"), weights=weights)
    assert batched.history.loss[0] == pytest.approx(whole.loss, rel=1e-6)


def test_zipf_weights_fall_as_one_over_the_rank() -> None:
    for exponent in (0.0, 0.5, 1.0, 2.0):
        weights = zipf_weights(50, exponent)
        assert weights.mean() == pytest.approx(1)
        falling = np.sort(weights)[::-1]
        assert falling / falling[0] == pytest.approx(np.arange(1, 51) ** -exponent)
    # one order for all exponents, which isn't that of the facts
    orders = [np.argsort(-zipf_weights(50, s)).tolist() for s in (0.5, 1.0)]
    assert orders[0] == orders[1] != list(range(50))


def test_a_recipe_with_zipf_trains_as_its_weights_do() -> None:
    recipe = Recipe(epochs=30, stop_tau=0, zipf=1.0)
    by_recipe, loss = weights_after("auto", DB, recipe)
    by_hand, same = weights_after(
        "tape", DB, Recipe(epochs=30, stop_tau=0), zipf_weights(DB.n_facts, 1.0)
    )
    assert loss == same
    assert all(torch.equal(x, y) for x, y in zip(by_recipe, by_hand, strict=True))


def test_engines_without_weights_refuse_them_in_words() -> None:
    layer = AttentionLayer(CONFIG, DB.n_tokens)
    for engine in ("fused", "blocked"):
        with pytest.raises(InvalidArgumentError, match="these have weights"):
            train(layer, DB, Recipe(zipf=1), Compute(engine))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"of the shape \(1,\)"),
        (np.zeros(DB.n_facts), "got 0.0"),
        (np.full(DB.n_facts, np.nan), "got nan"),
        ("heavy", "positive, finite numbers"),
    ],
)
def test_weights_that_are_none_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        train(AttentionLayer(CONFIG, DB.n_tokens), DB, weights=weights)


@pytest.mark.parametrize("zipf", [-1, 11, float("nan"), "much"])
def test_other_exponents_are_refused(zipf: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`zipf` must be"):
        Recipe(zipf=zipf)


def test_several_objects_are_learned_with_their_probabilities() -> None:
    db = Database.from_triples(
        [("a", "p", "x"), ("a", "p", "y"), ("b", "p", "y"), ("b", "p", "z"), ("b", "p", "x")],
        multi="keep",
    )
    weights = [0.7, 0.3, 0.5, 0.25, 0.25]
    layer = AttentionLayer(CONFIG, db.n_tokens, seed=1)
    with pytest.raises(MultiValuedError):
        train(layer, db)
    train(layer, db, Recipe(learning_rate=0.03, epochs=1500, schedule="cosine"), weights=weights)
    p = np.exp(log_probabilities(pair_logits(layer, db.token_triples[:, :2])))
    # facts are sorted by subject, then object: a x, a y, b x, b y, b z
    assert db.token_triples[2:, 2].tolist() == sorted(db.token_triples[2:, 2].tolist())
    said = p[np.arange(5), db.token_triples[:, 2]]
    assert said == pytest.approx([0.7, 0.3, 0.5, 0.25, 0.25], abs=0.02)
    found = evaluate_objects(layer, db, weights)
    assert (found.majority, found.sets) == (1, 1)
    assert 0 <= found.divergence < 1e-3


def test_many_layers_take_weights_each_of_its_own() -> None:
    def tasks() -> list[Any]:
        return [(AttentionLayer(CONFIG, DB.n_tokens, seed=i), DB) for i in range(3)]

    recipe, weights = Recipe(epochs=10), [None, zipf_weights(DB.n_facts, 1), None]
    together = tasks()
    train_many(together, recipe, weights=weights)
    for (layer, _), (alone, _), given_ in zip(together, tasks(), weights, strict=True):
        train(alone, DB, recipe, weights=given_)
        assert torch.equal(layer.W_E, alone.W_E)
    with pytest.raises(InvalidArgumentError, match="`weights` must have one for each of 3 tasks"):
        train_many(tasks(), recipe, weights=weights[:2])


def test_keys_and_texts_of_recipes_without_zipf_stay() -> None:
    assert "zipf" not in Recipe().to_dict()
    assert Recipe(**Recipe(zipf=1).to_dict()) == Recipe(zipf=1)
    plain, zipf = (Run("a", DB, CONFIG, 0, Recipe(epochs=5, zipf=z)) for z in (0.0, 1.0))
    # computed before recipes had the field
    assert plain.key == BEFORE
    assert plain.key != zipf.key
    row, layer = train_run(zipf)
    assert json.loads(row["recipe"])["zipf"] == 1
    assert "recipe_zipf" not in row
    assert row["engine"] == "tape"
    assert not torch.equal(layer.W_E, train_run(plain)[1].W_E)


def test_a_sweep_takes_the_exponent() -> None:
    sizes = {"d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [1]}
    plan = make_plan(
        {"databases": {"synthetic": {"count": 1}}, "layers": sizes,
         "recipe": [{"epochs": 3}, {"epochs": 3, "zipf": 1.0}]}
    )  # fmt: skip
    assert [run.recipe.zipf for run in plan.runs] == [0, 1]
