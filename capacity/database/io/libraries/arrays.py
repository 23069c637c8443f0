"""Conversion of dense 0/1 arrays to `Database`: each one is a fact."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.facts import Database
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError


def from_numpy(tensor: ArrayLike) -> Database:
    """Make a database whose tensor D is a given 0/1 array, without its zero slices.

    Parameters
    ----------
    tensor : array_like of bool or int, shape (n_subjects, n_predicates, n_objects)
        Zeros and ones; a one at (k, q, v) is the fact that subject k has object v for predicate q.
        An array of another number of modes, from 2 to 32, makes facts of that arity.

    Returns
    -------
    Database
        Facts over labels such as ``subject 0``, or ``key_1 0``. Its tensor is the array without its
        zero slices, and has the same rank.

    Raises
    ------
    InvalidArgumentError
        If the array has less than 2 or more than 32 modes, has entries other than 0 and 1, or has
        no 1.

    Examples
    --------
    >>> W = np.zeros((2, 2, 2), int)
    >>> W[0, 0, 1] = W[0, 1, 0] = W[1, 0, 0] = 1
    >>> from_numpy(W).to_numpy().tolist()
    [[[0, 1], [1, 0]], [[1, 0], [0, 0]]]
    """
    array = np.asarray(tensor)
    if not LEAST <= array.ndim <= MOST or array.dtype.kind not in "bui":
        raise InvalidArgumentError(
            f"`tensor` must be an array of {LEAST} to {MOST} modes, of integers or booleans; got "
            f"shape {array.shape} of {array.dtype}."
        )
    if not np.isin(array, (0, 1)).all() or not array.any():
        raise InvalidArgumentError(
            "`tensor` must hold only zeros and ones, and at least one 1: a database is a set of "
            f"facts; got entries from {array.min(initial=0)} to {array.max(initial=0)}."
        )
    # indices padded with zeros, so that labels sort as indices do
    labels = [
        Term("label", f"{role} {index:0{len(str(n - 1))}}")
        for role, n in zip(role_names(array.ndim), array.shape, strict=True)
        for index in range(n)
    ]
    offsets = np.cumsum([0, *array.shape[:-1]])
    return Database.from_ids(labels, np.argwhere(array) + offsets, arity=array.ndim, multi="keep")
