"""Move a fit within its family of solutions until each coefficient is a recognisable number.

An exact fit is seldom alone: terms can be rescaled, and often deformed. The null space of the
Jacobian contains the ways, and shows which coefficients can move at all. So

1. in all factors but the last, scale the largest coefficient of each column to 1 and fix it;
2. fix one coefficient that can move to a simple fraction, follow the null space there, and solve
   the equations again by Gauss-Newton steps of minimal norm;
3. repeat, until no coefficient of these factors can move.

Of the fractions that a coefficient may be fixed to, one is chosen that determines other
coefficients as rational numbers. If there is none, the equations have no rational solution nearby,
and of those that were tried the one that determines the fewest others is chosen: they will be
algebraic numbers. The last factor is never fixed: the others determine it by linear equations, and
fixing its coefficients makes the others algebraic numbers of high degree.

The rank of the Jacobian is read off a gap in its singular values (measured: 1e-3 of the largest
against 1e-15). Nothing depends on its being right, because what is recognised is verified exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.cp.equations import Equations, Work
from capacity.rank.cp.levenberg_marquardt import Array, Factors

# the numbers that coefficients are fixed to, and how far a coefficient goes out of its way rather
# than to be fixed there
TARGETS: dict[float, float] = {
    0: 0, 1: 0.15, -1: 0.15, 2: 0.4, -2: 0.4, 1 / 2: 0.4, -1 / 2: 0.4, 3: 0.75, -3: 0.75,
    1 / 3: 0.75, -1 / 3: 0.75, 1 / 4: 0.8, -1 / 4: 0.8, 3 / 2: 0.8, -3 / 2: 0.8,
    2 / 3: 0.85, -2 / 3: 0.85, 3 / 4: 0.9, -3 / 4: 0.9,
}  # fmt: skip
# targets of each coefficient that are tried, candidates of a step, those that are compared if each
# of them determines irrational numbers, and those that are enough if it gets no worse
TARGETS_EACH, CANDIDATES, COMPARED, ENOUGH = 2, 150, 30, 8
# standard deviation of the logarithms of random factors
NOISE = 0.3
# singular values below this, relative to the largest, are zero
SINGULAR = 1e-8
# components of unit vectors of the null space: of coefficients that can move, and that can't
MOVES, STAYS = 1e-5, 1e-6
# relative residual of a solution, that at which steps end, the number of steps, and the largest
SOLVED, CONVERGED, STEPS, LONGEST_STEP = 1e-12, 2e-14, 25, 2.0
LARGEST_COEFFICIENT = 60.0
# a number is taken for a fraction with at most this denominator, if the product of both is small
DENOMINATOR, HEIGHT, NEAR = 400, 40_000, 1e-9


@dataclass(frozen=True, eq=False)
class _State:
    """A solution with some unknowns fixed, and the null space of the others."""

    x: Array
    free: Indices
    null: Array  # an orthonormal basis, shape (n_free, nullity)
    oddness: int = 0  # of what the last step has determined

    @property
    def moving(self) -> Array:
        """Part of each free unknown that lies in the null space, from 0 to 1."""
        return np.linalg.norm(self.null, axis=1)


def snapped(
    equations: Equations, factors: Factors, work: Work, rng: np.random.Generator | None = None
) -> tuple[Array, Mask] | None:
    """Move a solution of some equations to one that is isolated, or nearly so.

    Parameters
    ----------
    equations : Equations
        The equations.
    factors : tuple of ndarrays of float64, shapes (n_m, rank)
        An approximate solution.
    work : Work
        Work that may be done; it is charged.
    rng : numpy.random.Generator, optional
        Makes the order of the candidates random in part; if omitted, the nearest come first.

    Returns
    -------
    (x, fixed) or None
        The unknowns, and a mask of those that are fixed, at fractions with a denominator of at most
        64; among the others, only coefficients of the last factor can still move. None if the
        solution is singular, no fraction can be reached, or the work runs out.
    """
    x, fixed = _scaled(equations, factors)
    state = _solved(equations, x, np.flatnonzero(~fixed), work)
    refused: set[tuple[int, float]] = set()
    while state is not None:
        movable = (state.moving > MOVES) & (state.free < equations.n_of_others)
        if not movable.any():
            fixed = np.ones(len(x), bool)
            fixed[state.free] = False
            return state.x, fixed
        state = _next(equations, state, _candidates(state, movable, rng), refused, work)
    return None


def _scaled(equations: Equations, factors: Factors) -> tuple[Array, Mask]:
    """Scale and fix the largest coefficient of each column of all factors but the last."""
    *others, last = (f.copy() for f in factors)
    fixed = [np.zeros(f.shape, bool) for f in factors]
    terms = np.arange(equations.rank)
    for f, of in zip(others, fixed, strict=False):
        at = np.abs(f).argmax(axis=0)
        largest = f[at, terms]
        largest = np.where(largest == 0, 1.0, largest)
        f /= largest
        last *= largest
        f[at, terms], of[at, terms] = 1.0, True
    x = np.concatenate([f.ravel() for f in (*others, last)])
    return x, np.concatenate([of.ravel() for of in fixed])


def _next(
    equations: Equations,
    state: _State,
    candidates: list[tuple[int, float]],
    refused: set[tuple[int, float]],
    work: Work,
) -> _State | None:
    """Fix one more unknown; None if none can be."""
    compared: list[tuple[int, _State]] = []
    tried = 0
    for place, target in candidates:
        if tried == CANDIDATES or len(compared) == COMPARED or work.left < 0:
            break
        if len(compared) >= ENOUGH and min(odd for odd, _ in compared) <= state.oddness:
            break
        key = int(state.free[place]), target
        if key in refused:
            continue
        tried += 1
        moved = _fixed(equations, state, place, target, work)
        if moved is None:
            refused.add(key)
            continue
        odd = _oddness(equations, state, moved)
        if not odd:
            return moved
        compared.append((odd, moved))
    if not compared or work.left < 0:
        return None
    # the first of the best
    odd, best = min(compared, key=lambda one: one[0])
    return replace(best, oddness=odd)


def _candidates(
    state: _State, movable: Mask, rng: np.random.Generator | None
) -> list[tuple[int, float]]:
    """Free unknowns that can move, and targets for them, the nearest along the null space first."""
    targets, penalties = np.array(list(TARGETS)), np.array(list(TARGETS.values()))
    places = np.flatnonzero(movable)
    away = np.abs(state.x[state.free[places], None] - targets) / state.moving[places, None]
    away += penalties
    if rng is not None:
        away *= np.exp(NOISE * rng.standard_normal(away.shape))
    nearest = np.argsort(away, axis=1, kind="stable")[:, :TARGETS_EACH]
    near = np.take_along_axis(away, nearest, axis=1)
    return [
        (int(places[i // TARGETS_EACH]), float(targets[nearest.flat[i]]))
        for i in np.argsort(near, axis=None, kind="stable").tolist()
    ]


def _fixed(
    equations: Equations, state: _State, place: int, target: float, work: Work
) -> _State | None:
    """Fix a free unknown to a number and solve for the others; None if that fails."""
    x = state.x.copy()
    # the shortest way within the null space
    way = state.null @ state.null[place] / state.moving[place] ** 2
    x[state.free] += way * (target - x[state.free[place]])
    x[state.free[place]] = target
    return _solved(equations, x, np.delete(state.free, place), work)


def _solved(equations: Equations, x: Array, free: Indices, work: Work) -> _State | None:
    """Solve for the free unknowns by Gauss-Newton steps of minimal norm; None if that fails."""
    from scipy.linalg import LinAlgError, lstsq, qr, svd

    m, n = len(equations.places), len(free)
    # measured, for 64 to 1,500 equations
    newton = 50_000 + equations.work + m * n * min(m, n) // 4
    null = 100_000 + equations.work + 2 * (m + n) * n * min(m, n) // 5
    x = x.copy()
    residual = equations.relative_residual(x)
    for _ in range(STEPS):
        if residual < CONVERGED:
            break
        if not residual < 1e2 or not work.spend(newton):
            return None
        J = equations.jacobian(x)[:, free]
        try:
            step = lstsq(J, -equations.residual(x), cond=1e-9, lapack_driver="gelsy")[0]
        except (LinAlgError, ValueError):
            return None
        x[free] += step * min(1.0, LONGEST_STEP / max(float(np.linalg.norm(step)), 1e-300))
        before, residual = residual, equations.relative_residual(x)
        if residual < SOLVED and residual > before / 2:
            break
    if not residual < SOLVED or np.abs(x).max() > LARGEST_COEFFICIENT:
        return None
    if not work.spend(null):
        return None
    J = equations.jacobian(x)[:, free]
    if m > n:
        J = qr(J, mode="r", overwrite_a=True)[0][:n]
    _, values, rows = svd(J, overwrite_a=True)
    rank = int((values > SINGULAR * max(values, default=0.0)).sum())
    return _State(x, free, rows[rank:].T)


def _oddness(equations: Equations, before: _State, after: _State) -> int:
    """Sum up how far from rational the numbers are that a step has determined; 0 if all are."""
    moved = np.zeros(len(after.x))
    moved[before.free] = before.moving
    of = after.free
    now = (after.moving < STAYS) & (moved[of] > MOVES) & (of < equations.n_of_others)
    return sum(map(oddness, after.x[of[now]].tolist()))


def oddness(value: float) -> int:
    """Guess how far a number is from rational: 0, or more for a higher degree.

    Examples
    --------
    >>> oddness(-2 / 3), oddness(2**0.5), oddness(2 ** (1 / 3)), oddness(2 ** (1 / 6))
    (0, 1, 2, 4)
    """
    near = Fraction(value).limit_denominator(DENOMINATOR)
    if abs(float(near) - value) < NEAR * (1 + abs(value)):
        return 0 if near.denominator * max(1, abs(near.numerator)) < HEIGHT else 4
    for score, (leading, others) in enumerate(((12, (30,)), (6, (15, 15))), start=1):
        # all short polynomials but for their constant coefficient, which is the nearest integer
        grids = np.meshgrid(
            np.arange(1, leading + 1), *(np.arange(-n, n + 1) for n in others), indexing="ij"
        )
        sums = sum(grid * value ** (len(grids) - i) for i, grid in enumerate(grids))
        if (np.abs(sums - np.rint(sums)) < NEAR / 10 * (1 + abs(value)) ** len(grids)).any():
            return score
    return 4
