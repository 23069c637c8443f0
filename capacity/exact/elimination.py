"""Sparse elimination over the integers, as long as it stays sparse.

A pivot of 1 or -1 clears its column without fractions, so that the remaining matrix has integer
entries, and its rank over every field is rank(M) - 1. Markowitz's rule keeps it sparse: in a row
with few entries, take the entry whose column has the fewest, because (entries of the row -
1) (entries of the column - 1) bounds the fill-in. Elimination ends when this bound or the entries
get too large.

References
----------
H. M. Markowitz, The elimination form of the inverse, Management Science 1957; C. Bouillaguet, C.
Delaplace, Sparse Gaussian elimination modulo p, CASC 2016.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

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
