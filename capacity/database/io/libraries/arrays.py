"""Conversion of dense 0/1 arrays to `Database`: each one is a fact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.facts import Database
from capacity.database.policy import MultiPolicy
from capacity.database.terms.term import Term, label
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


def from_array(array: Any, *, multi: MultiPolicy | None = None) -> Database:
    """Make a database of an array of facts, or of one of zeros and ones with three modes.

    Parameters
    ----------
    array : array or torch.Tensor, shape (n_facts, 3) or (n_subjects, n_predicates, n_objects)
        One row per fact, of text or of integers, which become labels; or the tensor D, as
        `from_numpy` has it.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The facts.

    Raises
    ------
    InvalidArgumentError
        For another shape, or other entries.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from_array(np.array([[0, 7, 1], [1, 7, 0]])).tokens[0].text
    '0'
    """
    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    given = np.asarray(array)
    if given.ndim == 3:
        exact = given.dtype.kind == "f" and bool(np.isin(given, (0, 1)).all())
        db = from_numpy(given.astype(np.int8) if exact else given)
        return db if multi is None else db.with_policy(multi)
    if given.ndim != 2 or given.shape[1] != 3 or given.dtype.kind not in "iuUTO":
        raise InvalidArgumentError(
            "An array of facts must have one row per fact and three columns, subject, predicate "
            f"and object, of text or of integers; got shape {given.shape} of {given.dtype}. A "
            "tensor of zeros and ones with three modes is taken, too; capacity.rank_interval "
            "bounds its rank, and that of a matrix."
        )
    if given.dtype.kind not in "iuU":
        return Database.from_triples(given.tolist(), multi=multi)
    # numbers are sorted as such, and each becomes a term once
    distinct, ids = np.unique(given, return_inverse=True)
    tokens = [label(str(one)) for one in distinct.tolist()]
    return Database.from_ids(tokens, ids.reshape(given.shape), multi=multi)
