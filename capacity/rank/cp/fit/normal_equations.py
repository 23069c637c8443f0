"""Residual, gradient and normal equations of CP decompositions of any order, without the Jacobian.

Up to `MOST_DENSE` unknowns the matrix of the normal equations is factored; beyond, conjugate
gradients only multiply by it.
"""

from __future__ import annotations

from collections.abc import Callable
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
