"""Fit CP decompositions by regularised Levenberg-Marquardt, for tensors of any order.

The objective, over a factor of R columns for each mode and for a mask M of fibers of the last mode,
here for order three, is

    sum over (k, q, v) of M[k, q] (T[k, q, v] - sum_r A[k, r] B[q, r] C[v, r])^2 + reg |x|^2,

where x collects all factors and reg goes to zero with the residual. A step solves the damped normal
equations. Their matrix consists of blocks made from R x R Gram matrices, so it is assembled without
the Jacobian: up to `MOST_DENSE` unknowns it is factored; beyond, conjugate gradients only multiply
by it. The columns of the Jacobian are dependent, because scaling two factors of a term against each
other changes nothing; the regularisation selects the balanced scaling, and keeps away from terms
that grow and cancel.

References
----------
A.-H. Phan, P. Tichavsky, A. Cichocki, Low complexity damped Gauss-Newton algorithms for
CANDECOMP/PARAFAC, SIMAX 2013; G. Tomasi, R. Bro, A comparison of algorithms for fitting the PARAFAC
model, CSDA 2006.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Mask

Array: TypeAlias = NDArray[np.float64]
Factors: TypeAlias = tuple[Array, ...]
Solver: TypeAlias = Callable[[Array, float], "Array | None"]
# most unknowns for which the normal equations are factored
MOST_DENSE = 2_500
# names of modes in einsum, beside r and s for terms
NAMES = "abcdefghijklmnopqtuvwxyzABCDEFGHIJ"


def columnwise(factors: Factors) -> Array:
    """Products of the columns of some factors: entry (i, j, ..., r) is a[i, r] b[j, r] ..."""
    return reduce(lambda x, f: x[..., None, :] * f, factors[1:], factors[0])


def product(factors: Factors) -> Array:
    """The tensor with these factors."""
    *others, last = factors
    return columnwise(tuple(others)) @ last.T


def gradient_of(difference: Array, factors: Factors) -> Array:
    """Minus half the gradient of the squared norm of a difference, for all factors."""
    *others, last = factors
    n, rank = last.shape
    along = difference @ last
    names = NAMES[: len(others)]
    parts: list[Array] = []
    for mode in range(len(others)):
        rest = [m for m in range(len(others)) if m != mode]
        words = ",".join(names[m] + "r" for m in rest)
        parts.append(_contracted(f"{names}r,{words}->{names[mode]}r", along, others, rest))
    parts.append(difference.reshape(-1, n).T @ columnwise(tuple(others)).reshape(-1, rank))
    return np.concatenate([part.ravel() for part in parts])


def _contracted(words: str, along: Array, factors: list[Array], rest: list[int]) -> Array:
    if not rest:
        return along
    return np.einsum(words, along, *(factors[m] for m in rest), optimize=len(rest) > 1)


def solver(factors: Factors, mask: Array | None, may: Mask) -> Solver:
    """Make a solver of (J^T J + damping) step = gradient for the unknowns that may change."""
    if may.sum() > MOST_DENSE:
        return _iterative(factors, mask, may)
    # where it is used: few databases come to a fit, and the import takes as long as a small one
    from scipy.linalg import cho_factor, cho_solve

    normal = normal_matrix(factors, mask)
    if not may.all():
        normal = normal[np.ix_(may, may)]

    def solve(gradient: Array, damping: float) -> Array | None:
        damped = normal.copy()
        damped.flat[:: len(damped) + 1] += damping
        try:
            return cho_solve(cho_factor(damped, lower=True, overwrite_a=True), gradient)
        except np.linalg.LinAlgError:
            return None

    return solve


def normal_matrix(factors: Factors, mask: Array | None = None) -> Array:
    """Assemble J^T J: entry ((m, i, r), (n, j, s)) sums products of derivatives where observed."""
    order, rank = len(factors), factors[0].shape[1]
    offsets = np.cumsum([0, *(f.size for f in factors)])
    grams = _Grams(factors, mask)
    normal = np.zeros((offsets[-1], offsets[-1]))
    for mode, f in enumerate(factors):
        blocks = grams.without(mode)
        for i in range(len(f)):
            at = slice(offsets[mode] + i * rank, offsets[mode] + (i + 1) * rank)
            normal[at, at] = blocks[i if len(blocks) > 1 else 0]
    for m, n in combinations(range(order), 2):
        # derivatives by the rows i of mode m and j of mode n
        both = grams.without(m, n)
        block = np.einsum("is,jr,ijrs->irjs", factors[m], factors[n], both)
        rows, columns = (slice(offsets[x], offsets[x + 1]) for x in (m, n))
        normal[rows, columns] = block.reshape(factors[m].size, factors[n].size)
        normal[columns, rows] = normal[rows, columns].T
    return normal


class _Grams:
    """Products of Gram matrices of all modes but one or two, summed over the observed fibers."""

    def __init__(self, factors: Factors, mask: Array | None) -> None:
        self._factors, self._mask = factors, mask
        self._all = [f.T @ f for f in factors]

    def without(self, *modes: int) -> Array:
        """Sum over the other modes, for each index of these: shape (n or 1, ..., R, R).

        Without a mask, and along the last mode, it is the same for each index.
        """
        last = len(self._factors) - 1
        mine = [m for m in modes if m != last]
        times = self._all[last] if last not in modes else 1.0
        if self._mask is None:
            rest = [self._all[m] for m in range(last) if m not in modes]
            found = reduce(np.multiply, rest, np.ones_like(self._all[0])) * times
            return found.reshape((1,) * len(modes) + found.shape)
        others = [m for m in range(last) if m not in mine]
        words, operands = [NAMES[:last]], [self._mask]
        for m in others:
            words += [NAMES[m] + "r", NAMES[m] + "s"]
            operands += [self._factors[m]] * 2
        kept = "".join(NAMES[m] for m in mine)
        if others:
            found = np.einsum(f"{','.join(words)}->{kept}rs", *operands, optimize=True) * times
        else:
            found = self._mask[..., None, None] * times
        return found.reshape(*(found.shape[mine.index(m)] if m in mine else 1 for m in modes),
                             *found.shape[-2:])  # fmt: skip


def _iterative(factors: Factors, mask: Array | None, may: Mask) -> Solver:
    cuts = np.cumsum([f.size for f in factors])[:-1]
    shown = 1.0 if mask is None else mask[..., None]

    def times(step: Array) -> Array:
        x = np.zeros(len(may))
        x[may] = step.ravel()
        moved = [part.reshape(f.shape) for part, f in zip(np.split(x, cuts), factors, strict=True)]
        changes = [product((*factors[:m], f, *factors[m + 1 :])) for m, f in enumerate(moved)]
        return gradient_of(np.sum(changes, axis=0) * shown, factors)[may]

    def solve(gradient: Array, damping: float) -> Array | None:
        from scipy.sparse.linalg import LinearOperator, cg

        n = len(gradient)
        matrix = LinearOperator((n, n), matvec=lambda x: times(x) + damping * x.ravel())
        step, _ = cg(matrix, gradient, rtol=1e-3, maxiter=200)
        return step

    return solve


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
