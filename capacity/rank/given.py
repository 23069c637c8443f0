"""Facts or a tensor whose rank is bounded, in whatever form they come.

Rows of three integers may be facts, and may be a matrix: they are refused with both calls.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Number
from typing import Any, TypeAlias

import numpy as np

from capacity.database.columns import Columns
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_database
from capacity.errors import InvalidTypeError
from capacity.tensor.files import READ
from capacity.tensor.given_tensors import CONVERTERS, TensorLike, as_tensor
from capacity.tensor.sparse import SparseTensor

# what bounds and estimates of ranks take
FactsOrTensor: TypeAlias = DatabaseLike | TensorLike
# nested lists are looked into no deeper than tensors have modes
_DEEPEST = 32


def given_of(value: FactsOrTensor, call: str) -> Database | SparseTensor:
    """Return facts as a database, and a tensor as one of integers.

    Parameters
    ----------
    value : object
        What `capacity.database.as_database` takes, or `capacity.tensor.as_tensor`.
    call : str
        The function with its arguments, for messages.

    Raises
    ------
    InvalidTypeError
        If it is neither, or rows of three integers, which may be both.
    InvalidArgumentError
        If an entry of the tensor isn't an integer.
    """
    if isinstance(value, Database | SparseTensor):
        return value
    return as_tensor(value) if is_tensor(value, call) else require_database(value, call)


def is_tensor(value: Any, call: str) -> bool:
    """Return whether an object is a tensor, and not facts.

    Raises
    ------
    InvalidTypeError
        For rows of three integers.
    """
    if isinstance(value, str | os.PathLike):
        return os.fspath(value).lower().endswith(READ)
    if isinstance(value, SparseTensor) or CONVERTERS.of(value) is not None:
        return True
    if isinstance(value, Columns):
        return False
    if hasattr(value, "__arrow_c_stream__"):
        # a table, though pyarrow's can be a tensor of its numbers
        return False
    if hasattr(value, "tocoo") or hasattr(value, "to_tensor"):
        return True
    if isinstance(value, list | tuple):
        return _is_nested(value, call)
    if not all(hasattr(value, name) for name in ("__array__", "ndim", "dtype")):
        return False
    return _is_array(value, call)


def _is_array(array: Any, call: str) -> bool:
    dtype = str(array.dtype)
    if isinstance(array.dtype, np.dtype) and array.dtype.kind in "UT":
        return False
    whole = "int" in dtype
    if dtype == "object":
        # a Series of pandas has no `flat`
        cells = np.asarray(array).ravel()
        if array.size and not isinstance(cells[0], Number):
            return False
        whole = all(isinstance(one, int | np.integer) for one in cells)
    if array.ndim == 2 and array.shape[1] == 3 and whole:
        raise _in_doubt(call, f"an array of {dtype} of shape {tuple(array.shape)}")
    return True


def _is_nested(rows: Sequence[Any], call: str) -> bool:
    """Return whether lists hold numbers, at some depth, and not the terms of facts."""
    first: Any = rows
    depth = 0
    while isinstance(first, list | tuple | np.ndarray) and len(first) and depth < _DEEPEST:
        if any(isinstance(cell, str) for cell in first):
            return False
        first, depth = first[0], depth + 1
    if not isinstance(first, Number):
        return False
    cells = [cell for row in rows for cell in row] if depth == 2 else []
    whole = all(isinstance(cell, int | np.integer) and cell is not True for cell in cells)
    if depth == 2 and whole and all(len(row) == 3 for row in rows):
        raise _in_doubt(call, f"{len(rows)} rows of three integers")
    return True


def _in_doubt(call: str, got: str) -> InvalidTypeError:
    return InvalidTypeError(
        f"{call} takes facts and tensors, and rows of three integers may be either; got {got}. For "
        "facts use capacity.database.as_database(rows), for a matrix "
        "capacity.tensor.as_tensor(rows)."
    )
