"""Exact factors of integer matrices, for decompositions of tensors by slices.

A matrix of rank r is a sum of r products of a column and a row: with P its pivot columns and R the
nonzero rows of its reduced row echelon form, M = P R over the rationals. R has r columns of the
identity, and fractions elsewhere: a wide matrix is transposed first, so that fractions are few.

There are factors without fractions, too: the rows of M are integer combinations of those of its
Hermite normal form. They take longer to compute, and less time to check where entries differ.

A tensor whose slice T_i is M, and which is 0 elsewhere, is the sum of the simple tensors of P_t,
R_t and e_i.
"""

from __future__ import annotations

from fractions import Fraction

import flint

from capacity.exact.types import Indices

# most entries
_SMALL = {x: Fraction(x) for x in (-1, 0, 1)}


def factors(matrix: Indices) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Write an integer matrix of rank r as a sum of r products of a column and a row.

    Parameters
    ----------
    matrix : ndarray of int64, shape (m, n)
        The matrix.

    Returns
    -------
    list of (column, row)
        Lists of m and of n fractions, whose products add up to the matrix exactly.
    """
    m, n = matrix.shape
    if m < n:
        return [(column, row) for row, column in factors(matrix.T)]
    reduced, rank = flint.fmpq_mat(flint.fmpz_mat(m, n, matrix.ravel().tolist())).rref()
    found: list[tuple[list[Fraction], list[Fraction]]] = []
    for t in range(rank):
        row = [_fraction(reduced[t, j]) for j in range(n)]
        pivot = next(j for j, x in enumerate(row) if x)
        column: list[int] = matrix[:, pivot].tolist()
        found.append(([_SMALL[x] if x in _SMALL else Fraction(x) for x in column], row))
    return found


def integer_factors(matrix: Indices) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Write an integer matrix of rank r as a sum of r products of a column and a row of integers.

    Parameters
    ----------
    matrix : ndarray of int64, shape (m, n)
        The matrix.

    Returns
    -------
    list of (column, row)
        Lists of m and of n whole fractions, whose products add up to the matrix exactly.
    """
    m, n = matrix.shape
    form = flint.fmpz_mat(m, n, matrix.ravel().tolist()).hnf().tolist()
    rows = [[int(x) for x in row] for row in form]
    rows = [row for row in rows if any(row)]
    left: list[list[int]] = matrix.tolist()
    found: list[tuple[list[Fraction], list[Fraction]]] = []
    for row in rows:
        pivot = next(j for j, x in enumerate(row) if x)
        # exact, because the rows of a Hermite normal form span those of the matrix
        column = [mine[pivot] // row[pivot] for mine in left]
        left = [
            [x - times * y for x, y in zip(mine, row, strict=True)] if times else mine
            for mine, times in zip(left, column, strict=True)
        ]
        found.append(([Fraction(x) for x in column], [Fraction(x) for x in row]))
    return found


def _fraction(x: flint.fmpq) -> Fraction:
    if x.q == 1:
        numerator = int(x.p)
        return _SMALL[numerator] if numerator in _SMALL else Fraction(numerator)
    return Fraction(int(x.p), int(x.q))
