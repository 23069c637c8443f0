"""Decompositions of small tensors along a minimum spanning tree over the slices of a mode."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from capacity.rank.exact.factorization import factors
from capacity.rank.exact.sparse_terms import term, vector
from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.types import Term
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.graphs import SMALL, root


def spanning_trees(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decompose the core along a minimum spanning tree over its slices, in each mode."""
    tensor = problem.core.tensor
    for mode in range(3):
        if spanning_tree_work(tensor.shape, mode) > goal.work // 3:
            continue
        yield (Decomposition(tuple(problem.core.lifted(spanning_tree_terms(tensor, mode)))),)


def spanning_tree_work(shape: tuple[int, ...], mode: int) -> int:
    """Estimate the nanoseconds of `spanning_tree_terms`, which ranks each pair of slices."""
    shortest = min(n for m, n in enumerate(shape) if m != mode)
    return 2 * shape[mode] * math.prod(shape) * shortest


def spanning_tree_terms(tensor: NDArray[np.integer], mode: int) -> list[Term]:
    """Decompose a small tensor along a minimum spanning tree over the slices of a mode.

    `capacity.rank.upper.slices` defines the tree and its weights.

    Parameters
    ----------
    tensor : integer ndarray, shape (n0, n1, n2)
        The dense tensor.
    mode : {0, 1, 2}
        Mode of the slices.

    Returns
    -------
    list of Term
        Simple tensors that add up to the tensor exactly, one per unit of rank along the tree.
    """
    slices = np.moveaxis(tensor, mode, 0).astype(np.int64)
    n = len(slices)
    nodes = np.concatenate([np.zeros_like(slices[:1]), slices])
    # floating point only chooses the tree; the terms are exact whichever it is
    weights = np.zeros((n + 1, n + 1))
    for i in range(n):
        weights[i, i + 1 :] = np.linalg.matrix_rank((nodes[i + 1 :] - nodes[i]).astype(np.float64))
    order, parents = minimum_spanning_tree(weights)
    below = {node: [node] for node in order}
    for node in order[:0:-1]:
        below[parents[node]] += below[node]
    terms: list[Term] = []
    _, height, width = nodes.shape
    for node in order[1:]:
        across = vector([c - 1 for c in sorted(below[node])], [1] * len(below[node]))
        for left, right in factors(nodes[node] - nodes[parents[node]]):
            terms.append(
                term(mode, across, vector(range(height), left), vector(range(width), right))
            )
    return terms


def minimum_spanning_tree(weights: NDArray[np.float64]) -> tuple[list[int], list[int]]:
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
        tree = csgraph.minimum_spanning_tree(np.triu(weights + 1, 1))
        found, before = csgraph.breadth_first_order(tree, 0, directed=False)
        return found.tolist(), [0, *before[1:].tolist()]
    tails, heads = np.triu_indices(n, 1)
    order = np.argsort(weights[tails, heads], kind="stable")
    edges: list[tuple[int, int]] = np.stack([tails, heads], axis=1)[order].tolist()
    forest = list(range(n))
    near = [list[int]() for _ in range(n)]
    for a, b in edges:
        one, other = root(forest, a), root(forest, b)
        if one != other:
            forest[one] = other
            near[a].append(b)
            near[b].append(a)
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


SPANNING_TREE = Method("spanning tree", spanning_trees, sides=("upper",))
