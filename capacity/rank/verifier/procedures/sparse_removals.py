"""Steps of the substitution method on a sparse tensor, in time that grows with its entries.

A *pattern* is a set of slices of different modes; it hides all entries that lie in each of its
slices. The fiber of an entry along a mode is the pattern of its slices of the other modes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import require
from capacity.rank.verifier.procedures.nonsingular import require_nonsingular

# slices in ascending order, numbered through all modes
Pattern: TypeAlias = tuple[int, ...]
# steps for an entry in a slice that is removed, of a tensor of order 3, for a slice or a fiber, and
# for a group; bytes for each entry in each of its slices, for a slice or a fiber, and for each
# entry where there are groups
VISIT, SLICE, GROUP = 1_200, 3_000, 50_000
VISIT_BYTES, SLICE_BYTES, MINOR_BYTES = 400, 500, 300


class Group(NamedTuple):
    """Consecutive removals of one mode, of different slices, that are independent together.

    Attributes
    ----------
    first : int
        Number of the first of these removals.
    columns : ndarray of int64, shape (n, order - 1)
        Places in the other modes, in ascending order of modes: the columns of a minor of the mode's
        unfolding, whose rows are the n slices.
    eliminated : int
        Number of leading pivots of the minor to eliminate sparsely before the rest is made dense.
    prime : int
        Prime modulo which the minor is nonsingular.
    """

    first: int
    columns: Indices
    eliminated: int
    prime: int


def cost_of_sparse_removals(
    n_entries: int, order: int, n_removals: int, n_fibers: int, minors: Sequence[int] = ()
) -> tuple[int, int]:
    """Return the steps and the bytes that `require_sparse_removals` takes at most.

    What elimination takes in the minors of groups, of sizes `minors`, is charged apart.
    """
    # an entry or a fiber has that many patterns in the end, as slices of it are removed
    patterns = 2 ** max(0, order - 3)
    visits, others = patterns * order * n_entries, n_removals + 2 * patterns * n_fibers
    steps, memory = VISIT * visits + SLICE * others, VISIT_BYTES * visits + SLICE_BYTES * others
    if minors:
        # the slices of a group are visited twice, and the entries of its minor are kept
        steps += VISIT * visits + SLICE * order * sum(minors) + GROUP * len(minors)
        memory += MINOR_BYTES * n_entries
    return steps, memory


class _Remaining:
    """The rest of a sparse tensor while slices are removed, as sets of slices and patterns."""

    def __init__(self, entries: Iterable[Pattern], order: int) -> None:
        self.order = order
        self.of_slice: defaultdict[int, list[Pattern]] = defaultdict(list)
        for entry in entries:
            for x in entry:
                self.of_slice[x].append(entry)
        self.removed: set[int] = set()
        self._hidden: set[Pattern] = set()
        self._hidden_with: defaultdict[int, list[Pattern]] = defaultdict(list)

    def hide(self, pattern: Pattern) -> None:
        """Hide all entries that lie in each slice of a pattern."""
        if pattern not in self._hidden:
            self._hidden.add(pattern)
            for x in pattern:
                self._hidden_with[x].append(pattern)

    def is_known(self, place: Pattern) -> bool:
        """Return True if no part of a pattern, which is a place or a fiber, is hidden.

        The empty pattern never is: a slice of which nothing is known isn't removed.
        """
        sizes = range(1, self.order)
        return not any(part in self._hidden for n in sizes for part in combinations(place, n))

    def nonzero(self, x: int) -> list[Pattern]:
        """Known entries of a slice."""
        return [e for e in self.of_slice[x] if self.removed.isdisjoint(e) and self.is_known(e)]

    def are_known(self, rows: list[int], columns: list[Pattern]) -> bool:
        """Return True if all entries of a minor are left, and known."""
        used = {y for column in columns for y in column}
        if not (self.removed.isdisjoint(used) and self.removed.isdisjoint(rows)):
            return False
        # up to order 3, to which larger tensors don't come, that is a single slice or none
        others = ({*p} - {x} for x in rows for p in self._hidden_with.get(x, ()))
        across = any(
            part <= used and any(part.issubset(column) for column in columns) for part in others
        )
        return not across and all(map(self.is_known, columns))

    def remove(self, x: int, nonzero: list[Pattern]) -> None:
        """Remove a slice with some known entries; hide what is no longer known of the others."""
        self.removed.add(x)
        for pattern in (*self._hidden_with.pop(x, ()), *nonzero):
            self.hide(tuple(y for y in pattern if y != x))


def require_sparse_removals(
    places: Indices,
    values: Indices,
    shape: tuple[int, ...],
    fibers: tuple[int, Indices],
    removals: Indices,
    budget: CheckBudget,
    groups: Iterable[Group] = (),
) -> None:
    """End the check unless each step removes a slice that is known to be nonzero.

    Slices of a group have to be independent instead, before the first of them is removed.

    Removing the slice i of mode m hides (x, j, ..., k) for all indices x of mode m, if the entry
    (i, j, ..., k) isn't known to be zero (`capacity.rank.verifier.kinds.substitution`). If it is
    nonzero and known, this is the pattern of its other slices. If it is unknown, a pattern hides
    it: one without a slice of mode m hides these entries already, and of one that contains i, what
    it hides at (i, j, ..., k) for any j, ..., k, the pattern without i hides at all x. So the
    hidden entries are those of patterns all the time, as many as entries and slices removed. What
    slices of one mode hide, one after the other, is what they hide together: what one of them hides
    of the next is hidden along that mode already.

    Parameters
    ----------
    places : ndarray of int64, shape (n_entries, order)
        Places of the nonzero entries.
    values : ndarray of int64, shape (n_entries,)
        The nonzero entries.
    shape : tuple of int
        Numbers of slices of the modes.
    fibers : (mode, ndarray of int64, shape (n_fibers, order - 1))
        Fibers along a mode that are hidden from the start: their places in the other modes.
    removals : ndarray of int64, shape (n_removals, 2)
        Pairs (mode, index), in range.
    budget : CheckBudget
        Budget that the check draws on.
    groups : iterable of Group
        Groups of removals, which don't overlap; places in range.

    Raises
    ------
    Refuted
        If a slice was removed before, isn't known to be nonzero at its turn, or the slices of a
        group aren't known to be independent.
    """
    order, of_first = len(shape), {group.first: group for group in groups}
    minors = [len(group.columns) for group in of_first.values()]
    budget.spend(
        *cost_of_sparse_removals(len(places), order, len(removals), len(fibers[1]), minors)
    )
    first = np.cumsum((0, *shape[:-1]))
    numbered: list[Pattern] = list(map(tuple, (places + first).tolist()))
    left = _Remaining(numbered, order)
    for fiber in (fibers[1] + np.delete(first, fibers[0])).tolist():
        left.hide(tuple(fiber))
    value = dict(zip(numbered, values.tolist(), strict=True)) if of_first else {}
    steps: list[list[int]] = removals.tolist()
    proved = 0
    for step, (mode, index) in enumerate(steps):
        where = f"substitution step {step}, slice {index} of mode {mode}"
        x = int(first[mode]) + index
        if step in of_first:
            group = of_first[step]
            proved = step + len(group.columns)
            rows = [int(first[mode]) + i for _, i in steps[step:proved]]
            shifted = (group.columns + np.delete(first, mode)).tolist()
            columns: list[Pattern] = list(map(tuple, shifted))
            require(left.are_known(rows, columns), f"{where}: an entry of its group isn't known")
            number = {column: j for j, column in enumerate(columns)}
            minor = [
                (i, number[column], value[entry])
                for i, row in enumerate(rows)
                for entry in left.of_slice[row]
                if (column := tuple(y for y in entry if y != row)) in number
            ]
            i, j, entries = np.array(minor, np.int64).reshape(-1, 3).T
            require_nonsingular(
                i, j, entries, len(rows), group.eliminated, group.prime, budget,
                name=f"{where}: its group",
            )  # fmt: skip
        require(x not in left.removed, f"{where}: it was removed before")
        nonzero = left.nonzero(x)
        require(step < proved or nonzero, f"{where}: it isn't known to be nonzero")
        left.remove(x, nonzero)
