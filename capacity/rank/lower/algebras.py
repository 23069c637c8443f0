"""Algebras: whether an n x n x n core is the product of an associative algebra, in some bases."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.shares import OF_AN_END
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.algebra import (
    MOST_DIMENSIONS,
    AlderStrassen,
    n_maximal_ideals,
    products,
    steps_of,
)

# pairs of vectors that are tried until their maps are nonsingular
TRIES = 6
# largest coefficient of a vector
LARGEST = 3


def algebras(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Make each mode of a cubic core that of the products of an algebra, where that is possible.

    One pair of vectors with nonsingular maps decides: if the product that they make isn't
    associative, no other is, since algebras with a unit that are isotopic to an associative algebra
    with one are isomorphic to it (A. A. Albert, Non-associative algebras, 1942).
    """
    core = problem.core
    T = core.tensor.astype(np.int64)
    n = len(T)
    if T.shape != (n, n, n) or n > MOST_DIMENSIONS or steps_of(T) > OF_AN_END:
        return
    rng = np.random.default_rng(goal.seed)
    for mode in range(3):
        u_mode, v_mode = (m for m in range(3) if m != mode)
        turned = T.transpose(u_mode, v_mode, mode)
        for attempt in range(TRIES):
            u, v = (
                rng.integers(-LARGEST, LARGEST + 1, n) if attempt else np.ones(n, np.int64)
                for _ in range(2)
            )
            if not (_regular(turned, u, 0) and _regular(turned, v, 1)):
                continue
            try:
                t = n_maximal_ideals(products(turned, u, v))
            except Refuted:
                continue
            yield (AlderStrassen(View(core.chosen), mode, u, v, 2 * n - t),)
            break


def _regular(T: np.ndarray, vector: np.ndarray, mode: int) -> bool:
    """Return True if a combination of slices is nonsingular, as far as floating point can show."""
    return np.linalg.matrix_rank(np.tensordot(vector, T, (0, mode))) == len(vector)


ALGEBRA = Method(
    "Alder-Strassen",
    algebras,
    sides=("lower",),
    cost=lambda problem: 60 * max(problem.tensor.shape) ** 5,
    effective="observed",
    cites=True,
)
