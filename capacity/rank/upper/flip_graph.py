"""Shorter exact decompositions by random walks in the flip graph, over the integers.

A walk continues by flips (`capacity.rank.upper.flip_moves`), which leave the sum as it is. If a
factor becomes zero, its term vanishes and the decomposition is one shorter. A walk without progress
takes a plus transition, which turns two terms into three. Every decomposition on the way is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.exact.types import IntegerFactors, Mask
from capacity.kept_code import kept
from capacity.rank.upper.flip_moves import below, flip, hash_of, plus, set_free

# terms that plus transitions may add to the shortest decomposition so far
SLACK = 3


def flip_walk(
    factors: IntegerFactors,
    *,
    steps: int,
    seed: int,
    target: int,
    observed: Mask | None = None,
    patience: int = 20_000,
) -> IntegerFactors:
    """Walk in the flip graph from a decomposition, and return the shortest one met.

    Parameters
    ----------
    factors : tuple of three ndarrays of int64, shapes (rank, n_m)
        One row per term, with coefficients within -2 .. 2.
    steps : int
        Maximum number of steps.
    seed : int
        Seed of the walk.
    target : int
        Stop once there are no more terms than this.
    observed : ndarray of bool, shape (n_0, n_1), optional
        Fibers of the last mode on which the sum must stay the same; all if omitted.
    patience : int
        Steps without a shorter decomposition after which a plus transition is taken.

    Returns
    -------
    tuple of three ndarrays of int64, shapes (rank, n_m)

    Examples
    --------
    Four facts that add up to one term:

    >>> a = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> b = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> found = flip_walk((a, b, np.ones((4, 1), int)), steps=1000, seed=0, target=1)
    >>> [f.tolist() for f in found]
    [[[1, 1]], [[1, 1]], [[1]]]
    """
    rank = len(factors[0])
    dims = np.array([f.shape[1] for f in factors])
    terms = np.zeros((3, rank + SLACK + 2, int(dims.max())), np.int8)
    for mode, f in enumerate(factors):
        terms[mode, :rank, : f.shape[1]] = f
    weights = np.random.default_rng(0).integers(1, 2**63, (3, int(dims.max())), dtype=np.uint64)
    seen = np.zeros((0, 0), np.bool_) if observed is None else observed
    best = _walk(terms, weights, dims, rank, steps, seed, target, seen, patience)
    a, b, c = (best[m, :, : dims[m]].astype(np.int64) for m in range(3))
    # the walk compares factors by their hashes: refuse a sum that a collision made wrong
    difference = np.einsum("ri,rj,rk->ijk", a, b, c) - np.einsum("ri,rj,rk->ijk", *factors)
    if (difference if observed is None else difference[observed]).any():
        return factors
    signs = [np.where(f[np.arange(len(f)), (f != 0).argmax(axis=1)] < 0, -1, 1) for f in (a, b)]
    return a * signs[0][:, None], b * signs[1][:, None], c * (signs[0] * signs[1])[:, None]


@kept
def _same(g: Any, h: Any) -> bool:
    """Return True if two factors are equal up to sign, by their hashes."""
    return g == h or g == np.uint64(0) - h


@kept
def _all_pairs(hashes: Any, rank: int, pairs: Any) -> int:
    n = 0
    for m in range(3):
        for r in range(rank):
            for s in range(r):
                if _same(hashes[m, r], hashes[m, s]):
                    pairs[n, 0], pairs[n, 1], pairs[n, 2] = m, r, s
                    n += 1
    return n


@kept
def _new_pairs(hashes: Any, rank: int, pairs: Any, n: int, m: int, r: int) -> int:
    """Update the pairs of terms that share a factor, after factor m of term r has changed."""
    i = 0
    while i < n:
        if pairs[i, 0] == m and (pairs[i, 1] == r or pairs[i, 2] == r):
            n -= 1
            pairs[i, 0], pairs[i, 1], pairs[i, 2] = pairs[n, 0], pairs[n, 1], pairs[n, 2]
        else:
            i += 1
    for s in range(rank):
        if s != r and _same(hashes[m, r], hashes[m, s]):
            pairs[n, 0], pairs[n, 1], pairs[n, 2] = m, r, s
            n += 1
    return n


@kept
def _remove(terms: Any, hashes: Any, rank: int, r: int) -> None:
    last = rank - 1
    for m in range(3):
        terms[m, r] = terms[m, last]
        hashes[m, r] = hashes[m, last]


@kept
def _walk(
    terms: Any,
    weights: Any,
    dims: Any,
    rank: int,
    steps: int,
    seed: int,
    target: int,
    observed: Any,
    patience: int,
) -> Any:
    state = np.array([seed * 2 + 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    capacity = terms.shape[1]
    hashes = np.zeros((3, capacity), np.uint64)
    for m in range(3):
        for r in range(rank):
            hashes[m, r] = hash_of(terms[m, r], weights[m], dims[m])
    pairs = np.zeros((3 * capacity * capacity, 3), np.int64)
    n_pairs = _all_pairs(hashes, rank, pairs)
    best = terms[:, :rank].copy()
    shortest, since = rank, 0
    for _ in range(steps):
        if shortest <= target:
            break
        since += 1
        if observed.size and below(state, 4) == 0:
            changed = set_free(terms, hashes, weights, dims, rank, observed, state)
            if changed >= 0:
                n_pairs = _new_pairs(hashes, rank, pairs, n_pairs, changed % 3, changed // 3)
        if n_pairs:
            i = below(state, n_pairs)
            m, r, s = pairs[i, 0], pairs[i, 1], pairs[i, 2]
            choice = below(state, 8)
            if choice & 1:
                r, s = s, r
            n = (m + 1 + ((choice >> 1) & 1)) % 3
            outcome = flip(terms, hashes, dims, m, n, r, s, 1 - 2 * (choice >> 2))
            if outcome > 0:
                _remove(terms, hashes, rank, r if outcome == 1 else s)
                rank -= 1
                n_pairs = _all_pairs(hashes, rank, pairs)
                if rank < shortest:
                    shortest, since = rank, 0
                    best = terms[:, :rank].copy()
            elif outcome == 0:
                n_pairs = _new_pairs(hashes, rank, pairs, n_pairs, n, r)
                n_pairs = _new_pairs(hashes, rank, pairs, n_pairs, 3 - m - n, s)
        if (since > patience or n_pairs == 0) and rank < min(shortest + SLACK, capacity - 1):
            more = plus(terms, hashes, weights, dims, rank, state)
            if more > rank:
                rank, since = more, 0
                n_pairs = _all_pairs(hashes, rank, pairs)
    return best
