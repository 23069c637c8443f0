"""The signs that a graph demands of scores: of objects, of queries, and of comparisons.

Of large graphs the points are those that split the rows most evenly, and the rows those with the
most facts, so that a matrix of signs stays small.
"""

from __future__ import annotations

import itertools

import numpy as np

from capacity.embedding.graph import QueryGraph
from capacity.embedding.sign_patterns import Points, Shattered, Signs, shattered
from capacity.rank.types import Indices

MOST_POINTS, MOST_ROWS = 256, 20_000


def shattered_objects(graph: QueryGraph, seed: int) -> Shattered:
    """Find objects on which queries show all patterns of answers, up to negation."""
    return _shattered("objects", graph.query_of, graph.facts[:, 2], seed)


def shattered_queries(graph: QueryGraph, seed: int) -> Shattered:
    """Find queries on which objects show all patterns of being answers, up to negation."""
    return _shattered("queries", graph.facts[:, 2], graph.query_of, seed)


def shattered_comparisons(graph: QueryGraph, seed: int) -> Shattered:
    """Find comparisons on which subjects show all patterns, up to negation.

    A model whose scores are linear in the subject's d numbers needs d >= m for m of them.
    """
    s, q, o = graph.facts.T
    # the relation's most frequent objects, all pairs of them
    side = 2
    while graph.shape[1] * side * (side + 1) // 2 <= MOST_POINTS:
        side += 1
    compared: list[tuple[int, int, int]] = []
    columns: list[Signs] = []
    subjects = _most(s, MOST_ROWS)
    row = np.full(graph.shape[0], -1)
    row[subjects] = np.arange(len(subjects))
    for relation in range(graph.shape[1]):
        mine = (q == relation) & (row[s] >= 0)
        named = _most(o[mine], side)
        there = np.zeros((len(subjects), len(named)), np.int8)
        at = np.searchsorted(named, o[mine])
        at[at == len(named)] = 0
        kept = named[at] == o[mine] if len(named) else np.zeros(0, bool)
        there[row[s[mine][kept]], at[kept]] = 1
        for a, b in itertools.combinations(range(len(named)), 2):
            compared.append((relation, int(named[a]), int(named[b])))
            columns.append(there[:, a] - there[:, b])
    if not columns:
        return Shattered("comparisons", np.zeros((0, 3), np.int64), np.zeros(0, np.int64))
    points, rows = shattered(np.stack(columns, axis=1), seed=seed)
    return Shattered("comparisons", np.array(compared, np.int64)[points], subjects[rows])


def _shattered(kind: Points, row: Indices, point: Indices, seed: int) -> Shattered:
    """Find shattered points of a 0/1 matrix, given the places of its ones."""
    n_rows = int(row.max()) + 1
    counts = np.bincount(point)
    points = np.sort(np.argsort(-np.minimum(counts, n_rows - counts), kind="stable")[:MOST_POINTS])
    place = np.full(len(counts), -1)
    place[points] = np.arange(len(points))
    kept = place[point] >= 0
    rows = _most(row[kept], MOST_ROWS)
    at = np.full(n_rows, -1)
    at[rows] = np.arange(len(rows))
    kept &= at[row] >= 0
    signs = np.full((len(rows), len(points)), -1, np.int8)
    signs[at[row[kept]], place[point[kept]]] = 1
    found, shown = shattered(signs, seed=seed)
    return Shattered(kind, points[found], rows[shown])


def _most(numbers: Indices, most: int) -> Indices:
    """Return the numbers that occur most often, in ascending order."""
    named, counts = np.unique(numbers, return_counts=True)
    return np.sort(named[np.argsort(-counts, kind="stable")[:most]])
