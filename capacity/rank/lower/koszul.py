"""Lower bounds from Koszul (Strassen) flattenings.

Project one mode of a tensor to a dimensions, T in A (x) B (x) C with dim A = a, and let T act as a
map from wedge^p A (x) B* to wedge^(p+1) A (x) C, multiplying by T's part in A. A simple tensor
x (x) y (x) z yields a map of rank C(a - 1, p), for x ^ . has that rank on wedge^p A. So

    rank(T) >= rank of the map / C(a - 1, p).

For p = 0 and p = a - 1 these are unfoldings. The map's shape allows at most

    min(b a / (a - p), c a / (p + 1)),

where b, c are the other two dimensions: it pays to choose p so that both are about equal, near
(p + 1) / a = c / (b + c), and then the limit is b + c. a = 2p + 1, as in the literature, is the
choice for b = c. Flattenings can't prove more than bounds linear in the dimensions. They hold over
every field.

References
----------
V. Strassen, Rank and optimal computation of generic tensors, LAA 1983 (a = 3); J. M. Landsberg, G.
Ottaviani, Equations for secant varieties of Veronese and other varieties, Ann. Mat. Pura Appl.
2013, and New lower bounds for the border rank of matrix multiplication, Theory of Computing 2015;
K. Efremenko et al., Barriers for rank methods, 2017, arXiv 1710.09502.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from capacity.exact.modular_rank import PRIME, rank_modulo
from capacity.exact.types import Indices
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.shares import OF_A_FLATTENING
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import steps_of_rank
from capacity.rank.verifier.kinds.koszul import MOST_SLICES, Koszul


def koszul_matrix(slices: Indices, p: int) -> Indices:
    """Return the matrix of the Koszul flattening.

    Parameters
    ----------
    slices : ndarray of int64, shape (a, b, c)
        The tensor, after projection.
    p : int
        Degree of the exterior power, from 0 to a - 1.

    Returns
    -------
    ndarray of int64, shape (C(a, p) b, C(a, p + 1) c)

    Examples
    --------
    >>> koszul_matrix(np.ones((3, 1, 1), int), 1).tolist()
    [[-1, -1, 0], [1, 0, -1], [0, 1, 1]]
    """
    n, b, c = slices.shape
    rows, columns, sides, signs = _wedges(n, p)
    matrix = np.zeros((math.comb(n, p), b, math.comb(n, p + 1), c), np.int64)
    matrix[rows, :, columns, :] = signs[:, None, None] * slices[sides]
    return matrix.reshape(len(matrix) * b, -1)


@cache
def _wedges(n: int, p: int) -> tuple[Indices, Indices, Indices, Indices]:
    """Return s, u, i and the sign of each e_i ^ e_s = +- e_u, for sets s of p of n numbers."""
    above = {subset: u for u, subset in enumerate(combinations(range(n), p + 1))}
    products = [
        (s, above[tuple(sorted((*subset, i)))], i, (-1) ** sum(x < i for x in subset))
        for s, subset in enumerate(combinations(range(n), p))
        for i in sorted(set(range(n)) - set(subset))
    ]
    s, u, i, sign = np.array(products, np.int64).reshape(-1, 4).T
    return s, u, i, sign


def best_flattening(
    tensor: NDArray[np.integer], *, seed: int, work: int, above: int = 0, enough: int | None = None
) -> tuple[int, int, int, Indices] | None:
    """Find the mode, the projection and the p of the largest bound.

    The smallest flattenings are tried first, and those whose shape allows no larger bound than the
    best so far are skipped. Almost all projections to a given dimension have the same rank, so one
    is tried. Ranks are taken modulo `capacity.exact.modular_rank.PRIME`.

    Parameters
    ----------
    tensor : integer ndarray, shape (n0, n1, n2)
        The tensor to bound.
    seed : int
        Seed of the projections.
    work : int
        Work allowed in total, in units of about a nanosecond.
    above : int
        Only larger bounds are sought.
    enough : int, optional
        Stop at this bound, which must be an upper bound of the rank.

    Returns
    -------
    (bound, mode, p, projection) or None
        The projection has shape (a, n_mode); None if the work suffices for no larger bound.
    """
    best: tuple[int, int, int, Indices] | None = None
    residues = tensor.astype(np.int64) % PRIME
    for cost, limit, mode, a, p in _flattenings(tensor.shape):
        if limit <= above or above == enough:
            continue
        work -= cost
        if work < 0:
            break
        slices = np.moveaxis(residues, mode, 0)
        rng = np.random.default_rng([seed, mode, a])
        projection = np.eye(a, dtype=np.int64)
        if a < len(slices):
            projection = rng.integers(-99, 100, (a, len(slices)))
            # fewer than 2^24 products below 2^38
            slices = np.tensordot(projection, slices, axes=1) % PRIME
        simple = math.comb(a - 1, p)
        rank = rank_modulo(
            koszul_matrix(slices, p),
            above=above * simple,
            enough=None if enough is None else (enough - 1) * simple + 1,
        )
        bound = -(-rank // simple)
        if bound > above:
            best, above = (bound, mode, p, projection), bound
    return best


def highest_bound(shape: tuple[int, ...]) -> int:
    """Largest lower bound that unfoldings or the tried Koszul flattenings can prove for a shape."""
    unfoldings = (min(n, math.prod(shape) // n) for n in shape)
    return max([*unfoldings, *(limit for _, limit, *_ in _flattenings(shape))])


@lru_cache(maxsize=256)
def _flattenings(shape: tuple[int, ...]) -> list[tuple[int, int, int, int, int]]:
    """Cost, largest possible bound, mode, a and p of each small enough flattening, by cost."""
    found: list[tuple[int, int, int, int, int]] = []
    for mode, n in enumerate(shape):
        b, c = (shape[m] for m in range(3) if m != mode)
        for a in range(3, min(n, MOST_SLICES) + 1):
            for p in range(1, a - 1):
                rows, columns = math.comb(a, p) * b, math.comb(a, p + 1) * c
                if steps_of_rank(rows, columns) <= OF_A_FLATTENING:
                    # measured nanoseconds: to build the matrix, and to eliminate
                    cost = 200 * rows * columns + rows * columns * min(rows, columns) // 6
                    limit = -(-min(rows, columns) // math.comb(a - 1, p))
                    found.append((cost, limit, mode, a, p))
    return sorted(found)


def flattenings(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Bound the rank by the best Koszul flattening of the core."""
    tensor = problem.core.tensor
    found = best_flattening(
        tensor, seed=goal.seed, work=goal.work, above=goal.lower, enough=goal.upper
    )
    if found is None:
        return
    value, mode, p, projection = found
    bases: list[Indices | None] = [None, None, None]
    bases[mode] = projection
    yield (
        Koszul(View(problem.core.chosen, (bases[0], bases[1], bases[2])), mode, p, PRIME, value),
    )


KOSZUL = Method("Koszul flattening", flattenings, sides=("lower",), effective="observed")
