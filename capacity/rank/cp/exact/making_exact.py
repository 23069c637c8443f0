"""Make a fit exact, in one of three ways.

* It is moved to numbers that are recognised, rational or algebraic
(`capacity.rank.cp.exact.explicit`).
  Explicit decompositions are the most useful, so this comes first, with little work.
* It is proved to have an exact decomposition over the reals near it
  (`capacity.rank.verifier.procedures.krawczyk`), for tensors of order three. This needs independent
  equations, and so at least as many unknowns; then it is quick, and the first way seldom succeeds.
* Otherwise the first way has more work. It doesn't reach large tensors, for which the fit is
  rounded to an exact one over the rationals (`capacity.rank.cp.exact.rationalize`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from capacity.rank.cp.exact.equations import Work
from capacity.rank.cp.exact.explicit import as_argument, explicit_terms
from capacity.rank.cp.exact.krawczyk_box import enclose
from capacity.rank.cp.exact.rationalize import exact_terms
from capacity.rank.cp.fit.levenberg_marquardt import Fit
from capacity.rank.cp.fit.normal_equations import MOST_DENSE
from capacity.rank.problem import Problem, all_indices
from capacity.rank.reductions.coefficients import Explicit, coefficients_of
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.procedures.krawczyk import MOST_EQUATIONS

Exact: TypeAlias = Explicit | Enclosure
# work of a first attempt at explicit coefficients; parts of what remains, for the first and for a
# second; null spaces of the Jacobian that it must suffice for
FIRST, PART_FIRST, PART_SECOND, NULL_SPACES = 3 * 10**8, 20, 2, 100
# fits that rounding one takes, and iterations of each on average
SNAPS, ITERATIONS_A_SNAP = 80, 15


class Target:
    """The tensor that is fitted, and the work that remains.

    Attributes
    ----------
    tensor : ndarray of int64, shape (n_0, ..., n_d)
        The core of a problem's tensor, or the tensor itself if some entries are unknown.
    observed : ndarray of bool, shape (n_0, ..., n_d-1), or None
        Fibers of the last mode that count; None if all do.
    work : Work
        Work that remains.
    """

    def __init__(self, problem: Problem, work: int) -> None:
        self._problem, self.work = problem, Work(work)
        whole = problem.known is not None
        self.tensor = (problem.tensor if whole else problem.core.tensor).astype(np.int64)
        self.observed = None if problem.known is None else problem.known[..., 0]
        *others, last = self.tensor.shape
        fibers = math.prod(others) if self.observed is None else int(self.observed.sum())
        self._equations = last * fibers

    @property
    def count(self) -> int:
        """Smallest number of terms with as many unknowns as there are equations."""
        # a term with scaled factors is the same: one unknown fewer for each of them but the last
        return -(-self._equations // (sum(self.tensor.shape) - self.tensor.ndim + 1))

    def is_quick(self, rank: int) -> bool:
        """Return True if fits can be enclosed: there are as many unknowns as equations."""
        return self.tensor.ndim == 3 and rank >= self.count

    def cost_of_iteration(self, rank: int) -> int:
        """Measured cost of one iteration of a fit, in nanoseconds."""
        n = rank * sum(self.tensor.shape)
        if n <= MOST_DENSE:
            return 250_000 + 12 * n**2 + n**3 // 100
        return 800 * int(np.prod(self.tensor.shape)) * rank

    def quickly(self, fit: Fit) -> Exact | None:
        """Make a fit exact with little work; None if that fails."""
        found = self._explicit(fit, min(FIRST, self.work.left // PART_FIRST))
        if found is None and self.is_quick(fit.rank):
            return self.enclosed(fit)
        return found

    def explicitly(self, fit: Fit) -> Explicit | None:
        """Find explicit coefficients with more work than `quickly` does; None if that fails."""
        return self._explicit(fit, self.work.left // PART_SECOND)

    def may_be_explicit(self, rank: int) -> bool:
        """Return True if the work suffices to look for explicit coefficients thoroughly."""
        return self._null_spaces(rank) <= self.work.left // PART_SECOND

    def _null_spaces(self, rank: int) -> int:
        """Estimated work of null spaces, the least that explicit coefficients take."""
        unknowns = rank * sum(self.tensor.shape)
        return NULL_SPACES * unknowns**2 * (unknowns + self._equations) // 2

    def _explicit(self, fit: Fit, most: int) -> Explicit | None:
        """Find explicit coefficients near a fit; None if there are none for so much work."""
        if most < self._null_spaces(fit.rank):
            return None
        share = self.work.share(most)
        found = explicit_terms(self.tensor, fit, observed=self.observed, work=share)
        self.work.back(share)
        return None if found is None else self._lifted(as_argument(found))

    def rounded(self, fit: Fit) -> Explicit | None:
        """Round a fit to a rational decomposition; None if that fails."""
        cost = ITERATIONS_A_SNAP * self.cost_of_iteration(fit.rank)
        snaps = Work(max(0, min(SNAPS, self.work.left // cost)))
        most = snaps.left
        terms = exact_terms(self.tensor, fit, observed=self.observed, fits=snaps)
        self.work.spend((most - max(0, snaps.left)) * cost)
        return None if terms is None else self._lifted(Decomposition(tuple(terms)))

    def _lifted(self, found: Explicit) -> Explicit:
        """Convert a decomposition of the core to one of the tensor."""
        if self._problem.known is not None:
            return found
        terms = self._problem.core.lifted(found.terms, coefficients_of(found))
        return replace(found, terms=tuple(terms))

    def enclosed(self, fit: Fit) -> Enclosure | None:
        """Prove that an exact real decomposition lies near a fit; None if that fails."""
        if self.tensor.ndim != 3:
            return None
        equations = min(self._equations, MOST_EQUATIONS)
        self.work.spend(10**7 + equations**3 // 5)
        found = enclose(self.tensor, fit.factors, self._problem.known)
        if found is None:
            return None
        self.work.spend(3 * equations**3)
        part = self._problem.known is not None
        chosen = all_indices(self.tensor.shape) if part else self._problem.core.chosen
        return Enclosure(View(chosen), *found)
