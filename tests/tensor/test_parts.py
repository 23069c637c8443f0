"""Indexing, unfoldings and products along a mode are those of the dense array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.errors import CapacityError
from capacity.tensor import SparseTensor, as_tensor, w_state
from capacity.testing import integer_tensors

KEYS = [0, -1, (0, 1), (0, 1, 0), (..., 1), (0, ..., 1), slice(None), slice(1, None),
        (slice(None), 1), (slice(None), [1, 0]), ([1], slice(None), 0),
        (slice(None, None, -1), ...), np.array([1, 0]),
        (slice(None), np.array([True, False]))]  # fmt: skip


def dense(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, (2, 2, 2))


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_parts_are_those_of_numpy(key: Any, seed: int) -> None:
    array = dense(seed)
    got, want = as_tensor(array)[key], array[key]
    if np.ndim(want) == 0:
        assert type(got) is int
        assert got == want
    else:
        assert isinstance(got, SparseTensor)
        assert got.to_numpy().tolist() == want.tolist()


def test_a_tensor_yields_its_slices() -> None:
    assert list(w_state(3)) == [w_state(3)[0], w_state(3)[1]]
    assert list(as_tensor([5, 0])) == [5, 0]


@pytest.mark.parametrize(
    "key", [2, -3, (0, 0, 0, 0), "a", 0.5, True, None, slice(2, None), [], [0, 0], [2],
            (..., ...)], ids=str,
)  # fmt: skip
def test_what_chooses_no_part_is_refused_in_words(key: Any) -> None:
    with pytest.raises(CapacityError, match=r"[Ii]ndic|index"):
        _ = w_state(3)[key]


@given(integer_tensors(), st.data())
def test_unfoldings_are_those_of_numpy(tensor: SparseTensor, data: Any) -> None:
    mode = data.draw(st.integers(-tensor.order, tensor.order - 1))
    rows = tensor.shape[mode]
    wanted = np.moveaxis(tensor.to_numpy(), mode, 0).reshape(rows, -1)
    assert tensor.unfolding(mode).to_numpy().tolist() == wanted.tolist()


@given(integer_tensors(), st.data())
def test_products_along_a_mode_are_those_of_numpy(tensor: SparseTensor, data: Any) -> None:
    mode = data.draw(st.integers(0, tensor.order - 1))
    shape = (data.draw(st.integers(1, 3)), tensor.shape[mode])
    matrix = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-2, 3, shape)
    wanted = np.moveaxis(np.tensordot(matrix, tensor.to_numpy(), (1, mode)), 0, mode)
    assert tensor.mode_product(matrix, mode).to_numpy().tolist() == wanted.tolist()
    assert tensor.mode_product(as_tensor(matrix), mode) == as_tensor(wanted)


def test_products_are_exact_or_refused() -> None:
    # 2^62 + 2^62 has 64 bits
    big = as_tensor([2**62, 2**62])
    with pytest.raises(CapacityError, match=r"2\^63"):
        big.mode_product([[1, 1]], 0)
    assert big.mode_product([[1, -1]], 0).n_entries == 0


@pytest.mark.parametrize("matrix", [[[1, 0, 0]], [1, 0], [[0.5, 1]], [[1], [2]]], ids=str)
def test_other_matrices_are_refused(matrix: Any) -> None:
    with pytest.raises(CapacityError, match=r"matrix|[Aa]rray"):
        w_state(3).mode_product(matrix, 1)
    with pytest.raises(CapacityError, match="`mode` must be"):
        w_state(3).mode_product([[1, 0]], 3)
    with pytest.raises(CapacityError, match="columns"):
        SparseTensor([[0, 0, 0]], [1], (2, 2**20, 2**20)).unfolding(0)
