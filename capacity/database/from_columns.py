"""Make a database from columns of terms and facts, by sorting numbers alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from capacity.database.canonical import by_role, canonical
from capacity.database.facts import Database
from capacity.database.policy import MultiPolicy, check_policy, multi_valued_warning
from capacity.database.source import Source
from capacity.database.terms.columns import TermColumns, UnsortedTerms
from capacity.errors import warn_caller
from capacity.tensor.coordinates import distinct

# bits of the integers that tuples are packed into
_MOST = 62


def from_columns(
    terms: UnsortedTerms,
    rows: list[NDArray[np.int32]],
    *,
    multi: MultiPolicy | None = None,
    prefixes: Mapping[str, str] | None = None,
    source: Source | None = None,
) -> Database:
    """Make a database from terms in columns, in any order, and facts as their numbers.

    Parameters
    ----------
    terms : UnsortedTerms
        The terms, some of which may be without use; they are emptied, to free memory.
    rows : list of ndarray of int32, shapes (n_i, arity)
        The facts, in pieces, at least one in all; they are overwritten, and the list is emptied, to
        free memory.
    multi, prefixes, source : optional
        As `Database.from_ids` has them.

    Returns
    -------
    Database
        The same as `Database.from_ids` makes, with `TermColumns` as its tokens.

    Raises
    ------
    InvalidArgumentError
        For an unknown policy, or one that needs predicates for facts of another arity than 3.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    arity = rows[0].shape[1]
    check_policy(multi or "keep", arity)
    used = np.zeros(len(terms.kinds), bool)
    for piece in rows:
        used[piece] = True
    tokens, ranks = terms.in_order(used)
    roles, tuples = _by_role(tokens, ranks, rows)
    db = Database(tokens, roles, tuples, "keep", dict(prefixes or {}), source)
    if multi not in (None, "keep"):
        return db.with_policy(multi)
    if multi is None and not db.is_functional:
        said = multi_valued_warning(db.n_multi_valued_pairs, db.n_pairs, db.arity)
        warn_caller(said)
    return db


def _by_role(
    terms: TermColumns, ranks: NDArray[np.int32], rows: list[NDArray[np.int32]]
) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int32]]:
    """Sort facts, without repetitions, as indices into the terms of each column.

    One integer per fact sorts many times faster than rows do.
    """
    arity = rows[0].shape[1]
    used = np.zeros((arity, len(terms)), bool)
    for piece in rows:
        piece[:] = ranks[piece]
        for mode in range(arity):
            used[mode, piece[:, mode]] = True
    roles = tuple(np.flatnonzero(mask).astype(np.int32) for mask in used)
    # bits of an index, for a shift takes a tenth of the time of a division
    bits = [len(ids).bit_length() for ids in roles]
    if sum(bits) > _MOST:
        given = np.concatenate(rows).astype(np.int64)
        rows.clear()
        return by_role(canonical(terms, given)[1])
    local = np.cumsum(used, axis=1, dtype=np.int32) - 1
    packed = np.zeros(sum(map(len, rows)), np.int64)
    at = 0
    for piece in rows:
        part = packed[at : at + len(piece)]
        for mode, width in enumerate(bits):
            part <<= width
            part |= local[mode, piece[:, mode]]
        at += len(piece)
    rows.clear()
    packed = distinct(packed)
    tuples = np.empty((len(packed), arity), np.int32)
    for mode in reversed(range(arity)):
        tuples[:, mode] = packed & (1 << bits[mode]) - 1
        packed >>= bits[mode]
    for array in (*roles, tuples):
        array.setflags(write=False)
    return roles, tuples
