"""Exact rank of facts whose slices of one mode are combinations of two slices, a pencil."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import MODES
from capacity.errors import MemoryBudgetError
from capacity.rank.method import Method
from capacity.rank.problem import Component, Goal
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.types import Indices
from capacity.rank.verifier.kinds.pencil import Pencil
from capacity.rank.verifier.procedures.kronecker_form import Spend
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank


def pencil_of(db: Database, facts: Indices, mode: int, largest: int, spend: Spend) -> Pencil | None:
    """Find the rank of facts whose slices of a mode are combinations of two of them.

    Parameters
    ----------
    db : Database
        The database that the facts belong to.
    facts : ndarray of int64
        Row numbers of the facts in ``Database.triples``.
    mode : {0, 1, 2}
        The mode, whose unfolding has rank 2.
    largest : int
        Maximum number of entries of a connected block.
    spend : callable
        Charges steps and bytes of the verifier.

    Returns
    -------
    Pencil or None
        None if all slices are equal, a block is too large, or the budget is spent.
    """
    triples = db.triples[facts].astype(np.int64)
    a, b = (m for m in MODES if m != mode)
    place = np.unique(triples[:, a] * db.shape[b] + triples[:, b], return_inverse=True)
    slices = np.unique(triples[:, mode])
    first = set(place[1].ravel()[triples[:, mode] == slices[0]].tolist())
    for other in slices[1:].tolist():
        second = set(place[1].ravel()[triples[:, mode] == other].tolist())
        if second != first:
            break
    else:
        return None
    both = sorted(first | second)
    values = np.array([[p in first, p in second] for p in both], np.int64)
    rows, columns = np.divmod(place[0][both], db.shape[b])
    try:
        rank = sparse_pencil_rank(rows, columns, values, largest=largest, spend=spend)
    except MemoryBudgetError:
        return None
    return Pencil(mode, np.array([slices[0], other]), rank)


def pencils(component: Component, goal: Goal) -> Iterable[Finding]:
    """Find the rank of a component whose slices of some mode span two dimensions."""
    for mode in np.flatnonzero(np.array(component.unfoldings) == 2).tolist():
        found = pencil_of(component.db, component.facts, mode, goal.limits.pencil, component.spend)
        if found is not None:
            yield (found,)
            return


PENCIL = Method("pencil", find_in_facts=pencils)
