"""The lightest forest of roots and parents: a minimum spanning arborescence of a dense graph.

References
----------
J. Edmonds, Optimum branchings, J. Res. Nat. Bur. Standards 71B (1967) 233-240.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    """Weights among merged nodes, and the tail and head of the edge that each one stands for."""
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
