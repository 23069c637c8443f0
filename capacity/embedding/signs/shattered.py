"""Points that every pattern of signs occurs on, up to its negation: lower bounds of dimensions.

Let scores be bilinear, <h_i, e_j> in d dimensions, with a sign that is demanded of some pairs (row
i, point j). If m points show all 2^m patterns of signs among the rows, counting a pattern and its
negation as one, then d >= m: with d < m some sum of l_j e_j is zero, l not; a row whose signs are
those of l, or their negation, would have a sum of l_j <h_i, e_j> that isn't zero. This is the bound
by Vapnik and Chervonenkis' dimension (Alon, Haussler, Welzl 1987; Paturi and Simon 1986 for sign
ranks), with half the patterns.

If scores are only ranked, each row has a threshold between its answers and all else: d + 1
dimensions, with the signs. So d >= m - 1.
"""

from __future__ import annotations

import numpy as np

from capacity.checks import Seed, generator
from capacity.embedding.signs.matrices import SignMatrix, Signs
from capacity.embedding.signs.proofs import MOST_POINTS, Shattered
from capacity.exact.types import Indices

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
