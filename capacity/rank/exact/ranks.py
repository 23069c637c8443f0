"""Exact rank, over the rationals, of sparse integer matrices.

Floating-point ranks certify nothing, and a rank modulo one prime only bounds from below. Here a
matrix is first peeled (`capacity.rank.exact.peeling`), which holds over every field, and cut into
connected blocks, whose ranks add; `capacity.rank.exact.block_rank` finds these exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidTypeError
from capacity.rank.exact.block_rank import PRIME, block_basis
from capacity.rank.exact.peeling import reduce
from capacity.rank.types import Indices, Mask


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
        raise InvalidTypeError(f"An exact rank needs integers of 64 bits; got {matrix.dtype}.")
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
        If a block that is neither sparse nor narrow is left, and doesn't fit the budget of
        `capacity.rank.exact.block_rank`; raised before it is allocated.
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
        places = matrix.row[block], matrix.column[block], matrix.entries[block]
        ranks[groups[block[0]]] += block_basis(*places, minor=False).rank
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
    eliminated : ndarray of int64
        How many pivots of each block, at its beginning, are eliminated while it is sparse.
    prime : int
        The blocks are nonsingular modulo this prime.
    groups : ndarray of int64, shape (r,)
        The group of each row.
    """

    rows: Indices
    columns: Indices
    blocks: Indices
    eliminated: Indices
    prime: int
    groups: Indices

    def of_groups(self, chosen: Mask) -> Minor:
        """The part of the minor that lies in some groups, given for each group."""
        first = len(self.rows) - int(self.blocks.sum()) + np.cumsum(self.blocks) - self.blocks
        kept, mine = chosen[self.groups], chosen[self.groups[first]]
        return Minor(
            self.rows[kept],
            self.columns[kept],
            self.blocks[mine],
            self.eliminated[mine],
            self.prime,
            self.groups[kept],
        )


def minor_by_group(rows: Indices, columns: Indices, groups: Indices) -> tuple[Indices, Minor]:
    """Exact ranks as `sparse_rank_by_group` gives them, and a nonsingular minor of their size.

    The minor is smaller only if a prime near 2^62 divides all that are larger.

    Parameters, errors as in `sparse_rank_by_group`.
    """
    matrix = reduce(rows, columns)
    ranks = np.bincount(groups[matrix.pivots], minlength=int(groups.max(initial=-1)) + 1)
    found_rows, found_columns = [rows[matrix.pivots]], [columns[matrix.pivots]]
    found_groups = [groups[matrix.pivots]]
    sizes: list[int] = []
    eliminated: list[int] = []
    for block in matrix.blocks():
        row, column = matrix.row[block], matrix.column[block]
        basis = block_basis(row, column, matrix.entries[block], minor=True)
        found_rows.append(_as_given(rows[block], row, basis.rows))
        found_columns.append(_as_given(columns[block], column, basis.columns))
        found_groups.append(np.full(len(basis.rows), groups[block[0]]))
        ranks[groups[block[0]]] += basis.rank
        sizes.append(len(basis.rows))
        eliminated.append(basis.eliminated)
    minor = Minor(
        np.concatenate(found_rows),
        np.concatenate(found_columns),
        np.array(sizes, np.int64),
        np.array(eliminated, np.int64),
        PRIME,
        np.concatenate(found_groups),
    )
    return ranks.astype(np.int64), minor


def _as_given(given: Indices, numbers: Indices, found: Indices) -> Indices:
    """Lines by the numbers that they were given with."""
    different, an_entry = np.unique(numbers, return_index=True)
    return given[an_entry[np.searchsorted(different, found)]]
