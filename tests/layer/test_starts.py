"""Several random starts of a training, and weights that a recipe freezes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.evaluator import evaluate
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train, train_many
from capacity.layer.run.recipe import NOT_TRIED, Starts
from tests.engines import able

CONFIG = LayerConfig(2, 1, 1, 1)
RECIPE = Recipe(learning_rate=0.1, epochs=120, schedule="cosine")
BATCHES = Recipe(batch_size=3)


def database() -> Database:
    objects = [0, 1, 2, 1, 0, 2, 2, 1]
    return Database.from_triples(
        [(f"s{i // 2}", f"p{i % 2}", f"o{v}") for i, v in enumerate(objects)]
    )


def layer(seed: int = 0, config: LayerConfig = CONFIG) -> AttentionLayer:
    return AttentionLayer(config, database().n_tokens, seed=seed)


def same(one: AttentionLayer, other: AttentionLayer) -> bool:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@given(st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0, float("nan")]), min_size=1))
def test_the_first_start_that_recalls_most_is_kept(shares: list[float]) -> None:
    tried = NOT_TRIED
    for share in shares:
        tried = tried.then(share)
    ranked = [-1.0 if share != share else share for share in shares]
    assert tried.start == ranked.index(max(ranked))
    assert (tried.tried, tried.held) == (len(shares), ranked.count(1.0))
    assert tried.recalled == max(ranked)


@pytest.mark.slow
@pytest.mark.usefixtures("together")
@pytest.mark.parametrize(
    "engine",
    [pytest.param(one, marks=[pytest.mark.full] * (one == "reference"))
     for one in [*able(CONFIG), "together"]],
)  # fmt: skip
def test_each_start_is_a_training_of_its_own_and_the_kept_one_is_scored(engine: str) -> None:
    db, compute = database(), Compute(engine)
    starts = 5
    many = layer(2)
    (run,) = train_many([(many, db)], RECIPE, compute, starts=starts, held_at="argmax")
    assert run.starts is not None
    assert run.starts.tried == starts
    assert evaluate(many, db).argmax == run.starts.recalled
    # the same, one start at a time
    shares: list[float] = []
    again, training = many, run
    for most in range(1, starts + 1):
        again = layer(2)
        (training,) = train_many([(again, db)], RECIPE, compute, starts=most, held_at="argmax")
        shares.append(evaluate(again, db).argmax)
    assert shares == sorted(shares)
    assert shares[-1] > shares[0]
    assert same(again, many)
    assert training == run


def test_one_start_is_a_plain_training() -> None:
    db, alone, again = database(), layer(1), layer(1)
    (one,) = train_many([(again, db)], RECIPE)
    assert train(alone, db, RECIPE) == one
    assert one.starts is None
    assert same(alone, again)


def test_starts_end_with_the_first_that_holds() -> None:
    db, tasks = database(), [(layer(seed), database()) for seed in range(6)]
    every = [(layer(seed), db) for seed in range(6)]
    until = train_many(tasks, RECIPE, starts=3, until="held", held_at="argmax")
    whole = train_many(every, RECIPE, starts=3, held_at="argmax")
    for (mine, _), (theirs, _), short, long in zip(tasks, every, until, whole, strict=True):
        assert short.starts is not None
        assert long.starts is not None
        assert short.starts.start == long.starts.start
        assert short.starts.recalled == long.starts.recalled
        assert same(mine, theirs)
        if long.starts.held:
            assert short.starts.held == 1
            assert short.starts.tried == long.starts.start + 1
        else:
            assert short.starts.tried == 3
    held = [run.starts.held for run in until if run.starts is not None]
    assert 0 < sum(held) < len(held), "some must be held, and some not"


def test_the_result_of_a_layer_depends_neither_on_others_nor_on_threads() -> None:
    db = database()
    tasks = [(layer(seed), db) for seed in range(4)]
    runs = train_many(tasks, RECIPE, seeds=[7, 8, 9, 10], starts=3, threads=2)
    alone = layer(2)
    (run,) = train_many([(alone, db)], RECIPE, seeds=[9], starts=3)
    assert run == runs[2]
    assert same(alone, tasks[2][0])


def test_without_seeds_the_first_start_is_that_of_a_training_of_one() -> None:
    # the order of facts matters where they come in batches
    recipe = Recipe(learning_rate=0.1, epochs=30, batch_size=3)
    ones, some = ([(layer(seed), database()) for seed in range(3)] for _ in range(2))
    first = train_many(ones, recipe)
    # at 0.999 none is held, and the first is kept if no other recalls more
    tried = train_many(some, recipe, starts=3, held_at=0.999)
    kept = [i for i, run in enumerate(tried) if run.starts is not None and run.starts.start == 0]
    assert kept
    assert all(tried[i].loss == first[i].loss for i in kept)


def test_what_the_user_froze_is_given_and_what_the_recipe_freezes_is_drawn() -> None:
    db, given_ = database(), layer()
    given_.W_E.requires_grad_(False)
    before = {name: p.detach().clone() for name, p in given_.named_parameters()}
    recipe = Recipe(learning_rate=0.1, epochs=60, frozen=("W_Q",), stop_tau=0)
    (run,) = train_many([(given_, db)], recipe, starts=8, held_at="argmax")
    assert torch.equal(given_.W_E, before["W_E"])
    assert run.starts is not None
    assert run.starts.start > 0, "take other seeds: the test needs a later start"
    assert not torch.equal(given_.W_Q, before["W_Q"])
    assert [name for name, p in given_.named_parameters() if not p.requires_grad] == ["W_E"]


@pytest.mark.parametrize("engine", ["auto", *able(CONFIG, BATCHES, has_frozen_weights=True)])
@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "adamw", "weight_decay": 0.1, "batch_size": 3}]
)
def test_a_recipe_freezes_weights_as_a_layer_does(engine: str, options: dict[str, Any]) -> None:
    db, compute = database(), Compute(engine)
    by_layer, by_recipe = layer(), layer()
    for weight in (by_layer.W_Q, by_layer.W_K):
        weight.requires_grad_(False)
    settings = {"learning_rate": 0.1, "epochs": 120, "schedule": "cosine", **options}
    first = train(by_layer, db, Recipe(**settings), compute)
    recipe = Recipe(**settings, frozen=("W_K", "W_Q"))
    assert recipe.frozen == ("W_Q", "W_K")
    assert train(by_recipe, db, recipe, compute) == first
    assert same(by_layer, by_recipe)
    assert all(p.requires_grad for p in by_recipe.parameters())
    assert torch.equal(by_recipe.W_Q, layer().W_Q)
    assert not torch.equal(by_recipe.W_V, layer().W_V)


def test_engines_that_train_all_weights_refuse_to_freeze_some() -> None:
    with pytest.raises(InvalidArgumentError, match="some are frozen"):
        train(layer(), database(), Recipe(frozen=("W_E",)), Compute("triton"))


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        ("W_Q", "must be a list of names"),
        (("W_q",), "Did you mean `W_Q`"),
        ((3,), "must be one of W_E"),
        (("W_E", "W_U", "W_Q", "W_K", "W_V", "W_O"), "must leave one"),
    ],
)
def test_a_recipe_refuses_what_it_cannot_freeze(frozen: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Recipe(frozen=frozen)


def test_a_layer_of_which_nothing_is_left_to_train_is_refused() -> None:
    still = layer()
    still.requires_grad_(False)
    still.W_Q.requires_grad_()
    with pytest.raises(InvalidArgumentError, match="must have a weight to train"):
        train(still, database(), Recipe(frozen=("W_Q",)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"most": 0}, InvalidArgumentError, "`starts` must be an integer of at least 1"),
        ({"most": 10**6}, InvalidArgumentError, "at most 10,000"),
        ({"until": "hold"}, InvalidArgumentError, "Did you mean `held`"),
        ({"held_at": 0.3}, InvalidArgumentError, "strictly between 0.5 and 1"),
        ({"untill": "held"}, InvalidTypeError, "Did you mean `until`"),
    ],
)
def test_starts_refuse_what_they_cannot_be(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Starts(**options)


def test_a_start_that_diverges_is_kept_only_if_all_do() -> None:
    db, one = database(), layer()
    with np.errstate(all="ignore"):
        (run,) = train_many([(one, db)], Recipe(learning_rate=1e38, epochs=9), starts=2)
    assert run.status == "diverged"
    assert run.starts is not None
    assert (run.starts.start, run.starts.tried, run.starts.recalled) == (0, 2, -1.0)
