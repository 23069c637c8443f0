"""Shorter decompositions by numerical fits, each turned into an exact proof.

Fits are easy if there are more unknowns than equations: the numbers of terms for which this holds
are bisected, with few attempts each. From there the number of terms falls in steps that double
after each success and return to one after a failure; the search ends when a step of one fails.

Fits are made exact (`capacity.rank.cp.making_exact`) at once where there are as many
unknowns as equations, which is quick, and where the tensor is too large for explicit coefficients.
Otherwise the fit with the fewest terms is, at the end, and if that fails, those with more terms
are. Often the fewest terms are the easiest: the more terms, the larger the families of solutions,
and where several meet, equations are dependent.

Failure proves nothing about the rank. Fits count only if the residual vanishes *and* the terms stay
small: a tensor whose border rank is below its rank is approached by terms that grow without bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

import numpy as np

from capacity.rank.cp.levenberg_marquardt import Factors, Fit, fit_cp, random_start
from capacity.rank.cp.making_exact import Exact, Target
from capacity.rank.cp.rationalize import EXACT_ENOUGH
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding

Way: TypeAlias = Callable[[Fit], Exact | None]
# norm of a balanced factor (`Fit.largest`) from which a fit counts as degenerate
LARGEST_COEFFICIENT = 30.0
# attempts per number of terms in the bisection
HURRIED = 3
# a start from a longer fit: most terms that are dropped, and the noise that is added
DROPPED, NOISE = 3, 0.1
# iterations of a fit: most, most in the bisection, and fewest that are worth an attempt
ITERATIONS, EASY, FEWEST = 400, 40, 20
# fits of a number of terms that are made exact, with little work and with more, and the part of the
# work that is left for the end
MOST_QUICK, MOST_THOROUGH, EXACT_PART = 6, 2, 2


def fits(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Fit with fewer and fewer terms; yield each fit that could be turned into an exact proof."""
    target = Target(problem, goal.work)
    search = _Fits(target, goal)
    upper = goal.upper
    # bisection with hurried fits; `too_few` is the largest number of terms at which they failed
    too_few = max(goal.lower, target.count) - 1
    rank = 3 * target.count // 2 + 1
    rising = True
    while too_few < rank < upper - 1 and target.work.left > 0:
        found = _first(target.quickly, search.accepted(rank, HURRIED, EASY))
        if found is not None:
            upper, rising = rank, False
            yield (found,)
        else:
            too_few = rank
        rank = ((rank if rising else too_few) + upper) // 2
    yield from _shortest(search, goal, upper)


def _shortest(search: _Fits, goal: Goal, upper: int) -> Iterator[Finding]:
    """Look for the fewest terms, and make the shortest fit exact that can be."""
    target, tries = search.target, goal.limits.fits
    # fits that couldn't be made exact at once, and the work that is kept for them
    found: dict[int, Callable[[int], Iterator[Fit]]] = {}
    reserve = target.work.left // EXACT_PART
    fewest, rank, step, proved = upper, upper - 1, 1, upper
    while goal.lower <= rank < fewest:
        # explicit coefficients of fewer terms take less work
        quick, later = target.is_quick(rank), target.may_be_explicit(goal.lower)
        spare = 0 if quick or not (later or found) else reserve
        if target.work.left <= spare:
            break
        exact = None
        if rank not in found:
            fits = _kept(search.accepted(rank, tries, ITERATIONS, spare))
            if quick:
                exact = _at_once(target, fits, tries)
            if exact is None and not later:
                exact = _first(target.rounded, fits(MOST_QUICK))
            elif exact is None and next(fits(1), None) is not None:
                found[rank] = fits
        if exact is not None:
            found = {fewer: fits for fewer, fits in found.items() if fewer < rank}
            proved = rank
            yield (exact,)
        elif rank < fewest - 1 and (quick or rank not in found):
            rank, step = fewest - 1, 1
            continue
        elif rank not in found:
            break
        fewest, rank, step = rank, max(rank - step, goal.lower), 2 * step
    for rank, fits in sorted(found.items()):
        exact = None if target.is_quick(rank) else _first(target.quickly, fits(MOST_QUICK))
        exact = exact or _first(target.explicitly, fits(MOST_THOROUGH))
        exact = exact or _first(target.rounded, fits(MOST_QUICK))
        if exact is not None:
            yield (exact,)
            return
    # numbers that a step has passed over, on the way to fits that couldn't be made exact
    for rank in range(proved - 1, max(target.count, min(found, default=proved)) - 1, -1):
        exact = _at_once(target, _kept(search.accepted(rank, tries, ITERATIONS)), tries)
        if exact is None:
            return
        yield (exact,)


def _at_once(target: Target, fits: Callable[[int], Iterator[Fit]], tries: int) -> Exact | None:
    """Make one of the fits exact whose equations can be independent."""
    exact = _first(target.quickly, fits(MOST_QUICK))
    return exact or _first(target.enclosed, islice(fits(tries), MOST_QUICK, None))


def _first(way: Way, fits: Iterable[Fit]) -> Exact | None:
    """Return the first exact decomposition that some fits become."""
    return next((found for fit in fits if (found := way(fit)) is not None), None)


def _kept(fits: Iterator[Fit]) -> Callable[[int], Iterator[Fit]]:
    """Keep fits as they come, so that they can be gone through again."""
    kept: list[Fit] = []

    def several(most: int) -> Iterator[Fit]:
        yield from kept[:most]
        for fit in islice(fits, max(0, most - len(kept))):
            kept.append(fit)
            yield fit

    return several


class _Fits:
    """Fits of one problem, from starts that differ from each other."""

    def __init__(self, target: Target, goal: Goal) -> None:
        self.target, self._seed = target, goal.seed
        self._tensor = target.tensor.astype(np.float64)
        self._starts: Counter[int] = Counter()
        self._accepted: list[Fit] = []

    def accepted(self, rank: int, tries: int, longest: int, spare: int = 0) -> Iterator[Fit]:
        """Yield fits with a vanishing residual and small terms, from some starts at most.

        Some work is spared.
        """
        work, iteration = self.target.work, self.target.cost_of_iteration(rank)
        while self._starts[rank] < tries:
            iterations = min(longest, (work.left - spare) // iteration)
            if iterations < FEWEST:
                return
            start = self._starts[rank]
            self._starts[rank] += 1
            rng = np.random.default_rng([self._seed, rank, start])
            fit = fit_cp(
                self._tensor,
                self._start(rank, start, rng),
                observed=self.target.observed,
                iterations=iterations,
            )
            work.spend(fit.iterations * iteration)
            if accepted(fit):
                self._accepted.append(fit)
                yield fit

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


def accepted(fit: Fit) -> bool:
    """Return True if a fit has a vanishing residual and small terms."""
    return fit.residual < EXACT_ENOUGH and fit.largest < LARGEST_COEFFICIENT


LEAST_SQUARES = Method(
    "least squares",
    fits,
    sides=("upper",),
    limit="fits",
    dense=False,
    peeled="instead",
    effective="yes",
    any_order=True,
)
