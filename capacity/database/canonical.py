"""Canonical form of facts: sorted tokens, sorted unique tuples, and a hash of them.

Two sets of facts are equal if and only if their canonical forms are, whatever file, order or
library they came from. Blank nodes are compared by their names, which are local to a file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence, Sized

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.database.arity import LEAST, MOST
from capacity.database.terms.columns import TermColumns, json_lines
from capacity.database.terms.nodes import as_term
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.tensor.coordinates import distinct

# facts that are hashed at once
_ROWS = 2**16


def checked(
    tokens: Sequence[Term], id_tuples: NDArray[np.integer], arity: int, allow_empty: bool = False
) -> NDArray[np.int64]:
    """Check tuples of token indices, and return them as int64 of shape (n, arity).

    Raises
    ------
    InvalidArgumentError
        If there is no tuple (unless `allow_empty`), for another shape or dtype, for an index
        without a token, or for tokens that are not distinct.
    """
    given = np.asarray(id_tuples)
    if not given.size:
        if allow_empty:
            return np.zeros((0, arity), dtype=np.int64)
        raise InvalidArgumentError("A database must hold at least one fact; got none.")
    shaped = given.ndim == 2 and given.shape[1] == arity
    if not shaped or not np.issubdtype(given.dtype, np.integer):
        raise InvalidArgumentError(
            f"`id_tuples` must be integers of shape (n, {arity}); got {given.dtype} of shape "
            f"{given.shape}.{'' if shaped else ' Facts of n columns are made with `arity=n`.'}"
        )
    tuples = given.astype(np.int64)
    repeated = not isinstance(tokens, TermColumns) and len(set(tokens)) < len(tokens)
    if tuples.min() < 0 or tuples.max() >= len(tokens) or repeated:
        raise InvalidArgumentError(
            f"`id_tuples` must be indices into distinct `tokens`; got {len(tokens)} tokens, "
            f"{len(set(tokens))} distinct, and indices {tuples.min()}..{tuples.max()}."
        )
    return tuples


def numbered(
    rows: Iterable[Sequence[object]], arity: int | None
) -> tuple[list[Term], NDArray[np.int64]]:
    """List the terms of rows in order of first occurrence, and the rows as indices into the list.

    With `arity` None, all rows must have as many cells as the first.

    Raises
    ------
    InvalidArgumentError
        For a row of another length than `arity`, or of less than 2 or more than 32 cells.
    InvalidTypeError
        For a cell that is not a str, `Term` or rdflib node.
    """
    said = "`triples` must be rows of three cells" if arity == 3 else "`rows` must be rows of cells"
    if type(rows).__module__.partition(".")[0] == "pandas":
        raise InvalidTypeError(
            f"{said}; got a table of pandas, whose iteration yields the names of its columns. Use "
            "capacity.database.from_pandas(table)."
        )
    if isinstance(rows, str | bytes | os.PathLike) or not hasattr(rows, "__iter__"):
        raise InvalidTypeError(f"{said}; got {shown(rows)}. For a file use capacity.load(path).")
    ids: dict[Term, int] = {}
    tuples: list[tuple[int, ...]] = []
    wanted = arity
    for number, row in enumerate(rows):
        length = -1 if isinstance(row, str) or not isinstance(row, Sized) else len(row)
        if wanted is None and LEAST <= length <= MOST:
            wanted = length
        if length != wanted:
            raise _wrong_row(row, number, length, arity, wanted)
        tuples.append(tuple(ids.setdefault(as_term(cell), len(ids)) for cell in row))
    return list(ids), np.array(tuples, dtype=np.int64)


def _wrong_row(
    row: object, number: int, length: int, arity: int | None, wanted: int | None
) -> InvalidArgumentError:
    advice = ""
    if arity == 3:
        needs = "a subject, a predicate and an object"
        if LEAST <= length <= MOST:
            advice = " Facts of another arity are made by Database.from_tuples(rows)."
    elif wanted is None:
        needs = f"the cells of a key and an object, from {LEAST} to {MOST} in all"
    else:
        needs = f"{wanted} cells, as the first row does"
    return InvalidArgumentError(f"Each row must hold {needs}; row {number} is {row!r:.60}.{advice}")


def canonical(
    tokens: Sequence[Term], tuples: NDArray[np.int64]
) -> tuple[Sequence[Term], NDArray[np.int64]]:
    """Sort the tokens in use, and the unique tuples over them.

    Parameters
    ----------
    tokens : sequence of Term
        Distinct, in any order.
    tuples : ndarray of int64, shape (n, arity)
        Indices into `tokens`.

    Returns
    -------
    tokens : sequence of Term
        The tokens in use, sorted.
    tuples : ndarray of int64, shape (n_unique, arity)
        Unique, in ascending order.
    """
    used = np.zeros(len(tokens), bool)
    used[tuples] = True
    rank = np.full(len(tokens), -1, dtype=np.int64)
    kept: Sequence[Term]
    if isinstance(tokens, TermColumns):
        # they are sorted
        kept = tokens if used.all() else tokens.taken(used)
        rank[used] = np.arange(len(kept))
    else:
        order = sorted(np.flatnonzero(used).tolist(), key=lambda i: tokens[i])
        kept = [tokens[i] for i in order]
        rank[order] = np.arange(len(order))
    rows = rank[tuples]
    n, arity = len(kept), rows.shape[1]
    if 0 < n**arity < 2**62:
        # one int64 per row sorts many times faster than rows do
        packed = rows[:, 0]
        for mode in range(1, arity):
            packed = packed * n + rows[:, mode]
        packed = distinct(packed)
        rows = np.stack([packed // n**e % n for e in reversed(range(arity))], axis=1)
    else:
        rows = np.unique(rows, axis=0)
    return kept, rows


def by_role(
    tuples: NDArray[np.int64],
) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int32]]:
    """List the tokens of each role, and the tuples as indices into these lists.

    Parameters
    ----------
    tuples : ndarray of int64, shape (n, arity)
        Token ids.

    Returns
    -------
    roles : tuple of ndarrays of int32
        Ids of the tokens of each column, ascending; read-only.
    local : ndarray of int32, shape (n, arity)
        Indices into the roles; read-only.
    """
    roles = tuple(distinct(tuples[:, mode]).astype(np.int32) for mode in range(tuples.shape[1]))
    local = np.stack(
        [np.searchsorted(ids, tuples[:, mode]) for mode, ids in enumerate(roles)], axis=1
    ).astype(np.int32)
    for array in (*roles, local):
        array.setflags(write=False)
    return roles, local


def facts_sha256(
    tokens: Iterable[Term], roles: Sequence[NDArray[np.int32]], tuples: NDArray[np.int32]
) -> str:
    """SHA-256 of facts in canonical form.

    The input is, for each token in order, the JSON array ``[kind, text, datatype, language]`` in
    ASCII and a newline, followed by the token-id tuples in order as little-endian int32. For tuples
    of another arity than 3 a line with the arity comes first, which is no JSON array: the numbers
    of six pairs could else be those of four triples.

    Parameters
    ----------
    tokens : iterable of Term
        Sorted.
    roles : sequence of ndarray of int32
        Ids of the tokens of each column.
    tuples : ndarray of int32, shape (n, arity)
        The facts in order, as indices into the roles.
    """
    digest = hashlib.sha256()
    if len(roles) != 3:
        digest.update(f"capacity facts of arity {len(roles)}\n".encode())
    for lines in json_lines(tokens):
        digest.update(lines)
    for start in range(0, len(tuples), _ROWS):
        rows = tuples[start : start + _ROWS]
        columns = [ids[rows[:, mode]] for mode, ids in enumerate(roles)]
        digest.update(np.stack(columns, axis=1).astype("<i4").tobytes())
    return digest.hexdigest()
