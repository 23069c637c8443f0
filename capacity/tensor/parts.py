"""Entries of parts, unfoldings and products of tensors, by places and values alone.

`SparseTensor` makes tensors of them, for its indexing, `unfolding` and `mode_product`.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009, sections 2.4
and 2.5 (unfoldings, products with matrices); columns of unfoldings are in the order of numpy.
"""

from __future__ import annotations

from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import (
    LARGEST_SIDE,
    collected,
    integers,
    products,
    require_room,
)

# places, values and shape
Entries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], tuple[int, ...]]


def part_at(entries: Entries, key: object) -> Entries:
    """Entries of a tensor at indices, slices and lists of indices, one a mode, as numpy has them.

    Parameters
    ----------
    entries : tuple
        Places, values and shape.
    key : int, slice, ``...``, list of int, or tuple of these
        A mode with an integer is omitted; modes that aren't named are kept whole.

    Returns
    -------
    tuple
        Places, values and shape of the part; a part without modes is one number, and has at most
        one value.

    Raises
    ------
    InvalidArgumentError
        For more items than modes, one of another type, an index outside of the shape, and a slice
        or a list that is empty or names an index twice.

    Examples
    --------
    >>> W = (np.array([[0, 1], [1, 0]]), np.array([5, 7]), (2, 2))
    >>> part_at(W, 1)[1].tolist(), part_at(W, (0, 1))[1].tolist(), part_at(W, (0, 0))[1].tolist()
    ([7], [5], [])
    """
    places, values, shape = entries
    kept: list[int] = []
    sides: list[int] = []
    for mode, one in enumerate(_one_a_mode(key, len(shape))):
        side = shape[mode]
        if isinstance(one, int | np.integer) and not isinstance(one, bool):
            at = index(one)
            if not -side <= at < side:
                raise _outside(mode, side, one)
            here = places[:, mode] == at % side
            places, values = places[here], values[here]
            continue
        kept.append(mode)
        chosen = _chosen(one, mode, side)
        sides.append(side if chosen is None else len(chosen))
        if chosen is not None:
            number = np.full(side, -1, np.int64)
            number[chosen] = np.arange(len(chosen))
            at_new = number[places[:, mode]]
            here = at_new >= 0
            places, values = places[here].copy(), values[here]
            places[:, mode] = at_new[here]
    return (*collected(places[:, kept], values), tuple(sides))


def _one_a_mode(key: object, order: int) -> list[Any]:
    items: list[Any] = list(key) if isinstance(key, tuple) else [key]
    dots = [at for at, one in enumerate(items) if one is Ellipsis]
    if len(items) - len(dots) > order or len(dots) > 1:
        raise InvalidArgumentError(
            f"A tensor of {order} modes is indexed by at most {order} items; got {len(items)}."
        )
    missing: list[Any] = [slice(None)] * (order - len(items) + len(dots))
    if dots:
        return [*items[: dots[0]], *missing, *items[dots[0] + 1 :]]
    return items + missing


def _chosen(one: object, mode: int, side: int) -> NDArray[np.int64] | None:
    """Indices of a mode, or None for all of them in their order."""
    if isinstance(one, slice):
        if one == slice(None):
            return None
        chosen = np.arange(side)[one]
    elif isinstance(one, list | range | np.ndarray):
        given = np.asarray(one)
        if given.dtype == bool and given.shape == (side,):
            given = np.flatnonzero(given)
        chosen = integers(given, f"the indices of mode {mode}").ravel()
    else:
        raise InvalidArgumentError(
            f"A mode is indexed by an integer, a slice or a list of indices; got {shown(one)}."
        )
    if not len(chosen) or not -side <= int(chosen.min()) <= int(chosen.max()) < side:
        raise _outside(mode, side, one)
    chosen = chosen % side
    if len(np.unique(chosen)) < len(chosen):
        raise InvalidArgumentError(
            f"The indices of mode {mode} must be distinct; got {shown(chosen.tolist())}."
        )
    return chosen


def _outside(mode: int, side: int, got: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Indices of mode {mode} must lie from 0 to {side - 1}, at least one; got {shown(got)}."
    )


def unfolded(entries: Entries, mode: int) -> Entries:
    """Entries of the matrix with a row for each index of a mode, and a column for all others.

    Raises
    ------
    InvalidArgumentError
        If there is no such mode, or the matrix would have 2^31 columns or more.

    Examples
    --------
    >>> W = (np.array([[0, 1, 1], [1, 0, 0]]), np.array([5, 7]), (2, 2, 3))
    >>> unfolded(W, 0)[0].tolist(), unfolded(W, 0)[2]
    ([[0, 4], [1, 0]], (2, 6))
    """
    places, values, shape = entries
    row = checked_mode(mode, len(shape))
    columns, width = np.zeros(len(places), np.int64), 1
    for other, side in enumerate(shape):
        if other != row:
            width *= side
            if width > LARGEST_SIDE:
                raise InvalidArgumentError(
                    f"An unfolding must have at most {LARGEST_SIDE:,} columns; got the shape "
                    f"{shape}. capacity.tensor.grouped takes fewer modes together."
                )
            columns = columns * side + places[:, other]
    return (
        *collected(np.stack([places[:, row], columns], axis=1), values),
        (shape[row], width),
    )


def multiplied(entries: Entries, matrix: Entries, mode: int) -> Entries:
    """Entries of the product of a tensor and a matrix along a mode.

    Parameters
    ----------
    entries, matrix : tuple
        Places, values and shape of both.
    mode : int
        The mode of the columns of the matrix.

    Raises
    ------
    InvalidArgumentError
        If the matrix hasn't a column for each index of the mode, or an entry has more than 63 bits.
    MemoryBudgetError
        If the product takes more than a gigabyte.

    Examples
    --------
    >>> W = (np.array([[0, 1], [1, 0]]), np.array([5, 7]), (2, 2))
    >>> row = (np.array([[0, 0], [0, 1]]), np.array([1, -1]), (1, 2))
    >>> multiplied(W, row, 0)[1].tolist()
    [-7, 5]
    """
    places, values, shape = entries
    at, weights, sides = matrix
    along = checked_mode(mode, len(shape))
    if len(sides) != 2 or sides[1] != shape[along]:
        raise InvalidArgumentError(
            f"The matrix must have a column for each of {shape[along]} indices of mode {along}; "
            f"got shape {sides}."
        )
    order = np.argsort(at[:, 1], kind="stable")
    counts = np.bincount(at[:, 1], minlength=sides[1])
    starts = np.cumsum(counts) - counts
    several = counts[places[:, along]]
    require_room(int(several.sum()), len(shape))
    entry = np.repeat(np.arange(len(places)), several)
    within = np.arange(len(entry)) - np.repeat(np.cumsum(several) - several, several)
    weight = order[starts[places[entry, along]] + within]
    moved = places[entry]
    moved[:, along] = at[weight, 0]
    new_shape = (*shape[:along], sides[0], *shape[along + 1 :])
    return (*collected(moved, products(values[entry], weights[weight])), new_shape)


def checked_mode(mode: object, order: int) -> int:
    """Return a mode, also one that is counted from the end, as numpy does.

    Raises
    ------
    InvalidArgumentError
        If there is none.
    """
    number = require_integer("mode", mode, least=-order, most=order - 1)
    return number % order
