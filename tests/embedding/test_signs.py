"""Shattered points, Forster's bound by norms of signs, and the sizes of exact scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.embedding import QueryGraph, dimension, joint_rank, verify_dimension
from capacity.embedding.proofs import SmallNorm
from capacity.embedding.signs import (
    SignMatrix,
    forster_bound,
    of_comparisons,
    of_objects,
    shattered_points,
    small_norm,
)
from tests.tiers import examples


def hadamard(power: int) -> np.ndarray:
    H = np.ones((1, 1), np.int8)
    for _ in range(power):
        H = np.kron(H, np.array([[1, 1], [1, -1]], np.int8))
    return H


@pytest.mark.parametrize("power", range(9))
def test_hadamard_matrices_need_the_root_of_their_order(power: int) -> None:
    expected = int(np.ceil(2 ** (power / 2) - 1e-9))
    assert forster_bound(hadamard(power)) == expected


@given(st.integers(0, 2**20), st.integers(1, 5))
@settings(max_examples=examples(60))
def test_no_bound_is_above_the_dimension_of_planted_scores(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 80, 2)
    signs = np.sign(rng.normal(size=(m, d)) @ rng.normal(size=(d, n))).astype(np.int8)
    assert forster_bound(signs) <= d
    signs[rng.random(signs.shape) < 0.1] = 0
    found = small_norm(SignMatrix("objects", signs, np.arange(n), np.arange(m)), seed)
    if found is not None:
        assert found.dimension <= d
        part = signs[np.ix_(found.rows, found.points)]
        assert part.all()
        # the norm itself proves no more than one more
        norm = np.linalg.norm(part.astype(float), 2)
        assert found.dimension <= np.ceil(np.sqrt(part.size) / norm + 1e-9)


def test_a_part_without_zeros_is_sought() -> None:
    H = hadamard(4).copy()
    wide = np.zeros((20, 19), np.int8)
    wide[3:19, 2:18] = H
    wide[:, 18] = 1
    found = small_norm(SignMatrix("objects", wide, np.arange(19), np.arange(20)), 0)
    assert found is not None
    assert found.dimension == 4
    assert small_norm(SignMatrix("objects", 0 * wide, np.arange(19), np.arange(20)), 0) is None


def test_two_answers_that_are_signs_of_a_hadamard_matrix() -> None:
    H = hadamard(4)
    db = Database.from_triples(
        [(f"s{i}", f"r{j}", "ab"[int(x > 0)]) for i, row in enumerate(H) for j, x in enumerate(row)]
    )
    graph = QueryGraph.of(db)
    found = small_norm(of_comparisons(graph), 0)
    assert found is not None
    assert found.dimension == 4
    assert (small := small_norm(of_objects(graph), 0)) is not None
    assert small.dimension <= 2
    bounds = dimension(db, "CP", witness=False)
    assert any(isinstance(one.certificate, SmallNorm) for one in bounds.reasons)
    assert verify_dimension(bounds, db).proved
    assert bounds.necessary is not None
    assert bounds.necessary >= 4


def is_shattered(signs: np.ndarray, points: np.ndarray, found: np.ndarray) -> bool:
    rows = signs[np.ix_(found, points)]
    seen = {tuple(row * row[0]) for row in rows.tolist() for row in [np.array(row)]}
    expected = {(1, *rest) for rest in itertools.product((1, -1), repeat=len(points) - 1)}
    return seen == expected if len(points) else not len(found)


@given(st.integers(0, 2**20))
@settings(max_examples=examples(100))
def test_every_pattern_occurs_on_shattered_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 60), rng.integers(1, 9)
    signs = rng.choice([-1, 0, 1], (m, n), p=[0.45, 0.1, 0.45]).astype(np.int8)
    points, rows = shattered_points(signs, seed=seed)
    assert is_shattered(signs, points, rows)
    assert len({*points.tolist()}) == len(points)
    assert len(points) <= 1 + np.log2(len(np.unique(signs, axis=0)))
    # greed may miss some, and never finds more than there are
    if n <= 5:
        best = max(
            (size for size in range(1, n + 1) for points in itertools.combinations(range(n), size)
             if is_pattern_complete(signs[:, points])), default=0,
        )  # fmt: skip
        assert min(best, 1) <= len(points) <= best


def is_pattern_complete(signs: np.ndarray) -> bool:
    rows = signs[(signs != 0).all(axis=1)]
    return len({tuple(row * row[0]) for row in rows}) == 2 ** (signs.shape[1] - 1)


@pytest.mark.parametrize("m", [1, 2, 5, 9])
def test_all_patterns_up_to_negation_are_as_many_points(m: int) -> None:
    half = [(1, *rest) for rest in itertools.product((1, -1), repeat=m - 1)]
    assert len(shattered_points(np.array(half, np.int8))[0]) == m
    if m > 1:
        assert len(shattered_points(np.array(half[1:], np.int8))[0]) < m


def test_a_low_dimension_is_never_exceeded() -> None:
    rng = np.random.default_rng(0)
    for d in range(1, 6):
        signs = np.sign(rng.normal(size=(400, d)) @ rng.normal(size=(d, 12))).astype(np.int8)
        assert len(shattered_points(signs)[0]) <= d


@given(st.integers(0, 2**20))
@settings(max_examples=examples(40))
def test_sizes_of_exact_scores_are_ranks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    db = random_database(seed, triples=(3, 40))
    graph = QueryGraph.of(db)
    assert graph.n_facts == db.n_triples
    assert graph.answers.sum() == db.n_triples
    assert (graph.n_queries, graph.n_named) == (len({(s, q) for s, q, _ in db.triples.tolist()}),
                                                db.shape[2])  # fmt: skip
    n = int(rng.integers(2, 6))
    facts = rng.integers(0, n, (int(rng.integers(2, 12)), 3))
    facts[:, 1] %= 2
    both = Database.from_triples(
        [(f"e{s}", f"r{q}", f"e{o}") for s, q, o in facts.tolist()], multi="keep"
    )
    mine = QueryGraph.of(both, shared=True)
    T = np.zeros((mine.n_entities, mine.shape[1], mine.n_entities))
    T[tuple(mine.triples.T)] = 1
    stacked = np.concatenate([T.reshape(len(T), -1), T.transpose(2, 0, 1).reshape(len(T), -1)], 1)
    assert joint_rank(mine) == np.linalg.matrix_rank(stacked)
    # its column space carries exact scores
    E = np.linalg.svd(stacked)[0][:, : joint_rank(mine)]
    assert np.allclose(np.einsum("ai,aqb,bj,ci,dj->cqd", E, T, E, E, E), T)
