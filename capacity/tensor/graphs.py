"""Connected components of graphs, without scipy's graph routines where the graph is small.

Importing these takes longer than the answer for a small database.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# edges up to which a loop in Python is quicker than the import
SMALL = 2_000


def connected_labels(
    tails: NDArray[np.integer], heads: NDArray[np.integer], n_vertices: int
) -> NDArray[np.int64]:
    """Label each vertex of an undirected graph by its connected component.

    Parameters
    ----------
    tails, heads : integer ndarray, shape (n_edges,)
        Ends of the edges.
    n_vertices : int
        Number of vertices; each end is below it.

    Returns
    -------
    ndarray of int64, shape (n_vertices,)
        Components are numbered from 0, in the order of their first vertices.

    Examples
    --------
    >>> connected_labels(np.array([0, 3]), np.array([2, 4]), 5).tolist()
    [0, 1, 0, 2, 2]
    """
    if max(len(tails), n_vertices) > SMALL:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        shape = (n_vertices, n_vertices)
        graph = coo_array((np.ones(len(tails), np.int8), (tails, heads)), shape=shape)
        return connected_components(graph, directed=False)[1].astype(np.int64)
    # each tree's root is its smallest vertex
    parent = list(range(n_vertices))
    for a, b in zip(tails.tolist(), heads.tolist(), strict=True):
        a, b = root(parent, a), root(parent, b)
        parent[max(a, b)] = min(a, b)
    roots = [root(parent, vertex) for vertex in range(n_vertices)]
    return np.unique(np.array(roots, np.int64), return_inverse=True)[1].ravel().astype(np.int64)


def root(parent: list[int], vertex: int) -> int:
    """Find the root of a vertex in a forest, and shorten its path."""
    while parent[vertex] != vertex:
        parent[vertex] = parent[parent[vertex]]
        vertex = parent[vertex]
    return vertex
