"""Exact rank, over the rationals, of sparse integer matrices.

Floating-point ranks certify nothing, and a rank modulo one prime only bounds from below. Here a
matrix is first peeled (`capacity.rank.peeling`), which holds over every field, and cut into
connected blocks, whose ranks add.

What is left is dense and small, and its rank is taken modulo several primes:

    rank_Q(M) = max over p of rank_p(M), as soon as the product of the primes exceeds H,

where H bounds the (r+1)-minors of M for r = max rank_p so far. Proof: a minor that vanishes over Q
vanishes modulo p, so rank_p <= rank_Q for every p. If rank_Q > r, some (r+1)-minor m is nonzero;
it vanishes modulo each of the primes, so their product divides it, and |m| >= product > H >= |m|,
a contradiction. Hadamard's inequality gives H: the product of the r + 1 largest Euclidean row
norms.

References
----------
J. von zur Gathen, J. Gerhard, Modern Computer Algebra, section 5.5 (modular determinants,
Hadamard's bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.errors import MemoryBudgetError
from capacity.rank.peeling import Reduction, reduce

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
    if not np.issubdtype(matrix.dtype, np.integer) or (
        matrix.size and int(matrix.max()) > np.iinfo(np.int64).max
    ):
        raise TypeError(f"An exact rank needs integers of 64 bits; got {matrix.dtype}.")
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
    matrix = reduce(rows, columns, values)
    ranks = np.bincount(groups[matrix.pivots], minlength=int(groups.max(initial=-1)) + 1)
    for block in matrix.blocks():
        ranks[groups[block[0]]] += _dense_rank(matrix, block)
    return ranks.astype(np.int64)


@dataclass(frozen=True)
class Minor:
    """A nonsingular square submatrix, in an order that is easily checked.

    Attributes
    ----------
    rows, columns : ndarray of int64, shape (r,)
        Its rows and columns, by the numbers that the matrix was given with.
    blocks : ndarray of int64
        Sizes of the diagonal blocks at its end, beside and below which all entries are zero.
        Before them stand single pivots: each is nonzero, and has no other nonzero entry in its
        row, or none in its column, among the rows and columns that follow.
    prime : int
        The blocks are nonsingular modulo this prime.
    """

    rows: Indices
    columns: Indices
    blocks: Indices
    prime: int


def nonsingular_minor(rows: Indices, columns: Indices, values: Indices | None = None) -> Minor:
    """Find a nonsingular minor, of the size of the rank modulo a prime near 2^62.

    That is the rank over the rationals unless the prime divides certain minors, which `sparse_rank`
    would tell.

    Parameters, errors as in `sparse_rank`.
    """
    matrix = reduce(rows, columns, values)
    prime = _previous_prime(2**62)
    found_rows, found_columns = [rows[matrix.pivots]], [columns[matrix.pivots]]
    sizes: list[int] = []
    for block in matrix.blocks():
        dense, row_names, column_names = _dense(matrix, block)
        chosen = _pivot_columns(dense.T, prime)
        across = _pivot_columns(dense[chosen], prime)
        # the names stand for entries, which know their rows and columns as given
        found_rows.append(rows[row_names[chosen]])
        found_columns.append(columns[column_names[across]])
        sizes.append(len(chosen))
    return Minor(
        np.concatenate(found_rows), np.concatenate(found_columns), np.array(sizes, np.int64), prime
    )


def _pivot_columns(dense: Indices, prime: int) -> list[int]:
    """Columns that form a basis of the column space modulo a prime."""
    m, n = dense.shape
    reduced, rank = flint.nmod_mat(m, n, dense.ravel().tolist(), prime).rref()
    found: list[int] = []
    column = 0
    for row in range(rank):
        while int(reduced[row, column]) == 0:
            column += 1
        found.append(column)
        column += 1
    return found


def _dense(matrix: Reduction, block: Indices) -> tuple[Indices, Indices, Indices]:
    """A block as a dense matrix, with an entry of each of its rows and of its columns."""
    _, an_entry, row = np.unique(matrix.row[block], return_index=True, return_inverse=True)
    _, another, column = np.unique(matrix.column[block], return_index=True, return_inverse=True)
    m, n = len(an_entry), len(another)
    if m * n * BYTES_AN_ENTRY > DENSE_BUDGET:
        raise MemoryBudgetError(
            f"An exact rank must fit the budget of {DENSE_BUDGET:,} bytes; a dense block of "
            f"{m} x {n} entries is left, which would take about {m * n * BYTES_AN_ENTRY:,}. "
            "Take a part of the database, or use the bounds that count."
        )
    dense = np.zeros((m, n), np.int64)
    dense[row.ravel(), column.ravel()] = matrix.entries[block]
    return dense, block[an_entry], block[another]


def _dense_rank(matrix: Reduction, block: Indices) -> int:
    dense, _, _ = _dense(matrix, block)
    if dense.shape[0] > dense.shape[1]:
        dense = dense.T
    m, n = dense.shape
    integers = flint.fmpz_mat(m, n, dense.ravel().tolist())
    log_norms = np.sort(0.5 * np.log2((dense.astype(np.float64) ** 2).sum(axis=1)))[::-1]
    rank, log_product, prime = 0, 0.0, 2**62
    while rank < m:
        prime = _previous_prime(prime)
        rank = max(rank, flint.nmod_mat(integers, prime).rank())
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
