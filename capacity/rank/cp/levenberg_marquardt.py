"""Fit CP decompositions by regularised Levenberg-Marquardt.

The objective, over factors A, B, C with R columns and for a mask M of fibers, is

    sum over (k, q, v) of M[k, q] (T[k, q, v] - sum_r A[k, r] B[q, r] C[v, r])^2 + reg |x|^2,

where x collects all factors and reg goes to zero with the residual. A step solves the damped normal
equations. Their matrix consists of blocks made from R x R Gram matrices, so it is assembled without
the Jacobian. The columns of the Jacobian are dependent, because scaling two factors of a term
against each other changes nothing; the regularisation selects the balanced scaling, and keeps away
from terms that grow and cancel. Up to `MOST_DENSE` unknowns the matrix is factored; beyond,
conjugate gradients only multiply by it.

References
----------
A.-H. Phan, P. Tichavsky, A. Cichocki, Low complexity damped Gauss-Newton algorithms for
CANDECOMP/PARAFAC, SIMAX 2013; G. Tomasi, R. Bro, A comparison of algorithms for fitting the PARAFAC
model, CSDA 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.rank.types import Mask

Array: TypeAlias = NDArray[np.float64]
Factors: TypeAlias = tuple[Array, Array, Array]
# most unknowns for which the normal equations are factored
MOST_DENSE = 2_500
# relative residual at which the iteration stops
EXACT = 1e-13


@dataclass(frozen=True)
class Fit:
    """A CP decomposition in floating point.

    Attributes
    ----------
    factors : tuple of three ndarrays of float64, shapes (n_m, rank)
        The three factors, one column per term.
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
        """Largest norm of a factor, if each term's norm is shared evenly by its three factors."""
        norms = np.prod([np.linalg.norm(f, axis=0) for f in self.factors], axis=0)
        return float(np.cbrt(norms).max(initial=0.0))


def random_start(shape: tuple[int, ...], rank: int, rng: np.random.Generator) -> Factors:
    """Draw factors from a normal distribution with standard deviation 0.5."""
    a, b, c = (0.5 * rng.standard_normal((n, rank)) for n in shape)
    return a, b, c


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
    tensor : ndarray of float64, shape (n_0, n_1, n_2)
        The tensor to fit.
    start : tuple of three ndarrays, shapes (n_m, rank)
        Initial factors.
    observed : ndarray of bool, shape (n_0, n_1), optional
        Fibers of the last mode that the fit must reproduce; all if omitted.
    free : ndarray of bool, shape ((n_0 + n_1 + n_2) rank,), optional
        Unknowns that may change, numbered along the rows of the three factors; all if omitted.
    iterations : int
        Maximum number of iterations.
    reg : float
        Initial weight of the regularisation; 0 for none.

    Returns
    -------
    Fit
    """
    dense = np.asarray(tensor, np.float64)
    mask = np.ones(dense.shape[:2]) if observed is None else observed.astype(np.float64)
    norm = float(np.linalg.norm(dense * mask[:, :, None])) or 1.0
    sizes = [f.size for f in start]
    cuts = np.cumsum(sizes)[:-1]

    def unpacked(x: Array) -> Factors:
        a, b, c = (part.reshape(f.shape) for part, f in zip(np.split(x, cuts), start, strict=True))
        return a, b, c

    def left(factors: Factors) -> Array:
        return (dense - np.einsum("ir,jr,kr->ijk", *factors)) * mask[:, :, None]

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
        gradient = (_gradient(difference, factors) - reg * x)[may]
        solve = _solver(factors, mask, may)
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


def _gradient(difference: Array, factors: Factors) -> Array:
    a, b, c = factors
    parts = (
        np.einsum("ijk,jr,kr->ir", difference, b, c, optimize=True),
        np.einsum("ijk,ir,kr->jr", difference, a, c, optimize=True),
        np.einsum("ijk,ir,jr->kr", difference, a, b, optimize=True),
    )
    return np.concatenate([part.ravel() for part in parts])


Solver: TypeAlias = Callable[[Array, float], Array | None]


def _solver(factors: Factors, mask: Array, may: Mask) -> Solver:
    """Make a solver of (J^T J + damping) step = gradient for the unknowns that may change."""
    if may.sum() > MOST_DENSE:
        return _iterative(factors, mask, may)
    # where it is used: few databases come to a fit, and the import takes as long as a small one
    from scipy.linalg import cho_factor, cho_solve

    normal = _normal_matrix(factors, mask)[np.ix_(may, may)]

    def solve(gradient: Array, damping: float) -> Array | None:
        damped = normal.copy()
        damped.flat[:: len(damped) + 1] += damping
        try:
            return cho_solve(cho_factor(damped, lower=True, overwrite_a=True), gradient)
        except np.linalg.LinAlgError:
            return None

    return solve


def _normal_matrix(factors: Factors, mask: Array) -> Array:
    """Assemble J^T J: entry ((m, i, r), (n, j, s)) sums products of derivatives where observed."""
    a, b, c = factors
    rank = a.shape[1]
    sizes = [f.size for f in factors]
    offsets = np.cumsum([0, *sizes])
    # Gram matrices: of b on the fibers observed with k, of a on those observed with q, and of c
    of_b = np.einsum("kq,qr,qs->krs", mask, b, b, optimize=True)
    of_a = np.einsum("kq,kr,ks->qrs", mask, a, a, optimize=True)
    of_c = c.T @ c
    normal = np.zeros((offsets[-1], offsets[-1]))
    for start, n, blocks in (
        (offsets[0], len(a), of_b * of_c),
        (offsets[1], len(b), of_a * of_c),
        (offsets[2], len(c), np.broadcast_to(np.einsum("kr,ks,krs->rs", a, a, of_b),
                                             (len(c), rank, rank))),
    ):  # fmt: skip
        for i in range(n):
            at = slice(start + i * rank, start + (i + 1) * rank)
            normal[at, at] = blocks[i]
    across = (
        (0, 1, np.einsum("kq,ks,qr,rs->krqs", mask, a, b, of_c, optimize=True)),
        (0, 2, np.einsum("ks,vr,krs->krvs", a, c, of_b, optimize=True)),
        (1, 2, np.einsum("qs,vr,qrs->qrvs", b, c, of_a, optimize=True)),
    )
    for m, n, block in across:
        matrix = block.reshape(sizes[m], sizes[n])
        rows, columns = (slice(offsets[x], offsets[x + 1]) for x in (m, n))
        normal[rows, columns] = matrix
        normal[columns, rows] = matrix.T
    return normal


def _iterative(factors: Factors, mask: Array, may: Mask) -> Solver:
    a, b, c = factors
    cuts = np.cumsum([f.size for f in factors])[:-1]

    def times(step: Array) -> Array:
        x = np.zeros(len(may))
        x[may] = step.ravel()
        da, db, dc = (
            part.reshape(f.shape) for part, f in zip(np.split(x, cuts), factors, strict=True)
        )
        change = (
            np.einsum("ir,jr,kr->ijk", da, b, c, optimize=True)
            + np.einsum("ir,jr,kr->ijk", a, db, c, optimize=True)
            + np.einsum("ir,jr,kr->ijk", a, b, dc, optimize=True)
        )
        return _gradient(change * mask[:, :, None], factors)[may]

    def solve(gradient: Array, damping: float) -> Array | None:
        from scipy.sparse.linalg import LinearOperator, cg

        n = len(gradient)
        matrix = LinearOperator((n, n), matvec=lambda x: times(x) + damping * x.ravel())
        step, _ = cg(matrix, gradient, rtol=1e-3, maxiter=200)
        return step

    return solve
