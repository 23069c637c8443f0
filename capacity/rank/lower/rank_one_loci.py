"""Linear forms that vanish on all combinations of slices that have rank one.

A linear form l with l^2 in the span of the 2 x 2 minors of sum_i x_i X_i is a real solution of
l^T A_k l = 0, for symmetric matrices A_k that span the complement of these minors. Solutions are
sought by Gauss-Newton steps from random starts; those found are combined to an echelon form, whose
rows are rounded to fractions and checked exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.shares import OF_AN_END
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import MEMORY
from capacity.rank.verifier.kinds.rank_one_locus import (
    MOST_MINORS,
    MOST_SLICES,
    RankOneLocus,
    is_combination,
    minors_of,
    work_of,
)

STARTS, STEPS, LEAST_DAMPING = 12, 60, 1e-12
# a solution, relative to its length; fractions are rounded to denominators up to this
SOLVED, LARGEST_DENOMINATOR = 1e-11, 12
Array = NDArray[np.float64]


def rank_one_loci(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Show that the rank exceeds the number n of slices, in modes where that improves a bound."""
    T = problem.core.tensor.astype(np.int64)
    for mode, n in enumerate(T.shape):
        X = np.moveaxis(T, mode, 0)
        if n < goal.lower or not _fits(X) or work_of(X)[0] > goal.work:
            continue
        form = linear_form(X, seed=goal.seed)
        if form is not None:
            yield (RankOneLocus(View(problem.core.chosen), mode, form),)
            return


def linear_form(X: Indices, *, seed: int) -> Indices | None:
    """Find a linear form whose square is a combination of the 2 x 2 minors of sum_i x_i X_i.

    Parameters
    ----------
    X : ndarray of int64, shape (n, b, c)
        Matrices X_i.
    seed : int
        Seed of the random starts.

    Returns
    -------
    ndarray of int64, shape (n,), or None
        Its coefficients; None if none was found.
    """
    n = len(X)
    Q = minors_of(X)
    i, j = np.triu_indices(n)
    if not len(Q) or len(Q) == len(i):
        # there is none, or any will do
        return np.eye(1, n, dtype=np.int64)[0] if len(Q) else None
    # coordinates in which the product of vectors is that of symmetric matrices
    weights = np.where(i == j, 1.0, math.sqrt(0.5))
    complement = np.linalg.svd(Q.astype(float) * weights)[2][len(Q) :]
    A = np.zeros((len(complement), n, n))
    A[:, i, j] = A[:, j, i] = complement * weights
    rng = np.random.default_rng(seed)
    found = [x for x in (_solution(A, rng.normal(size=n)) for _ in range(STARTS)) if x is not None]
    return next((form for form in _rounded(found) if is_combination(Q, form)), None)


def _solution(A: Array, l: Array) -> Array | None:  # noqa: E741 - its name in the literature
    """Solve l^T A_k l = 0 with |l| = 1, by damped Gauss-Newton steps."""
    l = l / np.linalg.norm(l)  # noqa: E741
    damping = 1.0
    values = A @ l @ l
    for _ in range(STEPS):
        if np.linalg.norm(values) < SOLVED:
            return l
        J = np.vstack([2 * A @ l, l])
        H = J.T @ J + damping * np.eye(len(l))
        step = l - np.linalg.solve(H, J.T @ np.append(values, 0.0))
        step = step / np.linalg.norm(step)
        after = A @ step @ step
        if np.linalg.norm(after) < np.linalg.norm(values):
            l, values, damping = step, after, max(damping / 5, LEAST_DAMPING)  # noqa: E741
        else:
            damping *= 4
    return None


def _rounded(solutions: list[Array]) -> Iterator[Indices]:
    """Round solutions to integers: each of them, and the rows of their echelon form."""
    if not solutions:
        return
    for row in [*solutions, *_echelon(np.array(solutions))]:
        scaled = row / row[np.abs(row).argmax()]
        fractions = [Fraction(float(x)).limit_denominator(LARGEST_DENOMINATOR) for x in scaled]
        common = math.lcm(*(x.denominator for x in fractions))
        form = np.array([int(x * common) for x in fractions], np.int64)
        if np.abs(form / common - scaled).max() < 1e-5 and common < 2**20:
            yield form


def _echelon(M: Array) -> Array:
    """Reduced row echelon form, of numbers with errors."""
    _, s, V = np.linalg.svd(M, full_matrices=False)
    B = V[: int((s > 1e-5 * s[0]).sum())].copy()
    row = 0
    for column in range(B.shape[1]):
        if row == len(B):
            break
        pivot = row + int(np.abs(B[row:, column]).argmax())
        if abs(B[pivot, column]) < 1e-6:
            continue
        B[[row, pivot]] = B[[pivot, row]]
        B[row] /= B[row, column]
        others = np.arange(len(B)) != row
        B[others] -= np.outer(B[others, column], B[row])
        row += 1
    return B


def _fits(X: Indices) -> bool:
    """Return True if the verifier's budget suffices for a form."""
    n, b, c = X.shape
    steps, n_bytes = work_of(X)
    fits = n <= MOST_SLICES and math.comb(b, 2) * math.comb(c, 2) <= MOST_MINORS
    return fits and steps <= OF_AN_END and n_bytes <= MEMORY


RANK_ONE_LOCUS = Method("rank-one locus", rank_one_loci, sides=("lower",), effective="observed")
