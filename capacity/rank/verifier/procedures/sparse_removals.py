"""Steps of the substitution method on a sparse tensor, in time that grows with its entries.

A *pattern* is a set of slices of different modes; it hides all entries that lie in each of its
slices. The fiber of an entry along a mode is the pattern of its slices of the other modes.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TypeAlias

import numpy as np

from capacity.rank.types import Indices
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import require

# slices in ascending order, numbered through all modes
Pattern: TypeAlias = tuple[int, ...]
# steps for an entry in a slice that is removed, of a tensor of order 3, and for a slice or a fiber;
# bytes for each entry in each of its slices, and for a slice or a fiber
VISIT, SLICE = 1_200, 3_000
VISIT_BYTES, SLICE_BYTES = 400, 500


def cost_of_sparse_removals(
    n_entries: int, order: int, n_removals: int, n_fibers: int
) -> tuple[int, int]:
    """Return the steps and the bytes that `require_sparse_removals` takes at most."""
    # an entry or a fiber has that many patterns in the end, as slices of it are removed
    patterns = 2 ** max(0, order - 3)
    visits, others = patterns * order * n_entries, n_removals + 2 * patterns * n_fibers
    return VISIT * visits + SLICE * others, VISIT_BYTES * visits + SLICE_BYTES * others


def require_sparse_removals(
    places: Indices,
    shape: tuple[int, ...],
    fibers: tuple[int, Indices],
    removals: Indices,
    budget: CheckBudget,
) -> None:
    """End the check unless each step removes a slice that is known to be nonzero.

    Removing the slice i of mode m hides (x, j, ..., k) for all indices x of mode m, if the entry
    (i, j, ..., k) isn't known to be zero (`capacity.rank.verifier.kinds.substitution`). If it is
    nonzero and known, this is the pattern of its other slices. If it is unknown, a pattern hides
    it: one without a slice of mode m hides these entries already, and of one that contains i, what
    it hides at (i, j, ..., k) for any j, ..., k, the pattern without i hides at all x. So the
    hidden entries are those of patterns all the time, as many as entries and slices removed.

    Parameters
    ----------
    places : ndarray of int64, shape (n_entries, order)
        Places of the nonzero entries.
    shape : tuple of int
        Numbers of slices of the modes.
    fibers : (mode, ndarray of int64, shape (n_fibers, order - 1))
        Fibers along a mode that are hidden from the start: their places in the other modes.
    removals : ndarray of int64, shape (n_removals, 2)
        Pairs (mode, index), in range.
    budget : CheckBudget
        Budget that the check draws on.

    Raises
    ------
    Refuted
        If a slice was removed before, or isn't known to be nonzero at its turn.
    """
    order = len(shape)
    budget.spend(*cost_of_sparse_removals(len(places), order, len(removals), len(fibers[1])))
    first = np.cumsum((0, *shape[:-1]))
    of_slice: defaultdict[int, list[Pattern]] = defaultdict(list)
    for entry in map(tuple, (places + first).tolist()):
        for x in entry:
            of_slice[x].append(entry)
    hidden: set[Pattern] = set()
    hidden_with: defaultdict[int, list[Pattern]] = defaultdict(list)

    def hide(pattern: Pattern) -> None:
        if pattern not in hidden:
            hidden.add(pattern)
            for x in pattern:
                hidden_with[x].append(pattern)

    def is_known(entry: Pattern) -> bool:
        return not any(part in hidden for n in range(1, order) for part in combinations(entry, n))

    for fiber in (fibers[1] + np.delete(first, fibers[0])).tolist():
        hide(tuple(fiber))
    removed: set[int] = set()
    steps: list[list[int]] = removals.tolist()
    for step, (mode, index) in enumerate(steps):
        where = f"substitution step {step}, slice {index} of mode {mode}"
        x = int(first[mode]) + index
        require(x not in removed, f"{where}: it was removed before")
        nonzero = [e for e in of_slice[x] if removed.isdisjoint(e) and is_known(e)]
        require(nonzero, f"{where}: it isn't known to be nonzero")
        removed.add(x)
        for pattern in (*hidden_with.pop(x, ()), *nonzero):
            hide(tuple(y for y in pattern if y != x))
