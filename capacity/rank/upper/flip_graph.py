"""Shorter exact decompositions by random walks in the flip graph, over the integers.

Two terms that share a factor can be rewritten, and the sum stays the same:

    a x b x c + a x b' x c'  =  a x (b + t b') x c + a x b' x (c' - t c),    t = 1 or -1.

If a factor becomes zero, its term vanishes and the decomposition is one shorter. A walk without
progress takes a *plus transition*, which turns two terms into three:

    a x b x c + a' x b' x c'  =  a x (b + b') x c + a x b' x (c' - c) + (a' - a) x b' x c'.

Coefficients stay within -2 .. 2. Every decomposition on the way is exact.

For the effective rank the sum must agree with the tensor only on the observed fibers. A coefficient
a[k] is then free if all fibers (k, q) with b[q] nonzero are unobserved, and likewise b[q]; the walk
also changes these, so that terms can come to share a factor.

References
----------
M. Kauers, J. Moosbauer, Flip graphs for matrix multiplication, 2022, arXiv 2212.01175; Y. Arai, Y.
Ichikawa, K. Hukushima, Adaptive flip graph algorithm for matrix multiplication, 2023, arXiv
2312.16960 (plus transitions).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.exact.types import IntegerFactors, Mask
from capacity.kept_code import kept

LARGEST_COEFFICIENT = 2
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
def _random(state: Any) -> Any:
    """Draw the next number of xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return (x * np.uint64(2685821657736338717)) >> np.uint64(33)


@kept
def _below(state: Any, n: int) -> Any:
    return np.int64(_random(state) % np.uint64(n))


@kept
def _hash(vector: Any, weights: Any, n: int) -> Any:
    total = np.uint64(0)
    for i in range(n):
        total += np.uint64(np.int64(vector[i])) * weights[i]
    return total


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
def _flip(terms: Any, hashes: Any, dims: Any, m: int, n: int, r: int, s: int, sign: int) -> int:
    """Flip two terms that share factor m.

    Returns 0, 1 if term r vanishes, 2 if term s does, or -1 if a coefficient would be too large.
    """
    p = 3 - m - n
    # the shared factor may have opposite signs in the two terms
    turn = 1 if hashes[m, r] == hashes[m, s] else -1
    for i in range(dims[n]):
        if abs(terms[n, r, i] + sign * terms[n, s, i]) > LARGEST_COEFFICIENT:
            return -1
    for i in range(dims[p]):
        if abs(turn * terms[p, s, i] - sign * terms[p, r, i]) > LARGEST_COEFFICIENT:
            return -1
    if turn < 0:
        for i in range(dims[m]):
            terms[m, s, i] = -terms[m, s, i]
        for i in range(dims[p]):
            terms[p, s, i] = -terms[p, s, i]
        hashes[m, s] = np.uint64(0) - hashes[m, s]
        hashes[p, s] = np.uint64(0) - hashes[p, s]
    first, second = True, True
    for i in range(dims[n]):
        terms[n, r, i] += sign * terms[n, s, i]
        first &= terms[n, r, i] == 0
    for i in range(dims[p]):
        terms[p, s, i] -= sign * terms[p, r, i]
        second &= terms[p, s, i] == 0
    if sign > 0:
        hashes[n, r] += hashes[n, s]
        hashes[p, s] -= hashes[p, r]
    else:
        hashes[n, r] -= hashes[n, s]
        hashes[p, s] += hashes[p, r]
    if first:
        return 1
    return 2 if second else 0


@kept
def _plus(terms: Any, hashes: Any, weights: Any, dims: Any, rank: int, state: Any) -> int:
    """Turn two random terms into three if the coefficients allow; return the number of terms."""
    r, s = _below(state, rank), _below(state, rank)
    if r == s:
        return rank
    m = _below(state, 3)
    n = (m + 1 + _below(state, 2)) % 3
    p = 3 - m - n
    differ_m = differ_p = nonzero_n = False
    for i in range(dims[m]):
        x = terms[m, s, i] - terms[m, r, i]
        differ_m |= x != 0
        if abs(x) > LARGEST_COEFFICIENT:
            return rank
    for i in range(dims[p]):
        x = terms[p, s, i] - terms[p, r, i]
        differ_p |= x != 0
        if abs(x) > LARGEST_COEFFICIENT:
            return rank
    for i in range(dims[n]):
        x = terms[n, r, i] + terms[n, s, i]
        nonzero_n |= x != 0
        if abs(x) > LARGEST_COEFFICIENT:
            return rank
    if not (differ_m and differ_p and nonzero_n):
        return rank
    # a (b + b') c + a b' (c' - c) + (a' - a) b' c'
    for i in range(dims[m]):
        terms[m, rank, i] = terms[m, r, i]
        terms[m, s, i] -= terms[m, r, i]
    for i in range(dims[n]):
        terms[n, rank, i] = terms[n, s, i]
        terms[n, r, i] += terms[n, s, i]
    for i in range(dims[p]):
        terms[p, rank, i] = terms[p, s, i] - terms[p, r, i]
    for t in (r, s, rank):
        for mode in range(3):
            hashes[mode, t] = _hash(terms[mode, t], weights[mode], dims[mode])
    return rank + 1


@kept
def _set_free(
    terms: Any, hashes: Any, weights: Any, dims: Any, rank: int, observed: Any, state: Any
) -> int:
    """Change a coefficient that affects only unobserved fibers; 3 r + m of its factor, or -1."""
    r, m = _below(state, rank), _below(state, 2)
    i = _below(state, dims[m])
    for j in range(dims[1 - m]):
        if terms[1 - m, r, j] != 0 and (observed[i, j] if m == 0 else observed[j, i]):
            return -1
    # copy another term's coefficient, so that factors come to agree
    s = _below(state, rank)
    old = terms[m, r, i]
    terms[m, r, i] = terms[m, s, i] if r != s else 0
    if terms[m, r, i] == old:
        return -1
    for j in range(dims[m]):
        if terms[m, r, j] != 0:
            hashes[m, r] = _hash(terms[m, r], weights[m], dims[m])
            return 3 * r + m
    terms[m, r, i] = old
    return -1


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
            hashes[m, r] = _hash(terms[m, r], weights[m], dims[m])
    pairs = np.zeros((3 * capacity * capacity, 3), np.int64)
    n_pairs = _all_pairs(hashes, rank, pairs)
    best = terms[:, :rank].copy()
    shortest, since = rank, 0
    for _ in range(steps):
        if shortest <= target:
            break
        since += 1
        if observed.size and _below(state, 4) == 0:
            changed = _set_free(terms, hashes, weights, dims, rank, observed, state)
            if changed >= 0:
                n_pairs = _new_pairs(hashes, rank, pairs, n_pairs, changed % 3, changed // 3)
        if n_pairs:
            i = _below(state, n_pairs)
            m, r, s = pairs[i, 0], pairs[i, 1], pairs[i, 2]
            choice = _below(state, 8)
            if choice & 1:
                r, s = s, r
            n = (m + 1 + ((choice >> 1) & 1)) % 3
            outcome = _flip(terms, hashes, dims, m, n, r, s, 1 - 2 * (choice >> 2))
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
            more = _plus(terms, hashes, weights, dims, rank, state)
            if more > rank:
                rank, since = more, 0
                n_pairs = _all_pairs(hashes, rank, pairs)
    return best
