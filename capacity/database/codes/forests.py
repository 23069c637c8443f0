"""The codes of all predicates at once, each alone or given another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.database.codes.objects import (
    GIVEN,
    Cells,
    bits_alone,
    bits_in_groups,
    bits_of_copies,
)
from capacity.display import briefly_shown

# predicates: each is tried as the parent of each other one
LARGEST_FOREST = 500
# share of the predicates that are expected to have a profile's code
EXPECTED = 7 / 8


def code_profiles(n: int) -> list[NDArray[np.float64]]:
    """Probabilities of n codes: all alike, or one of them most of the time.

    Examples
    --------
    >>> [profile.round(3).tolist() for profile in code_profiles(2)]
    [[0.5, 0.5], [0.875, 0.125], [0.125, 0.875]]
    """
    mostly = np.full((n, n), (1 - EXPECTED) / (n - 1))
    np.fill_diagonal(mostly, EXPECTED)
    return [np.full(n, 1 / n), *mostly]


@briefly_shown
@dataclass(frozen=True)
class Weights:
    """Lengths in bits of each predicate's objects by code.

    Attributes
    ----------
    alone : ndarray of float64, shape (n_predicates, 4)
        By the codes of `ALONE`.
    given : ndarray of float64, shape (n_predicates, n_predicates, 5)
        By the codes of `GIVEN`, of a predicate (second) given another (first), whose name is
        included. The last side is 0 where no predicate is tried as a parent.
    """

    alone: NDArray[np.float64]
    given: NDArray[np.float64]

    @classmethod
    def of(cls, cells: Cells) -> Weights:
        """Compute all of them, in time O(n_predicates n_facts) but for logarithms."""
        n = cells.table.shape[1]
        given = np.empty((n, n, len(GIVEN)) if 1 < n <= LARGEST_FOREST else (n, n, 0))
        for q in range(n if given.size else 0):
            given[:, q, :3] = bits_in_groups(cells, cells.table, q)
            given[:, q, 3:] = bits_of_copies(cells, q)
        # one of n - 1 names; a forest has no circle, which is left unused
        return cls(bits_alone(cells), given + np.log2(max(n - 1, 1)))


@briefly_shown
@dataclass(frozen=True)
class Forest:
    """A parent, a code and its bits for each predicate.

    Attributes
    ----------
    parents : ndarray of int64, shape (n_predicates,)
        -1 for none.
    codes : ndarray of int64, shape (n_predicates,)
        Codes that need no parent first, then those of `GIVEN`.
    bits : ndarray of float64, shape (n_predicates,)
        Length of the objects, and of the choice of the code and the parent.
    """

    parents: NDArray[np.int64]
    codes: NDArray[np.int64]
    bits: NDArray[np.float64]

    @classmethod
    def lightest(
        cls,
        roots: NDArray[np.float64],
        given: NDArray[np.float64],
        shares: NDArray[np.float64],
    ) -> Forest:
        """Choose all three for the probabilities `shares` of the codes, those of roots first."""
        n, n_roots = roots.shape
        alone, after = roots - np.log2(shares[:n_roots]), given - np.log2(shares[n_roots:])
        if not after.size:
            return cls(np.full(n, -1), alone.argmin(axis=1), alone.min(axis=1))
        parents = lightest_parents(alone.min(axis=1), after.min(axis=2))
        # row -1, which roots take, is overwritten
        after = after[parents, np.arange(n)]
        is_root = parents < 0
        codes = np.where(is_root, alone.argmin(axis=1), n_roots + after.argmin(axis=1))
        return cls(parents, codes, np.where(is_root, alone.min(axis=1), after.min(axis=1)))


def lightest_parents(roots: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Choose a parent for each node, or none, without circles and with the least sum of weights.

    Parameters
    ----------
    roots : ndarray of float64, shape (n,)
        Weights of nodes without a parent, finite.
    edges : ndarray of float64, shape (n, n)
        Weights of a parent (row) of a node (column); the diagonal isn't read.

    Returns
    -------
    ndarray of int64, shape (n,)
        The parent of each node, -1 for none. The sum of the weights is the least there is; where
        several forests have it, this is one of them.

    Examples
    --------
    >>> lightest_parents(np.array([3.0, 5.0]), np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [-1, 0]
    """
    n = len(roots)
    # node 0 is the parent of roots; an edge into it never stands
    weights = np.full((n + 1, n + 1), np.inf)
    weights[0, 1:] = roots
    weights[1:, 1:] = edges
    np.fill_diagonal(weights, np.inf)
    levels: list[tuple[NDArray[np.int64], _Ends]] = []
    while True:
        best = weights.argmin(axis=0)
        best[0] = 0
        merged = _without_circles(best)
        if merged is None:
            break
        smaller, ends = _contracted(weights, best, merged)
        levels.append((best, ends))
        weights = smaller
    parents = best
    for best, (tails, heads) in reversed(levels):
        # each node keeps its best parent, except where the chosen edge enters its circle
        outer = best.copy()
        for node in range(1, len(parents)):
            edge = parents[node], node
            outer[heads[edge]] = tails[edge]
        outer[0] = 0
        parents = outer
    return parents[1:] - 1


_Ends = tuple[NDArray[np.int64], NDArray[np.int64]]


def _without_circles(best: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Number the nodes so that those of a circle have one number; None without circles."""
    n = len(best)
    # 0: not seen; else the walk that saw it
    seen = np.zeros(n, np.int64)
    seen[0] = -1
    circle = np.arange(n)
    found = False
    for start in range(1, n):
        node = start
        while not seen[node]:
            seen[node] = start
            node = int(best[node])
        if seen[node] == start:
            found = True
            first, node = node, int(best[node])
            while node != first:
                circle[node] = first
                node = int(best[node])
    return np.unique(circle, return_inverse=True)[1] if found else None


def _contracted(
    weights: NDArray[np.float64], best: NDArray[np.int64], merged: NDArray[np.int64]
) -> tuple[NDArray[np.float64], _Ends]:
    """Weights among merged nodes, and the tail and head of the edge that each one denotes."""
    # entering a circle saves the edge that the circle has into the same node
    saved = np.where(np.bincount(merged)[merged] > 1, weights[best, np.arange(len(best))], 0.0)
    by_tail, tails = _lightest_rows(weights - saved, merged)
    by_head, heads = _lightest_rows(by_tail.T, merged)
    smaller = by_head.T.copy()
    np.fill_diagonal(smaller, np.inf)
    heads = heads.T
    return smaller, (np.take_along_axis(tails, heads, axis=1), heads)


def _lightest_rows(
    weights: NDArray[np.float64], merged: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Least weight in each column of the rows that have one number, and the row that has it."""
    order = np.argsort(merged, kind="stable")
    sizes = np.bincount(merged)
    starts = np.cumsum(sizes) - sizes
    rows = np.repeat(order[starts][:, None], weights.shape[1], axis=1)
    for number in np.flatnonzero(sizes > 1):
        members = order[starts[number] : starts[number] + sizes[number]]
        rows[number] = members[weights[members].argmin(axis=0)]
    return np.take_along_axis(weights, rows, axis=0), rows
