"""Canonical form of facts: sorted tokens, sorted unique triples, and a hash of them.

Two sets of facts are equal if and only if their canonical forms are, whatever file, order or
library they came from. Blank nodes are compared by their names, which are local to a file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence, Sized

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms import Term, as_term
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.limits import shown


def checked(tokens: Sequence[Term], id_triples: NDArray[np.integer]) -> NDArray[np.int64]:
    """Check triples of token indices, and return them as int64 of shape (n, 3).

    Raises
    ------
    InvalidArgumentError
        If there is no triple, for another shape or dtype, for an index without a token, or for
        tokens that are not distinct.
    """
    given = np.asarray(id_triples)
    if not given.size:
        raise InvalidArgumentError("A database must hold at least one fact; got none.")
    if given.ndim != 2 or given.shape[1] != 3 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidArgumentError(
            f"`id_triples` must be integers of shape (n, 3); got {given.dtype} of shape "
            f"{given.shape}."
        )
    triples = given.astype(np.int64)
    if triples.min() < 0 or triples.max() >= len(tokens) or len(set(tokens)) < len(tokens):
        raise InvalidArgumentError(
            f"`id_triples` must be indices into distinct `tokens`; got {len(tokens)} tokens, "
            f"{len(set(tokens))} distinct, and indices {triples.min()}..{triples.max()}."
        )
    return triples


def numbered(rows: Iterable[Sequence[object]]) -> tuple[list[Term], NDArray[np.int64]]:
    """List the terms of rows in order of first occurrence, and the rows as indices into the list.

    Raises
    ------
    InvalidArgumentError
        For a row that doesn't hold three cells.
    InvalidTypeError
        For a cell that is not a str, `Term` or rdflib node.
    """
    if type(rows).__module__.partition(".")[0] == "pandas":
        raise InvalidTypeError(
            "`triples` must be rows of three cells; got a table of pandas, whose iteration gives "
            "the names of its columns. Say capacity.database.from_pandas(table)."
        )
    if isinstance(rows, str | bytes | os.PathLike) or not hasattr(rows, "__iter__"):
        raise InvalidTypeError(
            f"`triples` must be rows of three cells; got {shown(rows)}. For a file say "
            "capacity.load(path)."
        )
    ids: dict[Term, int] = {}
    triples: list[tuple[int, ...]] = []
    for number, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Sized) or len(row) != 3:
            raise InvalidArgumentError(
                "Each row must hold a subject, a predicate and an object; row "
                f"{number} is {row!r:.60}."
            )
        triples.append(tuple(ids.setdefault(as_term(cell), len(ids)) for cell in row))
    return list(ids), np.array(triples, dtype=np.int64)


def canonical(
    tokens: Sequence[Term], triples: NDArray[np.int64]
) -> tuple[Sequence[Term], NDArray[np.int64]]:
    """Sort the tokens in use, and the unique triples over them.

    Parameters
    ----------
    tokens : sequence of Term
        Distinct, in any order.
    triples : ndarray of int64, shape (n, 3)
        Indices into `tokens`.

    Returns
    -------
    tokens : sequence of Term
        The tokens in use, sorted.
    triples : ndarray of int64, shape (n_unique, 3)
        Unique, in ascending order.
    """
    used = np.unique(triples)
    order = sorted(used.tolist(), key=lambda i: tokens[i])
    rank = np.full(len(tokens), -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rows = rank[triples]
    n = len(order)
    if n**3 < 2**62:
        # one int64 per row sorts many times faster than rows do
        packed = np.unique((rows[:, 0] * n + rows[:, 1]) * n + rows[:, 2])
        rows = np.stack([packed // (n * n), packed // n % n, packed % n], axis=1)
    else:
        rows = np.unique(rows, axis=0)
    return [tokens[i] for i in order], rows


def by_role(
    triples: NDArray[np.int64],
) -> tuple[tuple[NDArray[np.int32], ...], NDArray[np.int32]]:
    """List the tokens of each role, and the triples as indices into these lists.

    Parameters
    ----------
    triples : ndarray of int64, shape (n, 3)
        Token ids.

    Returns
    -------
    roles : three ndarrays of int32
        Ids of the subjects, predicates and objects, ascending; read-only.
    local : ndarray of int32, shape (n, 3)
        Indices into the roles; read-only.
    """
    roles = tuple(np.unique(triples[:, mode]).astype(np.int32) for mode in range(3))
    local = np.stack(
        [np.searchsorted(ids, triples[:, mode]) for mode, ids in enumerate(roles)], axis=1
    ).astype(np.int32)
    for array in (*roles, local):
        array.setflags(write=False)
    return roles, local


def facts_sha256(tokens: Sequence[Term], triples: NDArray[np.integer]) -> str:
    """SHA-256 of facts in canonical form.

    The input is, for each token in order, the JSON array ``[kind, text, datatype, language]`` in
    ASCII and a newline, followed by the token-id triples in order as little-endian int32.
    """
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(json.dumps(token).encode() + b"\n")
    digest.update(triples.astype("<i4").tobytes())
    return digest.hexdigest()
