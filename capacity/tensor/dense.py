"""Tensors from dense arrays, from entries in any order, and from fractions.

Numbers of any kind become exact integers of at most 63 bits, or are refused in words.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import (
    LARGEST_ENTRY,
    LARGEST_SIDE,
    checked_shape,
    collected,
    integers,
)
from capacity.tensor.sparse import SparseTensor


def from_dense(array: Any) -> SparseTensor:
    """Make a tensor of a dense array.

    Parameters
    ----------
    array : array_like, of any shape of 1 to 32 modes
        An array of numpy, nested lists, a tensor of torch or of a backend of tensorly, a
        decomposition of tensorly (which is multiplied out), or a sparse array of scipy. Entries are
        bools, integers, or floats and fractions whose values are integers.

    Returns
    -------
    SparseTensor
        The nonzero entries, in the shape of the array.

    Raises
    ------
    InvalidArgumentError
        If lists at one depth have different lengths, or a mode has no index; if an entry isn't an
        integer from -2^63 + 1 to 2^63 - 1, or is a float of 2^53 or more (in single precision
        2^24), which may have been rounded. The message contains the entry, its place and what to
        do.

    Notes
    -----
    Floats with other values are refused, and not rounded, since a nearby tensor may have another
    rank. Fractions go to `from_fractions`.

    Examples
    --------
    >>> from_dense([[1, 0], [0, -2.0]])
    SparseTensor(2 x 2, 2 entries from -2 to 1)
    >>> from_dense([[1, 0.5]])
    Traceback (most recent call last):
        ...
    capacity.errors.InvalidArgumentError: Entries must be integers from -2^63 + 1 to 2^63 - 1; got
    0.5 at [0, 1]. Multiply the tensor by a common denominator, which doesn't change its rank, or
    pass fractions.Fraction entries to `from_fractions`, which does so.
    """
    if isinstance(array, SparseTensor):
        return array
    # duck typing, for neither tensorly nor torch nor scipy is imported here
    if hasattr(array, "to_tensor"):
        array = array.to_tensor()
    if hasattr(array, "tocoo"):
        coo = array.tocoo()
        coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
        return from_coo(np.stack(coords, axis=1), coo.data, coo.shape)
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if "sparse" in str(array.layout):
            coo = array.to_sparse_coo()
            # torch adds up values at one place within their type, which may be too narrow
            return from_coo(coo._indices().numpy().T, _of_torch(coo._values()), tuple(coo.shape))
        array = _of_torch(array)
    entries = _array(array)
    places = np.argwhere(entries)
    return SparseTensor(
        places, whole_numbers(entries[tuple(places.T)], places), checked_shape(entries.shape)
    )


def _of_torch(dense: Any) -> NDArray[Any]:
    """Return an array of a tensor of torch, also of bfloat16, which numpy doesn't have."""
    if str(dense.dtype) != "torch.bfloat16":
        return dense.resolve_neg().numpy()
    exact: NDArray[np.float64] = dense.double().numpy()
    # it holds every integer up to 2^8
    large = np.argwhere(np.abs(exact) >= 2**8)
    if len(large):
        place = large[0].tolist()
        value = float(exact[tuple(place)])
        raise InvalidArgumentError(f"{_RANGE}; got {value} at {place}. {_advice(value)}")
    return exact


def from_coo(
    indices: ArrayLike, values: ArrayLike, shape: Sequence[int] | None = None
) -> SparseTensor:
    """Make a tensor of entries in any order (coordinate format).

    Parameters
    ----------
    indices : array_like of int, shape (n_entries, order)
        Places, counted from 0; values at the same place are added up.
    values : array_like, shape (n_entries,)
        Integers, or floats and fractions whose values are integers; zeros are dropped.
    shape : sequence of int, optional
        Number of indices of each mode; if omitted, one more than the largest that occurs.

    Returns
    -------
    SparseTensor
        The entries in ascending order, each place once.

    Raises
    ------
    InvalidArgumentError
        If an index isn't an integer or is outside the shape, a value isn't an integer of at most 63
        bits, a sum has more bits, or there is neither an entry nor a shape.

    Examples
    --------
    >>> from_coo([[1, 0], [0, 1], [1, 0]], [2, 1, 3])
    SparseTensor(2 x 2, 2 entries from 1 to 5)
    """
    at = integers(indices, "`indices`")
    entries = _array(values)
    if at.ndim != 2 or entries.shape not in ((len(at),), (len(at), 1)):
        raise InvalidArgumentError(
            "`indices` must have a row for each value and a column for each mode; got indices of "
            f"shape {at.shape} for values of shape {entries.shape}."
        )
    if shape is None and not len(at):
        raise InvalidArgumentError("A tensor without entries must have a `shape`; got neither.")
    if len(at) and not 0 <= int(at.min()) <= int(at.max()) < LARGEST_SIDE:
        raise InvalidArgumentError(
            f"Indices must lie from 0 to {LARGEST_SIDE - 1:,}; got some from {at.min():,} to "
            f"{at.max():,}."
        )
    sides = (at.max(axis=0) + 1).tolist() if shape is None else checked_shape(shape)
    if len(sides) != at.shape[1]:
        raise InvalidArgumentError(
            f"`shape` must have a side for each column of `indices`; got {len(sides)} sides, "
            f"{shown(tuple(sides))}, for {at.shape[1]} columns."
        )
    return SparseTensor(*collected(at, whole_numbers(entries.reshape(-1), at)), sides)


def from_fractions(array: Any) -> tuple[SparseTensor, int]:
    """Multiply an array of fractions by their common denominator, which doesn't change its rank.

    Parameters
    ----------
    array : array_like, of any shape of 1 to 32 modes
        Entries are fractions.Fraction or any other rational numbers, integers, decimal.Decimal, or
        floats with integer values.

    Returns
    -------
    tensor : SparseTensor
        The array times the denominator.
    denominator : int
        Least common denominator of all entries.

    Raises
    ------
    InvalidArgumentError
        If an entry is a float with another value, for 0.1 is no tenth, or no number; if an entry of
        the result has more than 63 bits.

    Examples
    --------
    >>> tensor, denominator = from_fractions([[Fraction(1, 2), 0], [1, Fraction(-2, 3)]])
    >>> tensor.to_numpy().tolist(), denominator
    ([[3, 0], [6, -4]], 6)
    """
    entries = _array(array)
    fractions = [
        _fraction(value, np.unravel_index(number, entries.shape))
        for number, value in enumerate(entries.ravel().tolist())
    ]
    denominator = math.lcm(*(value.denominator for value in fractions))
    scaled = np.empty(entries.size, object)
    scaled[:] = [int(value * denominator) for value in fractions]
    return from_dense(scaled.reshape(entries.shape)), denominator


def _fraction(value: object, place: Sequence[np.intp]) -> Fraction:
    # a decimal such as 1E+999999 has as many digits as its exponent says
    exact = isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) <= 1000
    if exact or (isinstance(value, float) and value.is_integer()):
        return Fraction(value)  # type: ignore[arg-type]
    if not isinstance(value, numbers.Rational):
        raise InvalidArgumentError(
            f"Entries must be fractions; got {shown(plain(value))} at "
            f"{[int(index) for index in place]}. Write fractions.Fraction(1, 10) or "
            "decimal.Decimal('0.1') for 0.1."
        )
    return Fraction(int(value.numerator), int(value.denominator))


def _array(given: Any) -> NDArray[Any]:
    """Return an array whose entries are as exact as those given, all of them numbers.

    numpy makes floats of lists that mix large integers, so entries of lists stay objects unless all
    are integers that fit.
    """
    if np.ma.is_masked(given):
        raise InvalidArgumentError(
            "Every entry must have a value; got an array with masked entries. Fill them."
        )
    array = given
    if not isinstance(given, np.ndarray):
        try:
            array = np.asarray(given)
            if isinstance(given, list | tuple) and array.dtype.kind not in "bi":
                array = np.array(given, object)
        except (ValueError, OverflowError):
            raise InvalidArgumentError(
                "Lists at one depth must all have the same length; got lists of different lengths."
            ) from None
    if array.dtype.kind not in "biufO" or (array.ndim == 0 and not isinstance(given, list)):
        raise InvalidArgumentError(
            "A tensor must be given as an array of numbers, or as nested lists; got "
            f"{shown(given) if array.ndim == 0 else f'an array of {array.dtype}'}."
        )
    if array.dtype.kind == "O":
        # numpy takes None, and an empty text, for zero
        for number, value in enumerate(array.ravel().tolist()):
            if not isinstance(value, numbers.Real | Decimal | np.bool_):
                one = np.array([None])
                one[0] = value
                place = [int(index) for index in np.unravel_index(number, array.shape)]
                whole_numbers(one, np.array([place]))
    return array


_RANGE = "Entries must be integers from -2^63 + 1 to 2^63 - 1"


def whole_numbers(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers with integer values as int64.

    Floats count if their type holds every integer up to theirs: those from 2^53 on, in double
    precision, may have been rounded.

    Parameters
    ----------
    values : ndarray of bool, integer, float or object, shape (n_entries,)
        Objects may be integers of Python, floats, and fractions.
    places : ndarray of int64, shape (n_entries, order)
        Their indices, for the message.

    Returns
    -------
    ndarray of int64, shape (n_entries,)

    Raises
    ------
    InvalidArgumentError
        With the first entry that isn't an integer of at most 63 bits, its place, and what to do.

    Examples
    --------
    >>> whole_numbers(np.array([1.0, -2.0]), np.array([[0, 0], [0, 1]])).tolist()
    [1, -2]
    """
    kind = values.dtype.kind
    if kind in "bi":
        fine = values != np.int64(-(2**63)) if values.dtype == np.int64 else None
    elif kind == "u":
        fine = values <= np.uint64(LARGEST_ENTRY)
    elif kind == "f":
        fine = np.isfinite(values) & (np.trunc(values) == values)
        fine &= np.abs(values) < _exact_below(values.dtype)
    elif kind == "O":
        fine = np.array([_is_whole(value) for value in values.tolist()], bool)
    else:
        raise InvalidArgumentError(f"{_RANGE}; got an array of {values.dtype}.")
    if fine is not None and not fine.all():
        first = int(np.flatnonzero(~fine)[0])
        value = values[first]
        raise InvalidArgumentError(
            f"{_RANGE}; got {shown(plain(value))} at {places[first].tolist()}. {_advice(value)}"
        )
    if kind == "O":
        return np.array([int(value) for value in values.tolist()], np.int64)
    return values.astype(np.int64)


def plain(value: Any) -> object:
    """Return a number of numpy as one of Python, whose repr is the number alone."""
    return value.item() if isinstance(value, np.generic) else value


def _exact_below(dtype: Any) -> float:
    """Smallest power of two that a float may have been rounded to, or that has over 63 bits."""
    return 2.0 ** min(np.finfo(dtype).nmant + 1, 63)


def _is_whole(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        below = _exact_below(getattr(value, "dtype", float))
        return bool(abs(value) < below) and value == int(value)
    if isinstance(value, numbers.Rational):
        return value.denominator == 1 and abs(int(value.numerator)) <= LARGEST_ENTRY
    return isinstance(value, np.bool_)


def _advice(value: Any) -> str:
    if isinstance(value, complex | np.complexfloating):
        return "Pass the real and the imaginary part separately."
    if isinstance(value, list | tuple | np.ndarray):
        return "Lists at one depth must all have the same length."
    if isinstance(value, str):
        return "Pass numbers alone, such as fractions.Fraction(text) of a text."
    if not isinstance(value, numbers.Real | Decimal | np.number | np.bool_):
        return "Pass numbers alone."
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            return "Replace what isn't finite."
        if value.is_integer():
            return "A float of this size may have been rounded: pass Python's integers."
    if isinstance(value, numbers.Rational) and value.denominator == 1:
        return "Divide by a common factor, which doesn't change the rank."
    return (
        "Multiply the tensor by a common denominator, which doesn't change its rank, or pass "
        "fractions.Fraction entries to `from_fractions`, which does so."
    )
