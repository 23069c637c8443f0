"""Matrices of signs with a small norm: lower bounds of dimensions.

Let scores be bilinear, <h_i, e_j> in d dimensions, with the signs of an m x n matrix W of 1 and -1.
Then d >= sqrt(m n) / ||W||, with the spectral norm (Forster 2002, Theorem 2.2). The norm is bounded
from above in integers: with A = W W^T, ||W||^2 is the largest eigenvalue of A, and its 8th power is
at most the trace of A^8, and at most the square of the largest sum of absolute values in a row of
A^4.
"""

from __future__ import annotations

import numpy as np

from capacity.embedding.signs.matrices import SignMatrix, Signs
from capacity.embedding.signs.proofs import SHORT, SmallNorm
from capacity.exact.types import Indices

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
