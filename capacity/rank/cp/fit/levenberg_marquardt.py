"""Fit CP decompositions by regularised Levenberg-Marquardt, for tensors of any order.

The objective, over a factor of R columns for each mode and for a mask M of fibers of the last mode,
here for order three, is

    sum over (k, q, v) of M[k, q] (T[k, q, v] - sum_r A[k, r] B[q, r] C[v, r])^2 + reg |x|^2,

where x collects all factors and reg goes to zero with the residual. A step solves the damped normal
equations. Their matrix consists of blocks made from R x R Gram matrices, so it is assembled without
the Jacobian (`capacity.rank.cp.fit.normal_equations`). The columns of the Jacobian are dependent,
because scaling two factors of a term against each other changes nothing; the regularisation selects
the balanced scaling, and keeps away from terms that grow and cancel.

References
----------
A.-H. Phan, P. Tichavsky, A. Cichocki, Low complexity damped Gauss-Newton algorithms for
CANDECOMP/PARAFAC, SIMAX 2013; G. Tomasi, R. Bro, A comparison of algorithms for fitting the PARAFAC
model, CSDA 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Mask
from capacity.rank.cp.fit.normal_equations import Array, Factors, gradient_of, product, solver

# relative residual at which the iteration stops
EXACT = 1e-13


@dataclass(frozen=True)
class Fit:
    """A CP decomposition in floating point.

    Attributes
    ----------
    factors : tuple of ndarrays of float64, shapes (n_m, rank)
        A factor for each mode, one column per term.
    residual : float
        Norm of tensor minus decomposition, divided by the norm of the tensor; both on the observed
        fibers.
    iterations : int
        Number of iterations done.
    """

    factors: Factors
    residual: float
    iterations: int

    @property
    def rank(self) -> int:
        """Number of terms."""
        return self.factors[0].shape[1]

    @property
    def largest(self) -> float:
        """Largest norm of a factor, if each term's norm is shared evenly by its factors."""
        norms = np.prod([np.linalg.norm(f, axis=0) for f in self.factors], axis=0)
        return float(norms.max(initial=0.0) ** (1 / len(self.factors)))


def random_start(shape: tuple[int, ...], rank: int, rng: np.random.Generator) -> Factors:
    """Draw factors from a normal distribution with standard deviation 0.5."""
    return tuple(0.5 * rng.standard_normal((n, rank)) for n in shape)


def fit_cp(
    tensor: NDArray[np.floating],
    start: Factors,
    *,
    observed: Mask | None = None,
    free: Mask | None = None,
    iterations: int = 400,
    reg: float = 1e-3,
) -> Fit:
    """Fit a CP decomposition, starting from given factors.

    Parameters
    ----------
    tensor : ndarray of float64, shape (n_0, ..., n_d)
        The tensor to fit, of two modes or more.
    start : tuple of ndarrays, shapes (n_m, rank)
        Initial factors, one for each mode.
    observed : ndarray of bool, shape (n_0, ..., n_d-1), optional
        Fibers of the last mode that the fit must reproduce; all if omitted.
    free : ndarray of bool, shape ((n_0 + ... + n_d) rank,), optional
        Unknowns that may change, numbered along the rows of the factors; all if omitted.
    iterations : int
        Maximum number of iterations.
    reg : float
        Initial weight of the regularisation; 0 for none.

    Returns
    -------
    Fit
    """
    dense = np.asarray(tensor, np.float64)
    mask = None if observed is None else np.asarray(observed, np.float64)
    shown = 1.0 if mask is None else mask[..., None]
    norm = float(np.linalg.norm(dense * shown)) or 1.0
    cuts = np.cumsum([f.size for f in start])[:-1]

    def unpacked(x: Array) -> Factors:
        parts = np.split(x, cuts)
        return tuple(part.reshape(f.shape) for part, f in zip(parts, start, strict=True))

    def left(factors: Factors) -> Array:
        return (dense - product(factors)) * shown

    x = np.concatenate([f.ravel() for f in start])
    may = np.ones(len(x), bool) if free is None else free
    if not may.any():
        iterations = 0
    difference = left(unpacked(x))
    cost, damping = float((difference**2).sum()), 1.0 if free is None else 1e-3
    best, stalled, taken = cost, 0, 0
    while taken < iterations:
        taken += 1
        factors = unpacked(x)
        gradient = (gradient_of(difference, factors) - reg * x)[may]
        solve = solver(factors, mask, may)
        objective = cost + reg * float(x @ x)
        for _ in range(8):
            step = solve(gradient, damping + reg)
            if step is None:
                damping *= 10
                continue
            y = x.copy()
            y[may] += step
            after = left(unpacked(y))
            cost_after = float((after**2).sum())
            if cost_after + reg * float(y @ y) < objective * (1 + 1e-15) + 1e-30:
                x, difference, cost = y, after, cost_after
                damping = max(damping * 0.25, 1e-15)
                break
            damping *= 4
        else:
            if reg < 1e-15:
                break
            reg, damping = reg * 0.1, min(damping, 1.0)
            continue
        reg = min(reg * 0.9, 0.05 * cost / norm**2)
        if cost < (EXACT * norm) ** 2:
            break
        stalled = 0 if cost < 0.98 * best else stalled + 1
        best = min(best, cost)
        if stalled > 80:
            break
    return Fit(unpacked(x), cost**0.5 / norm, taken)
