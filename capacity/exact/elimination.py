"""Exact elimination: sparse over the integers, and factors of a matrix over the rationals.

A pivot of 1 or -1 clears its column without fractions, so that the remaining matrix has integer
entries, and its rank over every field is rank(M) - 1. Markowitz's rule keeps it sparse: in a row
with few entries, take the entry whose column has the fewest, because (entries of the row -
1) (entries of the column - 1) bounds the fill-in. Elimination ends when this bound or the entries
get too large.

A matrix of rank r is a sum of r products of a column and a row: with P its pivot columns and R the
nonzero rows of its reduced row echelon form, M = P R over the rationals. R has r columns of the
identity, and fractions elsewhere: a wide matrix is transposed first, so that fractions are few.
There are factors without fractions, too: the rows of M are integer combinations of those of its
Hermite normal form. They take longer to compute, and less time to check where entries differ. A
tensor whose slice T_i is M, and which is 0 elsewhere, is the sum of the simple tensors of P_t, R_t
and e_i.

References
----------
H. M. Markowitz, The elimination form of the inverse, Management Science 1957; C. Bouillaguet, C.
Delaplace, Sparse Gaussian elimination modulo p, CASC 2016.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from capacity.exact.types import Indices, Spend, free

MOST_FILL = 10_000
LARGEST_ENTRY = 2**31
# steps and bytes for an entry of the dicts, and for a pivot beside those of its fill-in
ENTRY, ENTRY_BYTES, PIVOT = 1_000, 400, 3_000


@dataclass(frozen=True)
class Eliminated:
    """Pivots of an elimination, in order, and the remaining matrix.

    Attributes
    ----------
    pivot_rows, pivot_columns : ndarray of int64, shape (n_pivots,)
        Rows and columns of the pivots.
    rows, columns, values : ndarray of int64, shape (n_entries,)
        The remaining entries, with row and column numbers as given.
    """

    pivot_rows: Indices
    pivot_columns: Indices
    rows: Indices
    columns: Indices
    values: Indices


def eliminate(
    rows: Indices, columns: Indices, values: Indices, *, spend: Spend = free
) -> Eliminated:
    """Eliminate with pivots of 1 and -1 while there is little fill-in.

    Parameters
    ----------
    rows, columns, values : ndarray of int64, shape (n_entries,)
        Positions of the nonzero entries, each position once, and the entries.
    spend : callable
        Called with the steps and bytes of each part of the work before it, and may refuse it.

    Returns
    -------
    Eliminated
        The pivots and the remaining matrix.

    Examples
    --------
    >>> a = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 4])
    >>> found = eliminate(*a)
    >>> len(found.pivot_rows), found.values.tolist()
    (1, [2])
    """
    spend(ENTRY * len(rows), ENTRY_BYTES * len(rows))
    of_row: dict[int, dict[int, int]] = {}
    of_column: dict[int, set[int]] = {}
    entries: list[tuple[int, int, int]] = np.stack([rows, columns, values], axis=1).tolist()
    for i, j, x in entries:
        of_row.setdefault(i, {})[j] = x
        of_column.setdefault(j, set()).add(i)
    # rows by their number of entries, which tells if a row has changed since it was pushed
    waiting = [(len(row), i) for i, row in of_row.items()]
    heapq.heapify(waiting)
    pivots: list[tuple[int, int]] = []
    while waiting:
        n, i = heapq.heappop(waiting)
        row = of_row.get(i, {})
        units = [(len(of_column[j]), j) for j, x in row.items() if x in (1, -1)]
        if len(row) != n or not units:
            continue
        n_column, j = min(units)
        if (n - 1) * (n_column - 1) > MOST_FILL:
            break
        spend(PIVOT + ENTRY * (n + n_column + (n - 1) * (n_column - 1)), 0)
        largest = _take(of_row, of_column, i, j)
        pivots.append((i, j))
        for other in of_column.pop(j):
            heapq.heappush(waiting, (len(of_row[other]), other))
        if largest > LARGEST_ENTRY:
            break
    left = [(i, j, x) for i, row in of_row.items() for j, x in row.items()]
    found = np.array(pivots, np.int64).reshape(-1, 2).T
    r, c, v = np.array(left, np.int64).reshape(-1, 3).T
    return Eliminated(found[0], found[1], r, c, v)


def _take(of_row: dict[int, dict[int, int]], of_column: dict[int, set[int]], i: int, j: int) -> int:
    """Clear a pivot's column and remove its row; return the largest new entry."""
    row = of_row.pop(i)
    pivot = row.pop(j)
    of_column[j].discard(i)
    for k in row:
        of_column[k].discard(i)
    largest = 0
    for other in of_column[j]:
        mine = of_row[other]
        factor = mine.pop(j) * pivot
        for k, x in row.items():
            y = mine.get(k, 0) - factor * x
            if y:
                mine[k] = y
                of_column[k].add(other)
                largest = max(largest, abs(y))
            else:
                del mine[k]
                of_column[k].discard(other)
    return largest


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
