"""Walks in the flip graph over F_3, and lifts of what they find to the rationals."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.exact.words import packed_ternary, unpacked_ternary
from capacity.rank import RankAnalysis, rank_interval, verify
from capacity.rank.upper import walk_search
from capacity.rank.upper.binary_search import BINARY_FLIPS
from capacity.rank.upper.ternary.compiled_rows import echelon, reduce_row, sum_of
from capacity.rank.upper.ternary.lifting import ternary_lift
from capacity.rank.upper.ternary.search import TERNARY_FLIPS, TernaryLayout
from capacity.tensor import matrix_multiplication, named_tensor
from tests.rank.test_binary_flips import dense
from tests.tiers import examples

seeds = st.integers(0, 2**32 - 1)


def balanced(numbers: Any) -> Any:
    """Numbers modulo 3 as -1, 0 and 1."""
    return (numbers + 1) % 3 - 1


def drawn(seed: int, longest: int = 5, terms: int = 8) -> tuple[list[Any], Any]:
    """Factors over F_3 without zeros, and their sum, a tensor of integers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, terms + 1))
    factors = [rng.integers(-1, 2, (n, int(rng.integers(1, longest + 1)))) for _ in range(3)]
    for f in factors:
        f[np.arange(n), rng.integers(f.shape[1], size=n)] = rng.choice([-1, 1], n)
    return factors, np.einsum("ri,rj,rk->ijk", *factors)


# linear algebra


def test_words_are_added_as_numbers_modulo_3() -> None:
    pairs = np.array(list(itertools.product([-1, 0, 1], repeat=2)))
    (p, m), (q, n) = (packed_ternary(of[None])[0, 0] for of in pairs.T)
    found = unpacked_ternary(np.array([[sum_of(p, m, q, n)]]), len(pairs))[0]
    assert found.tolist() == balanced(pairs.sum(axis=1)).tolist()


@given(seed=seeds)
@settings(max_examples=examples(40), deadline=None)
def test_rows_of_an_echelon_form_are_independent_and_keep_their_combinations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 150))
    numbers = rng.integers(-1, 2, (n, m))
    assert (unpacked_ternary(packed_ternary(numbers), m) == numbers).all()
    beside = np.concatenate([packed_ternary(numbers), packed_ternary(np.eye(n, dtype=int))], axis=1)
    rows, pivots = beside.copy(), np.zeros(n, np.int64)
    words = (m + 63) // 64
    rank = echelon(rows, words, pivots)
    # of the number of different combinations of rows, 3^rank, as counted one by one
    every = itertools.product([-1, 0, 1], repeat=n)
    assert len({balanced(np.array(c) @ numbers).tobytes() for c in every}) == 3**rank
    for row in rows[:rank]:
        combination = unpacked_ternary(row[words:], n)
        assert (balanced(combination @ numbers) == unpacked_ternary(row[:words], m)).all()
    for row in beside:
        reduce_row(row, rows, pivots, rank)
        assert not row[:words].any()


# walks


@given(seed=seeds, longest=st.sampled_from([5, 64]), masked=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_a_walk_keeps_the_sum_wherever_it_is_observed(
    seed: int, longest: int, masked: bool
) -> None:
    factors, tensor = drawn(seed, longest)
    observed = np.random.default_rng(seed).random(tensor.shape[:2]) < 0.6 if masked else None
    layout = TernaryLayout(tensor, observed, seed)
    words = layout.words(factors)
    assert all((a == b).all() for a, b in zip(layout.factors(words), factors, strict=True))
    found, steps = layout.walked(words, 3000, 0, seed)
    assert steps <= 3000
    assert found.shape[1] <= words.shape[1]
    after = layout.factors(found)
    left = (np.einsum("ri,rj,rk->ijk", *after) - tensor) % 3
    assert not (left if observed is None else left[observed]).any()
    assert all(f.any(axis=1).all() for f in after)
    again, _ = layout.walked(words, 3000, 0, seed)
    assert (again == found).all()


def test_walks_are_shorter_where_the_flip_graph_has_shorter_ones() -> None:
    # Strassen: seven products in place of eight
    product = matrix_multiplication(2, 2, 2).to_numpy().astype(np.int64)
    places = np.argwhere(product)
    layout = TernaryLayout(product, None, 0)
    words = layout.words([np.eye(4, dtype=np.int64)[places[:, m]] for m in range(3)])
    assert [layout.walked(words, 10**6, 0, s)[0].shape[1] for s in range(3)] == [7, 7, 7]


# lifts


@given(seed=seeds, masked=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_what_is_lifted_adds_up_exactly(seed: int, masked: bool) -> None:
    factors, tensor = drawn(seed, 4, 6)
    rng = np.random.default_rng(seed)
    # the same modulo 3, and further away than any decomposition of this pattern needs to be
    other = tensor - 3 * rng.integers(-1, 2, tensor.shape) * (rng.random(tensor.shape) < 0.1)
    observed = rng.random(tensor.shape[:2]) < 0.7 if masked else None
    for target in (tensor, other):
        terms = ternary_lift(target, factors, observed)
        if target is tensor:
            # the factors are whole numbers that add up to it
            assert terms is not None
        if terms is None:
            continue
        assert len(terms) == len(factors[0])
        off = dense(terms, tensor.shape) != target
        assert not (off if observed is None else off[observed]).any()


def test_halves_are_found() -> None:
    # a x + b y is half the sum of (a + b) (x + y) and (a - b) (x - y), and a half is -1 modulo 3
    tensor = np.array([[[1, 0], [0, 1]]]).transpose(1, 2, 0)
    squares = np.array([[1, 1], [1, -1]])
    terms = ternary_lift(tensor, [squares, squares, np.array([[-1], [-1]])])
    assert terms is not None
    assert (dense(terms, tensor.shape) == tensor).all()
    assert any(x.denominator == 2 for term in terms for _, values in term for x in values)


def test_what_has_no_lift_is_none() -> None:
    # one term has rank 1, and this tensor only modulo 3
    ones = np.ones((1, 2), np.int64)
    assert ternary_lift(np.array([[[1, 1], [1, 4]]]), [np.ones((1, 1), int), ones, ones]) is None


# searches


def test_symmetric_matrices_take_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    # 14 products for two symmetric 3 x 3 matrices (arXiv 2511.10786); over F_2 walks stop at 15
    monkeypatch.setattr(walk_search, "STEPS_A_SQUARE", 10_000)
    tensor = named_tensor("symmetric-symmetric:3")
    found = {
        method: rank_interval(tensor, effort="standard", methods=[method])
        for method in (BINARY_FLIPS, TERNARY_FLIPS)
    }
    assert all(verify(one, tensor).proved for one in found.values())
    assert found[TERNARY_FLIPS].upper == 14 < found[BINARY_FLIPS].upper
    values = found[TERNARY_FLIPS].decomposition().matrices
    assert any(isinstance(x, Fraction) for of in values for x in of.ravel().tolist())


def test_longer_modes_are_left_to_other_walks() -> None:
    dense_one = np.zeros((65, 2, 65), np.int64)
    dense_one[np.arange(65), np.arange(65) % 2, np.arange(65)] = 1
    interval = rank_interval(dense_one, effort="standard", methods=[TERNARY_FLIPS])
    assert interval.certificates.upper.by != TERNARY_FLIPS.name


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
        found = RankAnalysis(db, effort="standard", methods=[TERNARY_FLIPS])
        again = RankAnalysis(db, effort="standard", methods=[TERNARY_FLIPS])
        for one, other in ((found.rank, again.rank), (found.effective_rank, again.effective_rank)):
            assert verify(one, db).proved
            assert one == other
    assert found.effective_rank.upper <= found.rank.upper
