"""Random walks in the flip graph over F_3, with factors of at most 64 coefficients as two words.

A flip of two terms that share a factor is, for t = 1 or -1,

    a x b x c + a x b' x c'  =  a x (b + t b') x c + a x b' x (c' - t c),

and a plus transition turns any two terms into three,

    a x b x c + a' x b' x c'  =  a x (b + b') x c + a x b' x (c' - c) + (a' - a) x b' x c'.

`capacity.rank.upper.binary_walk` has the rest. A term doesn't change if two of its factors are
negated, so factors are compared up to their sign. Their keys are numbers that don't depend on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.kept_code import kept
from capacity.rank.upper.binary_walk import all_pairs, below, copy, new_pairs, unlike
from capacity.rank.upper.ternary.compiled_rows import sum_of


@kept
def key_of(plus: Any, minus: Any) -> Any:
    """Return a hash of a factor up to its sign, 0 of 0 alone."""
    low = (plus | minus) & (np.uint64(0) - (plus | minus))
    if minus & low:
        plus, minus = minus, plus
    x = plus * np.uint64(0x9E3779B97F4A7C15) ^ minus * np.uint64(0xC2B2AE3D27D4EB4F)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return x | np.uint64(low != 0)


@kept
def add(words: Any, keys: Any, m: int, r: int, s: int, sign: int) -> None:
    """Add sign times factor m of term s to that of term r."""
    p, q = words[m, s, 0], words[m, s, 1]
    if sign < 0:
        p, q = q, p
    words[m, r, 0], words[m, r, 1] = sum_of(words[m, r, 0], words[m, r, 1], p, q)
    keys[m, r] = key_of(words[m, r, 0], words[m, r, 1])


@kept
def plus(words: Any, keys: Any, rank: int, state: Any) -> int:
    """Turn two random terms without a common factor into three; return the number of terms."""
    r, s, m = unlike(keys, rank, state)
    if r == s:
        return rank
    n, p = (m + 1) % 3, (m + 2) % 3
    copy(words, keys, rank, s)
    add(words, keys, n, r, s, 1)
    add(words, keys, m, rank, r, -1)
    add(words, keys, p, s, r, -1)
    words[m, s, 0], words[m, s, 1] = words[m, r, 0], words[m, r, 1]
    keys[m, s] = keys[m, r]
    return rank + 1


@kept
def free(words: Any, keys: Any, dims: Any, rank: int, masks: Any, state: Any) -> int:
    """Change a coefficient that concerns unobserved fibers alone; 3 r + m of its factor, or -1.

    `masks[m, i]` has the fibers of index i in mode m that are observed, as a word of the other.
    """
    r, m = below(state, rank), below(state, 2)
    i = below(state, dims[m])
    if masks[m, i] & (words[1 - m, r, 0] | words[1 - m, r, 1]):
        return -1
    one, none = np.uint64(1) << np.uint64(i), np.uint64(0)
    p, q = (one, none) if below(state, 2) else (none, one)
    p, q = sum_of(words[m, r, 0], words[m, r, 1], p, q)
    if not (p | q):
        # nothing would be left of the factor
        return -1
    words[m, r, 0], words[m, r, 1], keys[m, r] = p, q, key_of(p, q)
    return 3 * r + m


@kept
def flip(words: Any, keys: Any, m: int, n: int, r: int, s: int, sign: int) -> None:
    """Flip two terms that share factor m up to its sign: add sign times factor n of s to r."""
    p = 3 - m - n
    if words[m, r, 0] != words[m, s, 0]:
        # the factors are opposite
        for mode in range(3):
            if mode != n:
                words[mode, s, 0], words[mode, s, 1] = words[mode, s, 1], words[mode, s, 0]
    add(words, keys, n, r, s, sign)
    add(words, keys, p, s, r, -sign)


@kept
def walk(
    words: Any,
    keys: Any,
    dims: Any,
    rank: int,
    steps: int,
    state: Any,
    target: int,
    patience: int,
    slack: int,
    masks: Any,
) -> Any:
    """Walk from the first `rank` terms; return the last of the shortest decompositions, and steps.

    Parameters
    ----------
    words : (3, capacity, 2) uint64
        Factors of terms, which are changed.
    keys : (3, capacity) uint64
        Room for their keys.
    dims : (3,) int64
        Sizes of the modes.
    rank, steps, state, target, patience, slack
        As in `capacity.rank.upper.binary_walk.walk`.
    masks : (2, max(dims)) uint64, or of size 0
        Observed fibers, for the effective rank.

    Returns
    -------
    (3, shortest, 2) uint64, int
    """
    capacity = keys.shape[1]
    for m in range(3):
        for r in range(rank):
            keys[m, r] = key_of(words[m, r, 0], words[m, r, 1])
    pairs = np.zeros((3 * capacity * capacity, 3), np.int32)
    n_pairs = all_pairs(keys, rank, pairs)
    best = words[:, :rank].copy()
    shortest, since = rank, 0
    done = 0
    while done < steps and shortest > target:
        done += 1
        since += 1
        if masks.size and below(state, 4) == 0:
            changed = free(words, keys, dims, rank, masks, state)
            if changed >= 0:
                n_pairs = new_pairs(keys, rank, pairs, n_pairs, changed % 3, changed // 3)
        if n_pairs:
            i = below(state, n_pairs)
            m, r, s = pairs[i, 0], pairs[i, 1], pairs[i, 2]
            choice = below(state, 8)
            if choice & 1:
                r, s = s, r
            n = (m + 1 + ((choice >> 1) & 1)) % 3
            p = 3 - m - n
            flip(words, keys, m, n, r, s, 1 - 2 * (choice >> 2))
            if keys[n, r] and keys[p, s]:
                n_pairs = new_pairs(keys, rank, pairs, n_pairs, n, r)
                n_pairs = new_pairs(keys, rank, pairs, n_pairs, p, s)
            else:
                # the later one first, so that the last term isn't moved away
                for t in (max(r, s), min(r, s)):
                    if keys[n, t] == 0 or keys[p, t] == 0:
                        rank -= 1
                        copy(words, keys, t, rank)
                n_pairs = all_pairs(keys, rank, pairs)
                if rank < shortest:
                    best = words[:, :rank].copy()
                    shortest, since = rank, 0
        if (since > patience or n_pairs == 0) and rank < min(shortest + slack, capacity - 1):
            if rank == shortest:
                best = words[:, :rank].copy()
            more = plus(words, keys, rank, state)
            if more > rank:
                rank, since = more, 0
                n_pairs = all_pairs(keys, rank, pairs)
        elif n_pairs == 0:
            break
    return (words[:, :rank].copy() if rank == shortest else best), done
