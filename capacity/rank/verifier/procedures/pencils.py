"""The rank of a tensor with two slices A and B, exactly, over the real numbers.

By Kronecker, the pencil A + sB is equivalent to a direct sum of blocks L_e of shape e x (e + 1), of
transposes of L_h, and of a regular pencil, of shape N x N and nonsingular for all but finitely many
s. Jaja's theorem proves the rank:

    rank = sum (e_i + 1) + sum (h_j + 1) + N + delta

over the blocks with e_i, h_j >= 1 (those of size 0 are zero columns and rows). For a regular pencil
with A nonsingular, delta is the number of invariant polynomials of J = A^-1 B that are not products
of distinct linear factors over R. A change of basis of the plane of the two slices changes neither
side, so A may be taken to be nonsingular.

*Why delta is a maximum.* Each invariant polynomial divides the next. The linear factor of a root
that isn't real divides as many of them as the root has Jordan blocks, and the square of that of a
real root as many as it has Jordan blocks of size two or more; in both cases the last ones. So delta
is the largest of these numbers, over the roots.

*Direct sums.* If the rows and columns fall into sets without common entries, the pencil is a direct
sum, and its blocks are those of the summands. So only the counts of each root have to be added
before taking the maximum. This, and dropping equal rows and columns, makes large databases
feasible.
`capacity.rank.verifier.procedures.kronecker_form` finds the form of each block.

References
----------
J. Jaja, Optimal evaluation of pairs of bilinear forms, SIAM J. Computing 1979; T. Sumi, M.
Miyazaki, T. Sakata, Rank of 3-tensors with 2 slices and Kronecker canonical forms, LAA 2009, arXiv
0808.1167 (over R); F. R. Gantmacher, The Theory of Matrices, chapter XII.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError, MemoryBudgetError
from capacity.exact.types import Indices
from capacity.rank.verifier.procedures.kronecker_form import (
    KroneckerForm,
    Spend,
    kronecker_form,
    nothing,
)
from capacity.tensor.structure import connected_labels

# entries of the largest block that is solved, which takes seconds
LARGEST_BLOCK = 2_000
# nanoseconds for a block of any size
BLOCK = 100_000


def pencil_rank(A: ArrayLike, B: ArrayLike) -> int:
    """Compute the rank over R of the tensor whose two slices are A and B.

    Parameters
    ----------
    A, B : array_like of int, shape (m, n)
        The two slices.

    Returns
    -------
    int
        The rank.

    Raises
    ------
    InvalidArgumentError
        If the slices aren't two matrices of one shape, or an entry exceeds 2^31 in absolute value.
    InvalidTypeError
        If the entries aren't integers.
    MemoryBudgetError
        If a block that doesn't split has more than `LARGEST_BLOCK` entries; raised before it is
        solved.

    Examples
    --------
    A rotation by a right angle has no real eigenvectors: rank 3, not 2.

    >>> pencil_rank(np.eye(2, dtype=int), np.array([[0, -1], [1, 0]]))
    3
    """
    first, second = np.asarray(A), np.asarray(B)
    if first.ndim != 2 or first.shape != second.shape:
        raise InvalidArgumentError(
            f"The slices must be two matrices of one shape; got {first.shape} and {second.shape}."
        )
    for M in (first, second):
        if M.size and M.dtype.kind not in "bui":
            raise InvalidTypeError(
                f"The slices must hold integers; got {M.dtype}. Convert whole numbers by "
                "`A.astype(numpy.int64)`."
            )
    largest = max(np.abs(M.astype(object)).max(initial=0) for M in (first, second))
    if largest > 2**31:
        raise InvalidArgumentError(
            "The entries of both slices must be at most 2^31 in absolute value; got "
            f"{shown(largest)}. Dividing a slice by a common factor keeps the rank."
        )
    rows, columns = np.nonzero((first != 0) | (second != 0))
    values = np.stack([M[rows, columns] for M in (first, second)], axis=1).astype(np.int64)
    return sparse_pencil_rank(rows, columns, values)


def sparse_pencil_rank(
    rows: Indices,
    columns: Indices,
    values: Indices,
    *,
    largest: int = LARGEST_BLOCK,
    spend: Spend = nothing,
) -> int:
    """Rank over R of a sparse tensor with two slices.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n_entries,)
        Positions where at least one slice has an entry, each position once.
    values : ndarray of int64, shape (n_entries, 2)
        The entries of both slices there.
    largest : int
        Number of entries of the largest block that is solved.
    spend : callable, optional
        Called before each part of the work, with estimates of its nanoseconds and bytes.

    Returns
    -------
    int
        The rank.

    Raises
    ------
    MemoryBudgetError
        If a block that doesn't split has more than `largest` entries, before it is solved; or from
        `spend`.
    """
    simple = 0
    roots: Counter[tuple[int, ...]] = Counter()
    # equal blocks have one form
    forms: dict[tuple[bytes, tuple[int, ...]], KroneckerForm] = {}
    for both in _blocks(rows, columns, values, largest, spend):
        if 1 in both.shape[1:]:
            # a single row or column: the dimension of the span of vectors in the plane
            a, b = both.reshape(2, -1)
            simple += 1 + bool((a[0] * b != b[0] * a).any())
            continue
        name = hashlib.sha256(both.tobytes()).digest(), both.shape
        if name not in forms:
            forms[name] = kronecker_form(both, spend)
        simple += forms[name].size
        roots.update(forms[name].excess)
    return simple + max(roots.values(), default=0)


def _blocks(
    rows: Indices, columns: Indices, values: Indices, largest: int, spend: Spend
) -> Iterator[Indices]:
    """Yield both slices of each connected block, shape (2, m, n), without equal rows or columns."""
    if not len(rows):
        return
    row, column = (np.unique(x, return_inverse=True)[1].ravel() for x in (rows, columns))
    n_rows = int(row.max(initial=-1)) + 1
    n = n_rows + int(column.max(initial=-1)) + 1
    label = connected_labels(row, column + n_rows, n)[row]
    order = np.argsort(label, kind="stable")
    spend(BLOCK * (int(label.max()) + 1), 0)
    for block in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        i, j = (np.unique(x[block], return_inverse=True)[1].ravel() for x in (row, column))
        # equal rows and columns are dropped while the block is sparse
        kept = _distinct(i, j, values[block])
        kept = kept[_distinct(j[kept], i[kept], values[block][kept])]
        i, j = (np.unique(x[kept], return_inverse=True)[1].ravel() for x in (i, j))
        m, n = int(i.max()) + 1, int(j.max()) + 1
        if len(kept) > largest and min(m, n) > 1:
            raise MemoryBudgetError(
                f"The exact rank of two slices needs blocks of {largest:,} entries at most; got "
                f"one of {len(kept):,}, {m} x {n}."
            )
        spend(20 * m * n, 16 * m * n)
        dense = np.zeros((2, m, n), np.int64)
        dense[:, i, j] = values[block][kept].T
        yield dense


def _distinct(line: Indices, cross: Indices, values: Indices) -> Indices:
    """Entries of one line of each set of equal lines (rows or columns)."""
    order = np.lexsort((cross, line))
    seen: set[bytes] = set()
    kept: list[Indices] = []
    for mine in np.split(order, np.flatnonzero(np.diff(line[order])) + 1):
        key = np.column_stack([cross[mine], values[mine]]).tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(mine)
    return np.sort(np.concatenate(kept))
