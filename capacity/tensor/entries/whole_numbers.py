"""Numbers of any kind as exact integers of at most 63 bits, or a refusal in words."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.entries.coordinates import LARGEST_ENTRY

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
        return "Give the real and the imaginary part apart."
    if isinstance(value, list | tuple | np.ndarray):
        return "Lists at one depth must all have the same length."
    if not isinstance(value, numbers.Real | Decimal | np.number | np.bool_):
        return "Give numbers alone."
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            return "Replace what isn't finite."
        if value.is_integer():
            return "A float of this size may have been rounded: give Python's integers."
    if isinstance(value, numbers.Rational) and value.denominator == 1:
        return "Divide by a common factor, which doesn't change the rank."
    return (
        "Multiply the tensor by a common denominator, which doesn't change its rank, or give "
        "fractions.Fraction entries to `from_fractions`, which does so."
    )
