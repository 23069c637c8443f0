"""Random walks in the flip graph over F_2, with factors as words of bits.

Over F_2 a flip of two terms that share a factor is two sums of factors without signs,

    a x b x c + a x b' x c'  =  a x (b + b') x c + a x b' x (c' + c),

and a plus transition turns any two terms into three,

    a x b x c + a' x b' x c'  =  a x (b + b') x c + a x b' x (c + c') + (a + a') x b' x c'.

A term with a factor 0 vanishes. A sum of factors is one operation per word of 64 coefficients.

A factor's key is linear in it: the factor itself if it fits 64 bits, and else a sum of random
words. Factors are compared by their keys.

For the effective rank the sum must agree with the tensor only on the observed fibers (k, q) of the
last mode. A coefficient a[k] is free where all fibers (k, q) with b[q] = 1 are unobserved, and
likewise b[q].

References
----------
M. Kauers, J. Moosbauer, Flip graphs for matrix multiplication, 2022, arXiv 2212.01175; Y. Arai, Y.
Ichikawa, K. Hukushima, Adaptive flip graph algorithm for matrix multiplication, 2023, arXiv
2312.16960 (plus transitions).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.kept_code import kept

# pairs of terms that a plus transition tries before it gives up
_TRIES = 100


@kept
def below(state: Any, n: int) -> Any:
    """Draw an integer from 0 to n - 1, by xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    high = (x * np.uint64(2685821657736338717)) >> np.uint64(32)
    return np.int64((high * np.uint64(n)) >> np.uint64(32))


@kept
def add(words: Any, keys: Any, m: int, r: int, s: int) -> None:
    """Add factor m of term s to that of term r."""
    keys[m, r] ^= keys[m, s]
    for w in range(words.shape[2]):
        words[m, r, w] ^= words[m, s, w]


@kept
def copy(words: Any, keys: Any, r: int, s: int) -> None:
    """Copy term s to term r."""
    for m in range(3):
        keys[m, r] = keys[m, s]
        for w in range(words.shape[2]):
            words[m, r, w] = words[m, s, w]


@kept
def all_pairs(keys: Any, rank: int, pairs: Any) -> int:
    """List the pairs of terms that share a factor, and return their number."""
    n = 0
    for m in range(3):
        for r in range(rank):
            for s in range(r):
                if keys[m, r] == keys[m, s]:
                    pairs[n, 0], pairs[n, 1], pairs[n, 2] = m, r, s
                    n += 1
    return n


@kept
def new_pairs(keys: Any, rank: int, pairs: Any, n: int, m: int, r: int) -> int:
    """Update the list of pairs after factor m of term r has changed."""
    i = 0
    while i < n:
        if pairs[i, 0] == m and (pairs[i, 1] == r or pairs[i, 2] == r):
            n -= 1
            pairs[i, 0], pairs[i, 1], pairs[i, 2] = pairs[n, 0], pairs[n, 1], pairs[n, 2]
        else:
            i += 1
    key = keys[m, r]
    for s in range(rank):
        if keys[m, s] == key and s != r:
            pairs[n, 0], pairs[n, 1], pairs[n, 2] = m, r, s
            n += 1
    return n


@kept
def unlike(keys: Any, rank: int, state: Any) -> Any:
    """Draw two terms without a common factor, and a mode; one term twice if none were met."""
    for _ in range(_TRIES):
        r, s, m = below(state, rank), below(state, rank), below(state, 3)
        if keys[0, r] != keys[0, s] and keys[1, r] != keys[1, s] and keys[2, r] != keys[2, s]:
            return r, s, m
    return np.int64(0), np.int64(0), np.int64(0)


@kept
def plus(words: Any, keys: Any, rank: int, state: Any) -> int:
    """Turn two random terms without a common factor into three; return the number of terms."""
    r, s, m = unlike(keys, rank, state)
    if r == s:
        return rank
    n, p = (m + 1) % 3, (m + 2) % 3
    copy(words, keys, rank, s)
    add(words, keys, n, r, s)
    add(words, keys, m, rank, r)
    # term s becomes a x b' x (c + c'), and the new one stays (a + a') x b' x c'
    add(words, keys, p, s, r)
    add(words, keys, m, s, rank)
    return rank + 1


@kept
def free(words: Any, keys: Any, hashes: Any, dims: Any, rank: int, masks: Any, state: Any) -> int:
    """Change a coefficient that concerns unobserved fibers alone; 3 r + m of its factor, or -1.

    `masks[m, i]` has the fibers of index i in mode m that are observed, as a word of the other.
    """
    r, m = below(state, rank), below(state, 2)
    i = below(state, dims[m])
    for w in range(words.shape[2]):
        if masks[m, i, w] & words[1 - m, r, w]:
            return -1
    if keys[m, r] == hashes[m, i]:
        # nothing would be left of the factor
        return -1
    keys[m, r] ^= hashes[m, i]
    words[m, r, i >> 6] ^= np.uint64(1) << np.uint64(i & 63)
    return 3 * r + m


@kept
def walk(
    words: Any,
    keys: Any,
    hashes: Any,
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
    words : (3, capacity, n_words) uint64
        Factors of terms, which are changed.
    keys : (3, capacity) uint64
        Their keys.
    hashes : (3, max(dims)) uint64
        Keys of unit vectors.
    dims : (3,) int64
        Sizes of the modes.
    rank, steps : int
        Number of terms, and most steps.
    state : (1,) uint64
        State of the random numbers, which is changed.
    target : int
        Stop at this number of terms.
    patience, slack : int
        Steps without a shorter decomposition after which a plus transition is taken, and the number
        of terms that these may add to the shortest.
    masks : (2, max(dims), n_words) uint64, or of size 0
        Observed fibers, for the effective rank.

    Returns
    -------
    (3, shortest, n_words) uint64, int
    """
    capacity = keys.shape[1]
    pairs = np.zeros((3 * capacity * capacity, 3), np.int32)
    n_pairs = all_pairs(keys, rank, pairs)
    best = words[:, :rank].copy()
    shortest, since = rank, 0
    done = 0
    while done < steps and shortest > target:
        done += 1
        since += 1
        if masks.size and below(state, 4) == 0:
            changed = free(words, keys, hashes, dims, rank, masks, state)
            if changed >= 0:
                n_pairs = new_pairs(keys, rank, pairs, n_pairs, changed % 3, changed // 3)
        if n_pairs:
            i = below(state, n_pairs)
            m, r, s = pairs[i, 0], pairs[i, 1], pairs[i, 2]
            choice = below(state, 4)
            if choice & 1:
                r, s = s, r
            n = (m + 1 + (choice >> 1)) % 3
            p = 3 - m - n
            add(words, keys, n, r, s)
            add(words, keys, p, s, r)
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
