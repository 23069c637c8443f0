"""The tensor D of a database: dense and sparse forms, unfoldings, stacked slices, components.

D[k, q, v] = 1 for each fact, shape (n_subjects, n_predicates, n_objects) (Wong 2025, equation (1));
modes 0, 1, 2 are subject, predicate, object. Facts of another arity have a mode for each column,
the last for the object; unfoldings and stacked slices are made of triples alone. All functions but
`to_numpy` work on the facts and make no dense tensor.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (slices,
fibers, unfoldings).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import coo_array

from capacity.database.graphs import connected_labels
from capacity.errors import MemoryBudgetError

if TYPE_CHECKING:
    from capacity.database.facts import Database

Mode: TypeAlias = Literal[0, 1, 2]
MODES: tuple[Mode, ...] = (0, 1, 2)


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


def unfolding_entries(db: Database, mode: Mode) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column indices of the ones in the mode-`mode` unfolding.

    The unfolding has a row for each slice of the mode; its columns are the pairs of the other two
    indices.
    """
    a, b = (m for m in MODES if m != mode)
    triples = db.triples.astype(np.int64)
    return triples[:, mode], triples[:, a] * db.shape[b] + triples[:, b]


def stacked_slice_entries(db: Database, mode: Mode) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column indices of the ones in the block diagonal matrix of all slices of a mode.

    For index i of the mode, rows are the pairs (a, i) and columns the pairs (b, i) of the other
    two indices a and b, so the rank of this one matrix is the sum of the ranks of the slices.
    """
    a, b = (m for m in MODES if m != mode)
    triples = db.triples.astype(np.int64)
    n = db.shape[mode]
    return triples[:, a] * n + triples[:, mode], triples[:, b] * n + triples[:, mode]


def component_labels(db: Database) -> NDArray[np.int64]:
    """Label each fact by its connected component, shape (n_facts,).

    The vertices are the pairs (role, token), and each fact joins those of its tokens. With each
    mode sorted by component, D is block diagonal, a direct sum of the components' tensors.
    """
    offsets = np.cumsum([0, *db.shape])
    ends = db.tuples.astype(np.int64) + offsets[:-1]
    columns = ends[:, 1:].T.ravel()
    rows = np.tile(ends[:, 0], db.arity - 1)
    # no label goes unused: every vertex lies in a fact
    return connected_labels(rows, columns, int(offsets[-1]))[db.tuples[:, 0]]


def is_complete(db: Database) -> bool:
    """Return True if all fibers D[k, q, :] are observed: no other tensor represents the facts."""
    return db.n_pairs == math.prod(db.shape[:-1])
