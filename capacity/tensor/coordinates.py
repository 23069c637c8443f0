"""Entries in coordinate format: arrays of places and values, checked, sorted and added up exactly.

No result is rounded and none wraps around: where 64 bits may not hold a sum or a product it is
computed in Python's integers, and refused if it doesn't fit in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError, MemoryBudgetError

_Integer = TypeVar("_Integer", bound=np.integer)
# default limit of the arrays of a tensor, in bytes
BUDGET = 2**30
# indices fit 32 bits, so that a product of two sizes fits 64
LARGEST_SIDE = 2**31 - 1
# largest order: an array of numpy has at most 64 modes
LARGEST_ORDER = 32
# largest absolute value of an entry
LARGEST_ENTRY = 2**63 - 1


def checked_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises
    ------
    InvalidArgumentError
        Unless it is a sequence of at least one and at most 32 sizes, each from 1 to 2^31 - 1.
    """
    sides = tuple(shape) if isinstance(shape, Sequence | np.ndarray) else ()
    if not 1 <= len(sides) <= LARGEST_ORDER or isinstance(shape, str):
        raise InvalidArgumentError(
            f"`shape` must have a size for each mode, of 1 to {LARGEST_ORDER} modes; got "
            f"{shown(shape)}."
        )
    return tuple(
        require_integer(f"shape[{mode}]", n, most=LARGEST_SIDE) for mode, n in enumerate(sides)
    )


def integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return an array of integers as int64.

    Raises
    ------
    InvalidArgumentError
        If it holds anything else, also floats with integer values, or an integer of more than 63
        bits; if it is a list of lists of different lengths.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidArgumentError(
            f"{name} must be an array; got lists of different lengths."
        ) from None
    if not array.size:
        return np.zeros(array.shape, np.int64)
    if array.dtype == object and all(isinstance(x, int) for x in array.ravel().tolist()):
        fits = all(abs(x) <= LARGEST_ENTRY for x in array.ravel().tolist())
    elif array.dtype.kind in "biu":
        fits = int(array.max()) <= LARGEST_ENTRY and int(array.min()) >= -LARGEST_ENTRY
    else:
        raise InvalidArgumentError(
            f"{name} must be integers; got an array of {array.dtype}. `from_dense` and `from_coo` "
            "take floats with integer values as values, and `from_fractions` takes fractions."
        )
    if not fits:
        raise InvalidArgumentError(
            f"{name} must be integers from -2^63 + 1 to 2^63 - 1; got one of more bits."
        )
    return array.astype(np.int64)


def ascending(rows: NDArray[np.int64]) -> bool:
    """Return True if rows are distinct and in ascending (lexicographic) order."""
    steps = np.diff(rows, axis=0)
    first = (steps != 0).argmax(axis=1)
    return bool((steps[np.arange(len(steps)), first] > 0).all())


def collected(
    indices: NDArray[np.int64], values: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort entries, add up those at one place, and drop zeros.

    Parameters
    ----------
    indices : ndarray of int64, shape (n_entries, order)
        Places, in any order.
    values : ndarray of int64, or of Python's integers, shape (n_entries,)

    Returns
    -------
    indices, values : ndarrays of int64
        As `SparseTensor` takes them.

    Raises
    ------
    InvalidArgumentError
        If a sum has more than 63 bits.

    Examples
    --------
    >>> at, sums = collected(np.array([[1, 0], [0, 0], [1, 0]]), np.array([2, 5, 3]))
    >>> at.tolist(), sums.tolist()
    ([[0, 0], [1, 0]], [5, 5])
    """
    if len(indices) > 1 and not ascending(indices):
        order = np.lexsort(indices.T[::-1])
        indices, values = indices[order], values[order]
        first = np.ones(len(indices), bool)
        first[1:] = (indices[1:] != indices[:-1]).any(axis=1)
        starts = np.flatnonzero(first)
        most = int(np.diff(starts, append=len(indices)).max())
        if most * largest(values) > LARGEST_ENTRY:
            values = values.astype(object)
        indices, values = indices[starts], np.add.reduceat(values, starts)
    entries = fitted(values, indices)
    kept = entries != 0
    return indices[kept], entries[kept]


def products(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Multiply arrays of integers entry by entry, in Python's integers where 64 bits may not do.

    Examples
    --------
    >>> products(np.array([2, 3]), np.array([5, 7])).dtype
    dtype('int64')
    >>> products(np.array([2**40]), np.array([2**40])).tolist() == [2**80]
    True
    """
    if largest(a) * largest(b) > LARGEST_ENTRY:
        a, b = a.astype(object), b.astype(object)
    return a * b


def largest(values: NDArray[Any]) -> int:
    """Largest absolute value of an array of integers; 0 if it is empty."""
    return int(np.abs(values).max(initial=0))


def fitted(values: NDArray[Any], indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return integers as int64.

    Raises
    ------
    InvalidArgumentError
        With its place, if one has more than 63 bits.
    """
    if values.dtype == object:
        for number, value in enumerate(values.tolist()):
            if abs(value) > LARGEST_ENTRY:
                raise InvalidArgumentError(
                    "Entries must be integers from -2^63 + 1 to 2^63 - 1; the entry at "
                    f"{indices[number].tolist()} would be {shown(value)}. Divide by a common "
                    "factor, which doesn't change the rank."
                )
    return values.astype(np.int64)


def require_room(n_entries: int, order: int, *, max_bytes: int = BUDGET) -> None:
    """Refuse a tensor whose indices and values would take more than `max_bytes` bytes.

    Raises
    ------
    MemoryBudgetError
        With the number of bytes.
    """
    size = 8 * n_entries * (order + 1)
    if size > max_bytes:
        raise MemoryBudgetError(
            f"A tensor must fit the budget of {max_bytes:,} bytes; {n_entries:,} entries of order "
            f"{order} would take {size:,}. Choose smaller sizes."
        )


def distinct(numbers: NDArray[_Integer]) -> NDArray[_Integer]:
    """Sort numbers and omit repetitions; ten times as fast as `numpy.unique`, which hashes.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(numbers)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def stable_order(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order the positions of numbers by them, equal ones in their order.

    Sorting each number together with its position is several times as fast as `numpy.argsort`.

    Examples
    --------
    >>> stable_order(np.array([3, 1, 3, 0])).tolist()
    [3, 1, 0, 2]
    """
    n = len(numbers)
    if not n or numbers.min() < 0 or int(numbers.max()) >= 2**63 // n - 1:
        return np.argsort(numbers, kind="stable")
    return np.sort(numbers.astype(np.int64) * n + np.arange(n)) % n


def compacted(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Number values from 0 in ascending order, without gaps.

    Where there are few gaps, a table of them is ten times as fast as sorting.

    Examples
    --------
    >>> compacted(np.array([7, 2, 7, 10**12])).tolist()
    [1, 0, 1, 2]
    """
    sides = int(values.max(initial=-1)) + 1
    if sides > 4 * len(values) or values.min(initial=0) < 0:
        return np.unique(values, return_inverse=True)[1].ravel().astype(np.int64)
    used = np.zeros(sides, np.int64)
    used[values] = 1
    return (np.cumsum(used) - 1)[values]
