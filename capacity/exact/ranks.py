"""Exact rank, over the rationals, of sparse integer matrices.

Floating-point ranks certify nothing, and a rank modulo one prime is only a lower bound. Here a
matrix is first peeled (`capacity.exact.peeling`), which is valid over every field, and cut
into connected blocks, whose ranks add; `capacity.exact.block_rank` finds these exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.exact.block_rank import PRIME, block_basis
from capacity.exact.peeling import reduce
from capacity.exact.types import Indices, Mask, Spend, free
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import stacked_slice_entries


def matrix_rank(matrix: ArrayLike) -> int:
    """Compute the exact rank over the rationals of a dense integer matrix.

    Parameters
    ----------
    matrix : array_like of int, shape (m, n)
        The matrix.

    Returns
    -------
    int
        The rank.

    Raises
    ------
    InvalidArgumentError
        If it isn't a matrix.
    InvalidTypeError
        If the entries aren't integers that fit 64 bits.
    MemoryBudgetError
        If the elimination would need too large a dense matrix; raised before it is allocated.

    Examples
    --------
    >>> matrix_rank(np.array([[1, 1, 0], [1, 0, 1], [0, 1, -1]]))
    2
    """
    M = np.asarray(matrix)
    if M.ndim != 2:
        raise InvalidArgumentError(f"`matrix` must have two modes; got shape {M.shape}.")
    if M.dtype.kind not in "bui" or (M.size and int(M.max()) > np.iinfo(np.int64).max):
        raise InvalidTypeError(
            f"An exact rank needs integers of 64 bits; got {M.dtype}. Convert whole numbers "
            "by `matrix.astype(numpy.int64)`."
        )
    rows, columns = np.nonzero(M)
    return sparse_rank(
        rows.astype(np.int64), columns.astype(np.int64), M[rows, columns].astype(np.int64)
    )


def sparse_rank(
    rows: Indices, columns: Indices, values: Indices | None = None, *, spend: Spend = free
) -> int:
    """Exact rank over the rationals of a sparse integer matrix.

    Parameters
    ----------
    rows, columns, values, spend : optional
        As for `capacity.exact.peeling.reduce`.

    Returns
    -------
    int
        The rank.

    Raises
    ------
    MemoryBudgetError
        If a block remains that is neither sparse nor narrow, and doesn't fit the budget of
        `capacity.exact.block_rank`; raised before it is allocated.
    """
    one_group = np.zeros(len(rows), np.int64)
    return int(sparse_rank_by_group(rows, columns, one_group, values, spend=spend).sum())


def slices_rank(tensor: SparseTensor, modes: tuple[int, ...]) -> int:
    """Sum of the exact ranks of a tensor's matrix slices, the indices of some modes being fixed.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of integers, of order n.
    modes : tuple of int
        n - 2 modes, in ascending order.
    """
    rows, columns, _ = stacked_slice_entries(tensor, modes)
    return sparse_rank(rows, columns, tensor.values)


def sparse_rank_by_group(
    rows: Indices,
    columns: Indices,
    groups: Indices,
    values: Indices | None = None,
    *,
    spend: Spend = free,
) -> Indices:
    """Exact ranks of the diagonal blocks of a block diagonal matrix.

    Parameters
    ----------
    groups : ndarray of int64, shape (n_entries,)
        The block of each entry, numbered from 0; blocks share neither rows nor columns.
    rows, columns, values, spend : optional
        As for `capacity.exact.peeling.reduce`.

    Returns
    -------
    ndarray of int64, shape (n_groups,)
        The ranks, which add up to the rank of the matrix.

    Raises
    ------
    MemoryBudgetError
        If a part that has to be dense exceeds its budget; raised before it is allocated.
    """
    matrix = reduce(rows, columns, values, spend=spend)
    ranks = np.bincount(groups[matrix.pivots], minlength=int(groups.max(initial=-1)) + 1)
    for block in matrix.blocks():
        places = matrix.row[block], matrix.column[block], matrix.entries[block]
        ranks[groups[block[0]]] += block_basis(*places, minor=False, spend=spend).rank
    return ranks.astype(np.int64)


@briefly_shown
@dataclass(frozen=True)
class Minor:
    """A nonsingular square submatrix, in an order that is easily checked.

    Attributes
    ----------
    rows, columns : ndarray of int64, shape (r,)
        Numbers of its rows and columns, as given.
    blocks : ndarray of int64
        Sizes of the diagonal blocks at its end, beside and below which all entries are zero. The
        other diagonal entries, before the blocks, are single pivots: each is nonzero, and the only
        nonzero entry of its row, or of its column, among the rows and columns that follow.
    eliminated : ndarray of int64
        Number of leading pivots of each block to eliminate sparsely before the rest is made dense.
    prime : int
        Prime modulo which the blocks are nonsingular.
    groups : ndarray of int64, shape (r,)
        Group of each row.
    """

    rows: Indices
    columns: Indices
    blocks: Indices
    eliminated: Indices
    prime: int
    groups: Indices

    def of_groups(self, chosen: Mask) -> Minor:
        """Part of the minor in some groups, chosen by a boolean for each group."""
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


def minor_by_group(
    rows: Indices, columns: Indices, groups: Indices, values: Indices
) -> tuple[Indices, Minor]:
    """Exact ranks of the blocks of a block diagonal matrix, and a nonsingular minor.

    Parameters
    ----------
    rows, columns, groups, values : ndarray of int64, shape (n_entries,)
        As for `sparse_rank_by_group`.

    Returns
    -------
    ranks : ndarray of int64, shape (n_groups,)
        The ranks, which add up to the rank of the matrix.
    minor : Minor
        A minor of that size; smaller only if a prime near 2^62 divides all larger ones.

    Raises
    ------
    MemoryBudgetError
        As `sparse_rank_by_group`.
    """
    matrix = reduce(rows, columns, values)
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
    """Convert numbers of lines in a reduced matrix to those in the given matrix."""
    different, an_entry = np.unique(numbers, return_index=True)
    return given[an_entry[np.searchsorted(different, found)]]
