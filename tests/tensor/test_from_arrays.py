"""Tensors from arrays, entries and fractions: exact or refused in words."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from capacity.errors import InvalidArgumentError
from capacity.tensor import SparseTensor, from_coo, from_dense, from_fractions
from capacity.testing import integer_tensors

# ---- arrays -------------------------------------------------------------------------------------


@given(integer_tensors())
def test_a_tensor_comes_back_from_its_dense_array(tensor: SparseTensor) -> None:
    dense = tensor.to_numpy()
    for same in (
        dense, dense.tolist(), dense.astype(float), dense.astype(np.float32), dense.astype(object),
        np.asfortranarray(dense), tensor,
    ):  # fmt: skip
        assert from_dense(same) == tensor


def test_arrays_of_other_libraries_are_read() -> None:
    eye = from_dense([[1, 0], [0, 1]])
    for one in (
        coo_array(np.eye(2)), csr_array(np.eye(2, dtype=int)), np.eye(2, dtype=bool),
        np.eye(2, dtype=np.longdouble), np.eye(2, dtype=np.uint64), np.eye(2).tolist(),
    ):  # fmt: skip
        assert from_dense(one) == eye


def test_tensors_of_torch_are_read() -> None:
    torch = pytest.importorskip("torch")
    T = from_dense([[[3, 0], [0, -2]]])
    dense = torch.tensor(T.to_numpy())
    for one in (
        dense, dense.double(), dense.half(), dense.to(torch.bfloat16), dense.to_sparse(),
        dense.float().requires_grad_(),
    ):  # fmt: skip
        assert from_dense(one) == T
    with pytest.raises(InvalidArgumentError, match=r"got 0.5 at \[0, 0\]"):
        from_dense(torch.tensor([[0.5]]))


def test_decompositions_of_tensorly_are_multiplied_out() -> None:
    tensorly = pytest.importorskip("tensorly")
    # sum_r e_r (x) e_r (x) e_r
    cp = tensorly.cp_tensor.CPTensor((None, [np.eye(2)] * 3))
    assert from_dense(cp).indices.tolist() == [[0, 0, 0], [1, 1, 1]]


def test_large_integers_stay_exact() -> None:
    # numpy makes floats of [2^63 - 1, -1.0], which has no room for 2^63 - 1
    assert from_dense([2**63 - 1, -1.0]).values.tolist() == [2**63 - 1, -1]
    assert from_dense([2**53 + 1, 0.0]).values.tolist() == [2**53 + 1]
    assert from_dense([Fraction(6, 3), True]).values.tolist() == [2, 1]


WHOLE = "Entries must be integers from"
WRONG: dict[str, tuple[Any, str]] = {
    "ragged": ([[1], [1, 2]], "Lists at one depth must all have the same length"),
    "ragged deep down": ([[[1, 2]], [[1], [2]]], "same length"),
    "a fraction": ([[0, 0.5]], rf"{WHOLE}.*got 0.5 at \[0, 1\]. Multiply .*`from_fractions`"),
    "Fraction": ([Fraction(1, 3)], r"got Fraction\(1, 3\) at \[0\].*`from_fractions`"),
    "Decimal": ([Decimal("0.1")], r"got Decimal\('0.1'\) at \[0\].*`from_fractions`"),
    "nan": (np.array([[1, np.nan]]), r"got nan at \[0, 1\]. Replace what isn't finite"),
    "infinity": ([[np.inf]], "Replace what isn't finite"),
    # 2^53 + 1 would be rounded to 2^53
    "a float that may be rounded": ([2.0**53], "may have been rounded"),
    "a single one": (np.array([2**24], np.float32), "may have been rounded"),
    "a long integer": ([2**63], r"got 9223372036854775808 at \[0\]. Divide"),
    "the least of int64": (np.array([0, -(2**63)]), r"got -9223372036854775808 at \[1\]"),
    "the largest of uint64": (np.array([2**64 - 1], np.uint64), "Divide by a common factor"),
    "complex": ([[1j]], r"got 1j at \[0, 0\]. Pass the real and the imaginary part separately"),
    "complex array": (np.array([1j]), "an array of complex128"),
    "text": ([["1"]], "got '1' at .*Pass numbers alone"),
    "None": ([[1, None]], r"got None at \[0, 1\]. Pass numbers alone"),
    "an empty text": ([""], "Pass numbers alone"),
    "a set": ([{1}], "Pass numbers alone"),
    "a name": ("W.npy", "must be given as an array of numbers.*'W.npy'"),
    "a number": (3, "must be given as an array of numbers.*got 3"),
    "nothing": (None, "got None"),
    "an empty list": ([], r"`shape\[0\]` must be an integer of at least 1"),
    "an empty mode": (np.zeros((2, 0)), r"`shape\[1\]`"),
    "33 modes": (np.zeros((1,) * 33), "1 to 32 modes"),
    "masked": (np.ma.masked_array([1, 2], [False, True]), "masked entries"),
    "structured": (np.zeros(2, [("a", int)]), "an array of"),
    "dates": (np.array(["2020-01-01"], "datetime64[D]"), "an array of datetime64"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_array_of_integers_is_refused_in_words(what: str) -> None:
    given_array, reason = WRONG[what]
    with pytest.raises(InvalidArgumentError, match=reason) as error:
        from_dense(given_array)
    assert "np." not in str(error.value)


@pytest.mark.slow
def test_dense_arrays_of_a_hundred_million_entries_are_read() -> None:
    dense = np.zeros((500, 500, 400), np.int8)
    dense[::7, ::3, ::5] = 2
    # 72 x 167 x 80 of them
    assert from_dense(dense).n_entries == 961_920


# ---- entries ------------------------------------------------------------------------------------


@given(integer_tensors(), st.randoms(use_true_random=False))
def test_entries_may_come_in_any_order_and_in_parts(tensor: SparseTensor, random: Any) -> None:
    rows = [
        (place, part)
        for place, value in zip(tensor.indices.tolist(), tensor.values.tolist(), strict=True)
        # value = (value - 5) + 5, and a zero
        for part in (value - 5, 5, 0)
    ]
    random.shuffle(rows)
    indices = np.array([place for place, _ in rows], np.int64).reshape(-1, tensor.order)
    assert from_coo(indices, [part for _, part in rows], tensor.shape) == tensor


def test_the_shape_is_that_of_the_largest_indices_if_omitted() -> None:
    assert from_coo([[3, 0], [0, 4]], [1, 1.0]).shape == (4, 5)
    assert from_coo(np.zeros((0, 2), int), [], (4, 5)).n_entries == 0


def test_what_are_no_entries_is_refused_in_words() -> None:
    wrong: list[tuple[tuple[Any, ...], str]] = [
        (([[0, 0]], [1.5]), r"got 1.5 at \[0, 0\]"),
        (([[0.0, 1]], [1]), "`indices` must be integers"),
        (([0, 1], [1, 1]), "a row for each value"),
        (([[0, 1]], [1, 1]), "a row for each value"),
        (([[0, -1]], [1]), "Indices must lie from 0"),
        (([[0, 2**31]], [1]), "Indices must lie from 0"),
        (([[0, 5]], [1], (2, 2)), "within the shape"),
        ((np.zeros((0, 2), int), []), "must have a `shape`"),
        (([[0], [1, 2]], [1]), "different lengths"),
    ]
    for arguments, reason in wrong:
        with pytest.raises(InvalidArgumentError, match=reason):
            from_coo(*arguments)


# ---- fractions ----------------------------------------------------------------------------------


@given(integer_tensors(), st.integers(1, 99))
def test_fractions_are_multiplied_by_their_least_common_denominator(
    tensor: SparseTensor, n: int
) -> None:
    array = np.array([Fraction(x, n) for x in tensor.to_numpy().ravel().tolist()], object)
    scaled, denominator = from_fractions(array.reshape(tensor.shape))
    assert n % denominator == 0
    assert (n // denominator) * scaled == tensor
    # no smaller number makes all entries whole
    assert np.gcd.reduce([*scaled.values.tolist(), denominator]) == 1


def test_numbers_of_any_exact_kind_are_fractions() -> None:
    tensor, denominator = from_fractions([Decimal("0.1"), Fraction(1, 3), 2, np.int64(1), 2.0])
    assert (tensor.values.tolist(), denominator) == ([3, 10, 60, 30, 60], 30)
    assert from_fractions(np.eye(2)) == (from_dense(np.eye(2)), 1)
    # 2^62 / 3 and 1 / 5 have the denominator 15, and 5 * 2^62 has more than 63 bits
    wrong: list[tuple[Any, str]] = [
        ([[0, 0.1]], r"got 0.1 at \[0, 1\]. Write fractions.Fraction\(1, 10\)"),
        ([Decimal("NaN")], "must be fractions"),
        ([Decimal("1e999999999")], "must be fractions"),
        ([Fraction(2**62, 3), Fraction(1, 5)], "got 23058430092136939520 at"),
        ([[1], [1, 2]], "same length"),
    ]
    for array, reason in wrong:
        with pytest.raises(InvalidArgumentError, match=reason):
            from_fractions(array)
