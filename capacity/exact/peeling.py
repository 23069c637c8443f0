"""Reduction of sparse matrices by steps that are valid over every field, with a record of them.

* *Peeling.* If a row has a single nonzero entry, that entry is a pivot: subtracting multiples of
  the row clears its column, so rank(M) = 1 + rank(M without the row and the column). The same holds
  for columns. Most unfoldings and slices of databases peel completely.
* *Duplicates.* Equal rows, and equal columns, count once.

The record serves both sides of a bound. The pivots, in order, are the diagonal of a nonsingular
minor, whose determinant expands along rows or columns with one entry. And each pivot takes a whole
row or column with it, with all its duplicates: the entries that it takes fill a box, a set of rows
times a set of columns, which is a matrix of rank one if all entries are equal.

References
----------
C. Bouillaguet, C. Delaplace, Sparse Gaussian elimination modulo p, CASC 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capacity.exact.types import Indices, Spend, free
from capacity.tensor.coordinates import compacted, stable_order
from capacity.tensor.structure import connected_labels

# steps and bytes for an entry in a round of peeling, and steps for comparing it with others
ROUND, ENTRY_BYTES, COMPARED = 20, 200, 300


@dataclass(frozen=True)
class Reduction:
    """A sparse matrix after peeling and dropping duplicates, with a record of both.

    Attributes
    ----------
    row, column, entries : ndarray of int64, shape (n_entries,)
        The whole matrix, with rows and columns numbered from 0 without gaps.
    pivots : ndarray of int64
        Numbers of the entries that were pivots, in order.
    left : ndarray of int64
        Numbers of the entries that remain.
    taken_by : ndarray of int64, shape (n_entries,)
        Position in `pivots` of the pivot that took each entry, or -1 for the remaining entries and
        their duplicates.
    same_as : ndarray of int64, shape (n_entries,)
        Number of the entry that each entry duplicates; its own if it wasn't dropped.
    """

    row: Indices
    column: Indices
    entries: Indices
    pivots: Indices
    left: Indices
    taken_by: Indices
    same_as: Indices

    def blocks(self) -> Iterator[Indices]:
        """Yield the entries of each connected block of the remaining matrix; their ranks add."""
        if not len(self.left):
            return
        row, column = self.row[self.left], self.column[self.left]
        n_rows, n_columns = int(row.max()) + 1, int(column.max()) + 1
        block = connected_labels(row, column + n_rows, n_rows + n_columns)[row]
        order = np.argsort(block, kind="stable")
        yield from np.split(self.left[order], np.flatnonzero(np.diff(block[order])) + 1)


def reduce(
    rows: Indices, columns: Indices, values: Indices | None = None, *, spend: Spend = free
) -> Reduction:
    """Peel a sparse matrix and drop its duplicates until neither changes it.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n_entries,)
        Positions of the nonzero entries, each position once. They may be any nonnegative numbers:
        empty rows and columns take no memory.
    values : ndarray of int64, optional
        Nonzero entries; all ones if omitted.
    spend : callable
        Called with the steps and bytes of each part of the work before it, and may refuse it.

    Returns
    -------
    Reduction
        The remaining matrix and the record.
    """
    n = len(rows)
    spend(COMPARED * n, ENTRY_BYTES * n)
    row, column = compacted(rows), compacted(columns)
    entries = np.ones(n, np.int64) if values is None else values
    pivots: list[Indices] = []
    dropped: list[tuple[Indices, Indices]] = []
    taken_by = np.full(n, -1, np.int64)
    left = np.arange(n)
    while len(left):
        before = len(left)
        left = _peel(row, column, left, pivots, taken_by, spend)
        spend(2 * COMPARED * len(left), ENTRY_BYTES * len(left))
        left = _without_duplicates(row, column, entries, left, dropped)
        left = _without_duplicates(column, row, entries, left, dropped)
        if len(left) == before:
            break
    same_as = np.arange(n)
    for copies, originals in reversed(dropped):
        # the original was dropped later, if at all, so its own original is known by now
        same_as[copies] = same_as[originals]
    return Reduction(
        row,
        column,
        entries,
        np.concatenate([np.zeros(0, np.int64), *pivots]),
        left,
        taken_by[same_as],
        same_as,
    )


def _peel(
    row: Indices,
    column: Indices,
    left: Indices,
    pivots: list[Indices],
    taken_by: Indices,
    spend: Spend,
) -> Indices:
    """Take pivots that are alone in their row or column, repeatedly; return the other entries."""
    n_pivots = sum(map(len, pivots))
    while len(left):
        before = len(left)
        spend(ROUND * (before + int(row[left].max()) + int(column[left].max())), 0)
        for line, cross in ((row, column), (column, row)):
            degree = np.bincount(line[left])
            single = left[degree[line[left]] == 1]
            # two rows with their single entry in one column give one pivot
            taker = np.full(int(cross[left].max(initial=-1)) + 1, -1, np.int64)
            # the first of each remains
            taker[cross[single[::-1]]] = single[::-1]
            crossed = np.flatnonzero(taker >= 0)
            pivots.append(taker[crossed])
            taker[crossed] = n_pivots + np.arange(len(crossed))
            n_pivots += len(crossed)
            taken_by[left] = taker[cross[left]]
            left = left[taken_by[left] < 0]
            if not len(left):
                break
        if len(left) == before:
            break
    return left


def _without_duplicates(
    line: Indices,
    cross: Indices,
    entries: Indices,
    left: Indices,
    dropped: list[tuple[Indices, Indices]],
) -> Indices:
    """Keep the entries of one line of each set of equal lines (rows or columns)."""
    if not len(left):
        return left
    width = int(cross[left].max()) + 1
    order = left[stable_order(line[left] * width + cross[left])]
    starts = np.flatnonzero(np.diff(line[order], prepend=-1))
    seen: dict[bytes, Indices] = {}
    kept: list[Indices] = []
    pattern = np.stack([cross[order], entries[order]], axis=1)
    for start, stop in zip(starts, np.append(starts[1:], len(order)), strict=True):
        key = pattern[start:stop].tobytes()
        original = seen.setdefault(key, order[start:stop])
        if original[0] != order[start]:
            dropped.append((order[start:stop], original))
        else:
            kept.append(order[start:stop])
    return np.sort(np.concatenate(kept)) if len(kept) < len(starts) else left
