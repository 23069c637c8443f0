"""Signs that a graph demands of scores, and the dimensions that they need.

There are signs of objects, of queries, and of comparisons of two objects. Of large graphs the
points are those that split the rows most evenly, and the rows those with the most facts, so that a
matrix of signs stays small.

*Shattered points*, on which every pattern of signs occurs, up to its negation. Let scores be
bilinear, <h_i, e_j> in d dimensions, with a sign that is demanded of some pairs (row i, point j).
If m points show all 2^m patterns of signs among the rows, counting a pattern and its negation as
one, then d >= m: with d < m some sum of l_j e_j is zero, l not; a row whose signs are those of l,
or their negation, would have a sum of l_j <h_i, e_j> that isn't zero. This is the bound by Vapnik
and Chervonenkis' dimension (Alon, Haussler, Welzl 1987; Paturi and Simon 1986 for sign ranks), with
half the patterns.

If scores are only ranked, each row has a threshold between its answers and all else: d + 1
dimensions, with the signs. So d >= m - 1.

*Matrices of signs with a small norm.* Let scores be bilinear, <h_i, e_j> in d dimensions, with the
signs of an m x n matrix W of 1 and -1. Then d >= sqrt(m n) / ||W||, with the spectral norm (Forster
2002, Theorem 2.2). The norm is bounded from above in integers: with A = W W^T, ||W||^2 is the
largest eigenvalue of A, and its 8th power is at most the trace of A^8, and at most the square of
the largest sum of absolute values in a row of A^4.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, generator
from capacity.display import briefly_shown
from capacity.embedding.proofs import MOST_POINTS, SHORT, Points, Shattered, SmallNorm
from capacity.embedding.queries import QueryGraph
from capacity.exact.types import Indices

Signs: TypeAlias = NDArray[np.int8]
MATRIX_POINTS, MATRIX_ROWS = 256, 20_000


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
    while graph.shape[1] * side * (side + 1) // 2 <= MATRIX_POINTS:
        side += 1
    compared: list[tuple[int, int, int]] = []
    columns: list[Signs] = []
    subjects = _most(s, MATRIX_ROWS)
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
    points = np.sort(
        np.argsort(-np.minimum(counts, n_rows - counts), kind="stable")[:MATRIX_POINTS]
    )
    place = np.full(len(counts), -1)
    place[points] = np.arange(len(points))
    kept = place[point] >= 0
    rows = _most(row[kept], MATRIX_ROWS)
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


# restarts of the greedy search
RESTARTS = 12


def shattered(matrix: SignMatrix, seed: int) -> Shattered:
    """Look for many points of a matrix of signs that are shattered."""
    points, rows = shattered_points(matrix.signs, seed=seed)
    return Shattered(matrix.kind, matrix.points[points], matrix.rows[rows])


def shattered_points(
    signs: Signs, *, seed: Seed = 0, restarts: int = RESTARTS
) -> tuple[Indices, Indices]:
    """Look for many points that are shattered up to negation, greedily.

    Parameters
    ----------
    signs : ndarray of int8, shape (n_rows, n_points)
        1, -1, or 0 where no sign is demanded.
    seed : int or numpy.random.Generator
        Seed of the order in which points are tried.
    restarts : int
        Number of first points.

    Returns
    -------
    points : ndarray of int64, shape (m,)
        The most points found; none if no sign is demanded.
    rows : ndarray of int64, shape (2^(m - 1),)
        A row for each pattern.

    Examples
    --------
    All patterns of three signs up to negation, and a row more:

    >>> signs = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1], [-1, -1, -1]], np.int8)
    >>> points, rows = shattered_points(signs)
    >>> len(points), len(rows)
    (3, 4)
    """
    rng = generator(seed)
    best = np.zeros(0, np.int64), np.zeros(0, np.int64)
    named: Indices = np.flatnonzero(signs.any(axis=0))
    for _ in range(restarts if len(named) else 0):
        found = _grown(signs, rng.permutation(named))
        if len(found[0]) > len(best[0]):
            best = found
    return best


def _grown(signs: Signs, order: Indices) -> tuple[Indices, Indices]:
    """Take each point of an order that leaves all patterns there."""
    points: list[int] = []
    rows: Indices = np.arange(len(signs))
    patterns: Indices = np.zeros(len(signs), np.int64)
    for j in order.tolist():
        column = signs[rows, j]
        defined = column != 0
        first = signs[rows, points[0]] if points else column
        # a pattern and its negation agree relative to their first sign
        wider = 2 * patterns + (column != first)
        seen = np.unique(wider[defined])
        if len(points) < MOST_POINTS and len(seen) == 2 ** len(points):
            points.append(j)
            rows, patterns = rows[defined], wider[defined]
    _, first_rows = np.unique(patterns, return_index=True)
    return np.array(points, np.int64), rows[first_rows] if points else rows[:0]


# rows and columns that leave at once, as a share
SHARE = 0.05


def forster_bound(signs: Signs) -> int:
    """Return the least dimension of scores with these signs that their norm proves.

    Parameters
    ----------
    signs : ndarray of int8, shape (m, n)
        1 and -1; one side is at most `SHORT`, the other at most `LONG`.

    Returns
    -------
    int

    Examples
    --------
    A Hadamard matrix of order 4 has norm 2.

    >>> two = np.array([[1, 1], [1, -1]], np.int8)
    >>> forster_bound(np.kron(two, two))
    2
    """
    W = (signs if len(signs) <= signs.shape[1] else signs.T).astype(np.int64)
    A4 = np.linalg.matrix_power(W @ W.T, 4)
    rows: int = max(sum(row) for row in np.abs(A4).tolist())
    largest = min(rows**2, sum(x * x for x in A4.ravel().tolist()))
    d = 1
    while d**16 * largest < signs.size**8:
        d += 1
    return d


def small_norm(matrix: SignMatrix, seed: int) -> SmallNorm | None:
    """Look for a part of a matrix of signs that has a small norm for its size.

    Rows and columns with large entries in the first singular vectors leave, and what remains is
    looked at each time.
    """
    rng = np.random.default_rng(seed)
    rows, points = _all_demanded(matrix.signs)
    rows = rows[np.unique(matrix.signs[np.ix_(rows, points)], axis=0, return_index=True)[1]]
    points = points[np.unique(matrix.signs[np.ix_(rows, points)], axis=1, return_index=True)[1]]
    rows, points = (np.sort(rng.permutation(x)[:SHORT]) for x in (rows, points))
    best: tuple[float, Indices, Indices] = 0.0, rows, points
    while len(rows) and len(points):
        W = matrix.signs[np.ix_(rows, points)].astype(float)
        left, sizes, right = np.linalg.svd(W, full_matrices=False)
        best = max(best, (np.sqrt(W.size) / sizes[0], rows, points), key=lambda x: x[0])
        rows, points = _without(rows, left[:, 0]), _without(points, right[0])
    if not best[0]:
        return None
    _, rows, points = best
    bound = forster_bound(matrix.signs[np.ix_(rows, points)])
    return SmallNorm(matrix.kind, matrix.points[points], matrix.rows[rows], bound)


def _all_demanded(signs: Signs) -> tuple[Indices, Indices]:
    """Drop rows and points with the most zeros, until there is no zero."""
    rows, points = np.arange(len(signs)), np.arange(signs.shape[1])
    while not (part := signs[np.ix_(rows, points)]).all():
        lacking = part == 0
        of_rows, of_points = lacking.mean(axis=1), lacking.mean(axis=0)
        if of_rows.max() > of_points.max():
            rows = _without(rows, of_rows)
        else:
            points = _without(points, of_points)
    return rows, points


def _without(numbers: Indices, weights: np.ndarray) -> Indices:
    """Drop those of the largest weight."""
    order = np.argsort(np.abs(weights), kind="stable")
    return np.sort(numbers[order[: len(order) - max(1, int(SHARE * len(order)))]])
