"""Walks through decompositions that a cyclic permutation of the modes preserves."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.exact.types import Term
from capacity.rank import rank_interval, verify
from capacity.rank.method import Goal, Problem
from capacity.rank.options import BUDGETS
from capacity.rank.upper.symmetric.identification import identification
from capacity.rank.upper.symmetric.search import (
    PATIENCE,
    SLACK,
    SYMMETRIC_FLIPS,
    SymmetricLayout,
    expanded,
    orbits_of_entries,
    orbits_of_fibers,
    representatives,
    symmetric_flips,
)
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor import matrix_multiplication, named_tensor
from tests.rank.test_binary_flips import sum_of
from tests.tiers import examples

seeds = st.integers(0, 2**32 - 1)


def turned(tensor: Any, seed: int) -> Any:
    """A tensor with the indices of each mode in a random order."""
    rng = np.random.default_rng(seed)
    return tensor[np.ix_(*(rng.permutation(n) for n in tensor.shape))]


def product_of_pattern(pattern: Any) -> Any:
    """The trace of A B C, for matrices whose other entries than those of a pattern are 0."""
    places = {place: i for i, place in enumerate(map(tuple, np.argwhere(pattern).tolist()))}
    tensor = np.zeros((len(places),) * 3, np.int64)
    for (i, j), a in places.items():
        for (k, m), b in places.items():
            if j == k and (m, i) in places:
                tensor[a, b, places[m, i]] = 1
    return tensor


def all_but(n: int, *without: tuple[int, int]) -> Any:
    pattern = np.ones((n, n), bool)
    for place in without:
        pattern[place] = False
    return product_of_pattern(pattern)


def drawn(seed: int) -> Any:
    """A random tensor of bits that a cyclic permutation preserves."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    tensor = np.zeros((n, n, n), bool)
    for i, j, k in rng.integers(0, n, (int(rng.integers(1, 15)), 3)):
        tensor[i, j, k] = tensor[j, k, i] = tensor[k, i, j] = True
    return tensor


def shortest(tensor: Any, *, lower: int = 1, seed: int = 0) -> list[Term]:
    """The last decomposition of a third of the work of `standard`; its terms, after a check."""
    work, limits = BUDGETS["standard"].work // 3, BUDGETS["standard"].limits
    terms: list[Term] = []
    for (found,) in symmetric_flips(Problem(tensor), Goal(lower, 10**6, work, limits, seed)):
        assert isinstance(found, Decomposition)
        terms = list(found.terms)
        assert (sum_of_terms(terms, tensor.shape) == tensor).all()
    return terms


def sum_of_terms(terms: list[Term], shape: tuple[int, ...]) -> Any:
    total = np.full(shape, Fraction(0))
    for term in terms:
        for place in product(*(zip(*vector, strict=True) for vector in term)):
            (i, a), (j, b), (k, c) = place
            total[i, j, k] += a * b * c
    return total


def layout_of(bits: Any, seed: int = 0) -> SymmetricLayout:
    here = np.arange(len(bits))
    return SymmetricLayout(bits.astype(np.int64), (here, here, here), seed)


# what it reaches


def test_matrices_without_an_entry_take_fewer_terms_than_plain_walks_find() -> None:
    # the trace of A B C for 4 x 4 matrices without an entry each: 46 terms by the plain walks with
    # three times the work
    tensor = turned(all_but(4, (0, 0)), 0)
    assert len(shortest(tensor, lower=44)) <= 44


def test_few_steps_reach_the_lengths_of_plain_walks_for_matrices() -> None:
    # Strassen's 7, and 23 for 3 x 3 x 3 matrices, within 300,000 steps of any start
    for n, length in ((2, 7), (3, 23)):
        bits = matrix_multiplication(n, n, n).to_numpy() != 0
        indices = identification(bits, 0)
        assert indices is not None
        layout = SymmetricLayout(bits.astype(np.int64), indices, 0)
        of = bits[np.ix_(*indices)]
        rng = np.random.default_rng(0)
        for start in (orbits_of_entries(of), orbits_of_fibers(of, rng)):
            words, steps = layout.walked(expanded(start), 300_000, length, 0)
            assert words.shape[1] == length
            assert steps < 300_000
            # in the tensor's own order of indices
            factors = [f.astype(np.int64) for f in layout.factors(words)]
            assert ((sum_of(factors) - bits) % 2 == 0).all()


def test_signs_and_larger_entries_are_lifted() -> None:
    # 3 x 3 determinants are cyclic; in some signs of the indices they are so modulo 2 alone
    signs = np.array([1, -1, 1])
    determinant = named_tensor("determinant:3").to_numpy().astype(np.int64) * signs
    assert len(shortest(determinant)) == 5
    # 3 is 1 modulo 2; the slices' quotient has the eigenvalues 1 and -1 by the root of 3, which
    # aren't rational, so two rational terms aren't enough
    threefold = np.zeros((2, 2, 2), np.int64)
    threefold[0, 0, 0], threefold[0, 1, 1], threefold[1, 0, 1], threefold[1, 1, 0] = 3, 1, 1, 1
    assert len(shortest(threefold)) == 3


def test_it_is_for_cyclic_tensors_alone() -> None:
    # the mode that is permuted to has other numbers of entries in its slices
    uneven = np.array([[[1, 1], [1, 1]], [[1, 0], [0, 0]]])
    for tensor in (matrix_multiplication(2, 2, 3).to_numpy(), uneven[:, :, ::-1] - uneven):
        assert shortest(tensor) == []


def test_the_certificate_names_the_method() -> None:
    tensor = named_tensor("matrices:2x2x2")
    upper = rank_interval(tensor, effort="standard", methods=[SYMMETRIC_FLIPS]).certificates.upper
    assert (upper.value, upper.by) == (7, "symmetric flip graph over F_2")
    assert verify(upper, tensor).proved


def test_the_same_seed_gives_the_same_decomposition() -> None:
    tensor = all_but(3, (0, 0))
    first, second, other = (shortest(tensor, lower=17, seed=seed) for seed in (3, 3, 4))
    assert len(first) == len(other) == 17
    assert first == second != other


# the symmetry


@given(seed=seeds)
@settings(max_examples=examples(60), deadline=None)
def test_a_cyclic_tensor_is_recognised_in_any_order_of_its_indices(seed: int) -> None:
    tensor = turned(drawn(seed), seed)
    found = identification(tensor, 0)
    # a search that gives up would be no error, but on these it doesn't
    assert found is not None
    of = tensor[np.ix_(*found)]
    assert (of == of.transpose(1, 2, 0)).all()
    assert all(sorted(order.tolist()) == list(range(len(order))) for order in found)


def test_matrices_and_groups_are_recognised_in_any_order() -> None:
    for name in ("matrices:3x3x3", "matrices:4x4x4", "groups:9", "symmetric:3", "sl:3"):
        bits = named_tensor(name).to_numpy() % 2 != 0
        for seed in range(3):
            assert identification(turned(bits, seed), 0) is not None, name


# walks


@given(seed=seeds, steps=st.sampled_from([1, 30, 3000, 20 * PATIENCE]))
@settings(max_examples=examples(60), deadline=None)
def test_a_walk_keeps_the_sum_and_the_symmetry(seed: int, steps: int) -> None:
    bits, rng = drawn(seed), np.random.default_rng(seed)
    layout = layout_of(bits, seed)
    for start in (orbits_of_entries(bits), orbits_of_fibers(bits, rng)):
        words = expanded(start)
        assert (sum_of([f.astype(np.int64) for f in layout.factors(words)]) % 2 == bits).all()
        found, done = layout.walked(words, steps, 0, 0)
        assert done <= steps
        assert found.shape[1] <= words.shape[1]
        factors = layout.factors(found)
        assert (sum_of([f.astype(np.int64) for f in factors]) % 2 == bits).all()
        assert all(f.any(axis=1).all() for f in factors)
        chosen = representatives(found)
        assert chosen is not None
        assert (expanded(chosen) == found).all()
        again, _ = layout.walked(words, steps, 0, 0)
        assert (again == found).all()


@given(seed=seeds)
@settings(max_examples=examples(60), deadline=None)
def test_each_move_keeps_the_sum_of_orbits(seed: int) -> None:
    from capacity.rank.upper.symmetric.walk import exchanged, plus, total, without_zeros

    rng = np.random.default_rng(seed)
    n, side = int(rng.integers(2, 7)), 3
    chosen = rng.integers(1, 2**side, (n, 3)).astype(np.uint64)
    # some are cubes, and some have factors whose sum is 0, which exchanges need
    chosen[rng.random(n) < 0.5] = rng.integers(1, 2**side, 1)[0]
    chosen[0] = [1, 2, 3]
    layout = layout_of(np.zeros((side,) * 3, bool))

    def tensor_of(flat: Any, n: int) -> Any:
        words = expanded(flat[: 3 * n].reshape(-1, 3))
        return sum_of([f.astype(np.int64) for f in layout.factors(words)]) % 2

    room = np.zeros(3 * (n + SLACK + 4), np.uint64)
    room[: 3 * n] = chosen.ravel()
    before = tensor_of(room, n)
    state = rng.integers(1, 2**64, 1, dtype=np.uint64)
    for exchanges in (True, False):
        length = total(room, n)
        more = exchanged(room, n, state) if exchanges else plus(room, n, state, SLACK)
        if more >= 0:
            n = more
        n = without_zeros(room, n)
        assert (tensor_of(room, n) == before).all()
        assert total(room, n) <= length + SLACK
