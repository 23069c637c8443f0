"""Predicates that repeat one another: the (subject, object) pairs that two of them share.

A predicate whose pairs are those of another adds nothing to the rank, and one that is the inverse
of another adds nothing either. Sharing is counted exactly, for all pairs of predicates at once, as
a product of sparse matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from capacity.database.facts import Database


# products of entries in all; a thousand predicates with the same ten facts take as many
MOST_PRODUCTS = 10**7


@dataclass(frozen=True)
class Repetition:
    """The other predicate that one shares most pairs with.

    Attributes
    ----------
    predicate : int
        Index of the other predicate.
    inverse : bool
        True if subjects of one are objects of the other.
    facts : int
        Number of (subject, object) pairs that both have.
    by : {'equal', 'contained', 'partly'}
        ``equal`` if these are all pairs of both, ``contained`` if they are all of the first.
    """

    predicate: int
    inverse: bool
    facts: int
    by: Literal["equal", "contained", "partly"]


def repetitions(db: Database) -> list[Repetition | None] | None:
    """Find the predicate that each one shares most pairs with, unchanged or inverted.

    Of predicates that share as many, the first is named, and those that aren't inverted come
    before the others.

    Parameters
    ----------
    db : Database
        Facts of arity 3.

    Returns
    -------
    list of Repetition or None
        For each predicate, in order; None if it shares nothing. The list itself is None if
        counting takes over `MOST_PRODUCTS` products and four a fact.
    """
    n, subjects, objects = len(db.predicates), db.token_triples[:, 0], db.token_triples[:, 2]
    predicate = db.triples[:, 1]
    n_tokens = np.int64(db.n_tokens)
    forward = subjects * n_tokens + objects
    keys, at = np.unique(forward, return_inverse=True)
    backward = objects * n_tokens + subjects
    place = np.minimum(np.searchsorted(keys, backward), len(keys) - 1)
    met = keys[place] == backward
    shape = len(keys), n
    mine = _marked(at.ravel(), predicate, shape)
    inverse = _marked(place[met], predicate[met], shape)
    sizes = [np.diff(one.indptr).astype(np.float64) for one in (mine, inverse)]
    if sizes[0] @ (sizes[0] + sizes[1]) > MOST_PRODUCTS + 4 * db.n_facts:
        return None
    best: list[Repetition | None] = [None] * n
    totals = np.bincount(predicate, minlength=n)
    for inverted, other in ((False, mine), (True, inverse)):
        shared = csr_array(mine.T @ other)
        shared.sort_indices()
        for q in range(n):
            found = _most(shared, q)
            known = best[q]
            if found is None or (known is not None and known.facts >= found[1]):
                continue
            r, facts = found
            whole = "equal" if facts == totals[r] else "contained"
            best[q] = Repetition(r, inverted, facts, whole if facts == totals[q] else "partly")
    return best


def _marked(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> Any:
    ones = np.ones(len(rows), np.int64)
    return csr_array((ones, (rows.astype(np.int64), columns.astype(np.int64))), shape=shape)


def _most(shared: Any, q: int) -> tuple[int, int] | None:
    """Return the other predicate with the most shared pairs, and their number."""
    part = slice(shared.indptr[q], shared.indptr[q + 1])
    others = shared.indices[part] != q
    if not others.any():
        return None
    counts = shared.data[part][others]
    first = int(counts.argmax())
    return int(shared.indices[part][others][first]), int(counts[first])
