"""Bounds of the rank of a database that need no search, for databases of any size.

For the tensor D of a database (Wong 2025, equation (1)):

* rank(D) <= the number of triples, with one simple tensor per fact;
* rank(D) <= the sum of the ranks of the slices of any one mode (Proposition 2.1, its first line,
  and the same for object slices);
* rank(D) >= the rank of any unfolding.

The *paper's count* is Proposition 2.1's last line, min(sum_k |V_k|, sum_q |V_q|). On functional
databases |V_k| and |V_q| are the ranks of the subject and predicate slices, and the sum over object
slices is never larger. On multi-valued ones that equality fails: the count is still an upper bound,
but the slice ranks can be far smaller.

All ranks are exact, over the rationals, and computed from the sparse triples
(`capacity.rank.exact.ranks`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity.database.facts import Database
from capacity.database.required import require_database
from capacity.database.tensor import (
    MODES,
    Mode,
    component_labels,
    stacked_slice_entries,
    unfolding_entries,
)
from capacity.display import table
from capacity.errors import InvalidArgumentError
from capacity.limits import shown
from capacity.rank.exact.ranks import Minor, minor_by_group, sparse_rank, sparse_rank_by_group
from capacity.rank.types import Indices


def paper_bound(db: Database) -> int:
    """Database rank bound as the paper counts it, min(sum_k |V_k|, sum_q |V_q|).

    An upper bound of the rank of any database (Wong 2025, Proposition 2.1).

    Parameters
    ----------
    db : Database
        Functional or not.

    Returns
    -------
    int
        The smaller of the numbers of (subject, object) and (predicate, object) pairs with a fact.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.

    Examples
    --------
    >>> paper_bound(Database.from_triples([("a", "p", "x"), ("b", "p", "x")]))
    1
    """
    require_database(db, "paper_bound(db)")
    triples = db.triples.astype(np.int64)
    n_objects = db.shape[2]
    counts = [len(np.unique(triples[:, m] * n_objects + triples[:, 2])) for m in (0, 1)]
    return min(counts)


def slice_rank_sum(db: Database, mode: Mode) -> int:
    """Sum of the ranks of all slices of a mode: an upper bound of the rank.

    Parameters
    ----------
    db : Database
        Functional or not.
    mode : {0, 1, 2}
        Subject, predicate or object slices.

    Returns
    -------
    int
        The exact sum.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For another mode.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    >>> db = Database.from_triples([(k, q, "v") for k in "ab" for q in "pq"])
    >>> [slice_rank_sum(db, mode) for mode in (0, 1, 2)]
    [2, 2, 1]
    """
    require_database(db, "slice_rank_sum(db, mode)")
    _require_mode(mode)
    return sparse_rank(*stacked_slice_entries(db, mode))


def unfolding_rank(db: Database, mode: Mode) -> int:
    """Rank of the mode-`mode` unfolding: a lower bound of the rank.

    Parameters
    ----------
    db : Database
        Functional or not.
    mode : {0, 1, 2}
        Rows of the unfolding are subjects, predicates or objects.

    Returns
    -------
    int
        The exact rank.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For another mode.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    The W state has rank 3, and unfoldings of rank 2:

    >>> w = Database.from_triples([("a", "p", "y"), ("a", "q", "x"), ("b", "p", "x")])
    >>> [unfolding_rank(w, mode) for mode in (0, 1, 2)]
    [2, 2, 2]
    """
    require_database(db, "unfolding_rank(db, mode)")
    _require_mode(mode)
    return sparse_rank(*unfolding_entries(db, mode))


def _require_mode(mode: object) -> None:
    if mode not in MODES:
        raise InvalidArgumentError(f"`mode` must be 0, 1 or 2; got {shown(mode)}.")


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Bounds of the rank that need no search, of a database and of its components.

    Attributes
    ----------
    triples : int
        Number of triples, an upper bound.
    paper : int
        Upper bound as the paper counts it (`paper_bound`).
    component : ndarray of int64, shape (n_triples,)
        The component of each fact, numbered from 0.
    slices_by_component, unfoldings_by_component : ndarray of int64, shape (n_components, 3)
        Sums of slice ranks, and unfolding ranks, in each mode.
    minors : tuple of three Minor
        Nonsingular minors of the three unfoldings, with the components as groups.
    facts_sha256 : str
        SHA-256 of the facts (`Database.facts_sha256`).
    """

    triples: int
    paper: int
    component: Indices
    slices_by_component: Indices
    unfoldings_by_component: Indices
    minors: tuple[Minor, Minor, Minor]
    facts_sha256: str

    def __repr__(self) -> str:
        return (
            f"Bounds(triples={self.triples}, paper={self.paper}, slices={self.slices}, "
            f"unfoldings={self.unfoldings}; {len(self.unfoldings_by_component)} components)"
        )

    def _repr_html_(self) -> str:
        rows = [("triples", self.triples), ("paper (Proposition 2.1)", self.paper),
                ("sums of slice ranks: subject, predicate, object", self.slices),
                ("ranks of the unfoldings: subject, predicate, object", self.unfoldings),
                ("components", len(self.unfoldings_by_component))]  # fmt: skip
        return table("bounds of the rank", rows)

    @property
    def slices(self) -> tuple[int, int, int]:
        """Sums of the ranks of the subject, predicate and object slices of the database."""
        return _triple(self.slices_by_component)

    @property
    def unfoldings(self) -> tuple[int, int, int]:
        """Ranks of the three unfoldings of the database: its multilinear rank."""
        return _triple(self.unfoldings_by_component)


def _triple(by_component: Indices) -> tuple[int, int, int]:
    a, b, c = by_component.sum(axis=0).tolist()
    return a, b, c


def database_bounds(db: Database) -> Bounds:
    """Compute the bounds of the rank that need no search, with the minors that prove them.

    Parameters
    ----------
    db : Database
        Functional or not.

    Returns
    -------
    Bounds
        The number of triples, the paper's count, slice rank sums and unfolding ranks.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    MemoryBudgetError
        If an exact rank needs a dense block over its budget; raised before it is allocated.

    Examples
    --------
    >>> facts = [("a", "p", "x"), ("a", "q", "y"), ("b", "p", "y")]
    >>> b = database_bounds(Database.from_triples(facts))
    >>> b.slices, b.unfoldings
    ((3, 3, 3), (2, 2, 2))
    """
    require_database(db, "database_bounds(db)")
    component = np.unique(component_labels(db), return_inverse=True)[1].ravel().astype(np.int64)
    slices = [sparse_rank_by_group(*stacked_slice_entries(db, m), component) for m in MODES]
    (a, first), (b, second), (c, third) = (
        minor_by_group(*unfolding_entries(db, m), component) for m in MODES
    )
    return Bounds(
        db.n_triples,
        paper_bound(db),
        component,
        np.stack(slices, axis=1),
        np.stack([a, b, c], axis=1),
        (first, second, third),
        db.facts_sha256,
    )
