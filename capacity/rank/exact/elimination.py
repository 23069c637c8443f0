"""Sparse elimination over the integers, as long as it stays sparse.

A pivot of 1 or -1 clears its column without fractions, so that what is left has integer entries and
rank(M) = 1 + rank(what is left), over every field. Markowitz's rule keeps it sparse: of a row with
few entries the entry is taken whose column has fewest, for (entries of the row - 1) (entries of the
column - 1) bounds what is filled in. Elimination ends where that is too much, or entries grow.

References
----------
H. M. Markowitz, The elimination form of the inverse, Management Science 1957; C. Bouillaguet, C.
Delaplace, Sparse Gaussian elimination modulo p, CASC 2016.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from capacity.rank.types import Indices

MOST_FILL = 10_000
LARGEST_ENTRY = 2**31


@dataclass(frozen=True)
class Eliminated:
    """Pivots in order, and the matrix that is left.

    Attributes
    ----------
    pivot_rows, pivot_columns : ndarray of int64, shape (n_pivots,)
    rows, columns, values : ndarray of int64, shape (n_entries,)
        What is left, with the rows and columns of before.
    """

    pivot_rows: Indices
    pivot_columns: Indices
    rows: Indices
    columns: Indices
    values: Indices


def eliminate(rows: Indices, columns: Indices, values: Indices) -> Eliminated:
    """Eliminate with pivots of 1 and -1 while little is filled in.

    Parameters
    ----------
    rows, columns, values : ndarray of int64, shape (n_entries,)
        Places, each once, and nonzero entries.

    Examples
    --------
    >>> a = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 4])
    >>> found = eliminate(*a)
    >>> len(found.pivot_rows), found.values.tolist()
    (1, [2])
    """
    of_row: dict[int, dict[int, int]] = {}
    of_column: dict[int, set[int]] = {}
    entries: list[tuple[int, int, int]] = np.stack([rows, columns, values], axis=1).tolist()
    for i, j, x in entries:
        of_row.setdefault(i, {})[j] = x
        of_column.setdefault(j, set()).add(i)
    # rows by their number of entries; those that changed since are found out by it
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
    """Clear a pivot's column, and take its row out; return the largest entry that came up."""
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
