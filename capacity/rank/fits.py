"""Look for shorter decompositions by numerical fits that are then made exact.

The number of terms gallops downward from the shortest decomposition that is known: each fit doubles
the step, one that fails brings it back to one, until that fails. A fit is proved to have an exact
decomposition over the reals beside it (`capacity.rank.krawczyk`), which works for dense tensors and
takes seconds at most; or made exact over the rationals (`capacity.rank.exactify`), which works for
sparse ones. That nothing is found says nothing. It is tried only if the residual vanishes *and* the
terms stay small: a tensor of border rank below its rank is approached by terms that grow for ever.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from capacity.rank.certificate import Decomposition, Enclosure, Indices, View
from capacity.rank.enclose import enclose
from capacity.rank.exactify import EXACT_ENOUGH, exact_terms
from capacity.rank.krawczyk import LARGEST as MOST_EQUATIONS
from capacity.rank.least_squares import MOST_DENSE, Fit, fit_cp, random_start
from capacity.rank.stages import Goal, Problem, all_indices

# a coefficient of a balanced term that makes a fit degenerate
LARGEST = 30.0
# fits of a longer step
HURRIED = 2
# of a fit; how many of a rank are snapped, fits that it takes, and their iterations on average
ITERATIONS, FEWEST = 400, 40
MOST_SNAPPED = 2
SNAPS = 80
ITERATIONS_A_SNAP = 6


def fits(problem: Problem, goal: Goal) -> Iterable[Decomposition | Enclosure]:
    """Fit, and make exact; yield each decomposition that is shorter than those before."""
    whole = problem.known is not None
    tensor = (problem.tensor if whole else problem.core.tensor).astype(np.int64)
    observed = None if problem.known is None else problem.known[:, :, 0]
    upper, work = goal.upper, goal.work
    step, rank = 1, upper - 1
    while goal.lower <= rank < upper:
        found: Decomposition | Enclosure | None = None
        iteration, snaps = _cost(tensor.shape, rank), 0
        for start in range(goal.limits.fits if step == 1 else HURRIED):
            iterations = min(ITERATIONS, work // iteration)
            if iterations < FEWEST:
                return
            rng = np.random.default_rng([goal.seed, rank, start])
            fit = fit_cp(
                tensor.astype(np.float64),
                random_start(tensor.shape, rank, rng),
                observed=observed,
                iterations=iterations,
            )
            work -= fit.iterations * iteration
            if accepted(fit):
                if not problem.explicit:
                    work -= _cost_of_proof(tensor.size)
                    found = _enclosure(problem, tensor, fit, observed)
                if found is None and snaps < MOST_SNAPPED:
                    snaps += 1
                    work -= SNAPS * ITERATIONS_A_SNAP * iteration
                    terms = exact_terms(tensor, fit, observed=observed, fits=SNAPS)
                    if terms is not None:
                        terms = terms if whole else problem.core.lifted(terms)
                        found = Decomposition(tuple(terms))
                if found is not None:
                    break
        if found is not None:
            upper = rank
            yield found
            step *= 2
        elif step == 1:
            return
        else:
            step = 1
        rank = max(upper - step, goal.lower)


def accepted(fit: Fit) -> bool:
    """Whether a fit is worth being made exact: its residual vanishes, and its terms are small."""
    return fit.residual < EXACT_ENOUGH and fit.largest < LARGEST


def _enclosure(
    problem: Problem, tensor: Indices, fit: Fit, observed: NDArray[np.bool_] | None
) -> Enclosure | None:
    """A fit as a proof that there is a real decomposition near it."""
    found = enclose(tensor, fit.factors, observed)
    if found is None:
        return None
    chosen = problem.core.chosen if problem.known is None else all_indices(tensor.shape)
    return Enclosure(View(chosen), *found)


def _cost(shape: tuple[int, ...], rank: int) -> int:
    """Of an iteration, in units of about a nanosecond, as measured."""
    n = rank * sum(shape)
    if n <= MOST_DENSE:
        return 250_000 + 12 * n**2 + n**3 // 70
    return 2_000 * int(np.prod(shape)) * rank


def _cost_of_proof(equations: int) -> int:
    """Of an attempt to prove a fit, as measured."""
    return 10**7 + 3 * equations**3 if equations <= MOST_EQUATIONS else 0
