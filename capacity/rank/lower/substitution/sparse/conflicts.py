"""A set of slices without conflicts, found greedily."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask
from capacity.kept_code import kept


def without_conflicts(first: Indices, second: Indices, weights: NDArray[np.float64]) -> Mask:
    """Give up vertices of a graph until no edge is left: a vertex cover, greedily.

    Next comes the vertex with the most edges in relation to its weight.

    Parameters
    ----------
    first, second : ndarray of int64, shape (n_edges,)
        Ends of the edges, each edge once.
    weights : ndarray of float64, shape (n,)
        Positive costs of giving up each vertex.

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
