"""Steps of the substitution method in a view, on a dense tensor or on its entries alone."""

from __future__ import annotations

import math

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.procedures.nonsingular import require_nonsingular
from capacity.rank.verifier.procedures.sparse_removals import (
    Group,
    cost_of_sparse_removals,
    require_sparse_removals,
)
from capacity.rank.verifier.view import ENTRY, Removed, require_indices, sparse_view, view_tensor
from capacity.tensor.coordinates import distinct

# budget for each entry of the view and four modes, and for each slice that is removed
REMOVAL_ENTRY, REMOVAL = 50, 30_000
# steps and bytes for each entry of a minor
MINOR_ENTRY, MINOR_BYTES = 30, 40


def require_removals(
    view: View,
    removals: Indices,
    entries: Entries,
    before: Removed | None,
    groups: tuple[Group, ...] = (),
) -> None:
    """End the check unless each step removes a slice that is known to be nonzero.

    Slices of a group have to be independent instead, before the first of them is removed. The
    proofs are beside the kinds of arguments, `capacity.rank.verifier.kinds.substitution` and
    `block_substitution`.

    Parameters
    ----------
    view : View
        Sub-tensor whose slices are removed.
    removals : ndarray of int64, shape (n, 2)
        Pairs (mode, index) of the slices.
    entries : Entries
        The entries of the tensor.
    before : Removed or None
        Slices that were removed earlier, of the tensor itself.
    groups : tuple of Group
        Groups of removals, which are of one mode each and don't overlap.

    Raises
    ------
    Refuted
        If a slice or a place is out of range, a slice was removed before or isn't known to be
        nonzero at its turn, or the slices of a group aren't known to be independent.
    MemoryBudgetError
        If the budget is too small.
    """
    shape = [
        n if P is None else len(P)
        for n, P in zip(require_indices(view, entries), view.bases, strict=True)
    ]
    modes = (removals[:, 0] >= 0) & (removals[:, 0] < entries.order)
    require(modes.all(), f"a mode must be from 0 to {entries.order - 1}")
    inside = (removals[:, 1] >= 0) & (removals[:, 1] < np.array(shape)[removals[:, 0]])
    require(inside.all(), "a slice is out of range")
    for group in groups:
        sides = np.delete(shape, removals[group.first, 0])
        within = (group.columns >= 0) & (group.columns < sides)
        require(within.all(), "a place of a group is out of range")
        rows = removals[group.first : group.first + len(group.columns), 1]
        require(len(distinct(rows)) == len(rows), "a slice is twice in a group")
    each = REMOVAL_ENTRY * max(1, entries.order // 4)
    size, minors = math.prod(shape), [len(group.columns) for group in groups]
    dense = (ENTRY + each) * size + REMOVAL * len(removals)
    dense += MINOR_ENTRY * sum(n**2 for n in minors)
    too_large = MINOR_BYTES * max(minors, default=0) ** 2 > entries.budget.memory
    # of higher order, an entry has too many patterns
    if entries.order <= 3 and not entries.effective and all(P is None for P in view.bases):
        places, values, fibers = sparse_view(view, entries, before=before)
        sizes = len(places), entries.order, len(removals), len(fibers[1]), minors
        if too_large or cost_of_sparse_removals(*sizes)[0] < dense:
            require_sparse_removals(
                places, values, tuple(shape), fibers, removals, entries.budget, groups
            )
            return
    tensor, known = view_tensor(view, entries, before=before)
    entries.budget.spend(each * size + REMOVAL * len(removals), 6 * size)
    _require_dense_removals(tensor, known, removals, groups, entries.budget)


def _require_dense_removals(
    tensor: Indices,
    known: Mask,
    removals: Indices,
    groups: tuple[Group, ...],
    budget: CheckBudget,
) -> None:
    values = tensor != 0
    order, of_first = tensor.ndim, {group.first: group for group in groups}
    alive = [np.ones(n, bool) for n in values.shape]
    # fibers along each mode that are hidden already: each is hidden once, so any number of steps
    # costs a few times the number of entries
    gone = [np.zeros(np.delete(values.shape, mode), bool) for mode in range(order)]
    steps: list[list[int]] = removals.tolist()
    proved = 0
    for step, (mode, index) in enumerate(steps):
        where = f"substitution step {step}, slice {index} of mode {mode}"
        if step in of_first:
            group = of_first[step]
            proved = step + len(group.columns)
            rows = removals[step:proved, 1]
            others = [m for m in range(order) if m != mode]
            left = [alive[m][of].all() for m, of in zip(others, group.columns.T, strict=True)]
            budget.spend(MINOR_ENTRY * len(rows) ** 2, MINOR_BYTES * len(rows) ** 2)
            cells = rows[:, None], *group.columns.T
            minor, is_known = (
                np.moveaxis(tensor, mode, 0)[cells],
                np.moveaxis(known, mode, 0)[cells],
            )
            certain = all(left) and alive[mode][rows].all() and is_known.all()
            require(certain, f"{where}: an entry of its group isn't known")
            i, j = np.nonzero(minor)
            require_nonsingular(
                i, j, minor[i, j], len(rows), group.eliminated, group.prime, budget,
                name=f"{where}: its group",
            )  # fmt: skip
        require(alive[mode][index], f"{where}: it was removed before")
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = np.ones(slice_value.shape, bool)
        for axis, other in enumerate(m for m in range(order) if m != mode):
            live &= np.expand_dims(alive[other], [a for a in range(live.ndim) if a != axis])
        certain = step < proved or (slice_known & slice_value & live).any()
        require(certain, f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        # direct sums rest on this mask too (`capacity.rank.verifier`): it must never hide less
        hidden = (~slice_known | slice_value) & ~gone[mode]
        gone[mode] |= hidden
        np.moveaxis(known, mode, 0)[:, hidden] = False
