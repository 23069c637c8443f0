"""Simultaneous diagonalization: decide whether a tensor with n x n slices has rank n or more."""

from __future__ import annotations

from collections.abc import Iterable

import flint
import numpy as np

from capacity.exact.types import Indices
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.diagonalization import Diagonalization
from capacity.rank.verifier.procedures.simultaneous_diagonalization import (
    LARGEST_SIDE,
    all_singular,
    why_not_diagonal,
)


def diagonalizations(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decide whether the rank is n or more, if the core is n x n x m with m <= n."""
    shape = problem.core.tensor.shape
    n = max(shape)
    if goal.lower > n or n > LARGEST_SIDE:
        return
    for mode in range(3):
        if any(shape[m] != n for m in range(3) if m != mode):
            continue
        slices = np.moveaxis(problem.core.tensor, mode, 0).astype(np.int64)
        combination = nonsingular_combination(slices, seed=goal.seed)
        if combination is not None:
            fails = why_not_diagonal(slices, combination) is not None
            yield (Diagonalization(View(problem.core.chosen), mode, combination, n + fails),)
            return
        if all_singular(slices):
            nothing = np.zeros(0, np.int64)
            yield (Diagonalization(View(problem.core.chosen), mode, nothing, n + 1),)
            return


def nonsingular_combination(slices: Indices, *, seed: int, tries: int = 5) -> Indices | None:
    """Find coefficients of a nonsingular combination of slices; None if every attempt is singular.

    Parameters
    ----------
    slices : ndarray of int64, shape (m, n, n)
        The slices, which are tried one by one first.
    seed : int
        Seed of the random combinations.
    tries : int
        Number of random combinations, with coefficients within -9 .. 9.

    Returns
    -------
    ndarray of int64, shape (m,), or None
    """
    rng = np.random.default_rng(seed)
    m, n = slices.shape[:2]
    exact = slices.astype(object)
    for combination in (*np.eye(m, dtype=np.int64), *rng.integers(-9, 10, (tries, m))):
        total = np.tensordot(combination.astype(object), exact, axes=1)
        if flint.fmpz_mat(n, n, total.ravel().tolist()).det() != 0:
            return combination
    return None


def _cost(problem: Problem) -> int:
    n = max(problem.core.tensor.shape)
    return n**5


DIAGONALIZATION = Method("diagonalization", diagonalizations, cost=_cost, effective="observed")
