"""Decompositions of small tensors along a minimum spanning tree over the slices of a mode.

The slices of a tensor of order 4 or more are tensors themselves: an edge then weighs as much as the
smallest such tree for the difference of two slices, and so on down to matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.exact.elimination import factors
from capacity.exact.modular_rank import ranks_of_differences
from capacity.exact.types import Indices, Term, term, vector
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.structure import SMALL, root

# modes of a tensor whose trees are thought of: 13! of 20 microseconds are 35 hours
_MOST_MODES = 13


@briefly_shown
@dataclass(frozen=True)
class SpanningTree:
    """A minimum spanning tree over the slices of a mode; `capacity.rank.upper.slices` defines it.

    Attributes
    ----------
    mode : int
        Mode of the slices.
    order : list of int
        The root, 0, and the slices, numbered from 1, each after the one that it hangs below.
    parents : list of int
        The number above each of them; 0 for the root itself.
    weight : int
        Weight of the tree: the number of terms that it yields, if no rank modulo a prime is smaller
        than the rank.
    """

    mode: int
    order: list[int]
    parents: list[int]
    weight: int


def spanning_trees(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decompose the core along a minimum spanning tree over its slices, in the best mode.

    The terms are made only if there are fewer of them than the goal's upper end.
    """
    tensor = problem.core.tensor
    modes = range(tensor.ndim)
    affordable = [
        m for m in modes if spanning_tree_work(tensor.shape, m) <= goal.work // len(modes)
    ]
    trees = [spanning_tree(tensor, mode) for mode in affordable]
    best = min(trees, key=lambda tree: tree.weight, default=None)
    if best is not None and best.weight < goal.upper:
        terms = problem.core.lifted(spanning_tree_terms(tensor, best))
        yield (Decomposition(tuple(terms)),)


def spanning_tree_work(shape: tuple[int, ...], mode: int) -> int:
    """Estimate the nanoseconds of `spanning_tree`, which ranks each pair of slices."""
    if len(shape) > _MOST_MODES:
        # a tree of trees for each order of the modes: more than any effort
        return 20_000 * math.factorial(_MOST_MODES)
    others = tuple(sorted(n for m, n in enumerate(shape) if m != mode))
    return _work(shape[mode], others)


@cache
def _work(n: int, others: tuple[int, ...]) -> int:
    """Estimate the work for n slices, by their sides in ascending order, for each only once."""
    if len(others) < 2:
        return 1_000 * n * math.prod(others)
    if len(others) == 2:
        return 2 * n * n * math.prod(others) * min(others)
    each = sum(
        20_000 + _work(side, (*others[:m], *others[m + 1 :])) for m, side in enumerate(others)
    )
    return n * (n + 1) // 2 * each


def spanning_tree(tensor: NDArray[np.integer], mode: int) -> SpanningTree:
    """Find a minimum spanning tree over the slices of a mode.

    Parameters
    ----------
    tensor : integer ndarray
        The dense tensor, of order 2 or more.
    mode : int
        Mode of the slices.

    Returns
    -------
    SpanningTree
        The tree and its weight, by ranks modulo a prime.

    Examples
    --------
    Two slices of rank 2 that differ in one entry:

    >>> spanning_tree(np.array([[[1, 0], [0, 1]], [[1, 0], [0, 2]]]), 0).weight
    3
    """
    slices = np.moveaxis(tensor, mode, 0).astype(np.int64)
    if tensor.ndim <= 3:
        weights = ranks_of_differences(slices.reshape(*slices.shape, *[1] * (3 - tensor.ndim)))
    else:
        nodes = np.concatenate([np.zeros_like(slices[:1]), slices])
        weights = np.zeros((len(nodes), len(nodes)), np.int64)
        for i, j in combinations(range(len(nodes)), 2):
            weights[i, j] = _smallest_tree(nodes[j] - nodes[i]).weight
    order, parents = minimum_spanning_tree(weights)
    weight = sum(int(weights[min(i, j), max(i, j)]) for i, j in enumerate(parents))
    return SpanningTree(mode, order, parents, weight)


def _smallest_tree(tensor: NDArray[np.integer]) -> SpanningTree:
    """Return the tree of the smallest weight, over all modes."""
    trees = (spanning_tree(tensor, mode) for mode in range(tensor.ndim))
    return min(trees, key=lambda tree: tree.weight)


def spanning_tree_terms(tensor: NDArray[np.integer], tree: SpanningTree) -> list[Term]:
    """Decompose a small tensor along a spanning tree over its slices.

    Parameters
    ----------
    tensor : integer ndarray
        The dense tensor.
    tree : SpanningTree
        The tree.

    Returns
    -------
    list of Term
        Simple tensors that add up to the tensor exactly, as many as the tree weighs.
    """
    slices = np.moveaxis(tensor, tree.mode, 0).astype(np.int64)
    nodes = np.concatenate([np.zeros_like(slices[:1]), slices])
    below = {node: [node] for node in tree.order}
    for node in tree.order[:0:-1]:
        below[tree.parents[node]] += below[node]
    terms: list[Term] = []
    for node in tree.order[1:]:
        across = vector([c - 1 for c in sorted(below[node])], [1] * len(below[node]))
        difference = nodes[node] - nodes[tree.parents[node]]
        terms += [term(tree.mode, across, *others) for others in _terms(difference)]
    return terms


def _terms(tensor: Indices) -> list[Term]:
    """Decompose a slice: a matrix by its rank, and other tensors along their smallest tree."""
    if tensor.ndim == 1:
        return [(vector(range(len(tensor)), tensor.tolist()),)] if tensor.any() else []
    if tensor.ndim == 2:
        height, width = tensor.shape
        return [
            (vector(range(height), left), vector(range(width), right))
            for left, right in factors(tensor)
        ]
    return spanning_tree_terms(tensor, _smallest_tree(tensor))


def minimum_spanning_tree(weights: NDArray[np.number]) -> tuple[list[int], list[int]]:
    """Find a minimum spanning tree of a complete graph, by Kruskal's algorithm.

    Parameters
    ----------
    weights : ndarray, shape (n, n)
        Weight of the edge between i and j, for i < j; the rest isn't read.

    Returns
    -------
    order : list of int
        The vertices in the order of a breadth-first search from vertex 0.
    parents : list of int
        The vertex before each of them; of vertex 0 itself.

    Examples
    --------
    >>> minimum_spanning_tree(np.array([[0.0, 5, 1], [0, 0, 2], [0, 0, 0]]))
    ([0, 2, 1], [0, 2, 0])
    """
    n = len(weights)
    if n * (n - 1) // 2 > SMALL:
        from scipy.sparse import csgraph

        # scipy reads 0 as "no edge"
        tree = csgraph.minimum_spanning_tree(np.triu(weights + 1, 1).astype(np.float64))
        found, before = csgraph.breadth_first_order(tree, 0, directed=False)
        return found.tolist(), [0, *before[1:].tolist()]
    tails, heads = np.triu_indices(n, 1)
    order = np.argsort(weights[tails, heads], kind="stable")
    edges: list[tuple[int, int]] = np.stack([tails, heads], axis=1)[order].tolist()
    forest = list(range(n))
    near = [list[int]() for _ in range(n)]
    missing = n - 1
    for a, b in edges:
        one, other = root(forest, a), root(forest, b)
        if one != other:
            forest[one] = other
            near[a].append(b)
            near[b].append(a)
            missing -= 1
            if not missing:
                break
    order, parents = [0], [0] * n
    for vertex in order:
        # as scipy visits them: larger neighbours first
        following = sorted(v for v in near[vertex] if v > vertex)
        following += sorted(v for v in near[vertex] if v < vertex)
        for other in following:
            if other != parents[vertex]:
                parents[other] = vertex
                order.append(other)
    return order, parents


SPANNING_TREE = Method("spanning tree", spanning_trees, sides=("upper",), any_order=True)
