"""Lower bound by the substitution method, with unknown entries: its number of steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.rank.types import Indices
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.sparse_removals import (
    cost_of_sparse_removals,
    require_sparse_removals,
)
from capacity.rank.verifier.view import (
    ENTRY,
    Removed,
    require_indices,
    sparse_view,
    view_tensor,
)

# budget for each entry of the view and four modes, and for each slice that is removed
REMOVAL_ENTRY, REMOVAL = 50, 30_000


@dataclass(frozen=True, eq=False, repr=False)
class Substitution(FromBelow):
    """Steps of the substitution method: slices of a view that are removed one after the other.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices are removed.
    removals : ndarray of int64, shape (n, 2)
        Pairs (mode, index) of the slices, in the order of their removal. Indices are those of the
        view's tensor, from 0.
    """

    kind: ClassVar[str] = "substitution"
    forms: ClassVar[Forms] = {"view": "view", "removals": "pairs"}
    view: View
    removals: Indices

    @property
    def value(self) -> int:
        """Number of slices that are removed."""
        return len(self.removals)


def check_substitution(argument: Substitution, entries: Entries, before: Removed | None) -> None:
    """Check that each step removes a nonzero slice, which lowers the rank by at least one.

    Let T be a sum of R simple tensors a_r (x) b_r (x) ... (x) z_r, and let its slice T_i, of mode 0
    say, be nonzero: it is, since an entry of it is known and nonzero. Then some a_r[i] is nonzero.
    Subtract a_r[j] / a_r[i] times T_i from every other slice T_j: term r vanishes from all of them,
    so the slices without T_i are a tensor of rank at most R - 1. The multiples are unknown. So the
    entries of T_j become unknown (are hidden) wherever T_i isn't known to be zero, and the others
    stay as they were. For the effective rank, the unobserved fibers are hidden from the start, and
    so are those that slices removed `before` may have changed.
    """
    view, removals = argument.view, argument.removals
    shape = [
        n if P is None else len(P)
        for n, P in zip(require_indices(view, entries), view.bases, strict=True)
    ]
    modes = (removals[:, 0] >= 0) & (removals[:, 0] < entries.order)
    require(modes.all(), f"a mode must be from 0 to {entries.order - 1}")
    inside = (removals[:, 1] >= 0) & (removals[:, 1] < np.array(shape)[removals[:, 0]])
    require(inside.all(), "a slice is out of range")
    each = REMOVAL_ENTRY * max(1, entries.order // 4)
    size = math.prod(shape)
    # of higher order, an entry has too many patterns
    if entries.order <= 3 and not entries.effective and all(P is None for P in view.bases):
        places, fibers = sparse_view(view, entries, before=before)
        sizes = len(places), entries.order, len(removals), len(fibers[1])
        if cost_of_sparse_removals(*sizes)[0] < (ENTRY + each) * size + REMOVAL * len(removals):
            require_sparse_removals(places, tuple(shape), fibers, removals, entries.budget)
            return
    tensor, known = view_tensor(view, entries, before=before)
    values = tensor != 0
    entries.budget.spend(each * size + REMOVAL * len(removals), 6 * size)
    alive = [np.ones(n, bool) for n in values.shape]
    # fibers along each mode that are hidden already: each is hidden once, so any number of steps
    # costs a few times the number of entries
    gone = [np.zeros(np.delete(values.shape, mode), bool) for mode in range(entries.order)]
    steps: list[list[int]] = removals.tolist()
    for step, (mode, index) in enumerate(steps):
        where = f"substitution step {step}, slice {index} of mode {mode}"
        require(alive[mode][index], f"{where}: it was removed before")
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = np.ones(slice_value.shape, bool)
        for axis, other in enumerate(m for m in range(entries.order) if m != mode):
            live &= np.expand_dims(alive[other], [a for a in range(live.ndim) if a != axis])
        require((slice_known & slice_value & live).any(), f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        # direct sums rest on this mask too (`capacity.rank.verifier`): it must never hide less
        hidden = (~slice_known | slice_value) & ~gone[mode]
        gone[mode] |= hidden
        np.moveaxis(known, mode, 0)[:, hidden] = False


KIND = Kind(
    Substitution,
    lower=lambda argument, _entries: argument.view.indices,
    removals=check_substitution,
    adds=True,
)
