"""The tensor D of a database as dense and sparse arrays.

D[k, q, v] = 1 for each fact, shape (n_subjects, n_predicates, n_objects) (Wong 2025, equation (1));
modes 0, 1, 2 are subject, predicate, object. Facts of another arity have a mode for each column,
the last for the object. `Database.tensor` gives D by its nonzero entries, and
`capacity.tensor.structure` has its unfoldings, slices and components.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import coo_array

from capacity.errors import MemoryBudgetError

if TYPE_CHECKING:
    from capacity.database.facts import Database


def to_coo(db: Database) -> coo_array[Any, Any]:
    """Write D as a sparse array of int8, shape ``db.shape``."""
    ones = np.ones(db.n_facts, dtype=np.int8)
    first, *others = db.shape
    return coo_array((ones, tuple(db.tuples.T)), shape=(first, *others))


def to_numpy(db: Database, dtype: DTypeLike, *, max_bytes: int) -> NDArray[Any]:
    """Write D as a dense array.

    Raises
    ------
    MemoryBudgetError
        Before allocating, if the array would take more than `max_bytes` bytes.
    """
    size = math.prod(db.shape) * np.dtype(dtype).itemsize
    if size > max_bytes:
        raise MemoryBudgetError(
            f"A dense tensor must fit the budget of {max_bytes:,} bytes; {db.shape} of "
            f"{np.dtype(dtype)} would take {size:,}. Use `to_coo()`, or raise `max_bytes`."
        )
    dense = np.zeros(db.shape, dtype=dtype)
    dense[tuple(db.tuples.T)] = 1
    return dense
