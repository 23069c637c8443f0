"""Rounding of numerical decompositions to exact ones over the rationals.

An exact fit is one point of a family: terms can be rescaled, and often deformed. So coefficients
are moved to simple fractions a few at a time, and the others are fitted again:

1. In all modes but the last scale the largest coefficient of each column to 1, and fix it.
2. Fix the coefficients that are closest to 0, 1 or -1 there, and fit the others. Keep the result if
   the fit is still exact; otherwise fix fewer. Continue with halves, quarters and sixteenths.
3. With the other factors rational, the last is the solution of a linear system over the rationals.

The last step is in exact arithmetic, so rounding errors can't make the result wrong. This finds no
algebraic numbers and fewer rational ones than `capacity.rank.cp.explicit` does, but needs no
null spaces, which take too long for large tensors.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from capacity.exact.types import Indices, Mask, Term, vector
from capacity.rank.cp.equations import Work, last_factor
from capacity.rank.cp.levenberg_marquardt import Array, Factors, Fit, fit_cp

GRIDS: tuple[Array, ...] = (
    np.array([0.0, 1.0, -1.0]),
    np.arange(-4, 5) / 2,
    np.arange(-8, 9) / 4,
    np.arange(-64, 65) / 16,
)
# relative residual below which a fit counts as exact, and the largest coefficient it may have
EXACT_ENOUGH = 1e-9
LARGEST_COEFFICIENT = 1e3
# consecutive fits that may fail; where rounding succeeded, at most 7 did
PATIENCE = 10


def exact_terms(
    tensor: Indices, fit: Fit, *, observed: Mask | None = None, fits: Work | None = None
) -> list[Term] | None:
    """Turn a numerical decomposition into an exact one over the rationals.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, ..., n_d)
        The tensor to decompose.
    fit : Fit
        A decomposition of the tensor, with a residual near zero.
    observed : ndarray of bool, shape (n_0, ..., n_d-1), optional
        Fibers of the last mode that the decomposition must reproduce; all if omitted.
    fits : Work, optional
        Further fits that may be made, and are taken from it; 200 if omitted.

    Returns
    -------
    list of Term or None
        Terms with rational coefficients, as many as `fit` has; None if none are found.

    Examples
    --------
    >>> from capacity.rank.cp.levenberg_marquardt import fit_cp, random_start
    >>> T = np.array([[[1, 2], [2, 4]], [[0, 0], [1, 1]]])
    >>> fit = fit_cp(T, random_start(T.shape, 2, np.random.default_rng(0)))
    >>> len(exact_terms(T, fit))
    2
    """
    # the last mode is solved for, so the longest comes last; a mask fixes which mode is last
    modes = list(range(tensor.ndim))
    order = modes if observed is not None else sorted(modes, key=lambda m: tensor.shape[m])
    turned = np.ascontiguousarray(tensor.transpose(order))
    factors = _scaled([fit.factors[m] for m in order])
    snapped = _snapped(turned.astype(np.float64), factors, observed, fits or Work(200))
    if snapped is None:
        return None
    others = [
        [[(Fraction(x).limit_denominator(64),) for x in row] for row in f.tolist()]
        for f in snapped[:-1]
    ]
    last = last_factor(turned, others, observed=observed)
    if last is None:
        return None
    terms: list[Term] = []
    for r in range(fit.rank):
        columns = [[sum(row[r]) for row in f] for f in (*others, last)]
        parts = [vector(range(len(column)), column) for column in columns]
        terms.append(tuple(parts[order.index(m)] for m in modes))  # type: ignore[arg-type]
    return terms


def _scaled(factors: list[Array]) -> Factors:
    """Scale the largest coefficient of each column of all factors but the last to 1."""
    *others, last = (f.copy() for f in factors)
    for f in others:
        largest = f[np.abs(f).argmax(axis=0), np.arange(f.shape[1])]
        largest = np.where(largest == 0, 1.0, largest)
        f /= largest
        last *= largest
    return (*others, last)


def _snapped(tensor: Array, factors: Factors, observed: Mask | None, fits: Work) -> Factors | None:
    """Move all coefficients of all factors but the last to the grids; None if that fails."""
    shapes = [f.shape for f in factors]
    cuts = np.cumsum([f.size for f in factors])
    x = np.concatenate([f.ravel() for f in factors])

    def unpacked(x: Array) -> Factors:
        parts = np.split(x, cuts[:-1])
        return tuple(p.reshape(s) for p, s in zip(parts, shapes, strict=True))

    snappable = np.arange(len(x)) < cuts[-2]
    # the largest coefficient of each column is 1 already
    fixed = snappable & (np.abs(x - 1) < 1e-15)
    failed = 0
    for grid in GRIDS:
        refused = np.zeros(len(x), bool)
        most = batch = max(1, int(cuts[-2]) // 8)
        while True:
            nearest = grid[np.abs(x[:, None] - grid[None]).argmin(axis=1)]
            distance = np.abs(x - nearest)
            open_ = np.flatnonzero(snappable & ~fixed & ~refused)
            if not len(open_):
                break
            if failed > PATIENCE or not fits.spend(1):
                return None
            chosen = open_[np.argsort(distance[open_], kind="stable")[:batch]]
            y, more = x.copy(), fixed.copy()
            y[chosen], more[chosen] = nearest[chosen], True
            start = unpacked(y)
            fit = fit_cp(tensor, start, observed=observed, free=~more, iterations=40, reg=0.0)
            z = np.concatenate([f.ravel() for f in fit.factors])
            if fit.residual < EXACT_ENOUGH and np.abs(z).max() < LARGEST_COEFFICIENT:
                x, fixed, failed = z, more, 0
                batch = min(2 * batch, most)
                continue
            failed += 1
            if batch == 1:
                refused[chosen] = True
            else:
                batch = max(1, batch // 3)
        if fixed[snappable].all():
            break
    else:
        return None
    return unpacked(x)
