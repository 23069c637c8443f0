"""Square matrices that are nonsingular modulo a prime, and so over the rationals."""

from __future__ import annotations

import flint
import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.budget import (
    DENSE_BYTES,
    CheckBudget,
    require_at_most,
    steps_of_rank,
)
from capacity.rank.verifier.entries import require

# steps for each product while a matrix is sparse
SPARSE_PRODUCT = 150
# largest number of entries of a sparse matrix, of about 200 bytes each
MOST_ENTRIES = 2**21


def require_nonsingular(
    i: Indices,
    j: Indices,
    values: Indices,
    n: int,
    t: int,
    prime: int,
    budget: CheckBudget,
    *,
    name: str,
) -> None:
    """End the check unless a sparse matrix is nonsingular modulo a prime.

    Parameters
    ----------
    i, j, values : ndarray of int64, shape (n_entries,)
        Places and values of its nonzero entries.
    n : int
        Its size.
    t : int
        Number of leading pivots to eliminate sparsely before the rest is made dense.
    prime : int
        The prime, which has been checked.
    budget : CheckBudget
        Budget that the check draws on.
    name : str
        Name of the matrix in messages.

    Raises
    ------
    Refuted
        If it is singular modulo the prime, or a leading pivot vanishes.
    MemoryBudgetError
        If the budget is too small.
    """
    require(0 <= t <= n, f"{name}: more pivots are eliminated than there are")
    d = n - t
    sparse = SPARSE_PRODUCT * 10 * (n + len(i))
    memory = max(DENSE_BYTES * d**2, 300 * n + 200 * len(i))
    budget.spend(steps_of_rank(d, d) + sparse, memory)
    rows: list[dict[int, int]] = [{} for _ in range(n)]
    filled: list[tuple[int, int, int]] = np.stack([i, j, values], axis=1).tolist()
    for a, b, value in filled:
        if value % prime:
            rows[a][b] = value % prime
    _eliminate(rows, t, prime, budget, name)
    dense = [row.get(k, 0) for row in rows[t:] for k in range(t, n)]
    rank = flint.nmod_mat(d, d, dense, prime).rank()
    require(rank == d, f"{name} has rank {t + rank} of {n} modulo the prime")


def _eliminate(
    rows: list[dict[int, int]], t: int, prime: int, budget: CheckBudget, name: str
) -> None:
    """Let the first t pivots of a square matrix, given by its rows, clear their columns.

    Adding multiples of rows keeps the determinant: it is the product of the pivots, which aren't
    zero modulo the prime, times the determinant of the remaining matrix.
    """
    below: list[set[int]] = [set() for _ in rows]
    for a, row in enumerate(rows):
        for b in row:
            below[b].add(a)
    held = sum(map(len, rows))
    for s in range(t):
        pivot = rows[s].pop(s, 0)
        require(pivot % prime, f"{name}: pivot {s} vanishes modulo the prime")
        inverse = pow(pivot, -1, prime)
        later = [r for r in below[s] if r > s]
        budget.spend(SPARSE_PRODUCT * (len(below[s]) + len(later) * (len(rows[s]) + 2)))
        for r in later:
            factor = rows[r].pop(s) * inverse % prime
            held -= 1 + len(rows[r])
            for k, x in rows[s].items():
                y = (rows[r].get(k, 0) - factor * x) % prime
                if y:
                    rows[r][k] = y
                    below[k].add(r)
                elif k in rows[r]:
                    del rows[r][k]
                    below[k].discard(r)
            held += len(rows[r])
            require_at_most("entries of a block before it is dense", held, MOST_ENTRIES)
        # a row that has cleared its column is no longer needed
        held -= len(rows[s])
        for k in rows[s]:
            below[k].discard(s)
        rows[s], below[s] = {}, set()
