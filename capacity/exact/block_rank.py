"""Rank, basis rows and basis columns of one sparse block that doesn't peel.

A block with many rows and columns is first eliminated over the integers, as far as it stays sparse
(`capacity.exact.elimination`). The remaining matrix M, with n columns and at least as many
rows, is examined through a sample S of its rows:

* r independent columns of S modulo a prime are independent over Q, so rank(M) >= r;
* if n - r independent vectors x satisfy M x = 0 in integers, rank(M) <= r.

The vectors are reconstructed from S modulo the prime, as fractions with small numerators and
denominators. Rows with M x != 0 are added to the sample, until there are none. This is exact, and
only S becomes dense: a table of a million facts with some hundred categories needs a thousand of
its rows.

If a vector can't be reconstructed, M is made dense, and its rank is taken modulo several primes:

    rank_Q(M) = max over p of rank_p(M), as soon as the product of the primes exceeds H,

where H bounds the (r+1)-minors of M for r = max rank_p so far. Proof: a minor that vanishes over Q
vanishes modulo p, so rank_p <= rank_Q for every p. If rank_Q > r, some (r+1)-minor m is nonzero;
it vanishes modulo each of the primes, so their product divides it, and |m| >= product > H >= |m|,
a contradiction. Hadamard's inequality proves H: the product of the r + 1 largest Euclidean row
norms.

References
----------
J. von zur Gathen, J. Gerhard, Modern Computer Algebra, sections 5.5 (modular determinants,
Hadamard's bound) and 5.10 (rational reconstruction).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import flint
import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.elimination import LARGEST_ENTRY, eliminate
from capacity.exact.types import Indices, Spend, free
from capacity.tensor.coordinates import distinct

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_BUDGET = 2**31
# a flint entry is one 64-bit word, and while it is converted also a Python int
BYTES_AN_ENTRY = 48
# steps for a block of any size, for an entry of a dense one that is eliminated once, for a fraction
# that is reconstructed, and for an entry of a sparse one times a vector of the kernel
BLOCK, ENTRY, FRACTION, TIMES = 300_000, 300, 5_000, 5
# shorter side from which a block is eliminated first
LONG = 400
# most entries, zeros included, of a matrix that is dense from the beginning
SMALL = 2**16
Matrix: TypeAlias = "Indices | csr_array"


def previous_prime(n: int) -> int:
    """Largest prime below n."""
    n -= 1
    while not flint.fmpz(n).is_prime():
        n -= 1
    return n


PRIME = previous_prime(2**62)


@dataclass(frozen=True)
class Basis:
    """The rank of a block, and rows and columns of a nonsingular submatrix of that size.

    Attributes
    ----------
    rank : int
        Exact rank.
    rows, columns : ndarray of int64
        Numbers of the rows and columns, as given. The first `eliminated` are pivots in order, and
        the only ones if no submatrix was asked for. There are fewer than the rank in the unlikely
        case that the prime divides all larger minors.
    eliminated : int
        Number of pivots from the sparse elimination.
    """

    rank: int
    rows: Indices
    columns: Indices
    eliminated: int


def block_basis(
    rows: Indices, columns: Indices, values: Indices, *, minor: bool, spend: Spend = free
) -> Basis:
    """Find the exact rank of a block, and a basis.

    Parameters
    ----------
    rows, columns, values : ndarray of int64, shape (n_entries,)
        Positions of the nonzero entries, each position once, and the entries.
    minor : bool
        True to find the rows and columns of a nonsingular submatrix too.
    spend : callable
        Called with the steps and bytes of each part of the work before it, and may refuse it.

    Returns
    -------
    Basis
        The rank, and the rows and columns.

    Raises
    ------
    MemoryBudgetError
        If it needs a dense matrix over `DENSE_BUDGET` bytes; raised before it is allocated.
    """
    spend(BLOCK, 0)
    pivot_rows = pivot_columns = np.zeros(0, np.int64)
    sides = len(distinct(rows)), len(distinct(columns))
    if min(sides) > LONG and int(np.abs(values).max()) <= LARGEST_ENTRY:
        found = eliminate(rows, columns, values, spend=spend)
        pivot_rows, pivot_columns = found.pivot_rows, found.pivot_columns
        rows, columns, values = found.rows, found.columns, found.values
    n = len(pivot_rows)
    if not len(rows):
        return Basis(n, pivot_rows, pivot_columns, n)
    row_names, row = np.unique(rows, return_inverse=True)
    column_names, column = np.unique(columns, return_inverse=True)
    shape = len(row_names), len(column_names)
    wide = shape[0] < shape[1]
    places = (column.ravel(), row.ravel()) if wide else (row.ravel(), column.ravel())
    tall = _matrix(values, places, (max(shape), min(shape)))
    rank, sample, across = _tall_rank(tall, len(values), spend)
    if not minor:
        return Basis(n + rank, pivot_rows, pivot_columns, n)
    # rows of the sample that are independent in the pivot columns
    _, independent = _reduced(_dense(tall, sample)[:, across].T)
    down, across = sample[independent], np.array(across, np.int64)
    chosen, columns_chosen = (across, down) if wide else (down, across)
    return Basis(
        n + rank,
        np.concatenate([pivot_rows, row_names[chosen]]),
        np.concatenate([pivot_columns, column_names[columns_chosen]]),
        n,
    )


def _matrix(values: Indices, places: tuple[Indices, Indices], shape: tuple[int, int]) -> Matrix:
    if shape[0] * shape[1] <= SMALL:
        dense = np.zeros(shape, np.int64)
        dense[places] = values
        return dense
    # importing it takes a sixth of the time in which a command starts
    from scipy.sparse import coo_array, csr_array

    return csr_array(coo_array((values, places), shape=shape))


def _tall_rank(M: Matrix, n_entries: int, spend: Spend) -> tuple[int, Indices, list[int]]:
    """Rank of a matrix with n columns and m >= n rows, a sample of rows, and pivot columns."""
    m, n = M.shape
    rng = np.random.default_rng(0)
    sample = np.sort(rng.permutation(m)[: n + 50])
    # times an entry of the kernel, of at most 2^20, this must fit 64 bits
    heaviest = float((abs(M.astype(np.float64)) @ np.ones(n)).max())
    while True:
        _charge(len(sample), n, spend, times=3)
        S = _dense(M, sample)
        reduced, pivots = _reduced(S)
        if len(pivots) == n:
            return n, sample, pivots
        missing = n - len(pivots)
        spend((FRACTION * len(pivots) + TIMES * n_entries) * missing, 16 * (m + n) * missing)
        kernel = _kernel(reduced, pivots, n) if heaviest < 2**41 else None
        missed = None if kernel is None else np.flatnonzero((M @ kernel).any(axis=1))
        if missed is not None and not len(missed):
            return len(pivots), sample, pivots
        if len(sample) == m:
            return _multimodular_rank(S, spend), sample, pivots
        # a sample that missed a direction finds it in one of these rows
        sample = np.arange(m) if missed is None else np.union1d(sample, missed[:n])


def _charge(m: int, n: int, spend: Spend, *, times: int = 1) -> None:
    """Charge eliminations of a dense matrix modulo a prime."""
    spend(times * (ENTRY * m * n + m * n * min(m, n) // 4), BYTES_AN_ENTRY * m * n)


def _dense(M: Matrix, rows: Indices) -> Indices:
    m, n = len(rows), M.shape[1]
    if m * n * BYTES_AN_ENTRY > DENSE_BUDGET:
        raise MemoryBudgetError(
            f"An exact rank must fit the budget of {DENSE_BUDGET:,} bytes; a dense block of "
            f"{m} x {n} entries is left, which would take about {m * n * BYTES_AN_ENTRY:,}. "
            "Take a part of the database, or bounds that only count its facts."
        )
    chosen = M[rows]
    return chosen if isinstance(chosen, np.ndarray) else chosen.toarray()


def _reduced(S: Indices) -> tuple[flint.nmod_mat, list[int]]:
    """The reduced row echelon form modulo the prime, and its pivot columns."""
    m, n = S.shape
    reduced, rank = flint.nmod_mat(m, n, (S % PRIME).ravel().tolist(), PRIME).rref()
    found: list[int] = []
    column = 0
    for row in range(rank):
        while int(reduced[row, column]) == 0:
            column += 1
        found.append(column)
        column += 1
    return reduced, found


def _kernel(reduced: flint.nmod_mat, pivots: list[int], n: int) -> Indices | None:
    """Integer vectors that span the kernel, as columns; None if they can't be reconstructed."""
    free = sorted(set(range(n)) - set(pivots))
    kernel = np.zeros((n, len(free)), np.int64)
    for column, j in enumerate(free):
        fractions = [_fraction(-int(reduced[i, j]) % PRIME) for i in range(len(pivots))]
        common = math.lcm(*(d for _, d in fractions))
        values = [a * (common // d) for a, d in fractions]
        if max(map(abs, values), default=0) > 2**20 or common > 2**20:
            return None
        kernel[pivots, column] = values
        kernel[j, column] = common
    return kernel


def _fraction(x: int) -> tuple[int, int]:
    """Fraction a / d that is x modulo the prime, with |a| and d at most the prime's root."""
    (a, b), (c, d) = (PRIME, x), (0, 1)
    while b * b > PRIME:
        quotient = a // b
        a, b, c, d = b, a - quotient * b, d, c - quotient * d
    return (b, d) if d > 0 else (-b, -d)


def _multimodular_rank(dense: Indices, spend: Spend) -> int:
    if dense.shape[0] > dense.shape[1]:
        dense = dense.T
    m, n = dense.shape
    integers = flint.fmpz_mat(m, n, dense.ravel().tolist())
    log_norms = np.sort(0.5 * np.log2((dense.astype(np.float64) ** 2).sum(axis=1)))[::-1]
    rank, log_product, prime = 0, 0.0, PRIME + 1
    while rank < m:
        prime = previous_prime(prime)
        _charge(m, n, spend)
        rank = max(rank, flint.nmod_mat(integers, prime).rank())
        log_product += math.log2(prime)
        # the margin of one bit covers the rounding of the sum of logarithms
        if log_product > float(log_norms[: rank + 1].sum()) + 1:
            break
    return rank
