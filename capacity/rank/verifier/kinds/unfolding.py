"""Lower bound by an unfolding: the size of a nonsingular minor."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import flint
import numpy as np

from capacity.rank.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, FromBelow
from capacity.rank.verifier.budget import DENSE_BYTES, require_at_most, steps_of_rank
from capacity.rank.verifier.facts import SORT, Facts, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import require_prime

# steps for each product while a block is sparse
SPARSE_PRODUCT = 150
# largest number of entries of a sparse block, of about 200 bytes each
MOST_ENTRIES = 2**21


@dataclass(frozen=True, eq=False, repr=False)
class Unfolding(FromBelow):
    """A nonsingular minor of the unfolding of one mode.

    Attributes
    ----------
    mode : int
        Mode of the unfolding.
    rows : ndarray of int64, shape (r,)
        Distinct indices of the mode.
    columns : ndarray of int64, shape (r, 2)
        Distinct pairs of indices of the other two modes, in ascending order of modes.
    blocks : ndarray of int64
        Sizes of the diagonal blocks at the end of the minor, after its single pivots.
    eliminated : ndarray of int64
        Number of leading pivots of each block to eliminate sparsely before the rest is made dense.
    prime : int
        Prime modulo which the blocks are nonsingular.
    """

    kind: ClassVar[str] = "unfolding"
    forms: ClassVar[Forms] = {
        "mode": "integer",
        "rows": "slices",
        "columns": "fibers",
        "blocks": "indices",
        "eliminated": "indices",
        "prime": "integer",
    }
    mode: int
    rows: Indices
    columns: Indices
    blocks: Indices
    eliminated: Indices
    prime: int

    @property
    def value(self) -> int:
        """Size of the minor."""
        return len(self.rows)


def check_unfolding(argument: Unfolding, facts: Facts) -> Touched:
    """Check that a minor is nonsingular; rank(D) >= the rank of the unfolding >= its size.

    A sum of R simple tensors unfolds to a sum of R matrices of rank one. The determinant of the
    minor is expanded along rows or columns with a single nonzero entry, the pivot, among the
    remaining ones; each expansion leaves the pivot times a smaller determinant. In the end there
    are diagonal blocks with zeros below them, each nonsingular modulo a prime, hence nonsingular.
    For the effective rank the mode is 2 and the columns are observed fibers, where every tensor
    that represents the facts has the same entries.
    """
    mode, r = argument.mode, argument.value
    require(mode in (0, 1, 2), "a mode must be 0, 1 or 2")
    require(not facts.effective or mode == 2, "only the object unfolding bounds the effective rank")
    require(r > 0 and len(argument.columns) == r, "a minor must be square")
    facts.require_distinct(argument.rows, mode)
    others = [m for m in range(3) if m != mode]
    widths = [facts.shape[m] for m in others]
    inside = (argument.columns >= 0) & (argument.columns < widths)
    require(inside.all(), "an index is out of range")
    require((argument.blocks <= r).all(), "the blocks are larger than the minor")
    i, j = _places(argument, facts, others)
    t = r - int(argument.blocks.sum())
    require(t >= 0, "the blocks are larger than the minor")
    diagonal, row_goes_on, column_goes_on = (np.zeros(r, bool) for _ in range(3))
    diagonal[i[i == j]] = True
    row_goes_on[i[i < j]] = True
    column_goes_on[j[j < i]] = True
    require(diagonal[:t].all(), "a pivot is zero")
    require(
        not (row_goes_on & column_goes_on)[:t].any(), "a pivot isn't alone in its row or column"
    )
    _check_blocks(i, j, np.append(t, t + np.cumsum(argument.blocks)), argument, facts)
    touched = [np.zeros(0, np.int64)] * 3
    touched[mode] = argument.rows
    touched[others[0]], touched[others[1]] = argument.columns.T
    return touched[0], touched[1], touched[2]


def _places(argument: Unfolding, facts: Facts, others: list[int]) -> tuple[Indices, Indices]:
    """Positions, within the minor, of its nonzero entries."""
    chosen: list[Indices | None] = [None, None, None]
    chosen[argument.mode] = argument.rows
    mine = facts.triples[facts.among(chosen)]
    facts.budget.spend(SORT * (len(mine) + len(argument.columns)))
    width = facts.shape[others[1]]
    # 64 bits hold a product of two sizes, which are 32 bits each
    flat = argument.columns[:, 0] * width + argument.columns[:, 1]
    order = np.argsort(flat)
    require((np.diff(flat[order]) > 0).all(), "a column is used twice")
    entries = mine[:, others[0]] * width + mine[:, others[1]]
    near = np.searchsorted(flat, entries, sorter=order).clip(max=len(flat) - 1)
    inside = flat[order[near]] == entries
    row_order = np.argsort(argument.rows)
    wanted: Indices = mine[inside, argument.mode]
    row = np.searchsorted(argument.rows, wanted, sorter=row_order)
    return row_order[row], order[near[inside]]


def _check_blocks(
    i: Indices, j: Indices, bounds: Indices, argument: Unfolding, facts: Facts
) -> None:
    """Check that the diagonal blocks between some bounds are nonsingular, with zeros below them."""
    require(
        len(argument.eliminated) == len(bounds) - 1,
        "`eliminated` must have a number for each block",
    )
    if len(bounds) == 1:
        return
    require_prime(argument.prime)
    facts.budget.spend(SORT * (len(i) + 100 * len(bounds)))
    block_i, block_j = (np.searchsorted(bounds, x, side="right") for x in (i, j))
    require(not ((block_i > block_j) & (block_j > 0)).any(), "an entry stands below the blocks")
    steps: list[int] = argument.eliminated.tolist()
    order = np.argsort(block_i, kind="stable")
    starts = np.searchsorted(block_i[order], np.arange(len(bounds) + 1)).tolist()
    for number, (start, stop) in enumerate(itertools.pairwise(bounds.tolist()), start=1):
        mine = order[starts[number] : starts[number + 1]]
        mine = mine[block_j[mine] == number]
        n, t = stop - start, steps[number - 1]
        require(t <= n, "more pivots are eliminated than there are")
        d = n - t
        sparse = SPARSE_PRODUCT * 10 * (n + len(mine))
        memory = max(DENSE_BYTES * d**2, 300 * n + 200 * len(mine))
        facts.budget.spend(steps_of_rank(d, d) + sparse, memory)
        rest = _eliminated(i[mine] - start, j[mine] - start, n, t, argument.prime, facts)
        entries = [row.get(k, 0) for row in rest for k in range(t, n)]
        rank = flint.nmod_mat(d, d, entries, argument.prime).rank()
        require(rank == d, f"block {number} has rank {t + rank} of {n} modulo the prime")


def _eliminated(
    i: Indices, j: Indices, n: int, t: int, prime: int, facts: Facts
) -> list[dict[int, int]]:
    """Rows of an n x n block that remain once its first t pivots have cleared their columns.

    Adding multiples of rows keeps the determinant: it is the product of the pivots, which aren't
    zero modulo the prime, times the determinant of the remaining matrix.
    """
    rows: list[dict[int, int]] = [{} for _ in range(n)]
    below: list[set[int]] = [set() for _ in range(n)]
    places: list[tuple[int, int]] = np.stack([i, j], axis=1).tolist()
    for a, b in places:
        rows[a][b] = 1
        below[b].add(a)
    held = len(places)
    for s in range(t):
        pivot = rows[s].pop(s, 0)
        require(pivot % prime, f"pivot {s} of a block vanishes modulo the prime")
        inverse = pow(pivot, -1, prime)
        later = [r for r in below[s] if r > s]
        facts.budget.spend(SPARSE_PRODUCT * (len(below[s]) + len(later) * (len(rows[s]) + 2)))
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
    return rows[t:]


KIND = Kind(Unfolding, lower=check_unfolding, adds=True)
