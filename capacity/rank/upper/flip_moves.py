"""Moves in the flip graph, which leave the sum of a decomposition as it is, and draws of them.

Two terms that share a factor can be rewritten, a *flip*:

    a x b x c + a x b' x c'  =  a x (b + t b') x c + a x b' x (c' - t c),    t = 1 or -1.

If a factor becomes zero, its term vanishes. A *plus transition* turns two terms into three:

    a x b x c + a' x b' x c'  =  a x (b + b') x c + a x b' x (c' - c) + (a' - a) x b' x c'.

Coefficients stay within -2 .. 2.

For the effective rank the sum must agree with the tensor only on the observed fibers. A coefficient
a[k] is then free if all fibers (k, q) with b[q] nonzero are unobserved, and likewise b[q]. It is
changed, too, so that terms can come to share a factor.

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

LARGEST_COEFFICIENT = 2


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
def below(state: Any, n: int) -> Any:
    """Draw an integer from 0 to n - 1."""
    return np.int64(_random(state) % np.uint64(n))


@kept
def hash_of(vector: Any, weights: Any, n: int) -> Any:
    """Return a hash of a factor that is linear in it: that of its negation is the negation."""
    total = np.uint64(0)
    for i in range(n):
        total += np.uint64(np.int64(vector[i])) * weights[i]
    return total


@kept
def flip(terms: Any, hashes: Any, dims: Any, m: int, n: int, r: int, s: int, sign: int) -> int:
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
def plus(terms: Any, hashes: Any, weights: Any, dims: Any, rank: int, state: Any) -> int:
    """Turn two random terms into three if the coefficients allow; return the number of terms."""
    r, s = below(state, rank), below(state, rank)
    if r == s:
        return rank
    m = below(state, 3)
    n = (m + 1 + below(state, 2)) % 3
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
            hashes[mode, t] = hash_of(terms[mode, t], weights[mode], dims[mode])
    return rank + 1


@kept
def set_free(
    terms: Any, hashes: Any, weights: Any, dims: Any, rank: int, observed: Any, state: Any
) -> int:
    """Change a coefficient that affects only unobserved fibers; 3 r + m of its factor, or -1."""
    r, m = below(state, rank), below(state, 2)
    i = below(state, dims[m])
    for j in range(dims[1 - m]):
        if terms[1 - m, r, j] != 0 and (observed[i, j] if m == 0 else observed[j, i]):
            return -1
    # copy another term's coefficient, so that factors come to agree
    s = below(state, rank)
    old = terms[m, r, i]
    terms[m, r, i] = terms[m, s, i] if r != s else 0
    if terms[m, r, i] == old:
        return -1
    for j in range(dims[m]):
        if terms[m, r, j] != 0:
            hashes[m, r] = hash_of(terms[m, r], weights[m], dims[m])
            return 3 * r + m
    terms[m, r, i] = old
    return -1
