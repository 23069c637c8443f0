"""Exact rank, over the rationals, of sparse integer matrices.

Floating-point ranks certify nothing, and a rank modulo one prime only bounds from below. Here a
matrix is first reduced by steps that hold over every field:

* *Peeling.* If a row has a single nonzero entry, that entry is a pivot: subtracting multiples of
  the row clears its column, so rank(M) = 1 + rank(M without the row and the column). The same for
  columns. Databases peel far: most of the matrices of this project peel away altogether.
* *Duplicates.* Equal rows, and equal columns, count once.
* *Blocks.* The ranks of the connected blocks of a matrix add.

What is left is dense and small, and its rank is taken modulo several primes:

    rank_Q(M) = max over p of rank_p(M), as soon as the product of the primes exceeds H,

where H bounds the (r+1)-minors of M for r = max rank_p so far. Proof: a minor that vanishes over Q
vanishes modulo p, so rank_p <= rank_Q for every p. If rank_Q > r, some (r+1)-minor m is nonzero;
it vanishes modulo each of the primes, so their product divides it, and |m| >= product > H >= |m|,
a contradiction. Hadamard's inequality gives H: the product of the r + 1 largest Euclidean row
norms.

References
----------
C. Bouillaguet, C. Delaplace, Sparse Gaussian elimination modulo p, CASC 2016 (peeling); J. von zur
Gathen, J. Gerhard, Modern Computer Algebra, section 5.5 (modular determinants, Hadamard's bound).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from capacity.errors import MemoryBudgetError

Indices = NDArray[np.int64]
DENSE_BUDGET = 2**31
# a flint entry is one 64-bit word, and an entry on its way there a Python int as well
BYTES_AN_ENTRY = 48


def matrix_rank(matrix: NDArray[np.integer]) -> int:
    """Exact rank over the rationals of a dense integer matrix.

    Parameters
    ----------
    matrix : integer ndarray, shape (m, n)

    Examples
    --------
    >>> matrix_rank(np.array([[1, 1, 0], [1, 0, 1], [0, 1, -1]]))
    2
    """
    rows, columns = np.nonzero(matrix)
    return sparse_rank(
        rows.astype(np.int64), columns.astype(np.int64), matrix[rows, columns].astype(np.int64)
    )


def sparse_rank(rows: Indices, columns: Indices, values: Indices | None = None) -> int:
    """Exact rank over the rationals of a sparse integer matrix.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n_entries,)
        Places of the nonzero entries, each place once. Any nonnegative numbers: empty rows and
        columns don't count, and don't cost.
    values : ndarray of int64, optional
        Nonzero entries; all ones if left out.

    Raises
    ------
    MemoryBudgetError
        If a dense block would be left that doesn't fit `DENSE_BUDGET` bytes; raised before it is
        allocated.
    """
    return int(sparse_rank_by_group(rows, columns, np.zeros(len(rows), np.int64), values).sum())


def sparse_rank_by_group(
    rows: Indices, columns: Indices, groups: Indices, values: Indices | None = None
) -> Indices:
    """Exact ranks of the diagonal blocks of a block diagonal matrix.

    Parameters
    ----------
    rows, columns, values
        As in `sparse_rank`.
    groups : ndarray of int64, shape (n_entries,)
        The block of each entry, numbered from 0; blocks share neither rows nor columns.

    Returns
    -------
    ndarray of int64, shape (n_groups,)
        The ranks, which add up to the rank of the whole.
    """
    entries = np.ones(len(rows), np.int64) if values is None else values
    ranks = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
    row = np.unique(rows, return_inverse=True)[1].ravel()
    column = np.unique(columns, return_inverse=True)[1].ravel()
    left = np.arange(len(row))
    while len(left):
        before = len(left)
        left = _peel(row, column, groups, left, ranks)
        left = _without_duplicates(row, column, entries, left)
        left = _without_duplicates(column, row, entries, left)
        if len(left) == before:
            break
    for block in _blocks(row[left], column[left]):
        part = left[block]
        ranks[groups[part[0]]] += _dense_rank(row[part], column[part], entries[part])
    return ranks


def _peel(row: Indices, column: Indices, groups: Indices, left: Indices, ranks: Indices) -> Indices:
    """Take pivots of degree one until there are none; add them to `ranks`; return what is left."""
    while len(left):
        before = len(left)
        for line, cross in ((row, column), (column, row)):
            degree = np.bincount(line[left])
            single = left[degree[line[left]] == 1]
            # two rows with their single entry in one column give one pivot
            crossed, first = np.unique(cross[single], return_index=True)
            np.add.at(ranks, groups[single[first]], 1)
            gone = np.zeros(int(cross[left].max(initial=-1)) + 1, np.bool_)
            gone[crossed] = True
            left = left[~gone[cross[left]]]
            if not len(left):
                break
        if len(left) == before:
            break
    return left


def _without_duplicates(line: Indices, cross: Indices, entries: Indices, left: Indices) -> Indices:
    """Keep the entries of one of each set of equal lines (rows, or columns)."""
    if not len(left):
        return left
    order = left[np.lexsort((cross[left], line[left]))]
    starts = np.flatnonzero(np.diff(line[order], prepend=-1))
    seen: set[bytes] = set()
    kept: list[Indices] = []
    pattern = np.stack([cross[order], entries[order]], axis=1)
    for start, stop in zip(starts, np.append(starts[1:], len(order)), strict=True):
        key = pattern[start:stop].tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(order[start:stop])
    return np.sort(np.concatenate(kept)) if len(kept) < len(starts) else left


def _blocks(row: Indices, column: Indices) -> Iterator[Indices]:
    """Positions of the entries of each connected block."""
    if not len(row):
        return
    n_rows, n_columns = int(row.max()) + 1, int(column.max()) + 1
    n = n_rows + n_columns
    graph = coo_array((np.ones(len(row), np.int8), (row, column + n_rows)), shape=(n, n))
    labels: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    block = labels[row]
    order = np.argsort(block, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(block[order])) + 1)


def _dense_rank(row: Indices, column: Indices, entries: Indices) -> int:
    row_names, row = np.unique(row, return_inverse=True)
    column_names, column = np.unique(column, return_inverse=True)
    m, n = len(row_names), len(column_names)
    if m * n * BYTES_AN_ENTRY > DENSE_BUDGET:
        raise MemoryBudgetError(
            f"An exact rank must fit the budget of {DENSE_BUDGET:,} bytes; a dense block of "
            f"{m} x {n} entries is left, which would take about {m * n * BYTES_AN_ENTRY:,}. "
            "Take a part of the database, or use the bounds that count."
        )
    if m > n:
        row, column, m, n = column, row, n, m
    dense = np.zeros((m, n), np.int64)
    dense[row.ravel(), column.ravel()] = entries
    matrix = flint.fmpz_mat(m, n, dense.ravel().tolist())
    log_norms = np.sort(0.5 * np.log2((dense.astype(np.float64) ** 2).sum(axis=1)))[::-1]
    rank, log_product, prime = 0, 0.0, 2**62
    while rank < m:
        prime = _previous_prime(prime)
        rank = max(rank, flint.nmod_mat(matrix, prime).rank())
        log_product += math.log2(prime)
        # the margin of one bit covers the rounding of the sum of logarithms
        if log_product > float(log_norms[: rank + 1].sum()) + 1:
            break
    return rank


def _previous_prime(n: int) -> int:
    n -= 1
    while not flint.fmpz(n).is_prime():
        n -= 1
    return n
