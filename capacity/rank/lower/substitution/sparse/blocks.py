"""Orders of sparse substitution in which several slices are removed at once.

A dense part of a graph has many independent slices, of which the substitution method removes few:
each removal hides most of the others. So an order is cut somewhere, and slices of one mode are
removed together there, as many as are independent in a block without hidden entries. Such a block
is left if, of each pair of slices whose fiber is hidden, one is abandoned. Where to cut, in which
mode, and the cost of abandoning a slice are drawn at random; the order then continues greedily, and
is kept if it is as long as before.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.exact.peeling import reduce
from capacity.exact.ranks import minor_by_group
from capacity.exact.types import Indices, Mask
from capacity.kept_code import kept
from capacity.rank.lower.substitution.sparse.evolution import Traits, changed_traits, costs_of
from capacity.rank.lower.substitution.sparse.layout import SparseLayout
from capacity.rank.lower.substitution.sparse.orders import State, sparse_order, state_after
from capacity.rank.verifier.budget import steps_of_rank


def without_conflicts(first: Indices, second: Indices, weights: NDArray[np.float64]) -> Mask:
    """Remove vertices of a graph until no edge is left: a vertex cover, greedily.

    Next comes the vertex with the most edges in relation to its weight.

    Parameters
    ----------
    first, second : ndarray of int64, shape (n_edges,)
        Ends of the edges, each edge once.
    weights : ndarray of float64, shape (n,)
        Positive costs of abandoning each vertex.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for vertices that are given up.

    References
    ----------
    V. Chvátal, A greedy heuristic for the set-covering problem, 1979.

    Examples
    --------
    >>> star = np.array([0, 0, 0]), np.array([1, 2, 3])
    >>> without_conflicts(*star, np.ones(4)).tolist()
    [True, False, False, False]
    >>> without_conflicts(*star, np.array([9.0, 1, 1, 1])).tolist()
    [False, True, True, True]
    """
    n = len(weights)
    ends = np.concatenate([first, second])
    order = np.argsort(ends, kind="stable")
    begins = np.searchsorted(ends[order], np.arange(n + 1))
    return _given_up(begins, np.concatenate([second, first])[order], weights)


@kept
def _given_up(begins: Any, neighbours: Any, weights: Any) -> Any:
    n = len(weights)
    edges = np.diff(begins)
    given_up = np.zeros(n, np.bool_)
    heap = [(-edges[x] / weights[x], x) for x in range(n) if edges[x] > 0]
    heapq.heapify(heap)
    while len(heap) > 0:
        ratio, x = heapq.heappop(heap)
        if edges[x] == 0:
            continue
        now = -edges[x] / weights[x]
        if now != ratio:
            # it has lost edges since
            heapq.heappush(heap, (now, x))
            continue
        given_up[x] = True
        edges[x] = 0
        for y in neighbours[begins[x] : begins[x + 1]]:
            if not given_up[y]:
                edges[y] -= 1
    return given_up


# nanoseconds of a trial for each entry, and at least
AN_ENTRY, A_TRIAL = 2_000, 3_000_000
# longest side of what has to be made dense, and most blocks of an order
LONGEST, MOST_BLOCKS = 400, 4
# the earliest cut, as a share of the order; shares of cuts in each mode, the one with the fewest
# slices in the middle; shares of trials with other costs, and with more steps before the cut
EARLIEST, MODES, CHANGED, MORE = 0.4, (0.45, 0.1, 0.45), 0.5, 0.3
# logarithms of what giving up a row of the block costs, in relation to an average other slice
ROW = (-1.0, 4.0)


class Block(NamedTuple):
    """Slices that are removed at once, by the columns of their minor.

    Attributes
    ----------
    first : int
        Number of the first among the removals.
    columns : ndarray of int64, shape (n,)
        An entry in the fiber of each column of the minor.
    eliminated : int
        Number of leading pivots.
    """

    first: int
    columns: Indices
    eliminated: int


@dataclass(frozen=True)
class Steps:
    """Slices in the order of their removal, and blocks of them that are removed at once."""

    order: Indices
    blocks: tuple[Block, ...] = ()

    def cut(self, length: int) -> Steps:
        """Return the first steps, without a block that would be cut through."""
        blocks = tuple(b for b in self.blocks if b.first + len(b.columns) <= length)
        for block in self.blocks:
            if block.first < length < block.first + len(block.columns):
                length = block.first
        return Steps(self.order[:length], blocks)


def with_blocks(
    layout: SparseLayout,
    values: Indices,
    start: tuple[Indices, Traits],
    trials: int,
    work: int,
    rng: np.random.Generator,
) -> Iterator[Steps]:
    """Yield longer and longer orders with blocks.

    Parameters
    ----------
    layout : SparseLayout
        The entries, with the mode of the fewest slices in the middle.
    values : ndarray of int64, shape (n_entries,)
        The entries.
    start : (ndarray of int64, Traits)
        An order, and what its costs followed from.
    trials : int
        Largest number of trials.
    work : int
        Work allowed, in units of about a nanosecond.
    rng : Generator
        Source of what is drawn.

    Yields
    ------
    Steps
        An order that is longer than the one before.
    """
    best, traits = Steps(start[0]), start[1]
    for _ in range(trials):
        work -= max(A_TRIAL, AN_ENTRY * len(values))
        changed = changed_traits(traits, rng) if rng.random() < CHANGED else traits
        costs = costs_of(changed, layout, rng)
        before = best.cut(int(len(best.order) * rng.uniform(EARLIEST, 1)))
        if len(before.blocks) == MOST_BLOCKS:
            before = best.cut(before.blocks[-1].first)
        if rng.random() < MORE:
            more = sparse_order(layout, costs, before.order)
            n = int(rng.integers(len(before.order), len(more) + 1))
            before = Steps(more[:n], before.blocks)
        mode = int(rng.choice(3, p=MODES))
        state = state_after(layout, before.order)
        mine = _block(layout, state, mode, float(np.exp(rng.uniform(*ROW))))
        side = _dense_side(layout, mine, mode, values)
        work -= 2 * steps_of_rank(side, side)
        if work < 0:
            return
        if not mine.any() or side > LONGEST:
            continue
        rows, columns = layout.slices[mine, mode], layout.fibers[mine, mode]
        _, minor = minor_by_group(rows, columns, np.zeros(len(rows), np.int64), values[mine])
        # any entry of a fiber tells where it is
        numbers, at = np.unique(columns, return_index=True)
        entry = np.flatnonzero(mine)[at][np.searchsorted(numbers, minor.columns)]
        pivots = len(minor.rows) - int(minor.blocks.sum())
        block = Block(len(before.order), entry, pivots)
        order = sparse_order(layout, costs, np.concatenate([before.order, minor.rows]))
        if len(order) >= len(best.order):
            longer = len(order) > len(best.order)
            best, traits = Steps(order, (*before.blocks, block)), changed
            if longer:
                yield best


def _block(layout: SparseLayout, state: State, mode: int, row: float) -> Mask:
    """Known entries of slices of which no pair has a hidden fiber, but along a mode."""
    n = len(layout.modes)
    pairs: list[Indices] = []
    for across in {0, 1, 2} - {mode}:
        other = 3 - mode - across
        both = layout.slices[:, [mode, other]]
        conflict = state.hidden[layout.fibers[:, across]] & ~state.gone[both].any(axis=1)
        pairs.append(np.unique(both[conflict] @ np.array([n, 1])))
    first, second = np.divmod(np.concatenate(pairs), n)
    sizes = 1.0 + np.bincount(layout.slices[state.known].ravel(), minlength=n)
    others = (layout.modes != mode) & ~state.gone
    weights = (sizes / sizes[others].mean() if others.any() else sizes).astype(np.float64)
    weights[layout.modes == mode] = row
    given_up = without_conflicts(first, second, weights) | state.gone
    hidden = state.hidden[layout.fibers[:, mode]]
    return state.known & ~hidden & ~given_up[layout.slices].any(axis=1)


def _dense_side(layout: SparseLayout, mine: Mask, mode: int, values: Indices) -> int:
    """Largest rank that a part of an unfolding can have beside its pivots that peel."""
    peeled = reduce(layout.slices[mine, mode], layout.fibers[mine, mode], values[mine])
    return sum(
        min(len(np.unique(peeled.row[block])), len(np.unique(peeled.column[block])))
        for block in peeled.blocks()
    )
