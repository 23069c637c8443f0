"""Look for shorter decompositions by numerical fits that are then made exact.

The number of terms gallops downward from the shortest decomposition that is known: steps get
smaller where no fit is found, until a step of one fails. What is found is exact, and bounds the
rank; that nothing is found says nothing. A fit is tried only if its residual vanishes *and* its
terms stay small: a tensor of border rank below its rank is approached by terms that grow for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.rank.certificate import Decomposition
from capacity.rank.exactify import EXACT_ENOUGH, exact_terms
from capacity.rank.factor import Term
from capacity.rank.least_squares import MOST_DENSE, fit_cp, random_start
from capacity.rank.stages import Goal, Problem

# a coefficient of a balanced term that makes a fit degenerate
LARGEST = 30.0
# of a fit; fits that make one exact, and what they take on average
ITERATIONS = 200
SNAPS = 120
ITERATIONS_A_SNAP = 12


def fits(problem: Problem, goal: Goal) -> Iterable[Decomposition]:
    """Fit, and make exact; yield each decomposition that is shorter than those before."""
    whole = problem.known is not None
    tensor = (problem.tensor if whole else problem.core.tensor).astype(np.int64)
    observed = None if problem.known is None else problem.known[:, :, 0]
    upper, work = goal.upper, goal.work
    step = max(1, (goal.upper - goal.lower) // 3)
    rank = upper - step
    while goal.lower <= rank < upper:
        found: list[Term] | None = None
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
                found = exact_terms(tensor, fit, observed=observed, fits=SNAPS)
                if found is not None:
                    break
        if found is not None:
            upper = rank
            yield Decomposition(tuple(found if whole else problem.core.lifted(found)))
            rank -= step
            if rank < goal.lower:
                rank, step = goal.lower, 1
        elif step == 1:
            return
        else:
            step //= 2
            rank = upper - step


def _cost(shape: tuple[int, ...], rank: int) -> int:
    """Of an iteration, in units of about a nanosecond, as measured."""
    n = rank * sum(shape)
    if n <= MOST_DENSE:
        return 250_000 + 12 * n**2 + n**3 // 70
    return 2_000 * int(np.prod(shape)) * rank
