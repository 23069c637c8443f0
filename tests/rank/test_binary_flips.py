"""Walks in the flip graph over F_2, and lifts of what they find to the rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.exact.binary_rows import echelon, reduce_row
from capacity.exact.types import Term
from capacity.exact.words import packed, unpacked
from capacity.rank import RankAnalysis, rank_interval, verify
from capacity.rank.upper import binary_search, walk_search
from capacity.rank.upper.binary_search import BINARY_FLIPS, BinaryLayout
from capacity.rank.upper.lifting import rational_lift
from capacity.tensor import matrix_multiplication
from tests.tiers import examples

seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, longest: int = 5, terms: int = 8) -> tuple[list[Any], Any]:
    """Factors over F_2 without zeros, and their sum, a tensor of integers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, terms + 1))
    factors = [rng.random((n, int(rng.integers(1, longest + 1)))) < 0.5 for _ in range(3)]
    for f in factors:
        f[np.arange(n), rng.integers(f.shape[1], size=n)] = True
    return factors, sum_of([f.astype(np.int64) for f in factors])


def sum_of(factors: list[Any]) -> Any:
    return np.einsum("ri,rj,rk->ijk", *factors)


def dense(terms: list[Term], shape: tuple[int, ...]) -> Any:
    total = np.full(shape, Fraction(0))
    for term in terms:
        rows = []
        for (indices, values), n in zip(term, shape, strict=True):
            row = np.full(n, Fraction(0))
            row[list(indices)] = values
            rows.append(row)
        total = total + np.multiply.outer(np.multiply.outer(rows[0], rows[1]), rows[2])
    return total


# linear algebra


@given(seed=seeds)
@settings(max_examples=examples(50), deadline=None)
def test_bits_come_back_and_rows_of_an_echelon_form_are_independent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 12)), int(rng.integers(1, 150))
    bits = rng.random((n, m)) < 0.3
    assert (unpacked(packed(bits), m) == bits).all()
    rows, pivots = packed(bits), np.zeros(n, np.int64)
    rank = echelon(rows, rows.shape[1], pivots)
    # of the number of different sums of rows, 2^rank, as counted one by one
    sums = {b"": np.zeros(m, bool)}
    for row in bits:
        sums = {x.tobytes(): x for y in sums.values() for x in (y, y ^ row)}
    assert len(sums) == 2**rank
    # each row is a sum of those
    for row in packed(bits):
        reduce_row(row, rows, pivots, rank)
        assert not row.any()


# walks


@given(seed=seeds, longest=st.sampled_from([5, 90]), masked=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_a_walk_keeps_the_sum_wherever_it_is_observed(
    seed: int, longest: int, masked: bool
) -> None:
    # 90 coefficients are two words, and are compared by keys
    factors, tensor = drawn(seed, longest)
    observed = np.random.default_rng(seed).random(tensor.shape[:2]) < 0.6 if masked else None
    layout = BinaryLayout(tensor, observed, seed)
    words = layout.words(factors)
    found, steps = layout.walked(words, 3000, 0, seed)
    assert steps <= 3000
    assert found.shape[1] <= words.shape[1]
    after = layout.factors(found)
    left = (sum_of([f.astype(np.int64) for f in after]) - tensor) % 2
    assert not (left if observed is None else left[observed]).any()
    assert all(f.any(axis=1).all() for f in after)
    again, _ = layout.walked(words, 3000, 0, seed)
    assert (again == found).all()


def test_walks_are_shorter_where_the_flip_graph_has_shorter_ones() -> None:
    # Strassen: seven products in place of eight
    product = matrix_multiplication(2, 2, 2).to_numpy()
    places = np.argwhere(product)
    factors = [np.eye(4, dtype=bool)[places[:, m]] for m in range(3)]
    layout = BinaryLayout(product, None, 0)
    lengths = [layout.walked(layout.words(factors), 10**6, 0, s)[0].shape[1] for s in range(3)]
    assert lengths == [7, 7, 7]


# lifts


@given(seed=seeds, masked=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_what_is_lifted_adds_up_exactly(seed: int, masked: bool) -> None:
    factors, tensor = drawn(seed, 4, 6)
    rng = np.random.default_rng(seed)
    # the same modulo 2, and further away than any decomposition of this pattern needs to be
    other = tensor - 2 * rng.integers(-1, 2, tensor.shape) * (rng.random(tensor.shape) < 0.1)
    observed = rng.random(tensor.shape[:2]) < 0.7 if masked else None
    for target in (tensor, other):
        terms = rational_lift(target, factors, observed)
        if target is tensor:
            # the factors are whole numbers that add up to it
            assert terms is not None
        if terms is None:
            continue
        assert len(terms) == len(factors[0])
        off = dense(terms, tensor.shape) != target
        assert not (off if observed is None else off[observed]).any()


def test_signs_and_fractions_are_found() -> None:
    # x - y = (x - y) 1: the pattern of ones has two solutions over F_2, of which one has signs
    ones = np.ones((1, 2), bool)
    terms = rational_lift(np.array([[[1, -1], [-1, 1]]]), [np.ones((1, 1), bool), ones, ones])
    assert terms is not None
    assert (dense(terms, (1, 2, 2)) == np.array([[[1, -1], [-1, 1]]])).all()
    # a third of the sum of three equal terms is no whole number: 1 = 3 * (1/3)
    tensor = np.array([[[1, 0], [0, 0]], [[0, 0], [0, 3]]])
    factors = [np.eye(2, dtype=bool)] * 3
    found = rational_lift(tensor, factors)
    assert found is not None
    assert (dense(found, tensor.shape) == tensor).all()


def test_what_has_no_lift_is_none() -> None:
    # one term has rank 1 over F_2 and not over the rationals: 3 x 3 - 1 isn't 0, but is even
    tensor = np.array([[[1, 1], [1, 3]]])
    ones = np.ones((1, 2), bool)
    assert rational_lift(tensor, [np.ones((1, 1), bool), ones, ones]) is None


# searches


@pytest.mark.parametrize(
    ("sides", "rank"), [((2, 2, 2), 7), ((2, 2, 3), 11), ((2, 3, 3), 15), ((3, 3, 3), 23)]
)
def test_products_of_matrices_have_the_known_number_of_terms(
    sides: tuple[int, int, int], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Strassen; Hopcroft and Kerr 1971; Laderman 1976
    monkeypatch.setattr(walk_search, "STEPS_A_SQUARE", 10_000)
    tensor = matrix_multiplication(*sides)
    interval = rank_interval(tensor, effort="standard", methods=[BINARY_FLIPS])
    assert interval.upper == rank
    assert interval.certificates.upper.by == BINARY_FLIPS.name
    assert verify(interval, tensor).proved


def test_a_decomposition_over_f_2_alone_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # the sum of three units has rank 3 over the rationals, but 2 over F_2 less a sign: what
    # doesn't lift is never told, whatever the walks find
    monkeypatch.setattr(binary_search, "rational_lift", lambda *_: None)
    interval = rank_interval(
        matrix_multiplication(2, 2, 2), effort="standard", methods=[BINARY_FLIPS]
    )
    assert interval.certificates.upper.by != BINARY_FLIPS.name
    assert interval.upper == 8


@given(seed=seeds)
@settings(max_examples=examples(10), deadline=None)
def test_both_ranks_of_databases_are_bounded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, q, v = (int(rng.integers(2, 5)) for _ in range(3))
    cells = [(i, j, rng.integers(v)) for i in range(k) for j in range(q) if rng.random() < 0.8]
    if not cells:
        return
    db = Database.from_triples([(f"k{a}", f"q{b}", f"v{c}") for a, b, c in cells])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk_search, "STEPS_A_SQUARE", 1_000)
        found = RankAnalysis(db, effort="standard", methods=[BINARY_FLIPS])
        again = RankAnalysis(db, effort="standard", methods=[BINARY_FLIPS])
        for one, other in ((found.rank, again.rank), (found.effective_rank, again.effective_rank)):
            assert verify(one, db).proved
            assert one == other
            assert one.certificates.upper.by == other.certificates.upper.by
    assert found.effective_rank.upper <= found.rank.upper
