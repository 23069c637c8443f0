"""Make a fit exact, in one of three ways.

* It is moved to numbers that are recognised, rational or algebraic
  (`capacity.rank.cp.explicit`).
  Explicit decompositions are the most useful, so this comes first, with little work.
* It is proved to have an exact decomposition over the reals near it
  (`capacity.rank.verifier.procedures.krawczyk`). This needs independent equations, and so at least
  as many unknowns; then it is quick, and the first way seldom succeeds.
* Otherwise the first way has more work. It doesn't reach large tensors, for which the fit is
  rounded to an exact one over the rationals (`capacity.rank.cp.rationalize`).

**The second way** needs the unknowns that vary, and the radius of their box.
`capacity.rank.verifier.procedures.krawczyk` has the condition. It is about beta + kappa rho^2 <
rho, with beta the Newton step to the root, rho the radius, and kappa rho a bound of |I - C J|. So
rho = 2 beta suffices if 4 kappa beta < 1.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.coefficients import Explicit, coefficients_of
from capacity.rank.cp.equations import Work
from capacity.rank.cp.explicit import as_argument, explicit_terms
from capacity.rank.cp.levenberg_marquardt import MOST_DENSE, Array, Factors, Fit
from capacity.rank.cp.rationalize import exact_terms
from capacity.rank.method import Problem, all_indices
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.procedures.krawczyk import MOST_EQUATIONS, contracts, jacobian

# ratio of the pivoted Jacobian's last and first diagonal entry below which it is nearly singular
INDEPENDENT = 1e-7
# equations of tensors of order four or more that are enclosed at once
MOST_OF_HIGHER_ORDER = 128
# binary digits of a number that are kept after the point
BITS = 60


def enclose(
    tensor: Indices, factors: Factors, known: Mask | None = None
) -> tuple[Factors, Indices, float] | None:
    """Find factors, varying unknowns and a radius that prove an exact decomposition.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, ...)
        The tensor to decompose.
    factors : tuple of ndarrays of float64, shapes (n_m, rank)
        Factors of a fit, with a residual near zero.
    known : ndarray of bool, shape (n_0, n_1, ...), optional
        Mask of the entries that the decomposition must reproduce; all if omitted.

    Returns
    -------
    (factors, varying, radius) or None
        None if there are fewer unknowns than equations or too many equations, or if the equations
        are nearly dependent, as for most sparse decompositions, where several families of
        decompositions meet.
    """
    from scipy.linalg import inv, qr

    places = np.argwhere(np.ones(tensor.shape, bool) if known is None else known)
    starts = np.cumsum([0, *(f.size for f in factors)])
    n = len(places)
    if not 0 < n <= min(MOST_EQUATIONS, int(starts[-1])):
        return None
    x = np.concatenate([f.ravel() for f in factors])
    _, R, order = qr(
        jacobian(_unpacked(x, factors), places, starts), mode="economic", pivoting=True
    )
    diagonal = np.abs(np.diag(R))
    if diagonal[-1] < INDEPENDENT * diagonal[0]:
        return None
    varying = np.sort(order[:n]).astype(np.int64)
    for _ in range(3):
        x = np.rint(x * 2.0**BITS) / 2.0**BITS
        near = _unpacked(x, factors)
        try:
            inverse = inv(jacobian(near, places, starts)[:, varying])
        except np.linalg.LinAlgError:
            return None
        at_places = reduce(np.multiply, [f[places[:, m]] for m, f in enumerate(near)])
        step = inverse @ (at_places.sum(axis=1) - tensor[tuple(places.T)])
        beta = float(np.abs(step).max())
        sizes = [np.abs(f).max(axis=1)[places[:, m]] for m, f in enumerate(near)]
        # of each pair of modes both change, and the others are as they are
        pairs = sum(
            reduce(np.multiply, left, np.ones(n)) for left in combinations(sizes, len(sizes) - 2)
        )
        kappa = float((np.abs(inverse) @ (2 * near[0].shape[1] * pairs)).max())
        radius = max(2.5 * beta, 1e-14)
        if 4 * kappa * radius < 1 and contracts(tensor, near, varying, radius, known):
            return near, varying, radius
        x[varying] -= step
    return None


def _unpacked(x: Array, like: Factors) -> Factors:
    parts = np.split(x, np.cumsum([f.size for f in like])[:-1])
    return tuple(part.reshape(f.shape) for part, f in zip(parts, like, strict=True))


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
        """Return True if fits can be enclosed: there are as many unknowns as equations.

        The work on larger tensors of higher order is better spent on fits of fewer terms, which
        rounding makes exact: the 4 x 4 determinant then takes 12 terms, and not 20.
        """
        affordable = self.tensor.ndim <= 3 or self._equations <= MOST_OF_HIGHER_ORDER
        return rank >= self.count and affordable

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
        equations = min(self._equations, MOST_EQUATIONS)
        self.work.spend(10**7 + equations**3 // 5)
        found = enclose(self.tensor, fit.factors, self._problem.known)
        if found is None:
            return None
        self.work.spend(3 * equations**3)
        part = self._problem.known is not None
        chosen = all_indices(self.tensor.shape) if part else self._problem.core.chosen
        last = self.tensor.ndim - 1
        return Enclosure(View(chosen), *found, last, np.zeros((0, last), np.int64))
