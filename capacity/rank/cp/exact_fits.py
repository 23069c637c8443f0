"""Shorter decompositions by numerical fits, each turned into an exact proof.

Fits are easy if there are more unknowns than equations: the numbers of terms for which this holds
are bisected, with few attempts each. From there the number of terms falls in steps that double
after each success and return to one after a failure; the search ends when a step of one fails.

A fit is made exact in one of three ways:

* It is moved to numbers that are recognised, rational or algebraic (`capacity.rank.cp.explicit`).
  Explicit decompositions are the most useful, so this comes first, with little work.
* It is proved to have an exact decomposition over the reals near it
  (`capacity.rank.verifier.procedures.krawczyk`), for tensors of order three. This needs independent
  equations, and so at least as many unknowns; then it is quick, and the first way seldom succeeds.
* Where there are fewer unknowns than equations, the first way has more work. It doesn't reach large
  tensors, for which the fit is rounded to an exact one over the rationals
  (`capacity.rank.cp.rationalize`).

Failure proves nothing about the rank. All are tried only if the residual vanishes *and* the terms
stay small: a tensor whose border rank is below its rank is approached by terms that grow without
bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from capacity.rank.cp.explicit import as_argument, explicit_terms
from capacity.rank.cp.krawczyk_box import enclose
from capacity.rank.cp.levenberg_marquardt import Fit, fit_cp, random_start
from capacity.rank.cp.normal_equations import MOST_DENSE, Factors
from capacity.rank.cp.rationalize import EXACT_ENOUGH, exact_terms
from capacity.rank.cp.snapping import Work
from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem, all_indices
from capacity.rank.reductions.coefficients import Explicit, coefficients_of
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.procedures.krawczyk import MOST_EQUATIONS

# norm of a balanced factor (`Fit.largest`) from which a fit counts as degenerate
LARGEST_COEFFICIENT = 30.0
# attempts per number of terms in the bisection
HURRIED = 3
# a start from a longer fit: most terms that are dropped, and the noise that is added
DROPPED, NOISE = 3, 0.1
# iterations of a fit: most, most in the bisection, and fewest that are worth an attempt
ITERATIONS, EASY, FEWEST = 400, 40, 20
# fits of a rank that are rounded; fits that rounding one takes, and iterations of each on average
MOST_SNAPPED = 2
SNAPS = 80
ITERATIONS_A_SNAP = 15
# work of a first attempt at explicit coefficients; parts of what remains for the first and for a
# second; null spaces of the Jacobian that it must suffice for
FIRST, PART_FIRST, PART_SECOND, NULL_SPACES = 3 * 10**8, 20, 3, 100


def fits(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Fit with fewer and fewer terms; yield each fit that could be turned into an exact proof."""
    upper, search = goal.upper, _Fits(problem, goal)
    # bisection with hurried fits; `too_few` is the largest number of terms at which they failed
    too_few = max(goal.lower, search.count) - 1
    rank = 3 * search.count // 2 + 1
    rising = True
    while too_few < rank < upper - 1 and search.work > 0:
        found = search.exact_fit(rank, HURRIED, EASY)
        if found is not None:
            upper, rising = rank, False
            yield (found,)
        else:
            too_few = rank
        rank = ((rank if rising else too_few) + upper) // 2
    rank, step = upper - 1, 1
    while goal.lower <= rank < upper and search.work > 0:
        found = search.exact_fit(rank, goal.limits.fits, ITERATIONS)
        if found is not None:
            upper = rank
            yield (found,)
            rank, step = max(upper - step, goal.lower), 2 * step
        elif rank == upper - 1:
            return
        else:
            rank, step = upper - 1, 1


class _Fits:
    """Fits of one problem, and their remaining work."""

    def __init__(self, problem: Problem, goal: Goal) -> None:
        self._problem, self._seed, self.work = problem, goal.seed, goal.work
        whole = problem.known is not None
        self._tensor = (problem.tensor if whole else problem.core.tensor).astype(np.int64)
        self._observed = None if problem.known is None else problem.known[..., 0]
        *others, last = self._tensor.shape
        fibers = math.prod(others) if self._observed is None else int(self._observed.sum())
        self._equations = last * fibers
        self._accepted: list[Fit] = []

    @property
    def count(self) -> int:
        """Smallest number of terms with as many unknowns as there are equations."""
        # scaling the factors of a term against the last changes nothing: so many unknowns fewer
        return -(-self._equations // (sum(self._tensor.shape) - self._tensor.ndim + 1))

    def exact_fit(self, rank: int, tries: int, longest: int) -> Explicit | Enclosure | None:
        """Fit from several starts until one can be made exact."""
        shape = self._tensor.shape
        iteration = _cost(shape, rank)
        enough = rank >= self.count
        to_snap: list[Fit] = []
        for start in range(tries):
            iterations = min(longest, self.work // iteration)
            if iterations < FEWEST:
                break
            rng = np.random.default_rng([self._seed, rank, start])
            fit = fit_cp(
                self._tensor.astype(np.float64),
                self._start(rank, start, rng),
                observed=self._observed,
                iterations=iterations,
            )
            self.work -= fit.iterations * iteration
            if not accepted(fit):
                continue
            self._accepted.append(fit)
            found = self._explicit(fit, min(FIRST, self.work // PART_FIRST))
            if found is None and enough:
                found = self._enclosed(fit)
            if found is not None:
                return found
            to_snap.append(fit)
            if not enough and len(to_snap) == MOST_SNAPPED:
                break
        # in the bisection, and with enough terms, trying more terms pays better than rounding
        for fit in to_snap[: 0 if enough and longest == EASY else MOST_SNAPPED]:
            found = self._explicit(fit, self.work // PART_SECOND)
            if found is not None:
                return found
            snaps = max(0, min(SNAPS, self.work // (ITERATIONS_A_SNAP * iteration)))
            self.work -= snaps * ITERATIONS_A_SNAP * iteration
            terms = exact_terms(self._tensor, fit, observed=self._observed, fits=snaps)
            if terms is not None:
                return self._lifted(Decomposition(tuple(terms)))
        return None

    def _explicit(self, fit: Fit, share: int) -> Explicit | None:
        """Find explicit coefficients near a fit; None if there are none for a share of the work."""
        unknowns = fit.rank * sum(self._tensor.shape)
        if share < NULL_SPACES * unknowns**2 * (unknowns + self._equations) // 2:
            return None
        work = Work(share)
        found = explicit_terms(self._tensor, fit, observed=self._observed, work=work)
        self.work -= share - work.left
        return None if found is None else self._lifted(as_argument(found))

    def _lifted(self, found: Explicit) -> Explicit:
        """Convert a decomposition of the core to one of the tensor."""
        if self._problem.known is not None:
            return found
        terms = self._problem.core.lifted(found.terms, coefficients_of(found))
        return replace(found, terms=tuple(terms))

    def _start(self, rank: int, number: int, rng: np.random.Generator) -> Factors:
        """Return a random start or, every other time, a longer fit with some terms dropped.

        At ranks where one random start in five leads to a fit, two in five of the latter do.
        """
        longer = [f for f in self._accepted if rank < f.rank <= rank + DROPPED]
        if number % 2 == 0 or not longer:
            return random_start(self._tensor.shape, rank, rng)
        fit = longer[int(rng.integers(len(longer)))]
        keep = rng.permutation(fit.rank)[:rank]
        return tuple(f[:, keep] + NOISE * rng.standard_normal((len(f), rank)) for f in fit.factors)

    def _enclosed(self, fit: Fit) -> Enclosure | None:
        """Prove that an exact real decomposition lies near a fit; None if that fails."""
        if self._tensor.ndim != 3:
            return None
        equations = min(self._equations, MOST_EQUATIONS)
        self.work -= 10**7 + equations**3 // 5
        found = enclose(self._tensor, fit.factors, self._problem.known)
        if found is None:
            return None
        self.work -= 3 * equations**3
        part = self._problem.known is not None
        chosen = all_indices(self._tensor.shape) if part else self._problem.core.chosen
        return Enclosure(View(chosen), *found)


def accepted(fit: Fit) -> bool:
    """Return True if a fit has a vanishing residual and small terms."""
    return fit.residual < EXACT_ENOUGH and fit.largest < LARGEST_COEFFICIENT


def _cost(shape: tuple[int, ...], rank: int) -> int:
    """Measured cost of one iteration, in nanoseconds."""
    n = rank * sum(shape)
    if n <= MOST_DENSE:
        return 250_000 + 12 * n**2 + n**3 // 100
    return 800 * int(np.prod(shape)) * rank


LEAST_SQUARES = Method(
    "least squares",
    fits,
    sides=("upper",),
    limit="fits",
    dense=False,
    peeled="instead",
    effective="yes",
)
