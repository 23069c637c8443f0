"""Operations on tensors are those of dense arrays, and exact."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.tensor import (
    SparseTensor,
    direct_sum,
    from_dense,
    from_factors,
    grouped,
    kronecker,
    outer,
    permuted,
    simple_tensor,
    sub_tensor,
)
from capacity.testing import integer_tensors
from tests.tiers import examples

TWO = from_dense([[1, 0], [0, 2]])
ORDER_3 = integer_tensors(min_order=3, max_order=3, max_side=3)


def dense_of(tensor: SparseTensor) -> np.ndarray:
    return tensor.to_numpy(np.int64)


# ---- blocks and products ------------------------------------------------------------------------


@given(ORDER_3, ORDER_3, ORDER_3)
def test_direct_sums_have_their_summands_as_blocks(
    a: SparseTensor, b: SparseTensor, c: SparseTensor
) -> None:
    total = dense_of(direct_sum(a, b))
    at = tuple(slice(n) for n in a.shape)
    behind = tuple(slice(n, None) for n in a.shape)
    assert np.array_equal(total[at], dense_of(a))
    assert np.array_equal(total[behind], dense_of(b))
    assert np.count_nonzero(total) == a.n_entries + b.n_entries
    assert direct_sum(a, b, c) == direct_sum(direct_sum(a, b), c)


@given(ORDER_3, ORDER_3)
def test_kronecker_products_are_numpys(a: SparseTensor, b: SparseTensor) -> None:
    product = kronecker(a, b)
    assert product == from_dense(np.kron(dense_of(a), dense_of(b)))
    assert product.shape == tuple(n * m for n, m in zip(a.shape, b.shape, strict=True))


@given(integer_tensors(max_order=2), integer_tensors(max_order=3))
def test_outer_products_are_numpys(a: SparseTensor, b: SparseTensor) -> None:
    product = outer(a, b)
    assert product == from_dense(np.multiply.outer(dense_of(a), dense_of(b)))
    # a Kronecker product is an outer product whose modes are taken together in pairs
    if a.order == b.order and a.n_entries and b.n_entries:
        pairs = [[mode, mode + a.order] for mode in range(a.order)]
        where = np.unique(kronecker(a, b).indices[:, 0])
        assert grouped(product, pairs).shape[0] == len(where)
        assert np.array_equal(np.sort(grouped(product, pairs).values),
                              np.sort(kronecker(a, b).values))  # fmt: skip


@given(st.integers(1, 4), st.integers(0, 3), st.data())
@settings(max_examples=examples(100))
def test_factor_matrices_give_the_sum_of_their_simple_tensors(
    order: int, rank: int, data: st.DataObject
) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 3)] * order))
    factors = [
        np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n * rank, max_size=n * rank)))
        .reshape(n, rank).astype(np.int64)
        for n in shape
    ]  # fmt: skip
    total = from_factors(factors)
    letters = "abcd"[:order]
    subscripts = ",".join(f"{letter}r" for letter in letters) + "->" + letters
    assert np.array_equal(dense_of(total), np.einsum(subscripts, *factors))
    parts = [simple_tensor(*(M[:, r] for M in factors)) for r in range(rank)]
    assert sum(parts[1:], parts[0]) == total if parts else not total.n_entries


def test_products_of_more_than_63_bits_are_refused_and_their_sums_are_not() -> None:
    large = 2**40
    # 2^80 - 2^80 + 2^2
    factors = [[[large, -large, 2]], [[large, large, 2]]]
    assert from_factors(factors).values.tolist() == [4]
    for product in (
        lambda: simple_tensor([1, large], [0, large]),
        lambda: kronecker(large * TWO, large * TWO),
        lambda: outer(large * TWO, large * TWO),
    ):
        with pytest.raises(InvalidArgumentError, match=r"63 - 1; the entry at .* would be"):
            product()
    # three factors whose first product alone is too long
    assert simple_tensor([large], [large], [0]).n_entries == 0


def test_wrong_operands_are_refused_in_words() -> None:
    line: Any = from_dense([1])
    array: Any = np.eye(2)
    wide = SparseTensor([[0, 0]], [1], (2**20, 2**20))
    full = from_dense(np.ones((2**7, 2**7), int))
    for call, kind, reason in (
        (lambda: direct_sum(), InvalidArgumentError, "needs at least one tensor"),
        (lambda: direct_sum(TWO, line), InvalidArgumentError, r"must have one order; .* \[1, 2\]"),
        (lambda: kronecker(TWO, 0.5 * array), InvalidArgumentError, "must be"),
        (lambda: outer(open), InvalidArgumentError, "must be given as an array"),
        (lambda: kronecker(wide, wide), InvalidArgumentError, "at most 2,147,483,647"),
        (lambda: outer(*[TWO] * 17), InvalidArgumentError, "1 to 32 modes"),
        (lambda: outer(full, full), MemoryBudgetError, "would take 10,737,418,240"),
        (lambda: from_factors([]), InvalidArgumentError, "a matrix for each mode"),
        (lambda: from_factors([[[1]], [[1, 2]]]), InvalidArgumentError, "number of columns"),
        (lambda: from_factors([[[1, 2], [1]]]), InvalidArgumentError, "different lengths"),
        (lambda: simple_tensor([0.5]), InvalidArgumentError, "must be integers"),
        (lambda: simple_tensor(), InvalidArgumentError, "a matrix for each mode"),
        (lambda: from_factors([np.ones((2**14, 1), int)] * 2), MemoryBudgetError, "would take"),
    ):
        with pytest.raises(kind, match=reason):
            call()


# ---- modes --------------------------------------------------------------------------------------


@given(integer_tensors(), st.data())
def test_permutations_of_modes_are_transpositions(
    tensor: SparseTensor, data: st.DataObject
) -> None:
    modes = data.draw(st.permutations(range(tensor.order)))
    turned = permuted(tensor, modes)
    assert turned == from_dense(np.transpose(dense_of(tensor), modes))
    assert permuted(turned, np.argsort(modes)) == tensor  # type: ignore[arg-type]


def test_exchanging_two_modes_twice_changes_nothing() -> None:
    T = from_dense(np.arange(24).reshape(2, 3, 4))
    assert permuted(permuted(T, (0, 2, 1)), (0, 2, 1)) == T != permuted(T, (0, 2, 1))


@given(integer_tensors(max_order=4), st.data())
def test_parts_are_those_of_the_dense_array(tensor: SparseTensor, data: st.DataObject) -> None:
    kept = [
        data.draw(st.none() | st.lists(st.integers(0, n - 1), min_size=1, unique=True))
        for n in tensor.shape
    ]
    where = [range(n) if one is None else one for one, n in zip(kept, tensor.shape, strict=True)]
    assert sub_tensor(tensor, kept) == from_dense(dense_of(tensor)[np.ix_(*where)])


@given(integer_tensors(min_order=3, max_order=4))
def test_groups_of_modes_are_matricizations_without_zero_rows(tensor: SparseTensor) -> None:
    rows, columns = [1, 0], list(range(2, tensor.order))
    matrix = np.transpose(dense_of(tensor), rows + columns)
    matrix = matrix.reshape(matrix.shape[0] * matrix.shape[1], -1)
    mine = dense_of(grouped(tensor, [rows, columns]))
    matrix = matrix[matrix.any(axis=1)]
    if len(columns) > 1:
        matrix = matrix[:, matrix.any(axis=0)]
    if tensor.n_entries:
        assert np.array_equal(mine, matrix)
    else:
        assert not mine.any()


def test_wrong_modes_are_refused_in_words() -> None:
    modes: Any = [(0, 0), (0,), (0, 1, 2), (0, 0.5), (1, -1)]
    for wrong in modes:
        with pytest.raises(InvalidArgumentError, match="each of the modes 0 to 1 once"):
            permuted(TWO, wrong)
    for groups in ([[0]], [[0, 1], []], [[0], [0, 1]]):
        with pytest.raises(InvalidArgumentError, match="modes once"):
            grouped(TWO, groups)
    indices: Any = [[[0], [2]], [[0, 0], [1]], [[], [1]], [[-1], [1]], [[0.5], [1]]]
    for wrong in indices:
        with pytest.raises(InvalidArgumentError, match=r"indices\[\d\].* must be"):
            sub_tensor(TWO, wrong)
    with pytest.raises(InvalidArgumentError, match="an item for each of 2 modes; got 1"):
        sub_tensor(TWO, [[0]])


def test_large_sides_take_no_memory() -> None:
    T = SparseTensor([[5, 0], [2**30, 7]], [1, 2], (2**31 - 1, 8))
    assert permuted(T, (1, 0)).shape == (8, 2**31 - 1)
    assert sub_tensor(T, [[2**30, 5, 6], None]).values.tolist() == [2, 1]
    assert grouped(T, [[0, 1]]).shape == (2,)


def test_operations_take_arrays_and_lists() -> None:
    # what as_tensor takes stands for the tensor that it makes
    rows, tensor = [[1, 0], [2, -1]], from_dense([[1, 0], [2, -1]])
    assert kronecker(np.array(rows), rows) == kronecker(tensor, tensor)
    assert direct_sum(rows, tensor) == direct_sum(tensor, tensor)
    assert outer(rows, [3, 4]) == outer(tensor, from_dense([3, 4]))
    assert permuted(rows, (1, 0)) == permuted(tensor, (1, 0))
    assert sub_tensor(rows, [[0], None]) == sub_tensor(tensor, [[0], None])
