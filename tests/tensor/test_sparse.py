"""Sparse tensors: arithmetic is exact, and what isn't a tensor is refused in words."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.tensor import SparseTensor, from_coo, from_dense
from capacity.testing import integer_tensors

LARGE = 2**62
lib: Any = SparseTensor


def pair() -> st.SearchStrategy[tuple[SparseTensor, SparseTensor]]:
    """Two tensors of one shape, which each fit the shape of the first."""
    return st.tuples(integer_tensors(), integer_tensors()).map(
        lambda two: (two[0], from_dense(np.resize(two[1].to_numpy(), two[0].shape)))
    )


@given(pair(), st.integers(-9, 9))
def test_arithmetic_is_that_of_the_dense_arrays(
    two: tuple[SparseTensor, SparseTensor], factor: int
) -> None:
    a, b = two
    for mine, theirs in (
        (a + b, a.to_numpy() + b.to_numpy()),
        (a - b, a.to_numpy() - b.to_numpy()),
        (-a, -a.to_numpy()),
        (factor * a, factor * a.to_numpy()),
        (a * factor, factor * a.to_numpy()),
    ):
        assert np.array_equal(mine.to_numpy(), theirs)
        # equal tensors are the same for a set and for a certificate
        assert mine == from_dense(theirs)
        assert mine.sha256 == from_dense(theirs).sha256
        assert hash(mine) == hash(from_dense(theirs))


def test_integers_of_numpy_are_factors_and_floats_are_not() -> None:
    T = from_dense([[1, 0], [0, 2]])
    assert np.int64(3) * T == T * np.int32(3) == 3 * T
    assert 0 * T == T - T
    wrong: Any = 0.5
    for product in (lambda: wrong * T, lambda: T * wrong, lambda: T + wrong, lambda: T * T):
        with pytest.raises(TypeError, match="unsupported operand"):
            product()
    with pytest.raises(InvalidArgumentError, match=r"one shape; got \(2, 2\) and \(2, 3\)"):
        _ = T + from_dense([[1, 0, 0], [0, 2, 0]])


def test_a_result_of_more_than_63_bits_is_refused() -> None:
    T = from_dense([0, LARGE])
    # 2^62 + 2^62 = 2^63 is one too many; (2^62 - 1) + 2^62 = 2^63 - 1 isn't
    for total in (lambda: T + T, lambda: 2 * T, lambda: -2 * T, lambda: -T - T):
        with pytest.raises(InvalidArgumentError, match=r"at \[1\] would be -?9223372036854775808"):
            total()
    assert (T + from_dense([0, LARGE - 1])).largest == 2**63 - 1
    assert (T - T).n_entries == 0


def test_sums_in_any_order_are_exact() -> None:
    # the partial sums 2^63 and 3 2^62 have more than 63 bits, the sum hasn't
    values = [LARGE, LARGE, LARGE, -LARGE, -LARGE]
    assert from_coo([[0, 0]] * 5, values).values.tolist() == [LARGE]


def test_places_and_values_are_checked() -> None:
    wrong: list[tuple[tuple[Any, Any, Any], str]] = [
        (([[0, 2]], [1], (2, 2)), r"within the shape \(2, 2\), counted from 0; got \[0, 2\]"),
        (([[1, 0], [0, 0]], [1, 1], (2, 2)), "ascending order. Use `from_coo`"),
        (([[0, 0], [0, 0]], [1, 1], (2, 2)), "distinct"),
        (([[0, 0]], [0], (2, 2)), "must not be zero"),
        (([[0, 0]], [0.5], (2, 2)), "must be integers; got an array of float64"),
        (([[0, 0]], [2**63], (2, 2)), "one of more bits"),
        (([[0, 0]], [-(2**63)], (2, 2)), "one of more bits"),
        (([[0, 0]], [1, 2], (2, 2)), "a row for each value"),
        (([[0], [0, 1]], [1, 2], (2, 2)), "lists of different lengths"),
        (([[0, 0]], [1], (2, 0)), r"`shape\[1\]` must be an integer of at least 1"),
        (([[0, 0]], [1], "22"), "a size for each mode"),
        (([[0] * 33], [1], (2,) * 33), "1 to 32 modes"),
        (([[0, 0]], [1], (2, 2**31)), "at most 2,147,483,647"),
    ]
    for arguments, reason in wrong:
        with pytest.raises(InvalidArgumentError, match=reason):
            SparseTensor(*arguments)


def test_a_tensor_never_changes() -> None:
    indices, values = np.array([[0, 1]]), np.array([5])
    T = SparseTensor(indices, values, [2, 2])
    indices[0, 0], values[0] = 1, 7
    assert (T.indices.tolist(), T.values.tolist()) == ([[0, 1]], [5])
    with pytest.raises(ValueError, match="read-only"):
        T.values[0] = 1


def test_digests_tell_shapes_and_entries_apart() -> None:
    tensors = [
        SparseTensor([[0, 1]], [1], (2, 2)), SparseTensor([[0, 1]], [1], (2, 3)),
        SparseTensor([[0, 1]], [2], (2, 2)), SparseTensor([[1, 0]], [1], (2, 2)),
        SparseTensor([[0, 1, 0]], [1], (2, 2, 1)),
    ]  # fmt: skip
    assert len({tensor.sha256 for tensor in tensors}) == len(tensors) == len(set(tensors))


def test_a_dense_array_over_the_budget_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(MemoryBudgetError, match=r"would take 8,000,000,000,000"):
        SparseTensor([[0, 0]], [1], (10**6, 10**6)).to_numpy()


def test_what_is_shown_is_short() -> None:
    assert repr(from_dense([[1, 0]])) == "SparseTensor(1 x 2, 1 entry from 1 to 1)"
    assert repr(from_dense([[0, 0]])) == "SparseTensor(1 x 2, zero)"
    assert len(repr(SparseTensor([[0] * 32], [1], (2**31 - 1,) * 32))) <= 200
    assert "<table>" in from_dense([[1, 0]])._repr_html_()
