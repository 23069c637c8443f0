"""The structure of a sparse tensor: unfoldings, stacked slices, connected components.

All functions work on the nonzero entries and make no dense tensor. Components of a small graph are
found without scipy's graph routines: importing these takes longer than the answer for a small
database.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (slices,
fibers, unfoldings).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import compacted
from capacity.tensor.sparse import SparseTensor

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


Indices = NDArray[np.int64]
# numbers of places stay below this, so that they fit 64 bits
MOST_PLACES = 2**62


def numbered(places: Indices, sides: Sequence[int]) -> Indices:
    """Number places in lexicographic order, as if their array was flattened.

    Parameters
    ----------
    places : ndarray of int64, shape (n, k)
        Indices of k modes; k may be 0, and all numbers are 0 then.
    sides : sequence of int
        Sizes of these modes.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    InvalidArgumentError
        If the modes have 2^62 places or more.

    Examples
    --------
    >>> numbered(np.array([[0, 2], [1, 0]]), (2, 3)).tolist()
    [2, 3]
    """
    if math.prod(sides) >= MOST_PLACES:
        raise InvalidArgumentError(
            f"The modes of a fiber or a slice must have fewer than 2^62 places; got {list(sides)}."
        )
    total = np.zeros(len(places), np.int64)
    for column, side in zip(places.T, sides, strict=True):
        total = total * side + column
    return total


def places_of(numbers: Indices, sides: Sequence[int]) -> Indices:
    """Return the places to which `numbered` assigned some numbers, shape (n, k)."""
    places = np.zeros((len(numbers), len(sides)), np.int64)
    rest = numbers
    for column in range(len(sides) - 1, -1, -1):
        rest, places[:, column] = np.divmod(rest, sides[column])
    return places


def unfolding_entries(tensor: SparseTensor, mode: int) -> tuple[Indices, Indices]:
    """Row and column numbers of the entries of the mode-`mode` unfolding.

    The unfolding has a row for each slice of the mode; its columns are the places in the other
    modes (`numbered`).
    """
    others = [m for m in range(tensor.order) if m != mode]
    columns = numbered(tensor.indices[:, others], [tensor.shape[m] for m in others])
    return tensor.indices[:, mode], columns


def numbered_fibers(places: Indices, sides: Sequence[int]) -> Indices:
    """Number the fibers through entries, without gaps, those along the first mode first.

    Parameters
    ----------
    places : ndarray of int64, shape (n_entries, order)
        Places of the entries.
    sides : sequence of int
        Sizes of the modes.

    Returns
    -------
    ndarray of int64, shape (n_entries, order)
        For each entry the numbers of its fibers along each mode.

    Examples
    --------
    >>> numbered_fibers(np.array([[0, 0], [0, 1], [1, 1]]), (2, 2)).tolist()
    [[0, 2], [1, 2], [1, 3]]
    """
    fibers, n = np.empty_like(places), 0
    for mode in range(places.shape[1]):
        others = [m for m in range(places.shape[1]) if m != mode]
        fibers[:, mode] = n + compacted(numbered(places[:, others], [sides[m] for m in others]))
        n = int(fibers[:, mode].max(initial=n - 1)) + 1
    return fibers


def slice_modes(order: int) -> list[tuple[int, ...]]:
    """Modes that are fixed in the matrix slices of a tensor; of order 3, one mode at a time."""
    return list(combinations(range(order), max(0, order - 2)))


def stacked_slice_entries(
    tensor: SparseTensor, fixed: tuple[int, ...]
) -> tuple[Indices, Indices, Indices]:
    """Row, column and slice numbers of the entries of the block diagonal matrix of all slices.

    A slice is the matrix that fixing the indices of all modes but two leaves. The rank of the block
    diagonal matrix is the sum of the ranks of the slices.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of order 2 or more.
    fixed : tuple of int
        The modes that are fixed, all but two.

    Returns
    -------
    rows, columns, slices : ndarray of int64, shape (n_entries,)
        With a and b the indices of the two free modes and s the number of the slice among n, a row
        is ``a * n + s`` and a column ``b * n + s``.
    """
    sides = [tensor.shape[m] for m in fixed]
    a, b = (m for m in range(tensor.order) if m not in fixed)
    number, n = numbered(tensor.indices[:, list(fixed)], sides), math.prod(sides)
    if n * max(tensor.shape[a], tensor.shape[b]) >= MOST_PLACES:
        raise InvalidArgumentError(
            f"The rows of stacked slices must be fewer than 2^62; got a tensor of {tensor.shape}."
        )
    return tensor.indices[:, a] * n + number, tensor.indices[:, b] * n + number, number


def component_labels(tensor: SparseTensor) -> Indices:
    """Label each entry by its connected component, shape (n_entries,).

    The vertices are the pairs (mode, index), and each entry joins one of each mode. With each mode
    sorted by component, the tensor is block diagonal, a direct sum of its components. They are
    numbered from 0 without gaps.
    """
    if not tensor.n_entries:
        return np.zeros(0, np.int64)
    ends, n = tensor.indices + np.cumsum((0, *tensor.shape[:-1])), sum(tensor.shape)
    if n > ends.size:
        # a tensor may have far more indices than entries: only those with an entry are vertices
        used, at = np.unique(ends, return_inverse=True)
        ends, n = at.reshape(ends.shape), len(used)
    rows = np.tile(ends[:, 0], tensor.order - 1)
    labels = connected_labels(rows, ends[:, 1:].T.ravel(), n)[ends[:, 0]]
    # an index without an entry is a component of its own, without a number here
    return compacted(labels)


def n_fibers(tensor: SparseTensor) -> int:
    """Count the fibers of the last mode that have an entry: those that are observed."""
    keys = tensor.indices[:, :-1]
    return int((np.diff(keys, axis=0) != 0).any(axis=1).sum()) + bool(len(keys))


def is_complete(tensor: SparseTensor) -> bool:
    """Return True if all fibers of the last mode are observed.

    The tensor is then the only one that agrees with it on the observed fibers.
    """
    return n_fibers(tensor) == math.prod(tensor.shape[:-1])


def grouped(tensor: SparseTensor, groups: Sequence[Sequence[int]]) -> SparseTensor:
    """Take groups of modes together, each as one mode.

    A simple tensor stays simple, so the rank of the result is at most that of the tensor.

    Parameters
    ----------
    tensor : SparseTensor
        The tensor.
    groups : sequence of sequences of int
        The modes of each group, each mode in one group.

    Returns
    -------
    SparseTensor
        A tensor with a mode for each group. The indices of a group of several modes are those
        combinations of their indices that have an entry, in lexicographic order.

    Raises
    ------
    InvalidArgumentError
        Unless each mode is in one group, and no group is empty.

    Examples
    --------
    >>> T = SparseTensor([[0, 0, 1, 0], [1, 1, 0, 0]], [2, 3], (2, 2, 2, 1))
    >>> grouped(T, [[0, 1], [2], [3]]).indices.tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    modes = sorted(mode for group in groups for mode in group)
    if modes != list(range(tensor.order)) or not all(len(group) for group in groups):
        raise InvalidArgumentError(
            f"Groups must hold each of the {tensor.order} modes once, and none be empty; got "
            f"{shown(groups)}."
        )
    columns: list[Indices] = []
    sides: list[int] = []
    for group in groups:
        if len(group) == 1:
            columns.append(tensor.indices[:, group[0]])
            sides.append(tensor.shape[group[0]])
        else:
            used, at = np.unique(tensor.indices[:, list(group)], axis=0, return_inverse=True)
            columns.append(at.ravel().astype(np.int64))
            sides.append(max(1, len(used)))
    order = np.lexsort(columns[::-1])
    return SparseTensor(np.stack(columns, axis=1)[order], tensor.values[order], sides)
