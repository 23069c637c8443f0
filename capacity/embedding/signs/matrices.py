"""The signs that a graph demands of scores: of objects, of queries, and of comparisons.

Of large graphs the points are those that split the rows most evenly, and the rows those with the
most facts, so that a matrix of signs stays small.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.embedding.graphs.queries import QueryGraph
from capacity.embedding.signs.proofs import Points
from capacity.exact.types import Indices

Signs: TypeAlias = NDArray[np.int8]
MOST_POINTS, MOST_ROWS = 256, 20_000


@briefly_shown
@dataclass(frozen=True, eq=False)
class SignMatrix:
    """Signs that scores must have, or the scores less a threshold for each row.

    Attributes
    ----------
    kind : {'objects', 'queries', 'comparisons'}
        The points: objects, whose rows are queries; queries, whose rows are objects; comparisons of
        two objects in a relation, whose rows are subjects.
    signs : ndarray of int8, shape (n_rows, n_points)
        1, -1, or 0 where no sign is demanded.
    points : ndarray of int64, shape (n_points,) or (n_points, 3)
        The points; of comparisons the relation and the two objects.
    rows : ndarray of int64, shape (n_rows,)
        The rows.
    """

    kind: Points
    signs: Signs
    points: Indices
    rows: Indices


def of_objects(graph: QueryGraph) -> SignMatrix:
    """Signs of queries at objects: 1 at the answers."""
    return _of_facts("objects", graph.query_of, graph.facts[:, 2])


def of_queries(graph: QueryGraph) -> SignMatrix:
    """Signs of objects at queries: 1 at the answers."""
    return _of_facts("queries", graph.facts[:, 2], graph.query_of)


def of_comparisons(graph: QueryGraph) -> SignMatrix:
    """Signs of subjects at comparisons: 1 if the first object answers and the second doesn't.

    A model whose scores are linear in the subject's d numbers has differences of rank d.
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
    signs = np.stack(columns, axis=1) if columns else np.zeros((len(subjects), 0), np.int8)
    return SignMatrix("comparisons", signs, np.array(compared, np.int64).reshape(-1, 3), subjects)


def _of_facts(kind: Points, row: Indices, point: Indices) -> SignMatrix:
    """Return the signs of a 0/1 matrix, given the places of its ones."""
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
    return SignMatrix(kind, signs, points, rows)


def _most(numbers: Indices, most: int) -> Indices:
    """Return the numbers that occur most often, in ascending order."""
    named, counts = np.unique(numbers, return_counts=True)
    return np.sort(named[np.argsort(-counts, kind="stable")[:most]])
