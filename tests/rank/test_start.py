"""A decomposition that is handed in bounds the rank, and searches go on from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import InvalidArgumentError
from capacity.rank import RankAnalysis, rank_interval, verify, verify_decomposition
from capacity.rank.reductions.subtensor import restricted
from capacity.rank.upper import walk_search
from capacity.rank.upper.binary_search import BINARY_FLIPS
from capacity.rank.upper.walk_starts import as_terms
from capacity.tensor import from_dense, kronecker, matrix_multiplication
from tests.rank.test_binary_flips import dense
from tests.tiers import examples

STRASSEN = [
    ([1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]), ([0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, -1]),
    ([1, 0, 0, 0], [0, 1, 0, -1], [0, 1, 0, 1]), ([0, 0, 0, 1], [-1, 0, 1, 0], [1, 0, 1, 0]),
    ([1, 1, 0, 0], [0, 0, 0, 1], [-1, 1, 0, 0]), ([-1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]),
    ([0, 1, 0, -1], [0, 0, 1, 1], [1, 0, 0, 0]),
]  # fmt: skip


def strassen() -> list[Any]:
    return [np.array([term[mode] for term in STRASSEN]).T for mode in range(3)]


def test_the_upper_end_is_the_number_of_its_terms() -> None:
    product = matrix_multiplication(2, 2, 2)
    # without methods, the sum of the ranks of slices
    assert rank_interval(product, methods=[]).upper == 8
    interval = rank_interval(product, start=strassen(), methods=["Alder-Strassen"])
    assert interval == (7, 7)
    assert interval.explanation[1] == "at most 7: 7 by the given start"
    assert verify(interval, product).proved
    assert verify_decomposition(product, interval.decomposition()).proved
    # its Kronecker square multiplies matrices of four rows, by 49 products in place of 64
    squared = kronecker(product, product)
    both = [np.kron(of, of) for of in strassen()]
    found = rank_interval(squared, start=both, methods=["Alder-Strassen"])
    assert found.upper == 49
    assert verify(found, squared).proved


def test_searches_go_on_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # eight products, two of which are one: walks over F_2 find seven
    monkeypatch.setattr(walk_search, "STEPS_A_SQUARE", 1_000)
    a, b, c = strassen()
    halves = [np.hstack([a, a[:, :1]]), np.hstack([b, b[:, :1]]), np.hstack([c, c[:, :1]])]
    halves[2][:, 0], halves[2][:, -1] = [1, 0, 0, 0], [0, 0, 0, 1]
    product = matrix_multiplication(2, 2, 2)
    assert verify_decomposition(product, halves).proved
    found = rank_interval(product, start=halves, effort="standard", methods=[BINARY_FLIPS])
    assert found.upper == 7
    assert found.certificates.upper.by == BINARY_FLIPS.name


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(40), deadline=None)
def test_a_start_of_several_components_bounds_each_and_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # a direct sum of two tensors, each a sum of up to three drawn terms
    factors = [rng.integers(-1, 2, (2, 3, int(rng.integers(1, 4)))) for _ in range(3)]
    whole = []
    for of in factors:
        n = of.shape[2]
        rows = np.zeros((6, 2 * n), int)
        rows[:3, :n], rows[3:, n:] = of[0], of[1]
        whole.append(rows)
    tensor = np.einsum("ri,rj,rk->ijk", *whole)
    given_start = [of.T for of in whole]
    interval = rank_interval(from_dense(tensor), start=given_start)
    assert verify(interval, from_dense(tensor)).proved
    assert interval.upper <= 6
    # terms that are zero, or cancel, are no part of what is restricted
    indices = tuple(np.arange(n) for n in tensor.shape)
    kept = restricted(as_terms((whole[0], whole[1], whole[2])), indices)
    assert (dense(kept, tensor.shape) == tensor).all()


def test_terms_across_components_count_once() -> None:
    # T = x (x) x (x) x + y (x) y (x) y by terms of (x + y) and (x - y), which are of both
    plus, minus = [1, 1], [1, -1]
    factors = [
        np.array([plus, plus, minus, minus]).T,
        np.array([plus, minus, plus, minus]).T,
        np.array([plus, minus, minus, plus]).T,
    ]
    tensor = 4 * np.eye(2, dtype=int)[:, :, None] * np.eye(2, dtype=int)[None, :, :]
    found = rank_interval(from_dense(tensor), start=factors)
    assert found == (2, 2)


def test_what_is_no_decomposition_is_refused() -> None:
    product = matrix_multiplication(2, 2, 2)
    a, b, c = strassen()
    with pytest.raises(InvalidArgumentError, match=r"`start` must be .* add up to -1 at"):
        rank_interval(product, start=[a, b, -c])
    with pytest.raises(InvalidArgumentError, match="a matrix for each of 3 modes"):
        rank_interval(product, start=[a, b])
    with pytest.raises(InvalidArgumentError, match="with \\(4, 4, 4\\) rows"):
        rank_interval(product, start=[a[:3], b, c])


def test_the_effective_rank_starts_from_the_ranks_decomposition() -> None:
    db = Database.from_triples([("a", "p", "y"), ("a", "q", "x"), ("b", "p", "x")])
    tensor = db.tensor()
    start = [np.zeros((n, 3), int) for n in tensor.shape]
    for r, place in enumerate(tensor.indices.tolist()):
        for of, i in zip(start, place, strict=True):
            of[i, r] = 1
    analysis = RankAnalysis(db, start=start)
    assert analysis.rank == (3, 3)
    assert analysis.effective_rank.upper <= 3
