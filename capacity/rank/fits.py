"""Look for shorter decompositions by numerical fits that are then made exact.

The number of terms gallops downward from the shortest decomposition that is known: steps get
smaller where no fit is found, until a step of one fails. A fit is made exact over the rationals
(`capacity.rank.exactify`), or proved to have an exact decomposition over the reals beside it
(`capacity.rank.krawczyk`); that nothing is found says nothing. That is tried only if the residual
vanishes *and* the terms stay small: a tensor of border rank below its rank is approached by terms
that grow for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from capacity.rank.certificate import Decomposition, Enclosure, Indices, View
from capacity.rank.exactify import EXACT_ENOUGH, exact_terms
from capacity.rank.krawczyk import contracts, varying_unknowns
from capacity.rank.least_squares import MOST_DENSE, Fit, fit_cp, random_start
from capacity.rank.stages import Goal, Problem, all_indices

# a coefficient of a balanced term that makes a fit degenerate
LARGEST = 30.0
# of a fit; fits that make one exact, and what they take on average
ITERATIONS = 200
SNAPS = 120
ITERATIONS_A_SNAP = 12
# of the boxes in which an exact decomposition is looked for
RADII = (1e-10, 1e-7)


def fits(problem: Problem, goal: Goal) -> Iterable[Decomposition | Enclosure]:
    """Fit, and make exact; yield each decomposition that is shorter than those before."""
    whole = problem.known is not None
    tensor = (problem.tensor if whole else problem.core.tensor).astype(np.int64)
    observed = None if problem.known is None else problem.known[:, :, 0]
    upper, work = goal.upper, goal.work
    step = max(1, (goal.upper - goal.lower) // 3)
    rank = upper - step
    while goal.lower <= rank < upper:
        found: Decomposition | Enclosure | None = None
        for start in range(goal.limits.fits):
            iteration = _cost(tensor.shape, rank)
            if work < ITERATIONS * iteration:
                return
            work -= ITERATIONS * iteration
            rng = np.random.default_rng([goal.seed, rank, start])
            fit = fit_cp(
                tensor.astype(np.float64),
                random_start(tensor.shape, rank, rng),
                observed=observed,
                iterations=ITERATIONS,
            )
            if fit.residual < EXACT_ENOUGH and fit.largest < LARGEST:
                work -= SNAPS * ITERATIONS_A_SNAP * iteration
                terms = exact_terms(tensor, fit, observed=observed, fits=SNAPS)
                if terms is not None:
                    found = Decomposition(tuple(terms if whole else problem.core.lifted(terms)))
                else:
                    found = _enclosure(problem, tensor, fit, observed)
                if found is not None:
                    break
        if found is not None:
            upper = rank
            yield found
            rank -= step
            if rank < goal.lower:
                rank, step = goal.lower, 1
        elif step == 1:
            return
        else:
            step //= 2
            rank = upper - step


def _enclosure(
    problem: Problem, tensor: Indices, fit: Fit, observed: NDArray[np.bool_] | None
) -> Enclosure | None:
    """A fit as a proof that there is a real decomposition near it."""
    varying = varying_unknowns(tensor, fit.factors, observed)
    if varying is None:
        return None
    chosen = problem.core.chosen if problem.known is None else all_indices(tensor.shape)
    for radius in RADII:
        if contracts(tensor, fit.factors, varying, radius, observed):
            return Enclosure(View(chosen), fit.factors, varying, radius)
    return None


def _cost(shape: tuple[int, ...], rank: int) -> int:
    """Of an iteration, in units of about a nanosecond, as measured."""
    n = rank * sum(shape)
    if n <= MOST_DENSE:
        return 250_000 + 12 * n**2 + n**3 // 70
    return 2_000 * int(np.prod(shape)) * rank
