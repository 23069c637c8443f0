"""Greedy orders of the substitution method on the entries of a sparse tensor of any size.

Patterns determine what removing slices hides (`capacity.rank.verifier.procedures
.sparse_removals`): a fiber is hidden once an entry of it was removed along it; a slice is hidden as
a whole once both other slices of an entry of it were removed, the second after the fiber through
the entry was hidden. The next slice is the one whose removal costs least, in known entries that it
hides, each with a weight, and in fibers. Costs fall as entries become hidden, so those of the
slices nearby are computed again at once, those far away from time to time, and that of a slice
again when its turn comes. One order takes about a microsecond for each entry.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices
from capacity.kept_code import kept
from capacity.rank.lower.substitution.sparse.layout import SparseLayout

# share of the slices that are removed before all costs are computed anew
STALE = 0.1
# entries of a fiber, and of a slice, up to which costs are computed anew at once
NEAR_FIBER, NEAR_SLICE = 30, 100


class Costs(NamedTuple):
    """Costs of removing a slice.

    Attributes
    ----------
    entries : ndarray of float64, shape (n_entries,)
        Cost of an entry that becomes hidden.
    own : float
        Cost of a slice's own entries, in relation to others that it hides.
    fibers : ndarray of float64, shape (3,)
        Cost of a fiber along each mode that becomes hidden.
    whole : float
        Cost of the entries of a slice that becomes hidden as a whole, in relation to others.
    modes : ndarray of float64, shape (3,)
        Factors for the slices of each mode.
    ties : ndarray of float64, shape (n_slices,)
        Added to the cost of each slice.
    """

    entries: NDArray[np.float64]
    own: float
    fibers: NDArray[np.float64]
    whole: float
    modes: NDArray[np.float64]
    ties: NDArray[np.float64]


class State(NamedTuple):
    """Known entries, and hidden fibers and slices, after some slices were removed.

    Attributes
    ----------
    known : ndarray of bool, shape (n_entries,)
        True for entries that are left, and known.
    hidden : ndarray of bool, shape (n_fibers,)
        True for fibers along which a slice with an entry on them was removed.
    gone : ndarray of bool, shape (n_slices,)
        True for slices that were removed, or of which nothing is known.
    """

    known: NDArray[np.bool_]
    hidden: NDArray[np.bool_]
    gone: NDArray[np.bool_]


def sparse_order(layout: SparseLayout, costs: Costs, start: Indices) -> Indices:
    """Remove slices one by one, the cheapest next.

    Parameters
    ----------
    layout : SparseLayout
        The entries.
    costs : Costs
        What removing a slice costs.
    start : ndarray of int64
        Slices to remove first, in this order. It isn't asked whether they are known to be nonzero.

    Returns
    -------
    ndarray of int64
        The slices in the order of their removal, numbered through all modes.

    Examples
    --------
    The W state, all of whose unfoldings have rank 2, has rank 3:

    >>> layout = SparseLayout.of(np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]]))
    >>> even = Costs(np.ones(3), 1.0, np.zeros(3), 1.0, np.ones(3), np.zeros(6))
    >>> len(sparse_order(layout, even, np.zeros(0, np.int64)))
    3
    """
    order, _ = _order(
        layout.modes, layout.slices, layout.fibers, *layout.in_slice, *layout.in_fiber,
        *costs, start, True,
    )  # fmt: skip
    return order


def state_after(layout: SparseLayout, removed: Indices) -> State:
    """Return what is known after some slices were removed, in an order of `sparse_order`."""
    n = len(layout.modes)
    none = Costs(np.ones(len(layout.slices)), 1.0, np.zeros(3), 1.0, np.ones(3), np.zeros(n))
    _, (known, hidden, gone, _, _) = _order(
        layout.modes, layout.slices, layout.fibers, *layout.in_slice, *layout.in_fiber,
        *none, removed, False,
    )  # fmt: skip
    return State(known, hidden, gone)


@kept
def _cost(
    x: Any, mode: Any, slices: Any, fibers: Any, of_slice: Any, state: Any, costs: Any
) -> Any:
    """Cost of removing a slice; negative if it isn't known to be nonzero."""
    known, hidden, gone, of_fiber, of_whole = state
    entries, own, per_fiber, whole, modes, ties = costs
    cost, is_nonzero = 0.0, False
    for e in of_slice:
        if known[e]:
            is_nonzero = True
            cost += of_fiber[fibers[e, mode]] - (1 - own) * entries[e]
            if not hidden[fibers[e, mode]]:
                cost += per_fiber[mode]
        for step in range(1, 3):
            across = (mode + step) % 3
            if hidden[fibers[e, across]] and not gone[slices[e, 3 - mode - across]]:
                cost += whole * of_whole[slices[e, 3 - mode - across]]
    return cost * modes[mode] + ties[x] if is_nonzero else -1.0


@kept
def _hide(
    e: Any, slices: Any, fibers: Any, state: Any, entries: Any, lost: Any, n_lost: Any
) -> Any:
    """Hide an entry, and count it among those lost, unless it was hidden before."""
    known, _, _, of_fiber, of_whole = state
    if not known[e]:
        return n_lost
    known[e] = False
    for mode in range(3):
        of_fiber[fibers[e, mode]] -= entries[e]
        of_whole[slices[e, mode]] -= entries[e]
    lost[n_lost] = e
    return n_lost + 1


@kept
def _remove(
    x: Any, mode: Any, slices: Any, fibers: Any, by_slice: Any, slice_begins: Any, by_fiber: Any,
    fiber_begins: Any, state: Any, entries: Any, lost: Any,
) -> Any:  # fmt: skip
    """Remove a slice; return the number of entries that become hidden, and list them in `lost`."""
    known, hidden, gone, _, _ = state
    gone[x] = True
    n_lost = 0
    for s in range(slice_begins[x], slice_begins[x + 1]):
        e = by_slice[s]
        for step in range(1, 3):
            across = (mode + step) % 3
            y = slices[e, 3 - mode - across]
            if hidden[fibers[e, across]] and not gone[y]:
                gone[y] = True
                for t in range(slice_begins[y], slice_begins[y + 1]):
                    n_lost = _hide(by_slice[t], slices, fibers, state, entries, lost, n_lost)
    for s in range(slice_begins[x], slice_begins[x + 1]):
        f = fibers[by_slice[s], mode]
        if known[by_slice[s]] and not hidden[f]:
            hidden[f] = True
            for t in range(fiber_begins[f], fiber_begins[f + 1]):
                n_lost = _hide(by_fiber[t], slices, fibers, state, entries, lost, n_lost)
    return n_lost


@kept
def _order(
    modes: Any, slices: Any, fibers: Any, by_slice: Any, slice_begins: Any, by_fiber: Any,
    fiber_begins: Any, entries: Any, own: Any, per_fiber: Any, whole: Any, factors: Any, ties: Any,
    start: Any, go_on: Any,
) -> Any:  # fmt: skip
    costs = (entries, own, per_fiber, whole, factors, ties)
    n, n_entries = len(modes), len(entries)
    known = np.ones(n_entries, np.bool_)
    hidden = np.zeros(len(fiber_begins) - 1, np.bool_)
    # removed, or hidden as a whole
    gone = np.zeros(n, np.bool_)
    of_fiber, of_whole = np.zeros(len(hidden)), np.zeros(n)
    for e in range(n_entries):
        for mode in range(3):
            of_fiber[fibers[e, mode]] += entries[e]
            of_whole[slices[e, mode]] += entries[e]
    state = (known, hidden, gone, of_fiber, of_whole)
    order, n_removed = np.empty(n, np.int64), 0
    lost, near = np.empty(n_entries, np.int64), np.empty(n, np.int64)
    seen, current = np.full(n, -1, np.int64), np.full(n, -1.0)
    heap = [(0.0, 0) for _ in range(0)]
    n_started, until_stale = 0, 0
    while True:
        x = -1
        if n_started < len(start):
            x = start[n_started]
            n_started += 1
        elif not go_on:
            return order[:n_removed], state
        else:
            if until_stale == 0:
                heap.clear()
                for y in range(n):
                    if not gone[y]:
                        mine = by_slice[slice_begins[y] : slice_begins[y + 1]]
                        current[y] = _cost(y, modes[y], slices, fibers, mine, state, costs)
                        if current[y] >= 0:
                            heap.append((current[y], y))
                if len(heap) == 0:
                    return order[:n_removed], state
                heapq.heapify(heap)
                until_stale = max(1, int(STALE * len(heap)))
            while len(heap) > 0:
                before, y = heapq.heappop(heap)
                if gone[y] or before != current[y]:
                    continue
                mine = by_slice[slice_begins[y] : slice_begins[y + 1]]
                cost = _cost(y, modes[y], slices, fibers, mine, state, costs)
                if cost < 0:
                    continue
                if cost > before and len(heap) > 0 and cost > heap[0][0]:
                    current[y] = cost
                    heapq.heappush(heap, (cost, y))
                    continue
                x = y
                break
            until_stale -= 1
            if x < 0:
                until_stale = 0
                continue
        order[n_removed] = x
        n_removed += 1
        n_lost = _remove(
            x, modes[x], slices, fibers, by_slice, slice_begins, by_fiber, fiber_begins, state,
            entries, lost,
        )  # fmt: skip
        if n_started < len(start):
            continue
        n_near = 0
        for i in range(n_lost):
            for m in range(3):
                f = fibers[lost[i], m]
                first, last = fiber_begins[f], fiber_begins[f + 1]
                for t in range(first, last if last - first <= NEAR_FIBER else first + 1):
                    # of a long fiber, the slice of the lost entry alone
                    e = by_fiber[t] if last - first <= NEAR_FIBER else lost[i]
                    y = slices[e, m]
                    small = slice_begins[y + 1] - slice_begins[y] <= NEAR_SLICE
                    if small and seen[y] != n_removed and not gone[y]:
                        seen[y] = n_removed
                        near[n_near] = y
                        n_near += 1
        for i in range(n_near):
            y = near[i]
            mine = by_slice[slice_begins[y] : slice_begins[y + 1]]
            cost = _cost(y, modes[y], slices, fibers, mine, state, costs)
            if 0 <= cost < current[y]:
                current[y] = cost
                heapq.heappush(heap, (cost, y))
