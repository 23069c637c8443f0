"""The last factor of a decomposition, exactly, given all others.

For fixed other factors, the last one is the solution of linear equations, with coefficients in
Q[x]/(f). A polynomial y of degree less than d = deg f has d rational coefficients, and those of p y
are the matrix of p times these: columns p, x p, ..., x^(d - 1) p, modulo f. So the equations become
linear equations over the rationals, d times as many. Unknowns that they leave open are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import flint
import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.verifier.kinds.algebraic import polynomial

# an element of Q[x]/(f): the coefficients of a polynomial, of x^0 first
Element = Sequence[Fraction]


def last_factor(
    tensor: Indices,
    others: Sequence[Sequence[Sequence[Element]]],
    f: Sequence[int] = (0, 1),
    observed: Mask | None = None,
) -> list[list[tuple[Fraction, ...]]] | None:
    """Solve for the last factor of a decomposition.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, ..., n_d)
        The tensor.
    others : sequence of matrices of elements, shapes (n_m, rank)
        The other factors.
    f : sequence of int
        Coefficients of the polynomial, of x^0 first; the rationals if omitted.
    observed : ndarray of bool, shape (n_0, ..., n_d-1), optional
        Fibers of the last mode that the decomposition must reproduce; all if omitted.

    Returns
    -------
    list of rows of elements, shape (n_d, rank), or None
        The last factor; None if there is none.

    Examples
    --------
    >>> one = [[[Fraction(1)]]]
    >>> last_factor(np.array([[[3, 5]]]), [one, one])
    [[(Fraction(3, 1),)], [(Fraction(5, 1),)]]
    """
    degree, rank, width = len(f) - 1, len(others[0][0]), tensor.shape[-1]
    modulus = flint.fmpq_poly(list(f))
    factors = [[[polynomial(x) for x in row] for row in factor] for factor in others]
    shift = flint.fmpq_poly([0, 1])
    rows: list[list[flint.fmpq]] = []
    for place in product(*map(range, tensor.shape[:-1])):
        if observed is not None and not observed[place]:
            continue
        here = [flint.fmpq()] * (degree * rank)
        block = [here[:] for _ in range(degree)]
        for r in range(rank):
            p = math.prod((factors[m][i][r] for m, i in enumerate(place)), start=_ONE) % modulus
            for power in range(degree):
                for row, c in enumerate(p.coeffs()):
                    block[row][degree * r + power] = c
                p = p * shift % modulus
        right = [flint.fmpq(int(t)) for t in tensor[place]]
        zero = [flint.fmpq()] * width
        rows += [row + (right if i == 0 else zero) for i, row in enumerate(block)]
    if not rows:
        return [[()] * rank for _ in range(width)]
    reduced, n = flint.fmpq_mat(rows).rref()
    table = reduced.tolist()
    solution = np.zeros((degree * rank, width), object)
    for row in table[:n]:
        pivot = next(j for j, x in enumerate(row) if x)
        if pivot >= degree * rank:
            return None
        solution[pivot] = [Fraction(int(x.p), int(x.q)) for x in row[degree * rank :]]
    return [
        [_element(solution[degree * r : degree * (r + 1), v].tolist()) for r in range(rank)]
        for v in range(width)
    ]


_ONE = flint.fmpq_poly([1])


def _element(coefficients: list[Fraction | int]) -> tuple[Fraction, ...]:
    n = max((i + 1 for i, c in enumerate(coefficients) if c), default=0)
    return tuple(map(Fraction, coefficients[:n]))
