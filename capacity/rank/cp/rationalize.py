"""Rounding of numerical decompositions to exact ones over the rationals.

An exact fit is one point of a family: terms can be rescaled, and often deformed. So coefficients
are moved to simple fractions a few at a time, and the others are fitted again:

1. In the first two modes scale the largest coefficient of each column to 1, and fix it.
2. Fix the coefficients that are closest to 0, 1 or -1 there, and fit the others. Keep the result if
   the fit is still exact; otherwise fix fewer. Continue with halves, quarters and sixteenths.
3. With A and B rational, C is the solution of a linear system over the rationals.

The last step is in exact arithmetic, so rounding errors can't make the result wrong.
"""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np

from capacity.rank.cp.levenberg_marquardt import Array, Factors, Fit, fit_cp
from capacity.rank.exact.sparse_terms import vector
from capacity.rank.types import Indices, Mask, Term

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
    tensor: Indices, fit: Fit, *, observed: Mask | None = None, fits: int = 200
) -> list[Term] | None:
    """Turn a numerical decomposition into an exact one over the rationals.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor to decompose.
    fit : Fit
        A decomposition of the tensor, with a residual near zero.
    observed : ndarray of bool, shape (n_0, n_1), optional
        Fibers of the last mode that the decomposition must reproduce; all if omitted.
    fits : int
        Maximum number of further fits.

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
    order = [0, 1, 2] if observed is not None else np.argsort(tensor.shape, kind="stable").tolist()
    turned = np.ascontiguousarray(tensor.transpose(order))
    factors = _scaled([fit.factors[m] for m in order])
    snapped = _snapped(turned.astype(np.float64), factors, observed, fits)
    if snapped is None:
        return None
    mask = np.ones(turned.shape[:2], bool) if observed is None else observed
    a, b = ([[Fraction(float(x)).limit_denominator(64) for x in row] for row in f.tolist()]
            for f in snapped[:2])  # fmt: skip
    c = _solved(turned, a, b, mask)
    if c is None:
        return None
    terms: list[Term] = []
    for r in range(len(a[0])):
        parts = [vector(range(len(f)), [row[r] for row in f]) for f in (a, b, c)]
        back = [parts[order.index(m)] for m in range(3)]
        terms.append((back[0], back[1], back[2]))
    return terms


def _scaled(factors: list[Array]) -> Factors:
    """Scale the largest coefficient of each column of the first two factors to 1."""
    a, b, c = (f.copy() for f in factors)
    for f in (a, b):
        largest = f[np.abs(f).argmax(axis=0), np.arange(f.shape[1])]
        largest = np.where(largest == 0, 1.0, largest)
        f /= largest
        c *= largest
    return a, b, c


def _snapped(tensor: Array, factors: Factors, observed: Mask | None, fits: int) -> Factors | None:
    """Move all coefficients of the first two factors to the grids; None if that fails."""
    shapes = [f.shape for f in factors]
    cuts = np.cumsum([f.size for f in factors])
    x = np.concatenate([f.ravel() for f in factors])
    snappable = np.arange(len(x)) < cuts[1]
    # the largest coefficient of each column is 1 already
    fixed = snappable & (np.abs(x - 1) < 1e-15)
    failed = 0
    for grid in GRIDS:
        refused = np.zeros(len(x), bool)
        most = batch = max(1, int(cuts[1]) // 8)
        while True:
            nearest = grid[np.abs(x[:, None] - grid[None]).argmin(axis=1)]
            distance = np.abs(x - nearest)
            open_ = np.flatnonzero(snappable & ~fixed & ~refused)
            if not len(open_):
                break
            if fits <= 0 or failed > PATIENCE:
                return None
            fits -= 1
            chosen = open_[np.argsort(distance[open_], kind="stable")[:batch]]
            y, more = x.copy(), fixed.copy()
            y[chosen], more[chosen] = nearest[chosen], True
            a, b, c = (p.reshape(s) for p, s in zip(np.split(y, cuts[:2]), shapes, strict=True))
            fit = fit_cp(tensor, (a, b, c), observed=observed, free=~more, iterations=40, reg=0.0)
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
    a, b, c = (p.reshape(s) for p, s in zip(np.split(x, cuts[:2]), shapes, strict=True))
    return a, b, c


def _solved(
    tensor: Indices, a: list[list[Fraction]], b: list[list[Fraction]], mask: Mask
) -> list[list[Fraction]] | None:
    """Solve sum_r a[k][r] b[q][r] C[v][r] = T[k, q, v] on the mask for C; None if unsolvable."""
    rank, width = len(a[0]), tensor.shape[2]
    rows: list[list[flint.fmpq]] = []
    for k, q in np.argwhere(mask).tolist():
        products = [x * y for x, y in zip(a[k], b[q], strict=True)]
        rows.append(
            [flint.fmpq(p.numerator, p.denominator) for p in products]
            + [flint.fmpq(int(t)) for t in tensor[k, q]]
        )
    reduced, n = flint.fmpq_mat(rows).rref()
    table = reduced.tolist()
    c = [[Fraction(0)] * rank for _ in range(width)]
    for row in table[:n]:
        pivot = next(j for j, x in enumerate(row) if x)
        if pivot >= rank:
            return None
        for v in range(width):
            c[v][pivot] = Fraction(int(row[rank + v].p), int(row[rank + v].q))
    return c
