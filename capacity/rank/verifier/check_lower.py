"""Checkers of arguments for lower bounds, each with why it proves its value over R.

Nothing of the search is imported. All arithmetic is in integers, in fractions, or modulo a prime
where only "at least this rank" is concluded. Each returns the indices that its argument is about;
`capacity.rank.verifier` says how arguments add up. `capacity.rank.verifier.check_unfolding` has one
more.
"""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np

from capacity.rank.types import Touched
from capacity.rank.verifier.arguments import (
    Diagonalization,
    Koszul,
    Pencil,
    Substitution,
    Unfolding,
)
from capacity.rank.verifier.budget import require_at_most
from capacity.rank.verifier.check_unfolding import DENSE_BYTES, steps_of_rank
from capacity.rank.verifier.facts import SORT, Facts, require
from capacity.rank.verifier.procedures.simultaneous_diagonalization import (
    MOST_DETERMINANTS,
    all_singular,
    n_determinants,
)
from capacity.rank.verifier.view import (
    require_pencil,
    require_prime,
    square_slices,
    view_tensor,
    why_slices_are_not_diagonal,
)

# for the effective rank these arguments need a sub-tensor that every completion has
UNOBSERVED = "there are unobserved fibers among its entries"
# slices of a flattening
MOST_SLICES = 13
# steps for each entry of the view in a game, and for each move
GAME_ENTRY, MOVE = 50, 30_000


def check_substitution(
    argument: Substitution, facts: Facts, before: Unfolding | None = None
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
    tensor, known = view_tensor(argument.view, facts, before=before)
    values = tensor != 0
    facts.budget.spend(GAME_ENTRY * values.size + MOVE * len(moves), 6 * values.size)
    require(((moves[:, 0] >= 0) & (moves[:, 0] < 3)).all(), "there is no such mode")
    inside = (moves[:, 1] >= 0) & (moves[:, 1] < np.array(values.shape)[moves[:, 0]])
    require(inside.all(), "a slice is out of range")
    alive = [np.ones(n, bool) for n in values.shape]
    # fibers along each mode that are hidden already: each is hidden once, and a game of any length
    # costs a few times the entries
    gone = [np.zeros(np.delete(values.shape, mode), bool) for mode in range(3)]
    steps: list[list[int]] = moves.tolist()
    for step, (mode, index) in enumerate(steps):
        where = f"move {step}, slice {index} of mode {mode}"
        require(alive[mode][index], f"{where}: it was removed before")
        a, b = (m for m in range(3) if m != mode)
        slice_known, slice_value = known.take(index, mode), values.take(index, mode)
        live = alive[a][:, None] & alive[b][None, :]
        require((slice_known & slice_value & live).any(), f"{where}: it isn't known to be nonzero")
        alive[mode][index] = False
        # direct sums rest on this mask too (`capacity.rank.verifier`): it must never hide less
        hidden = (~slice_known | slice_value) & ~gone[mode]
        gone[mode] |= hidden
        np.moveaxis(known, mode, 0)[:, hidden] = False


def check_koszul(argument: Koszul, facts: Facts) -> Touched:
    """rank(X) >= rank(M) / C(a - 1, p) for the Koszul flattening M = sum_i (e_i ^ .) (x) X_i.

    X_i are the a slices of the view; M maps wedge^p (x) B to wedge^(p+1) (x) C. It is linear in X,
    and for a simple X = x (x) y (x) z it is (x ^ .) (x) y (x) z, of the rank of x ^ . on wedge^p,
    which is C(a - 1, p) for a nonzero x: in a basis that begins with x, what survives are the
    p-subsets of the other a - 1 vectors. The rank modulo a prime is no larger than the rank.
    """
    require(argument.mode in (0, 1, 2), "there is no such mode")
    tensor, known = view_tensor(argument.view, facts)
    require(known.all(), UNOBSERVED)
    X = np.moveaxis(tensor, argument.mode, 0)
    a, p = len(X), argument.p
    require(0 <= p < a, f"there is no flattening of {a} slices with p = {p}")
    require_at_most("slices of a flattening", a, MOST_SLICES)
    rows, columns = math.comb(a, p) * X.shape[1], math.comb(a, p + 1) * X.shape[2]
    require_prime(argument.prime)
    facts.budget.spend(steps_of_rank(rows, columns), DENSE_BYTES * rows * columns)
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


def check_not_diagonal(argument: Diagonalization, facts: Facts) -> Touched:
    """rank(X) >= n + 1 if the n x n slices of X are not diagonal in common bases.

    `capacity.rank.verifier.procedures.simultaneous_diagonalization` has the proof, and decides it.
    If all combinations of the slices are singular, the unfoldings of the other two modes must have
    rank n.
    """
    require(view_tensor(argument.view, facts)[1].all(), UNOBSERVED)
    slices, n = square_slices(argument, facts)
    require(argument.value == n + 1, f"slices of {n} x {n} can show {n + 1}")
    if len(argument.combination):
        why = why_slices_are_not_diagonal(argument, slices)
        require(why is not None, "the slices are diagonal in common bases")
    else:
        determinants = n_determinants(slices)
        require_at_most("determinants of sums of slices", determinants, MOST_DETERMINANTS)
        facts.budget.spend(determinants * (20 * n**3 + 100 * n**2 + 10_000))
        require(all_singular(slices), "some combination of the slices may be nonsingular")
        for turned in (slices, slices.transpose(0, 2, 1)):
            unfolded = turned.transpose(1, 0, 2).reshape(n, -1)
            rank = flint.fmpz_mat(n, unfolded.shape[1], unfolded.ravel().tolist()).rank()
            require(rank == n, f"an unfolding has rank {rank}")
    return argument.view.indices


def check_pencil(argument: Pencil, facts: Facts) -> Touched:
    """rank(D) >= the rank of a sub-tensor of two slices, by `procedures.pencil_rank`."""
    mine = facts.triples[require_pencil(argument, facts)]
    used = [np.unique(mine[:, mode]) for mode in range(3)]
    if facts.effective:
        facts.budget.spend(SORT * len(mine))
        pairs = np.unique(mine[:, :2], axis=0)
        require(len(pairs) == len(used[0]) * len(used[1]), UNOBSERVED)
    return used[0], used[1], used[2]
