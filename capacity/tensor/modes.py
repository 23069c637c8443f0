"""Other orders of the modes of a tensor, and parts of them; none has a larger rank."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.entries.coordinates import collected, integers
from capacity.tensor.sparse import SparseTensor


def permuted(tensor: SparseTensor, modes: Sequence[int]) -> SparseTensor:
    """Permute the modes of a tensor, as `numpy.transpose`.

    Parameters
    ----------
    tensor : SparseTensor
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
    tensor: SparseTensor, indices: Sequence[Sequence[int] | NDArray[np.integer] | None]
) -> SparseTensor:
    """Part of a tensor at some indices of each mode, as ``array[numpy.ix_(...)]``.

    Parameters
    ----------
    tensor : SparseTensor
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
