"""The rank of a tensor with two slices A and B, exactly, over the real numbers.

By Kronecker, the pencil A + sB is equivalent to a direct sum of blocks L_e of shape e x (e + 1), of
transposes of L_h, and of a regular pencil, of shape N x N and nonsingular for all but finitely many
s. Jaja's theorem gives the rank:

    rank = sum (e_i + 1) + sum (h_j + 1) + N + delta

over the blocks with e_i, h_j >= 1 (those of size 0 are zero columns and rows). For a regular pencil
with no root at A, delta is the number of invariant polynomials of J = A^-1 B that are not products
of distinct linear factors over R. A change of the two slices' basis changes neither side.

*Why delta is a maximum.* Each invariant polynomial divides the next. A root that isn't real divides
as many of them as it has Jordan blocks, and a real root's square as many as it has Jordan blocks of
size two or more: the last ones. So delta is the largest of these numbers, over the roots.

*Direct sums.* Rows and columns without common entries split the pencil. The blocks of a direct sum
are those of its summands, so only the roots' counts have to be added before taking the maximum.
That, and dropping equal rows and columns, is what makes large databases feasible.

*The L blocks* span W, the limit of W_0 = 0 and W_(i+1) = {x: Ax in B W_i}, if the pencil has no
root at A (Berger, Trenn); dividing W out leaves the rest. The transposed pencil gives the others.

References
----------
J. Jaja, Optimal evaluation of pairs of bilinear forms, SIAM J. Computing 1979; T. Sumi, M.
Miyazaki, T. Sakata, Rank of 3-tensors with 2 slices and Kronecker canonical forms, LAA 2009, arXiv
0808.1167 (over R); T. Berger, S. Trenn, The quasi-Kronecker form for matrix pencils, SIAM J. Matrix
Analysis 2012; F. R. Gantmacher, The Theory of Matrices, chapter XII.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import flint
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from capacity.errors import MemoryBudgetError
from capacity.rank.real_roots import distinct_real_roots

Indices = NDArray[np.int64]
# entries of the largest block that is solved: seconds for a sparse one, half a minute for a dense
LARGEST = 2_000


def pencil_rank(A: NDArray[np.integer], B: NDArray[np.integer]) -> int:
    """Rank over R of the tensor whose two slices are A and B.

    Parameters
    ----------
    A, B : integer ndarrays, shape (m, n)

    Raises
    ------
    MemoryBudgetError
        If a block that doesn't split has more than `LARGEST` entries; raised before it is solved.

    Examples
    --------
    A rotation by a right angle has no real eigenvectors: rank 3, not 2.

    >>> pencil_rank(np.eye(2, dtype=int), np.array([[0, -1], [1, 0]]))
    3
    """
    rows, columns = np.nonzero((A != 0) | (B != 0))
    values = np.stack([A[rows, columns], B[rows, columns]], axis=1).astype(np.int64)
    return sparse_pencil_rank(rows, columns, values)


def sparse_pencil_rank(
    rows: Indices, columns: Indices, values: Indices, *, largest: int = LARGEST
) -> int:
    """Rank over R of a sparse tensor with two slices.

    Parameters
    ----------
    rows, columns : ndarray of int64, shape (n_entries,)
        Places where either slice has an entry, each place once.
    values : ndarray of int64, shape (n_entries, 2)
        The entries of both slices there.
    largest : int
        Entries of the largest block that is solved.

    Raises
    ------
    MemoryBudgetError
        As `pencil_rank` does.
    """
    simple = 0
    counts: Counter[tuple[bytes, tuple[int, ...]]] = Counter()
    for both in _blocks(rows, columns, values, largest):
        if 1 in both.shape[1:]:
            # one row, or column, of vectors in the plane: their span
            a, b = both.reshape(2, -1)
            simple += 1 + bool((a[0] * b != b[0] * a).any())
        else:
            counts[both.tobytes(), both.shape] += 1
    roots: Counter[tuple[int, ...]] = Counter()
    for (content, shape), times in counts.items():
        form = _kronecker(np.frombuffer(content, np.int64).reshape(shape))
        simple += times * form.size
        for root, count in form.excess.items():
            roots[root] += times * count
    return simple + max(roots.values(), default=0)


def _blocks(rows: Indices, columns: Indices, values: Indices, largest: int) -> Iterator[Indices]:
    """Both slices of each connected block, shape (2, m, n), without repeated rows and columns."""
    if not len(rows):
        return
    row, column = (np.unique(x, return_inverse=True)[1].ravel() for x in (rows, columns))
    n_rows = int(row.max(initial=-1)) + 1
    n = n_rows + int(column.max(initial=-1)) + 1
    graph = coo_array((np.ones(len(row), np.int8), (row, column + n_rows)), shape=(n, n))
    label = connected_components(graph, directed=False)[1].astype(np.int64)[row]
    order = np.argsort(label, kind="stable")
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
        dense = np.zeros((2, m, n), np.int64)
        dense[:, i, j] = values[block][kept].T
        yield dense


def _distinct(line: Indices, cross: Indices, values: Indices) -> Indices:
    """The entries of one of each set of equal lines."""
    order = np.lexsort((cross, line))
    seen: set[bytes] = set()
    kept: list[Indices] = []
    for mine in np.split(order, np.flatnonzero(np.diff(line[order])) + 1):
        key = np.column_stack([cross[mine], values[mine]]).tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(mine)
    return np.sort(np.concatenate(kept))


@dataclass(frozen=True)
class _Form:
    """Of a Kronecker form: rank without delta, and for each bad root what it adds to delta.

    Roots are named by the primitive integer coefficients of their irreducible polynomial in s; ()
    is the root at infinity.
    """

    size: int
    excess: Counter[tuple[int, ...]]


def _kronecker(slices: Indices) -> _Form:
    A, B = slices
    m, n = A.shape
    # s with rank(A + sB) as large as for any s: a minor of that size has at most min(m, n) roots
    best, shift = -1, 0
    for s in range(min(m, n) + 1):
        rank = _matrix(A + s * B).rank()
        if rank > best:
            best, shift = rank, s
        if rank == min(m, n):
            break
    pencil = _matrix(A + shift * B), _matrix(B)
    size = 0
    for side in ((A, B), (A.T, B.T)):
        # zero columns, in suitable bases, are no blocks
        free = side[0].shape[1] - _matrix(np.concatenate(side)).rank()
        span, rest = _without_span(*pencil)
        size += span - free
        pencil = rest[0].transpose(), rest[1].transpose()
    n = pencil[0].nrows()
    return _Form(size + n, _excess(pencil[0].inv() * pencil[1], shift) if n else Counter())


def _without_span(
    C: flint.fmpq_mat, D: flint.fmpq_mat
) -> tuple[int, tuple[flint.fmpq_mat, flint.fmpq_mat]]:
    """The dimension of the columns' span W of the L blocks, and the pencil without them."""
    m, n = C.nrows(), C.ncols()
    span: list[list[flint.fmpq]] = []
    while True:
        # x with C x = D W y for some y
        joined = C.tolist()
        if span:
            across = (D * flint.fmpq_mat(span).transpose()).tolist()
            joined = [row + [-x for x in more] for row, more in zip(joined, across, strict=True)]
        found = _row_basis([x[:n] for x in _kernel(joined, n + len(span))])
        if len(found) == len(span):
            break
        span = found
    if not span:
        return 0, (C, D)
    pivots = {next(j for j, x in enumerate(row) if x) for row in span}
    left = [j for j in range(n) if j not in pivots]
    image = C * flint.fmpq_mat(span).transpose()
    quotient = _kernel(image.transpose().tolist(), m)
    if not quotient or not left:
        nothing = flint.fmpq_mat(len(quotient), len(left))
        return len(span), (nothing, nothing)
    # unit vectors beside the pivots span a complement of W
    Q = flint.fmpq_mat(quotient)
    c, d = (Q * flint.fmpq_mat([[row[j] for j in left] for row in M.tolist()]) for M in (C, D))
    return len(span), (c, d)


def _kernel(rows: list[list[flint.fmpq]], n: int) -> list[list[flint.fmpq]]:
    """A basis of {x: M x = 0}, for M with n columns."""
    if not rows:
        return [[flint.fmpq(i == j) for j in range(n)] for i in range(n)]
    reduced, rank = flint.fmpq_mat(rows).rref()
    pivots = [next(j for j in range(n) if reduced[i, j]) for i in range(rank)]
    found: list[list[flint.fmpq]] = []
    for free in sorted(set(range(n)) - set(pivots)):
        x = [flint.fmpq(j == free) for j in range(n)]
        for i, pivot in enumerate(pivots):
            x[pivot] = -reduced[i, free]
        found.append(x)
    return found


def _row_basis(rows: list[list[flint.fmpq]]) -> list[list[flint.fmpq]]:
    if not rows:
        return []
    reduced, rank = flint.fmpq_mat(rows).rref()
    return reduced.tolist()[:rank]


def _excess(J: flint.fmpq_mat, shift: int) -> Counter[tuple[int, ...]]:
    """For each root of J what it adds to delta."""
    n = J.nrows()
    excess: Counter[tuple[int, ...]] = Counter()
    for p, times in J.charpoly().factor()[1]:
        d = p.degree()
        real = distinct_real_roots(p) == d
        if times == 1:
            count = 0 if real else 1
        else:
            at_p = _evaluated(p, J)
            once = at_p.rank()
            # Jordan blocks of a root, or those of size two or more
            count = (once - (at_p * at_p).rank() if real else n - once) // d
        if count:
            excess[_root_name(p, shift)] = count
    return excess


def _evaluated(p: flint.fmpq_poly, J: flint.fmpq_mat) -> flint.fmpq_mat:
    n = J.nrows()
    identity = flint.fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
    value = flint.fmpq_mat(n, n)
    for c in reversed(p.coeffs()):
        value = value * J + identity * c
    return value


def _root_name(p: flint.fmpq_poly, shift: int) -> tuple[int, ...]:
    """Name the roots of p(J) as roots s of A + sB: there 1/J = shift - s."""
    reverse = flint.fmpq_poly(p.coeffs()[::-1])
    in_s = reverse(flint.fmpq_poly([shift, -1])).numer()
    if in_s.degree() < 1:
        return ()
    content = in_s.content() * (1 if in_s.leading_coefficient() > 0 else -1)
    return tuple(int(c / content) for c in in_s.coeffs())


def _matrix(A: Indices) -> flint.fmpq_mat:
    m, n = A.shape
    return flint.fmpq_mat(m, n, A.ravel().tolist())
