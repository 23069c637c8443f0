"""One checker a kind of argument, each with the reason why what it checks proves its value over R.

Nothing of the search is imported. All arithmetic is in integers, in fractions, or modulo a prime
where only "at least this rank" is concluded. `capacity.rank.verify` says how arguments add up.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import TypeAlias

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.tensor import component_labels
from capacity.errors import MemoryBudgetError
from capacity.rank.certificate import Boxes, Decomposition, Indices, Koszul, Substitution, Unfolding

DENSE_BUDGET = 2**28
# the indices of each mode that an argument is about
Touched: TypeAlias = tuple[Indices, Indices, Indices]


class Refuted(Exception):  # noqa: N818 - a verdict, not an error
    """A step of a certificate fails."""


def require(holds: object, otherwise: str) -> None:
    """End the check, with the step that fails, unless it holds."""
    if not holds:
        raise Refuted(otherwise)


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
    row_at = _positions(argument.rows, db.shape[mode])
    width = db.shape[others[1]]
    flat = argument.columns[:, 0] * width + argument.columns[:, 1]
    require((argument.columns < [db.shape[m] for m in others]).all(), "an index is out of range")
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
    _check_blocks(i, j, np.append(t, t + np.cumsum(argument.blocks)), argument.prime)
    touched = [np.zeros(0, np.int64)] * 3
    touched[mode] = argument.rows
    touched[others[0]], touched[others[1]] = argument.columns.T
    return touched[0], touched[1], touched[2]


def _check_blocks(i: Indices, j: Indices, bounds: Indices, prime: int) -> None:
    """Diagonal blocks between the bounds are nonsingular, and zeros stand below them."""
    if len(bounds) == 1:
        return
    require(2 <= prime < 2**63 and flint.fmpz(prime).is_prime(), "the modulus is no prime")
    block_i, block_j = (np.searchsorted(bounds, x, side="right") for x in (i, j))
    require(not ((block_i > block_j) & (block_j > 0)).any(), "an entry stands below the blocks")
    for number, (start, stop) in enumerate(itertools.pairwise(bounds.tolist()), start=1):
        n = stop - start
        dense = np.zeros((n, n), np.int64)
        inside = (block_i == number) & (block_j == number)
        dense[i[inside] - start, j[inside] - start] = 1
        rank = flint.nmod_mat(n, n, dense.ravel().tolist(), prime).rank()
        require(rank == n, f"block {number} has rank {rank} of {n} modulo the prime")


def _dense(db: Database, facts: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], list[Indices]]:
    """The sub-tensor of some facts, and where each index of the whole stands in it, or -1."""
    used = [np.unique(db.triples[facts, mode]) for mode in range(3)]
    size = math.prod(len(u) for u in used)
    if size > DENSE_BUDGET:
        raise MemoryBudgetError(
            f"A certificate must be about {DENSE_BUDGET:,} entries at most; got {size:,}."
        )
    at = [_positions(u.astype(np.int64), n) for u, n in zip(used, db.shape, strict=True)]
    values = np.zeros([len(u) for u in used], bool)
    values[tuple(at[mode][db.triples[facts, mode]] for mode in range(3))] = True
    return values, at


def check_koszul(argument: Koszul, db: Database, effective: bool) -> Touched:
    """rank(T) >= rank(M) / C(2p, p) for the Koszul flattening M = sum_i (e_i ^ .) (x) X_i.

    M maps wedge^p (x) B to wedge^(p+1) (x) C. X_i are 2p + 1 combinations of slices of T, so their
    tensor X has no larger rank. M is linear in X, and for a simple X = a (x) b (x) c it is (a ^ .)
    (x) b (x) c, of the rank of a ^ . on wedge^p, which is C(2p, p) for a nonzero: in a basis that
    begins with a, what survives are the p-subsets of the other 2p vectors. The rank modulo a prime
    is no larger than the rank.
    """
    require(not effective, "flattenings see the unobserved fibers too")
    indices = (argument.subjects, argument.predicates, argument.objects)
    require(all(len(of) for of in indices), "a sub-tensor must have indices in each mode")
    at = [_positions(of, n) for of, n in zip(indices, db.shape, strict=True)]
    require(argument.mode in (0, 1, 2), "there is no such mode")
    size = math.prod(len(of) for of in indices)
    require(size <= DENSE_BUDGET, "the sub-tensor is too large to check")
    places = np.stack([at[mode][db.triples[:, mode]] for mode in range(3)])
    whole = np.zeros([len(of) for of in indices], np.int64)
    whole[tuple(places[:, (places >= 0).all(axis=0)])] = 1
    tensor = np.moveaxis(whole, argument.mode, 0)
    n, width = len(argument.projection), argument.projection.shape[1]
    require(n % 2 and n < 10 and width == len(tensor), "the projection doesn't fit the sub-tensor")
    p = n // 2
    require(math.comb(n, p) ** 2 * tensor[0].size <= 10**7, "the flattening is too large to check")
    require(2 <= argument.prime < 2**63 and flint.fmpz(argument.prime).is_prime(), "no prime")
    X = np.tensordot(argument.projection, tensor, axes=1)
    lower = list(itertools.combinations(range(n), p))
    upper = list(itertools.combinations(range(n), p + 1))
    # e_i ^ e_S = (-1)^(number of elements of S below i) e_(S + i)
    wedge = np.zeros((n, len(lower), len(upper)), np.int64)
    for s, subset in enumerate(lower):
        for i in set(range(n)) - set(subset):
            u = upper.index(tuple(sorted((*subset, i))))
            wedge[i, s, u] = (-1) ** sum(x < i for x in subset)
    M = np.einsum("isu,ijk->sjuk", wedge, X).reshape(len(lower) * X.shape[1], -1)
    entries = (M % argument.prime).ravel().tolist()
    rank = flint.nmod_mat(M.shape[0], M.shape[1], entries, argument.prime).rank()
    bound = -(-rank // math.comb(2 * p, p))
    require(argument.value == bound, f"the flattening has rank {rank}, which gives {bound}")
    return indices


def _positions(indices: Indices, n: int) -> Indices:
    """Where each index stands in a list of distinct ones; -1 for the others."""
    require(len(indices) == 0 or (indices.min() >= 0 and indices.max() < n), "index out of range")
    at = np.full(n, -1, np.int64)
    at[indices] = np.arange(len(indices))
    require((at >= 0).sum() == len(indices), "a row is used twice")
    return at


def check_substitution(argument: Substitution, db: Database, effective: bool) -> Touched:
    """Each move removes a slice and lowers the rank by at least one.

    Let T be a sum of R simple tensors a_r (x) b_r (x) c_r, and let its slice T_i, of mode 0 say, be
    nonzero: it is, since an entry of it is known and nonzero. Then some a_r[i] is nonzero. Subtract
    a_r[j] / a_r[i] times T_i from every other slice T_j: term r vanishes from all of them, so the
    slices without T_i are a tensor of rank at most R - 1. The multiples aren't known, so what was
    subtracted hides the entries of T_j wherever T_i isn't known to be zero; the others are as they
    were. For the effective rank the unobserved fibers are hidden from the start.
    """
    moves = argument.moves
    require((moves[:, 0] < 3).all(), "there is no such mode")
    require((moves[:, 1] < np.array(db.shape)[moves[:, 0]]).all(), "a slice is out of range")
    # nothing of other components takes part, unless their unobserved fibers do
    facts = np.ones(db.n_triples, bool)
    if not effective:
        labels = component_labels(db)
        mine = [np.isin(db.triples[:, m], moves[moves[:, 0] == m, 1]) for m in range(3)]
        facts = np.isin(labels, labels[mine[0] | mine[1] | mine[2]])
    values, at = _dense(db, facts)
    known = np.ones(values.shape, bool)
    if effective:
        known[~values.any(axis=2)] = False
    alive = [np.ones(n, bool) for n in values.shape]
    steps: list[list[int]] = moves.tolist()
    for step, (mode, whole) in enumerate(steps):
        where = f"move {step}, slice {whole} of mode {mode}"
        index = int(at[mode][whole])
        require(alive[mode][index], f"{where}: it was removed before")
        a, b = (m for m in range(3) if m != mode)
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = alive[a][:, None] & alive[b][None, :]
        require((slice_known & slice_value & live).any(), f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        hidden = ~slice_known | slice_value
        known &= ~np.expand_dims(hidden, mode)
    touched = [moves[moves[:, 0] == mode, 1] for mode in range(3)]
    return touched[0], touched[1], touched[2]


def facts_of_boxes(argument: Boxes, db: Database, effective: bool) -> NDArray[np.bool_]:
    """Check that each box holds its own facts, and no other triple that counts."""
    require(len(argument.box) == db.n_triples, "there must be a box, or -1, for each fact")
    inside = argument.box >= 0
    number, box = np.unique(argument.box[inside], return_inverse=True)
    facts = db.triples[inside].astype(np.int64)
    sides = np.ones(len(number), dtype=object)
    for mode in range(3):
        pairs = np.unique(np.stack([box.ravel(), facts[:, mode]], axis=1), axis=0)
        # Python integers: a product of three sides can pass 2^63
        sides *= np.bincount(pairs[:, 0], minlength=len(number)).astype(object)
    sizes = np.bincount(box.ravel(), minlength=len(number))
    for other in np.flatnonzero(sides != sizes):
        require(effective, f"box {number[other]} holds {sizes[other]} of {sides[other]} triples")
        mine = facts[box.ravel() == other]
        own = {(k, q, v) for k, q, v in mine.tolist()}
        observed = {(k, q) for k, q, _ in db.triples.tolist()}
        ks, qs, vs = (set(mine[:, mode].tolist()) for mode in range(3))
        for triple in itertools.product(ks, qs, vs):
            require(
                triple in own or triple[:2] not in observed,
                f"box {number[other]} gives {triple}, which isn't among its facts",
            )
    return inside


def facts_of_terms(argument: Decomposition, db: Database, effective: bool) -> NDArray[np.bool_]:
    """Add the terms up; what they give must be 1 at some facts and 0 elsewhere."""
    total: defaultdict[tuple[int, int, int], Fraction] = defaultdict(Fraction)
    for number, term in enumerate(argument.terms):
        for (indices, _), n in zip(term, db.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
        (ks, a), (qs, b), (vs, c) = term
        for k, x in zip(ks, a, strict=True):
            for q, y in zip(qs, b, strict=True):
                for v, z in zip(vs, c, strict=True):
                    total[k, q, v] += x * y * z
    fact = {tuple(row): n for n, row in enumerate(db.triples.tolist())}
    observed = {row[:2] for row in fact}
    given = np.zeros(db.n_triples, bool)
    for place, x in total.items():
        if x == 0 or (effective and place[:2] not in observed):
            continue
        require(place in fact and x == 1, f"the terms give {x} at {place}")
        given[fact[place]] = True
    return given
