"""Lower bounds from Koszul (Strassen) flattenings.

Project one mode of a tensor to 2p + 1 dimensions, T in A (x) B (x) C with dim A = 2p + 1, and let
T act as a map from wedge^p A (x) B* to wedge^(p+1) A (x) C, multiplying by T's part in A. A simple
tensor a (x) b (x) c gives a map of rank C(2p, p), for a ^ . has that rank on wedge^p A. So

    rank(T) >= rank of the map / C(2p, p).

For p = 0 these are unfoldings. Flattenings see at most linear bounds: this one at most about
(2p + 1) / (p + 1) times the smaller of the other two dimensions. They hold over every field.

References
----------
V. Strassen, Rank and optimal computation of generic tensors, LAA 1983 (p = 1); J. M. Landsberg, G.
Ottaviani, New lower bounds for the border rank of matrix multiplication, Theory of Computing 2015;
K. Efremenko et al., Barriers for rank methods, 2017, arXiv 1710.09502.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import flint
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
# rows times columns of the largest flattening that is looked at; the checker takes no more
LARGEST = 10**7


def koszul_matrix(slices: Indices, p: int) -> Indices:
    """The matrix of the Koszul flattening.

    Parameters
    ----------
    slices : ndarray of int64, shape (2p + 1, b, c)
        The tensor, after projection.
    p : int

    Returns
    -------
    ndarray of int64, shape (C(2p+1, p) b, C(2p+1, p+1) c)

    Examples
    --------
    >>> koszul_matrix(np.ones((3, 1, 1), int), 1).tolist()
    [[-1, -1, 0], [1, 0, -1], [0, 1, 1]]
    """
    n, b, c = slices.shape
    below = list(combinations(range(n), p))
    above = {subset: u for u, subset in enumerate(combinations(range(n), p + 1))}
    matrix = np.zeros((len(below) * b, len(above) * c), np.int64)
    for s, subset in enumerate(below):
        for i in set(range(n)) - set(subset):
            sign = (-1) ** sum(x < i for x in subset)
            u = above[tuple(sorted((*subset, i)))]
            matrix[s * b : (s + 1) * b, u * c : (u + 1) * c] = sign * slices[i]
    return matrix


def best_projection(
    tensor: NDArray[np.integer], *, tries: int, seed: int, prime: int, work: int = 10**8
) -> tuple[int, int, Indices] | None:
    """Look for the projection whose flattening gives the largest bound.

    Parameters
    ----------
    tensor : integer ndarray, shape (n0, n1, n2)
    tries : int
        Random projections a mode and a p, at most; one more seldom helps.
    seed : int
    prime : int
        Ranks are taken modulo this prime.
    work : int
        Of all, in units of about a nanosecond, which is what an entry costs a pivot.

    Returns
    -------
    (bound, mode, projection) or None
        The projection has shape (2p + 1, n_mode), with p from 1 to 4; None if no flattening fits.
    """
    rng = np.random.default_rng(seed)
    best: tuple[int, int, Indices] | None = None
    for mode in range(3):
        slices = np.moveaxis(tensor, mode, 0).astype(np.int64)
        n, b, c = slices.shape
        for p in (1, 2, 3, 4):
            a = 2 * p + 1
            size = comb(a, p) ** 2 * b * c
            affordable = work // 12 // (size * comb(a, p) * min(b, c) // 3 + 10**4)
            if n < a or size > LARGEST:
                continue
            for _ in range(min(affordable, 1 if n == a else tries)):
                projection = np.eye(a, dtype=np.int64) if n == a else rng.integers(-9, 10, (a, n))
                matrix = koszul_matrix(np.tensordot(projection, slices, axes=1), p)
                rank = _rank_modulo(matrix, prime)
                bound = -(-rank // comb(2 * p, p))
                if best is None or bound > best[0]:
                    best = (bound, mode, projection)
    return best


def _rank_modulo(matrix: Indices, prime: int) -> int:
    m, n = matrix.shape
    return flint.nmod_mat(m, n, (matrix % prime).ravel().tolist(), prime).rank()
