"""Measures of the experiments on layers that hold their database, on cases made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from capacity.database import Database, random_database
from capacity.evaluator import memorises
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    Recipe,
    Starts,
    layer_tensor,
    store_in_value_output,
    train,
)
from capacity.rank import numerical_rank_estimates
from capacity.sweep import Run
from experiments.common.harness import BEST, paper_plan
from experiments.held_layers import heads, layers, precision, ranks, tau_widths


def test_a_head_that_alone_distinguishes_subjects_is_the_one_that_counts() -> None:
    # two facts of one predicate, with the objects 0 and 1, over three tokens
    objects = np.array([0, 1])
    speaks = np.array([[2.0, 0, 0], [0, 2.0, 0]])
    # it says the same after both subjects
    constant = np.array([[0, 0, 1.0], [0, 0, 1.0]])
    found = heads._of_predicate(np.stack([speaks, constant]), np.zeros((2, 3)), objects)
    # the constant's weight is zero
    assert found["participation"] == pytest.approx(1)
    assert (found["alone"], found["alone_all"], found["embedding"]) == (1, True, 0)
    assert found["contributes"].tolist() == [True, False]
    assert found["distinguishes"].tolist() == [True, False]


def test_facts_that_no_head_recalls_alone_are_spread_over_both() -> None:
    # object 0 of the first fact is only ahead in the sum: 1 + 1 against 1.5
    first = np.array([[1.0, 1.5, 0, 0], [1.5, 1.0, 0, 0]])
    second = np.array([[1.0, 0, 1.5, 0], [0, 1.0, 0, 1.5]])
    found = heads._of_predicate(np.stack([first, second]), np.zeros((2, 4)), np.array([0, 1]))
    assert found["alone"] == found["without"] == 0
    # squared norms less the mean: 4 * 0.25^2 and 4 * 0.5^2 + 4 * 0.75^2 over both facts
    weights = np.array([0.25, 2 * (2 * 0.5**2 + 2 * 0.75**2)])
    assert found["participation"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_a_tie_recalls_nothing() -> None:
    logits = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
    assert heads._recalled(logits, np.array([0, 1])) == 0.5


@pytest.mark.parametrize(
    ("name", "gap"),
    # half of the step below 1, and half of a step of 1/127
    [("float32", 2**-25), ("bfloat16", 2**-9), ("float8_e4m3fn", 2**-5), ("int8", 1 / 254)],
)
def test_a_circle_ends_where_two_cosines_round_to_one_number(name: str, gap: float) -> None:
    # 1 - cos(2 pi / n) must exceed the gap
    least_angle = math.acos(1 - gap)
    assert precision.largest_circle(name) == math.floor(2 * math.pi / least_angle)


def test_the_circle_of_a_format_has_the_argmax_of_full_rank_and_the_next_one_does_not() -> None:
    n = precision.largest_circle("bfloat16")
    for points, is_identity in ((n, True), (n + 1, False)):
        angles = 2 * np.pi * np.arange(points) / points
        cosines = precision.in_format(np.cos(angles[:, None] - angles), "bfloat16")
        largest = cosines == cosines.max(axis=1, keepdims=True)
        assert np.array_equal(largest, np.eye(points)) == is_identity


def test_truncation_keeps_every_fact_first_and_no_more_directions_than_it_says() -> None:
    db = random_database(3, subjects=(3, 6), predicates=(2, 3), triples=(8, 30))
    layer = store_in_value_output(db, 0.99)
    with torch.no_grad():
        truncated, directions = ranks.truncated_layer(layer, db)
        assert memorises(truncated, db, "argmax")
        # by hand W_U has three directions at most: s_v, s_v^2, and what is no object
        assert directions <= 3 < layer.config.d_model
        assert np.linalg.matrix_rank(truncated.W_U.numpy()) == directions
        L = layer_tensor(truncated, db).L
        lower = numerical_rank_estimates(L, threshold=1e-9).unfolding_rank
        assert lower <= ranks.rank_upper(truncated, directions, db)


def one_object_of_each_predicate() -> Database:
    return Database.from_triples([(f"s{i}", f"p{j}", f"o{j}") for i in range(5) for j in range(3)])


def test_the_penalty_leaves_few_singular_values_and_every_fact_first() -> None:
    db = one_object_of_each_predicate()
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens, seed=1)
    train(layer, db, Recipe(**BEST, epochs=500))
    layer = layer.double()
    made = ranks.penalised_layer(layer, db, 1.0, 200)
    assert memorises(made, db, "argmax")
    with torch.no_grad():
        before, after = (float(ranks.spread(layer_tensor(each, db).L, 4)) for each in (layer, made))
    # two slices of rank one distinguish three objects, and have at most sqrt(2) times their norm
    assert after <= math.sqrt(2) * 1.05 < before


def test_what_is_kept_is_the_least_that_puts_every_fact_first() -> None:
    # by hand: s_v and s_v^2 distinguish objects that depend on the predicate alone
    db = one_object_of_each_predicate()
    layer = store_in_value_output(db, 0.99)
    with torch.no_grad():
        assert 1 <= ranks.kept_rank(layer, db) <= 2
    # every pair has an object of its own: 15 of them in a plane need several values of each slice
    db = Database.from_triples([(f"s{i}", f"p{j}", f"o{i}{j}") for i in range(5) for j in range(3)])
    layer = store_in_value_output(db, 0.99)
    with torch.no_grad():
        kept = ranks.kept_rank(layer, db)
        assert 2 <= kept <= ranks.rank_upper(layer, layer.config.d_model, db)


def test_layers_that_hold_are_measured_and_others_only_counted() -> None:
    few = paper_plan(5, BEST, pairs=8, databases=3, epochs=400).runs
    # a single dimension holds nothing of several objects
    hopeless = [
        Run(run.database_id, run.database, LayerConfig(1, 1, 1, 1), 0, run.recipe,
            starts=Starts(2, "held"))
        for run in few[:1]
    ]  # fmt: skip
    table = layers.measured("some", [*few, *hopeless], lambda run, _: {"facts": len(run.database)})
    kept = layers.held(table)
    assert len(table) == 9
    assert not table["held_by_any"].iloc[-1]
    assert kept["facts"].tolist() == kept["n_triples"].tolist()
    assert layers.counts(table) == {"pairs": 9, "held": len(kept)}


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [([0.1, 0.2], "holds here"), ([0.1, 0.9], "holds here"), ([-0.1, 0.05], "not seen here"),
     ([-0.3, 0.1], "not tested"), ([-0.3, -0.2], "not seen here")],
)  # fmt: skip
def test_a_wide_interval_decides_nothing(interval: list[float], verdict: str) -> None:
    assert tau_widths._verdict(interval) == verdict
