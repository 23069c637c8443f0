"""Sums of terms by products of matrices are those of fractions, added up one by one."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.exact.types import Term, vector
from capacity.rank import verify_decomposition
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Entries, Refuted
from capacity.rank.verifier.procedures.blocked_sums import (
    _primes,
    integer_terms,
    sums_by_blocks,
)
from capacity.tensor import SparseTensor, as_tensor, kronecker, matrix_multiplication

# numbers whose sums take one pass, and several primes
SMALL = st.fractions(-3, 3, max_denominator=6)
LONG = st.fractions(max_denominator=10**30)


def summed(terms: Sequence[Term]) -> dict[tuple[int, ...], Fraction]:
    """The sum of some terms by definition, at all places where any term isn't 0."""
    total: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for term in terms:
        for parts in itertools.product(*(zip(*of, strict=True) for of in term)):
            x = Fraction(1)
            for _, value in parts:
                x *= value
            total[tuple(i for i, _ in parts)] += x
    return total


def by_blocks(terms: Sequence[Term], tensor: SparseTensor, *, effective: bool = False) -> Any:
    """Entries that the terms add up to, by place; or the reason why they don't."""
    budget = CheckBudget()
    entries = Entries(tensor, effective=effective, budget=budget)
    whole = integer_terms(terms, budget)
    assert whole is not None
    try:
        given_ = sums_by_blocks(whole, entries)
    except Refuted as refuted:
        return str(refuted)
    places = map(tuple, entries.indices[given_.rows].tolist())
    return dict(zip(places, given_.values.tolist(), strict=True))


@st.composite
def sums(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Term]]:
    """A shape of order 2 to 4, and terms that often cancel."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    numbers = draw(st.sampled_from([SMALL, LONG, st.integers(-2, 2).map(Fraction)]))
    terms: list[Term] = []
    for _ in range(draw(st.integers(1, 4))):
        vectors = [draw(st.lists(numbers, min_size=n, max_size=n)) for n in shape]
        terms.append(tuple(vector(range(len(of)), of) for of in vectors))
        if draw(st.booleans()):
            # the same term, taken away
            opposite = [[-x for x in vectors[0]], *vectors[1:]]
            terms.append(tuple(vector(range(len(of)), of) for of in opposite))
    return shape, terms


@given(case=sums(), effective=st.booleans(), data=st.data())
def test_sums_are_those_of_fractions(
    case: tuple[tuple[int, ...], list[Term]], effective: bool, data: st.DataObject
) -> None:
    shape, terms = case
    total = {place: x for place, x in summed(terms).items() if x}
    # the tensor has entries where the sum has, at one more place, or at one less
    places = set(total)
    change = data.draw(st.sampled_from(["same", "more", "less"]))
    if change == "more" or not places:
        places.add(tuple(data.draw(st.integers(0, n - 1)) for n in shape))
    if change == "less" and len(places) > 1:
        places.remove(data.draw(st.sampled_from(sorted(places))))
    tensor = SparseTensor(sorted(places), [1] * len(places), shape)
    observed = {place[:-1] for place in places}
    # for the effective rank only observed fibers count
    outside = [p for p in total if p not in places and (not effective or p[:-1] in observed)]
    inside = {p: x for p, x in total.items() if p in places}
    got = by_blocks(terms, tensor, effective=effective)
    if outside:
        assert isinstance(got, str)
    elif any(x.denominator > 1 or abs(x) >= 2**40 for x in inside.values()):
        assert "integer" in got or "too large" in got or "add up to 0" in got
    else:
        assert got == inside


def test_a_sum_that_all_the_first_primes_divide_isn_t_0() -> None:
    # the sum is 1 at (0, 0, 0), and at (1, 1, 1) the product of the largest primes below 2^20
    product = 1
    for p in itertools.islice(_primes(2**200), 6):
        product *= p
    first = tuple(vector([0], [1]) for _ in range(3))
    wrong = (vector([1], [product]), vector([1], [1]), vector([1], [1]))
    tensor = SparseTensor([(0, 0, 0)], [1], (2, 2, 2))
    assert "add up to 0 at (1, 1, 1)" in by_blocks([first, wrong], tensor)


@pytest.mark.parametrize("power", [26, 52, 53, 54, 60, 107])
def test_no_digit_is_lost_where_floats_would_round(power: int) -> None:
    # (2^power + 1) - 2^power = 1, which float64 rounds away from 2^53 on
    terms = [
        tuple(vector([0], [x]) for x in (2**power + 1, 1, 1)),
        tuple(vector([0], [x]) for x in (-(2**power), 1, 1)),
    ]
    here = SparseTensor([(0, 0, 0)], [1], (1, 1, 1))
    assert by_blocks(terms, here) == {(0, 0, 0): 1}
    # in other places nothing may be left, as small as it is
    elsewhere = SparseTensor([(0, 0, 1)], [1], (1, 1, 2))
    assert "add up to 0 at (0, 0, 0)" in by_blocks(terms, elsewhere)


def test_a_vector_without_entries_makes_its_term_0() -> None:
    # its other products are far beyond what floats hold
    empty = (vector([0], [10**300]), vector([0], [10**300]), vector([], []))
    one = tuple(vector([0], [1]) for _ in range(3))
    tensor = SparseTensor([(0, 0, 0)], [1], (1, 1, 1))
    assert by_blocks([empty, one], tensor) == {(0, 0, 0): 1}


def test_long_common_denominators_are_left_to_fractions() -> None:
    # the primes below 2,000 have a product of about 2,800 bits
    primes = [p for p in range(2, 2_000) if all(p % d for d in range(2, p))]
    terms = [(vector([0], [Fraction(1, p)]), vector([0], [1]), vector([0], [1])) for p in primes]
    assert integer_terms(terms, CheckBudget()) is None


def strassen_power(n: int) -> tuple[SparseTensor, list[np.ndarray]]:
    """The n-th power of Strassen's decomposition, and its tensor."""
    seven = [
        np.array([[1, 0, 1, 0, 1, -1, 0], [0, 0, 0, 0, 1, 0, 1],
                  [0, 1, 0, 0, 0, 1, 0], [1, 1, 0, 1, 0, 0, -1]]),
        np.array([[1, 1, 0, -1, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0],
                  [0, 0, 0, 1, 0, 0, 1], [1, 0, -1, 0, 1, 0, 1]]),
        np.array([[1, 0, 0, 1, -1, 0, 1], [0, 0, 1, 0, 1, 0, 0],
                  [0, 1, 0, 1, 0, 0, 0], [1, -1, 1, 0, 0, 1, 0]]),
    ]  # fmt: skip
    tensor, factors = matrix_multiplication(2, 2, 2), seven
    for _ in range(n - 1):
        tensor = kronecker(tensor, matrix_multiplication(2, 2, 2))
        factors = [np.kron(f, of) for f, of in zip(factors, seven, strict=True)]
    return tensor, factors


@pytest.mark.parametrize("denominator", [1, 8, 999_999_937])
def test_a_dense_rational_decomposition_of_49_terms_is_proved(denominator: int) -> None:
    tensor, factors = strassen_power(2)
    scaled = [factors[0] * Fraction(1, denominator), factors[1] * denominator, factors[2]]
    dense, changes = [], np.random.default_rng(0).integers(-1, 2, (3, 16, 16))
    # other bases make every vector dense: triangular matrices with 1 on the diagonal
    bases = [np.triu(of, 1) + np.eye(16, dtype=np.int64) for of in changes]
    array = tensor.to_numpy()
    for of, basis in zip(scaled, bases, strict=True):
        dense.append(basis.astype(object) @ of)
    array = np.einsum("abc,ia,jb,kc->ijk", array, *bases, optimize=True)
    changed = as_tensor(array)
    assert verify_decomposition(changed, dense).proved
    dense[2][5, 7] += Fraction(1, denominator)
    assert not verify_decomposition(changed, dense).proved
