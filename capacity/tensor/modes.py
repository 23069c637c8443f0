"""Other orders, groups and parts of the modes of a tensor; none has a larger rank.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009
(matricization).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.limits import shown
from capacity.tensor.coordinates import collected, integers, numbered
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
    order = _require_each_mode_once("modes", modes, tensor.order)
    shape = [tensor.shape[mode] for mode in order]
    return SparseTensor(*collected(tensor.indices[:, order], tensor.values), shape)


def grouped(tensor: SparseTensor, groups: Sequence[Sequence[int]]) -> SparseTensor:
    """Join the modes of each group to one, as a matricization joins them to two.

    The rank of the result is at most that of the tensor, because a simple tensor becomes a simple
    one: the vectors of a group's modes become their outer product, a vector. And so does each part
    of it, which is why combinations of indices that have no entry need no index of their own.

    Parameters
    ----------
    tensor : SparseTensor
        Tensor of any order.
    groups : sequence of sequences of int
        Modes, each in one group.

    Returns
    -------
    SparseTensor
        Of order ``len(groups)``. The indices of a mode are the combinations of indices of its group
        at which the tensor has an entry, in ascending (lexicographic) order; a zero tensor has one
        index in each mode.

    Raises
    ------
    InvalidArgumentError
        Unless each mode occurs once, and each group has a mode.

    Examples
    --------
    The three-qubit W state as a matrix, of rank two:

    >>> W = SparseTensor([[0, 0, 1], [0, 1, 0], [1, 0, 0]], [1, 1, 1], (2, 2, 2))
    >>> grouped(W, [[0, 1], [2]]).to_numpy().tolist()
    [[0, 1], [1, 0], [1, 0]]
    """
    of = [list(group) for group in groups if isinstance(group, Sequence | np.ndarray)]
    if len(of) != len(groups) or not all(of):
        raise InvalidArgumentError(
            f"`groups` must be sequences of modes, none of them empty; got {shown(groups)}."
        )
    _require_each_mode_once("groups", [mode for group in of for mode in group], tensor.order)
    parts = [numbered(tensor.indices[:, group]) for group in of]
    shape = [max(1, len(used)) for used, _ in parts]
    indices = np.stack([numbers for _, numbers in parts], axis=1)
    return SparseTensor(*collected(indices, tensor.values), shape)


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


def _require_each_mode_once(name: str, modes: Sequence[int], order: int) -> list[int]:
    """Return modes as a list of ints in which each mode occurs once."""
    try:
        given = [index(mode) for mode in modes]
    except TypeError:
        given = []
    if sorted(given) != list(range(order)):
        raise InvalidArgumentError(
            f"`{name}` must have each of the modes 0 to {order - 1} once; got {shown(modes)}."
        )
    return given
