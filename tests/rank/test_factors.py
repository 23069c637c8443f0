"""Decompositions as matrices: out of certificates, and of one's own."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.rank import AlgebraicNumber, rank_interval, verify_decomposition
from capacity.tensor import cyclic_group, from_coo, from_dense, group_algebra, w_state
from tests.tiers import examples

W = w_state(3)
TERMS = rank_interval(W).decomposition()


def test_numbers_of_a_field_are_rounded_right_for_long_coefficients() -> None:
    # 10^30 sqrt(2) - floor(10^30 sqrt(2)): the digits of sqrt(2) from the 31st on
    n = isqrt(2 * 10**60)
    number = AlgebraicNumber((-2, 0, 1), Fraction(1), Fraction(2), (Fraction(-n), Fraction(10**30)))
    digits = isqrt(2 * 10**100) - n * 10**20
    assert float(number) == pytest.approx(digits / 10**20, rel=1e-15)


def test_a_decomposition_may_come_in_any_order_of_memory_and_from_tensorly() -> None:
    given = [np.asfortranarray(of.astype(float)) for of in TERMS.matrices]
    assert verify_decomposition(W, given).proved
    assert verify_decomposition(W, TERMS.to_tensorly()).proved
    given[0][0, 0] += 1
    assert not verify_decomposition(W, given).proved


def test_what_is_no_exact_decomposition_is_refused_in_words() -> None:
    with pytest.raises(InvalidArgumentError, match="A numerical fit proves nothing"):
        verify_decomposition(W, [of + 0.3 for of in TERMS.matrices])
    with pytest.raises(InvalidArgumentError, match="a matrix for each of 3 modes"):
        verify_decomposition(W, TERMS.matrices[:2])
    with pytest.raises(InvalidArgumentError, match="the same number of columns"):
        verify_decomposition(W, [TERMS.matrices[0][:, :2], *TERMS.matrices[1:]])
    with pytest.raises(InvalidArgumentError, match="a matrix for each of 2 modes"):
        verify_decomposition([[1, 0], [0, 1]], TERMS)


def test_matrices_that_no_memory_holds_are_refused_before_they_are_made() -> None:
    n = 3000
    tensor = from_coo([[i * 1000] * 3 for i in range(n)], [1] * n, (2**31 - 1,) * 3)
    interval = rank_interval(tensor)
    assert interval.upper == n
    with pytest.raises(MemoryBudgetError, match="1,073,741,824 bytes"):
        interval.decomposition()


@pytest.mark.slow
def test_a_decomposition_over_a_field_multiplies_out() -> None:
    tensor = group_algebra(cyclic_group(5))
    factors = rank_interval(tensor, effort="standard").decomposition()
    assert verify_decomposition(tensor, factors).proved
    a, b, c = factors.to_floats()
    assert np.einsum("ir,jr,kr->ijk", a, b, c) == pytest.approx(tensor.to_numpy())
    assert any(isinstance(x, AlgebraicNumber) for of in factors.matrices for x in of.ravel())


def of_two_slices(seed: int) -> np.ndarray:
    """Two slices with blocks of all kinds, in other bases, and combinations of both."""
    rng = np.random.default_rng(seed)
    blocks = [
        [np.eye(n, n + 1, 0), np.eye(n, n + 1, 1)] if kind == 0
        else [np.eye(n + 1, n, 0), np.eye(n + 1, n, -1)] if kind == 1
        else [np.eye(2), np.array([[0, 1], [rng.choice([-1, 1, 2]), 0]])] if kind == 2
        else [np.eye(n), rng.integers(-1, 2) * np.eye(n) + np.eye(n, k=1) * rng.integers(2)]
        for kind, n in rng.integers([0, 1], [4, 4], (int(rng.integers(1, 4)), 2))
    ]  # fmt: skip
    shape = np.sum([b[0].shape for b in blocks], axis=0)
    slices, at = np.zeros((2, *shape), np.int64), np.zeros(2, int)
    for block in blocks:
        end = at + block[0].shape
        slices[:, at[0] : end[0], at[1] : end[1]] = block
        at = end
    for mode in (1, 2):
        n = slices.shape[mode]
        change = np.triu(rng.integers(-1, 2, (n, n)), 1) + np.eye(n, dtype=np.int64)
        slices = np.moveaxis(np.tensordot(change, slices, (1, mode)), 0, mode)
    mixed = np.concatenate([slices, np.tensordot(rng.integers(-1, 2, (2, 2)), slices, 1)])
    return mixed.transpose(rng.permutation(3))


@given(st.integers(0, 10**6))
@settings(max_examples=examples(60), deadline=None)
def test_pencils_are_decomposed(seed: int) -> None:
    tensor = from_dense(of_two_slices(seed))
    interval = rank_interval(tensor, methods=["pencil"])
    if interval.certificates.upper.by != "pencil":
        return
    factors = interval.decomposition()
    assert factors.rank == interval.upper
    assert verify_decomposition(tensor, factors).proved


def test_roots_of_a_high_degree_have_no_explicit_terms_here() -> None:
    # the three real roots of x^3 - 3 x + 1 are 2 cos(2 pi k / 9), of degree 3
    companion = [[0, 0, -1], [1, 0, 3], [0, 1, 0]]
    interval = rank_interval([np.eye(3, dtype=int).tolist(), companion], methods=["pencil"])
    assert interval == (3, 3)
    with pytest.raises(InvalidArgumentError, match="it rests on an argument of the kind 'pencil'"):
        interval.decomposition()
