"""Tensors made of others: orders of the modes and parts of them, sums of blocks, and products.

Every result is exact: an entry of more than 63 bits is refused. A tensor whose modes are in another
order, or a part of it, has no larger rank.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (outer
products, factor matrices); P. Bürgisser, M. Clausen, M. A. Shokrollahi, Algebraic Complexity
Theory, 1997, chapter 14 (direct sums and Kronecker products of bilinear maps).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import checked_shape, collected, integers, products, require_room
from capacity.tensor.given_tensors import TensorLike, as_tensor
from capacity.tensor.sparse import SparseTensor


def permuted(tensor: TensorLike, modes: Sequence[int]) -> SparseTensor:
    """Permute the modes of a tensor, as `numpy.transpose`.

    Parameters
    ----------
    tensor : SparseTensor, or what `as_tensor` takes
        Tensor of any order.
    modes : sequence of int
        For each mode of the result, the mode of `tensor` that it is.

    Returns
    -------
    SparseTensor
        Of the same rank.

    Raises
    ------
    InvalidArgumentError
        Unless each mode occurs once.

    Examples
    --------
    >>> permuted(SparseTensor([[0, 2]], [1], (2, 3)), (1, 0))
    SparseTensor(3 x 2, 1 entry from 1 to 1)
    """
    tensor = as_tensor(tensor)
    try:
        order = [index(mode) for mode in modes]
    except TypeError:
        order = []
    if sorted(order) != list(range(tensor.order)):
        raise InvalidArgumentError(
            f"`modes` must have each of the modes 0 to {tensor.order - 1} once; got {shown(modes)}."
        )
    shape = [tensor.shape[mode] for mode in order]
    return SparseTensor(*collected(tensor.indices[:, order], tensor.values), shape)


def sub_tensor(
    tensor: TensorLike, indices: Sequence[Sequence[int] | NDArray[np.integer] | None]
) -> SparseTensor:
    """Return the part of a tensor at some indices of each mode, as ``array[numpy.ix_(...)]``.

    Parameters
    ----------
    tensor : SparseTensor, or what `as_tensor` takes
        Tensor of any order.
    indices : sequence of sequences of int
        For each mode the indices to keep, each once, in any order, which the result has too; None
        for all of them.

    Returns
    -------
    SparseTensor
        Of at most the rank of `tensor`.

    Raises
    ------
    InvalidArgumentError
        If there isn't an item for each mode, or indices are outside of the shape, occur twice, or
        are none.

    Examples
    --------
    >>> T = SparseTensor([[0, 0], [1, 1]], [5, 7], (2, 2))
    >>> sub_tensor(T, [[1, 0], None]).to_numpy().tolist()
    [[0, 7], [5, 0]]
    """
    tensor = as_tensor(tensor)
    if len(indices) != tensor.order:
        raise InvalidArgumentError(
            f"`indices` must have an item for each of {tensor.order} modes; got {len(indices)}."
        )
    rows, values, shape = tensor.indices, tensor.values, list(tensor.shape)
    for mode, kept in enumerate(indices):
        if kept is None:
            continue
        chosen = integers(kept, f"indices[{mode}]").ravel()
        inside = len(chosen) and 0 <= int(chosen.min()) <= int(chosen.max()) < tensor.shape[mode]
        if not inside or len(np.unique(chosen)) != len(chosen):
            raise InvalidArgumentError(
                f"indices[{mode}] must be distinct indices from 0 to {tensor.shape[mode] - 1}, at "
                f"least one; got {shown(chosen.tolist())}."
            )
        order = np.argsort(chosen)
        at = np.searchsorted(chosen, rows[:, mode], sorter=order).clip(max=len(chosen) - 1)
        found = chosen[order[at]] == rows[:, mode]
        rows, values = rows[found].copy(), values[found]
        rows[:, mode] = order[at[found]]
        shape[mode] = len(chosen)
    return SparseTensor(*collected(rows, values), shape)


def direct_sum(*tensors: TensorLike) -> SparseTensor:
    """Sum tensors of one order in blocks of their own.

    Its rank is at most the sum of the ranks. It can be less for tensors of order three or more
    (Shitov 2019), but not if all summands but one have a mode of one or two indices (order three:
    Jaja, Takche 1986) or are diagonal.

    Parameters
    ----------
    *tensors : SparseTensor, or what `as_tensor` takes
        At least one, of any shapes.

    Returns
    -------
    SparseTensor
        Its sizes are the sums of the sizes.

    Raises
    ------
    InvalidArgumentError
        If the tensors differ in order, or a mode would have more than 2^31 - 1 indices.

    Examples
    --------
    >>> direct_sum(SparseTensor([[0, 0]], [2], (1, 2)), SparseTensor([[0, 0]], [3], (1, 1)))
    SparseTensor(2 x 3, 2 entries from 2 to 3)
    """
    summands = _of_one_order("direct_sum", tensors)
    shapes = [summand.shape for summand in summands]
    ends = np.cumsum([(0,) * len(shapes[0]), *shapes], axis=0)
    shape = checked_shape(ends[-1])
    # blocks lie in ascending order in every mode
    indices = np.concatenate(
        [summand.indices + at for summand, at in zip(summands, ends[:-1], strict=True)]
    )
    return SparseTensor(indices, np.concatenate([summand.values for summand in summands]), shape)


def kronecker(*tensors: TensorLike) -> SparseTensor:
    """Compute the Kronecker product of tensors of one order, mode by mode as `numpy.kron`.

    Its rank is at most the product of the ranks, and often less.

    Parameters
    ----------
    *tensors : SparseTensor, or what `as_tensor` takes
        At least one.

    Returns
    -------
    SparseTensor
        Its sizes are the products of the sizes.

    Raises
    ------
    InvalidArgumentError
        If the tensors differ in order, a mode would have more than 2^31 - 1 indices, or an entry
        more than 63 bits.
    MemoryBudgetError
        If the entries would take more than 1 GiB.

    Examples
    --------
    >>> I = SparseTensor([[0, 0], [1, 1]], [1, 1], (2, 2))
    >>> kronecker(I, 3 * I)
    SparseTensor(4 x 4, 4 entries from 3 to 3)
    """
    return reduce(_kronecker, _of_one_order("kronecker", tensors))


def _kronecker(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    shape = checked_shape([n * m for n, m in zip(a.shape, b.shape, strict=True)])
    require_room(a.n_entries * b.n_entries, a.order)
    indices = a.indices[:, None] * np.array(b.shape) + b.indices
    values = products(a.values[:, None], b.values)
    return SparseTensor(*collected(indices.reshape(-1, a.order), values.ravel()), shape)


def outer(*tensors: TensorLike) -> SparseTensor:
    """Compute the outer product, with the modes of all tensors one after the other.

    Parameters
    ----------
    *tensors : SparseTensor, or what `as_tensor` takes
        At least one, of any orders.

    Returns
    -------
    SparseTensor
        Its order is the sum of the orders.

    Raises
    ------
    InvalidArgumentError
        If the order is over 32, or an entry has more than 63 bits.
    MemoryBudgetError
        If the entries would take more than 1 GiB.

    Examples
    --------
    >>> outer(SparseTensor([[1]], [2], (2,)), SparseTensor([[0]], [5], (3,)))
    SparseTensor(2 x 3, 1 entry from 10 to 10)
    """
    return reduce(_outer, _tensors("outer", tensors))


def _outer(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    shape = checked_shape(a.shape + b.shape)
    require_room(a.n_entries * b.n_entries, len(shape))
    indices = np.hstack(
        [np.repeat(a.indices, b.n_entries, axis=0), np.tile(b.indices, (a.n_entries, 1))]
    )
    values = products(a.values[:, None], b.values)
    return SparseTensor(*collected(indices, values.ravel()), shape)


def simple_tensor(*vectors: ArrayLike) -> SparseTensor:
    """Compute the outer product of integer vectors, of rank one if no vector is zero.

    Parameters
    ----------
    *vectors : array_like of int, shape (n,)
        One for each mode.

    Returns
    -------
    SparseTensor
        Its order is the number of vectors.

    Raises
    ------
    InvalidArgumentError
        If a vector isn't one of integers, or an entry has more than 63 bits.

    Examples
    --------
    >>> simple_tensor([1, 2], [0, 3]).to_numpy().tolist()
    [[0, 3], [0, 6]]
    """
    return from_factors([np.asarray(vector)[..., None] for vector in vectors])


def from_factors(factors: Sequence[ArrayLike]) -> SparseTensor:
    """Sum simple tensors, which are given by factor matrices.

    Parameters
    ----------
    factors : sequence of array_like of int, each of shape (n, rank)
        A matrix for each mode, with a column for each simple tensor, as tensorly and others write
        a CP decomposition.

    Returns
    -------
    SparseTensor
        Of rank at most `rank`.

    Raises
    ------
    InvalidArgumentError
        If the factors aren't matrices of integers with the same number of columns, or an entry has
        more than 63 bits.
    MemoryBudgetError
        If the entries of all simple tensors would take more than 1 GiB.

    Examples
    --------
    >>> from_factors([[[1, 1], [0, 1]], [[1, 0], [1, 1]]]).to_numpy().tolist()
    [[1, 2], [0, 1]]
    """
    matrices = [integers(M, f"factors[{mode}]") for mode, M in enumerate(factors)]
    shapes = [M.shape for M in matrices]
    if not all(len(s) == 2 for s in shapes) or len({s[-1] for s in shapes}) != 1:
        raise InvalidArgumentError(
            "`factors` must be a matrix for each mode, all with the same number of columns; got "
            f"shapes {shown(shapes)}."
        )
    shape = checked_shape([n for n, _ in shapes])
    counts = np.array([np.count_nonzero(M, axis=0) for M in matrices]).astype(object)
    require_room(int(counts.prod(axis=0).sum()), len(shape))
    indices: list[NDArray[np.int64]] = [np.zeros((0, len(shape)), np.int64)]
    values: list[NDArray[Any]] = [np.zeros(0, np.int64)]
    for columns in zip(*(M.T for M in matrices), strict=True):
        places = [np.flatnonzero(column) for column in columns]
        grid = np.meshgrid(*places, indexing="ij")
        indices.append(np.stack([axis.ravel() for axis in grid], axis=1))
        entries = (column[at] for column, at in zip(columns, places, strict=True))
        values.append(reduce(lambda a, b: products(a[:, None], b).ravel(), entries))
    return SparseTensor(*collected(np.concatenate(indices), np.concatenate(values)), shape)


def _tensors(name: str, given: Sequence[TensorLike]) -> list[SparseTensor]:
    """Return arguments as tensors, of which there must be one."""
    if not given:
        raise InvalidArgumentError(f"`{name}` needs at least one tensor; got none.")
    return [as_tensor(one) for one in given]


def _of_one_order(name: str, given: Sequence[TensorLike]) -> list[SparseTensor]:
    """Return arguments as tensors, which must have one order."""
    tensors = _tensors(name, given)
    orders = sorted({tensor.order for tensor in tensors})
    if len(orders) > 1:
        raise InvalidArgumentError(
            f"The tensors of `{name}` must have one order; got orders {orders}."
        )
    return tensors
