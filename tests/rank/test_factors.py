"""Decompositions as matrices: out of certificates, and of one's own."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.rank import AlgebraicNumber, rank_interval, verify_decomposition
from capacity.tensor import cyclic_group, from_coo, group_algebra, w_state

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
