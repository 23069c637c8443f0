"""One checker a kind of argument for lower bounds, each with why it proves its value over R.

Nothing of the search is imported. All arithmetic is in integers, in fractions, or modulo a prime
where only "at least this rank" is concluded. Each returns the indices that its argument is about;
`capacity.rank.verify` says how arguments add up.
"""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import flint
import numpy as np

from capacity.database.facts import Database
from capacity.errors import MemoryBudgetError
from capacity.rank.arrays import Indices
from capacity.rank.certificate import (
    Diagonalization,
    Koszul,
    Pencil,
    Substitution,
    Unfolding,
)
from capacity.rank.check_view import (
    positions,
    require,
    require_pencil,
    require_prime,
    square_slices,
    view_tensor,
    why_slices_are_not_diagonal,
)
from capacity.rank.diagonal import all_singular

# for the effective rank these arguments need a sub-tensor that every completion has
UNOBSERVED = "there are unobserved fibers among its entries"
# rows of a dense block, and steps of a sparse elimination: more takes minutes
LARGEST_BLOCK = 4_000
MOST_STEPS = 30_000_000
# entries of a flattening, and its slices
LARGEST_FLATTENING = 10**7
MOST_SLICES = 13
# the indices of each mode that an argument is about
Touched: TypeAlias = tuple[Indices, Indices, Indices]


def check_unfolding(argument: Unfolding, db: Database, effective: bool) -> Touched:
    """rank(D) >= the rank of an unfolding >= the size of a nonsingular minor.

    A sum of R simple tensors unfolds to a sum of R matrices of rank one. The determinant of the
    minor expands along a row, or a column, with one entry among those that are left, which leaves
    that entry times a smaller determinant; at last along diagonal blocks with zeros below them,
    each nonsingular modulo a prime, hence nonsingular. For the effective rank the mode is 2 and the
    columns are observed fibers: every representing tensor has the same entries there.
    """
    mode, r = argument.mode, argument.value
    require(mode in (0, 1, 2), "there is no such mode")
    require(not effective or mode == 2, "only the object unfolding bounds the effective rank")
    require(r > 0 and len(argument.columns) == r, "a minor must be square")
    others = [m for m in range(3) if m != mode]
    row_at = positions(argument.rows, db.shape[mode])
    width = db.shape[others[1]]
    flat = argument.columns[:, 0] * width + argument.columns[:, 1]
    widths = [db.shape[m] for m in others]
    inside = (argument.columns >= 0) & (argument.columns < widths)
    require(inside.all(), "an index is out of range")
    require((argument.blocks >= 0).all() and (argument.eliminated >= 0).all(), "a size is negative")
    triples = db.triples.astype(np.int64)
    entries = triples[:, others[0]] * width + triples[:, others[1]]
    order = np.argsort(flat)
    require((np.diff(flat[order]) > 0).all(), "a column is used twice")
    # places (i, j) of the ones of the minor
    near = np.searchsorted(flat, entries, sorter=order).clip(max=r - 1)
    inside = flat[order[near]] == entries
    inside &= row_at[triples[:, mode]] >= 0
    i, j = row_at[triples[inside, mode]], order[near[inside]]
    t = r - int(argument.blocks.sum())
    require(t >= 0, "the blocks are larger than the minor")
    diagonal, row_goes_on, column_goes_on = (np.zeros(r, bool) for _ in range(3))
    diagonal[i[i == j]] = True
    row_goes_on[i[i < j]] = True
    column_goes_on[j[j < i]] = True
    require(diagonal[:t].all(), "a pivot is zero")
    require(not (row_goes_on & column_goes_on)[:t].any(), "a pivot is not alone")
    _check_blocks(i, j, np.append(t, t + np.cumsum(argument.blocks)), argument)
    touched = [np.zeros(0, np.int64)] * 3
    touched[mode] = argument.rows
    touched[others[0]], touched[others[1]] = argument.columns.T
    return touched[0], touched[1], touched[2]


def _check_blocks(i: Indices, j: Indices, bounds: Indices, argument: Unfolding) -> None:
    """Diagonal blocks between the bounds are nonsingular, and zeros stand below them."""
    require(len(argument.eliminated) == len(bounds) - 1, "a number for each block must be given")
    if len(bounds) == 1:
        return
    require_prime(argument.prime)
    block_i, block_j = (np.searchsorted(bounds, x, side="right") for x in (i, j))
    require(not ((block_i > block_j) & (block_j > 0)).any(), "an entry stands below the blocks")
    steps: list[int] = argument.eliminated.tolist()
    order = np.argsort(block_i, kind="stable")
    for number, (start, stop) in enumerate(itertools.pairwise(bounds.tolist()), start=1):
        mine = order[slice(*np.searchsorted(block_i[order], [number, number + 1]))]
        mine = mine[block_j[mine] == number]
        n, t = stop - start, steps[number - 1]
        require(t <= n, "more pivots are eliminated than there are")
        if n - t > LARGEST_BLOCK:
            raise MemoryBudgetError(
                f"A dense block must have {LARGEST_BLOCK:,} rows at most; got {n - t:,}."
            )
        rest = _eliminated(i[mine] - start, j[mine] - start, n, t, argument.prime)
        entries = [row.get(k, 0) for row in rest for k in range(t, n)]
        rank = flint.nmod_mat(n - t, n - t, entries, argument.prime).rank()
        require(rank == n - t, f"block {number} has rank {t + rank} of {n} modulo the prime")


def _eliminated(i: Indices, j: Indices, n: int, t: int, prime: int) -> list[dict[int, int]]:
    """The rows of an n x n block that are left when its first t pivots have cleared their columns.

    Adding multiples of rows keeps the determinant: it is the product of the pivots, which aren't
    zero modulo the prime, and of the determinant of what is left.
    """
    rows: list[dict[int, int]] = [{} for _ in range(n)]
    below: list[set[int]] = [set() for _ in range(n)]
    places: list[tuple[int, int]] = np.stack([i, j], axis=1).tolist()
    for a, b in places:
        rows[a][b] = 1
        below[b].add(a)
    work = 0
    for s in range(t):
        pivot = rows[s].pop(s, 0)
        require(pivot % prime, f"pivot {s} of a block vanishes")
        inverse = pow(pivot, -1, prime)
        for r in below[s]:
            if r <= s:
                continue
            factor = rows[r].pop(s) * inverse % prime
            work += len(rows[s]) + 1
            if work > MOST_STEPS:
                raise MemoryBudgetError(f"A block must be eliminated in {MOST_STEPS:,} steps.")
            for k, x in rows[s].items():
                y = (rows[r].get(k, 0) - factor * x) % prime
                if y:
                    rows[r][k] = y
                    below[k].add(r)
                elif k in rows[r]:
                    del rows[r][k]
                    below[k].discard(r)
    return rows[t:]


def check_substitution(
    argument: Substitution, db: Database, effective: bool, before: Unfolding | None = None
) -> None:
    """Each move removes a slice and lowers the rank by at least one.

    Let T be a sum of R simple tensors a_r (x) b_r (x) c_r, and let its slice T_i, of mode 0 say, be
    nonzero: it is, since an entry of it is known and nonzero. Then some a_r[i] is nonzero. Subtract
    a_r[j] / a_r[i] times T_i from every other slice T_j: term r vanishes from all of them, so the
    slices without T_i are a tensor of rank at most R - 1. The multiples aren't known, so what was
    subtracted hides the entries of T_j wherever T_i isn't known to be zero; the others are as they
    were. For the effective rank the unobserved fibers are hidden from the start, and so are those
    that slices removed `before` may have changed.
    """
    moves = argument.moves
    tensor, known = view_tensor(argument.view, db, effective, before)
    values = tensor != 0
    require(((moves[:, 0] >= 0) & (moves[:, 0] < 3)).all(), "there is no such mode")
    inside = (moves[:, 1] >= 0) & (moves[:, 1] < np.array(values.shape)[moves[:, 0]])
    require(inside.all(), "a slice is out of range")
    alive = [np.ones(n, bool) for n in values.shape]
    steps: list[list[int]] = moves.tolist()
    for step, (mode, index) in enumerate(steps):
        where = f"move {step}, slice {index} of mode {mode}"
        require(alive[mode][index], f"{where}: it was removed before")
        a, b = (m for m in range(3) if m != mode)
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = alive[a][:, None] & alive[b][None, :]
        require((slice_known & slice_value & live).any(), f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        hidden = ~slice_known | slice_value
        # direct sums rest on this mask too (`capacity.rank.verify`): it must never hide less
        known &= ~np.expand_dims(hidden, mode)


def check_koszul(argument: Koszul, db: Database, effective: bool) -> Touched:
    """rank(X) >= rank(M) / C(a - 1, p) for the Koszul flattening M = sum_i (e_i ^ .) (x) X_i.

    X_i are the a slices of the view; M maps wedge^p (x) B to wedge^(p+1) (x) C. It is linear in X,
    and for a simple X = x (x) y (x) z it is (x ^ .) (x) y (x) z, of the rank of x ^ . on wedge^p,
    which is C(a - 1, p) for a nonzero x: in a basis that begins with x, what survives are the
    p-subsets of the other a - 1 vectors. The rank modulo a prime is no larger than the rank.
    """
    require(argument.mode in (0, 1, 2), "there is no such mode")
    tensor, known = view_tensor(argument.view, db, effective)
    require(known.all(), UNOBSERVED)
    X = np.moveaxis(tensor, argument.mode, 0)
    a, p = len(X), argument.p
    require(0 <= p < a <= MOST_SLICES, f"there is no flattening of {a} slices with p = {p}")
    rows, columns = math.comb(a, p) * X.shape[1], math.comb(a, p + 1) * X.shape[2]
    require(rows * columns <= LARGEST_FLATTENING, "the flattening is too large to check")
    require_prime(argument.prime)
    upper = {subset: u for u, subset in enumerate(itertools.combinations(range(a), p + 1))}
    M = np.zeros((math.comb(a, p), X.shape[1], len(upper), X.shape[2]), np.int64)
    # e_i ^ e_S = (-1)^(number of elements of S below i) e_(S + i)
    for s, subset in enumerate(itertools.combinations(range(a), p)):
        for i in set(range(a)) - set(subset):
            sign = (-1) ** sum(x < i for x in subset)
            M[s, :, upper[tuple(sorted((*subset, i)))], :] = sign * X[i]
    entries = (M % argument.prime).ravel().tolist()
    rank = flint.nmod_mat(rows, columns, entries, argument.prime).rank()
    bound = -(-rank // math.comb(a - 1, p))
    require(argument.value == bound, f"the flattening has rank {rank}, which gives {bound}")
    return argument.view.indices


def check_not_diagonal(argument: Diagonalization, db: Database, effective: bool) -> Touched:
    """rank(X) >= n + 1 if the n x n slices of X are not diagonal in common bases.

    `capacity.rank.diagonal` has the proof, and decides it. If all combinations of the slices are
    singular, the unfoldings of the other two modes must have rank n.
    """
    require(view_tensor(argument.view, db, effective)[1].all(), UNOBSERVED)
    slices, n = square_slices(argument, db)
    require(argument.value == n + 1, f"slices of {n} x {n} can show {n + 1}")
    if len(argument.combination):
        why = why_slices_are_not_diagonal(argument, slices)
        require(why is not None, "the slices are diagonal in common bases")
    else:
        require(all_singular(slices), "some combination of the slices may be nonsingular")
        for turned in (slices, slices.transpose(0, 2, 1)):
            unfolded = turned.transpose(1, 0, 2).reshape(n, -1)
            rank = flint.fmpz_mat(n, unfolded.shape[1], unfolded.ravel().tolist()).rank()
            require(rank == n, f"an unfolding has rank {rank}")
    return argument.view.indices


def check_pencil(argument: Pencil, db: Database, effective: bool) -> Touched:
    """rank(D) >= the rank of a sub-tensor of two slices, which `capacity.rank.pencil` computes."""
    facts = require_pencil(argument, db)
    used = [np.unique(db.triples[facts, mode]).astype(np.int64) for mode in range(3)]
    if effective:
        pairs = np.unique(db.triples[facts, :2], axis=0)
        require(len(pairs) == len(used[0]) * len(used[1]), UNOBSERVED)
    return used[0], used[1], used[2]
