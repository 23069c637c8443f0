"""The facts that a certificate is checked against, looked up by index and by component.

A checker asks for the facts that its argument is about, and only these are charged to the budget: a
certificate may have as many arguments as a database has components.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import component_labels, is_complete
from capacity.rank.types import Indices
from capacity.rank.verifier.budget import CheckBudget

# steps for sorting a row, and for reading one
SORT, PASS = 220, 30


class Refuted(Exception):  # noqa: N818 - a verdict, not an error
    """The check of a certificate failed at some step."""


def require(holds: object, otherwise: str) -> None:
    """End the check, with a reason, unless a condition holds."""
    if not holds:
        raise Refuted(otherwise)


class Facts:
    """The facts of a database, and the budget for checking bounds of their rank.

    Parameters
    ----------
    db : Database
        The database.
    effective : bool
        True to check a bound of the effective rank.
    budget : CheckBudget
        Budget that the checks draw on.

    Attributes
    ----------
    triples : ndarray of int64, shape (n_triples, 3)
        Indices of the facts; a product of two of them fits 64 bits.
    shape : tuple of three ints
        Numbers of subjects, predicates and objects.
    effective : bool
        True if the bound must hold for every tensor that represents the facts, and not only for D.
        False if every fiber is observed, since D alone represents the facts then.
    budget : CheckBudget
        Budget that the checks draw on.
    """

    def __init__(self, db: Database, *, effective: bool, budget: CheckBudget) -> None:
        budget.spend(PASS * db.n_triples)
        self._db = db
        self.triples: Indices = db.triples.astype(np.int64)
        self.shape = db.shape
        self.effective = effective and not is_complete(db)
        self.budget = budget

    def __len__(self) -> int:
        """Count the facts."""
        return len(self.triples)

    @cached_property
    def labels(self) -> Indices:
        """Components of the facts, numbered from 0, shape (n_triples,)."""
        self.budget.spend(2 * SORT * len(self))
        return component_labels(self._db)

    def among(self, indices: Sequence[Indices | None]) -> Indices:
        """Rows of the facts within some indices of each mode; None stands for all indices.

        The search starts from the mode that leaves the fewest facts.
        """
        found: Indices | None = None
        for mode, of in enumerate(indices):
            if of is None:
                continue
            self.require_distinct(of, mode)
            order, starts = self._by_index[mode]
            begin, end = starts[of], starts[of + 1]
            if found is None or (end - begin).sum() < len(found):
                found = _ranges(order, begin, end)
        rows = np.arange(len(self)) if found is None else found
        for mode, of in enumerate(indices):
            if of is not None:
                self.budget.spend(SORT * (len(rows) + len(of)))
                rows = rows[np.isin(self.triples[rows, mode], of)]
        return np.sort(rows)

    def of_subject(self, k: int) -> list[int]:
        """Rows of the facts of one subject."""
        order, starts = self._by_index[0]
        return order[starts[k] : starts[k + 1]].tolist()

    def require_distinct(self, indices: Indices, mode: int) -> None:
        """End the check unless these are distinct indices of a mode."""
        self.budget.spend(SORT * len(indices))
        inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < self.shape[mode])
        require(inside, "an index is out of range")
        require(len(np.unique(indices)) == len(indices), "an index is used twice")

    def of_components(self, rows: Indices) -> Indices:
        """Rows of all facts in the components of some facts."""
        order, starts = self._by_component
        components = np.unique(self.labels[rows])
        found = _ranges(order, starts[components], starts[components + 1])
        self.budget.spend(SORT * (len(rows) + len(found)))
        return np.sort(found)

    @cached_property
    def _by_index(self) -> list[tuple[Indices, Indices]]:
        """Rows in the order of each mode's indices, and the position where each index begins."""
        self.budget.spend(3 * SORT * len(self), 100 * len(self))
        return [_sorted(self.triples[:, mode], n) for mode, n in enumerate(self.shape)]

    @cached_property
    def _by_component(self) -> tuple[Indices, Indices]:
        self.budget.spend(SORT * len(self))
        return _sorted(self.labels, int(self.labels.max()) + 1)


def _sorted(numbers: Indices, n: int) -> tuple[Indices, Indices]:
    """Rows in the order of their numbers, and the position where each of n numbers begins."""
    order = np.argsort(numbers, kind="stable")
    return order, np.searchsorted(numbers[order], np.arange(n + 1))


def _ranges(order: Indices, begin: Indices, end: Indices) -> Indices:
    """Concatenate the parts of an order between each beginning and its end."""
    lengths = end - begin
    offsets = np.repeat(begin - np.cumsum(lengths) + lengths, lengths)
    return order[offsets + np.arange(len(offsets))]
