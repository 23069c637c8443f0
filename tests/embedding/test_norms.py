"""Forster's bound by norms of signs, in integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import QueryGraph, dimension, verify_dimension
from capacity.embedding.proofs import SmallNorm
from capacity.embedding.signs import (
    SignMatrix,
    forster_bound,
    of_comparisons,
    of_objects,
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
