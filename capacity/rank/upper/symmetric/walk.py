"""Random walks over F_2 through decompositions that a cyclic permutation of the modes preserves.

Let T[i, j, k] = T[j, k, i]. Representatives a x b x c denote their orbits

    O(a x b x c) = a x b x c + b x c x a + c x a x b,

which is one term, a x a x a, if a = b = c, since 3 = 1 modulo 2, and three otherwise. O is linear,
so a flip of two representatives, in any rotation of either, that share a factor changes six terms
and not their sum:

    O(a x b x c) + O(a x b' x c')  =  O(a x (b + b') x c) + O(a x b' x (c' + c)).

A flip that makes all factors of a representative equal is a reduction by two terms, and one that
makes a factor 0 by three. A further identity exchanges an orbit for three cubes, or these for it,
and doesn't change the length:

    O(a x b x (a + b))  =  a x a x a + b x b x b + (a + b) x (a + b) x (a + b).

References
----------
J. Moosbauer, M. Poole, Flip graphs with symmetry and new matrix multiplication schemes, 2025, arXiv
2502.04514; G. Ballard, C. Ikenmeyer, J. Landsberg, N. Ryder, The geometry of rank decompositions of
matrix multiplication II: 3 x 3 matrices, 2018, arXiv 1801.00843.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.kept_code import kept
from capacity.rank.upper.binary_walk import below

# pairs of representatives from which a longer decomposition is tried before it gives up
_TRIES = 100


@kept
def length_of(a: Any, b: Any, c: Any) -> int:
    """Return the number of terms of an orbit."""
    if a == 0 or b == 0 or c == 0:
        return 0
    return 1 if a == b and b == c else 3


@kept
def all_pairs(factors: Any, n: int, pairs: Any) -> int:
    """List the pairs of places of two of the first n representatives that have one factor."""
    found = 0
    for x in range(3 * n):
        for y in range(3 * (x // 3)):
            if factors[x] == factors[y]:
                pairs[found, 0], pairs[found, 1] = x, y
                found += 1
    return found


@kept
def new_pairs(factors: Any, n: int, pairs: Any, found: int, x: int) -> int:
    """Update the list of pairs after the factor at a place has changed."""
    i = 0
    while i < found:
        if pairs[i, 0] == x or pairs[i, 1] == x:
            found -= 1
            pairs[i, 0], pairs[i, 1] = pairs[found, 0], pairs[found, 1]
        else:
            i += 1
    r = x // 3
    for y in range(3 * n):
        if factors[y] == factors[x] and y // 3 != r:
            pairs[found, 0], pairs[found, 1] = x, y
            found += 1
    return found


@kept
def put(factors: Any, r: int, a: Any, b: Any, c: Any) -> None:
    """Set the factors of a representative."""
    factors[3 * r], factors[3 * r + 1], factors[3 * r + 2] = a, b, c


@kept
def without_zeros(factors: Any, n: int) -> int:
    """Remove the representatives with a factor 0, and return how many are left."""
    r = 0
    while r < n:
        if length_of(factors[3 * r], factors[3 * r + 1], factors[3 * r + 2]) == 0:
            n -= 1
            put(factors, r, factors[3 * n], factors[3 * n + 1], factors[3 * n + 2])
        else:
            r += 1
    return n


@kept
def exchanged(factors: Any, n: int, state: Any) -> int:
    """Exchange an orbit for three cubes, or three cubes for an orbit; return the new number.

    -1 if a random choice allows neither.
    """
    r = below(state, n)
    a, b, c = factors[3 * r], factors[3 * r + 1], factors[3 * r + 2]
    if a ^ b ^ c == 0:
        # three different factors, for none is 0
        put(factors, r, a, a, a)
        put(factors, n, b, b, b)
        put(factors, n + 1, c, c, c)
        return n + 2
    s = below(state, n)
    d = factors[3 * s]
    if a != b or b != c or a == d or d != factors[3 * s + 1] or d != factors[3 * s + 2]:
        return -1
    for t in range(n):
        if factors[3 * t] == a ^ d and factors[3 * t + 1] == a ^ d and factors[3 * t + 2] == a ^ d:
            put(factors, r, a, d, a ^ d)
            put(factors, s, 0, 0, 0)
            put(factors, t, 0, 0, 0)
            return without_zeros(factors, n)
    return -1


@kept
def plus(factors: Any, n: int, state: Any, most: int) -> int:
    """Write two random orbits with up to `most` more terms; return the number of representatives.

    -1 if no choice allows that.
    """
    for _ in range(_TRIES):
        r, s = below(state, n), below(state, n)
        if r == s:
            continue
        i, j = below(state, 3), below(state, 3)
        a, b, c = factors[3 * r + i], factors[3 * r + (i + 1) % 3], factors[3 * r + (i + 2) % 3]
        d, e, f = factors[3 * s + j], factors[3 * s + (j + 1) % 3], factors[3 * s + (j + 2) % 3]
        before = length_of(a, b, c) + length_of(d, e, f)
        if a == d:
            # a flip, which may break a cube
            if length_of(a, b ^ e, c) + length_of(a, e, f ^ c) > before + most:
                continue
            put(factors, r, a, b ^ e, c)
            put(factors, s, a, e, f ^ c)
            return without_zeros(factors, n)
        if before == 2 and most >= 2:
            # of three cubes that an orbit is, two
            put(factors, r, a, d, a ^ d)
            put(factors, s, a ^ d, a ^ d, a ^ d)
            return n
        if b == e or c == f:
            continue
        after = length_of(a, b ^ e, c) + length_of(a, e, c ^ f) + length_of(a ^ d, e, f)
        if after > before + most:
            continue
        put(factors, r, a, b ^ e, c)
        put(factors, s, a, e, c ^ f)
        put(factors, n, a ^ d, e, f)
        return n + 1
    return -1


@kept
def total(factors: Any, n: int) -> int:
    """Return the number of terms of all orbits."""
    terms = 0
    for r in range(n):
        terms += length_of(factors[3 * r], factors[3 * r + 1], factors[3 * r + 2])
    return terms


@kept
def walk(
    factors: Any, n: int, steps: int, state: Any, target: int, patience: int, slack: int
) -> Any:
    """Walk from the first n representatives; return the last of the shortest, and steps.

    Parameters
    ----------
    factors : (3 * capacity,) uint64
        Factors of representatives, one after another, which are changed.
    n, steps : int
        Number of representatives, and most steps.
    state : (1,) uint64
        State of the random numbers, which is changed.
    target : int
        Stop at this number of terms.
    patience, slack : int
        Steps without a shorter decomposition after which a longer one is taken, and the number of
        terms by which these may exceed the shortest.

    Returns
    -------
    (3 * representatives,) uint64, int
    """
    capacity = len(factors) // 3
    pairs = np.zeros((9 * capacity * capacity, 2), np.int32)
    n_pairs = all_pairs(factors, n, pairs)
    length = shortest = total(factors, n)
    best = factors[: 3 * n].copy()
    since = done = 0
    while done < steps and shortest > target:
        done += 1
        since += 1
        changed = False
        if n_pairs:
            pair, choice = below(state, n_pairs), below(state, 4)
            x, y = pairs[pair, choice & 1], pairs[pair, 1 - (choice & 1)]
            r, s = x // 3, y // 3
            turn = 1 + (choice >> 1)
            p, q = 3 * r + (x + turn) % 3, 3 * s + (y + turn) % 3
            u, v = 3 * r + (x + 3 - turn) % 3, 3 * s + (y + 3 - turn) % 3
            a, b, c = factors[x], factors[p] ^ factors[q], factors[u]
            e, f = factors[q], factors[v] ^ factors[u]
            before = length_of(a, factors[p], c) + length_of(a, e, factors[v])
            after = length_of(a, b, c) + length_of(a, e, f)
            if after <= before:
                factors[p], factors[v] = b, f
                length += after - before
                if b == 0 or f == 0:
                    n = without_zeros(factors, n)
                    changed = True
                else:
                    n_pairs = new_pairs(factors, n, pairs, n_pairs, p)
                    n_pairs = new_pairs(factors, n, pairs, n_pairs, v)
        if below(state, 16) == 0 and n + 2 < capacity:
            more = exchanged(factors, n, state)
            if more >= 0:
                n, changed = more, True
        if (since > patience or n_pairs == 0) and length < shortest + slack and n + 1 < capacity:
            if length == shortest:
                best = factors[: 3 * n].copy()
            more = plus(factors, n, state, shortest + slack - length)
            if more >= 0:
                n, since, changed = more, 0, True
                length = total(factors, n)
            elif n_pairs == 0 and not changed:
                break
        elif n_pairs == 0 and not changed:
            break
        if changed:
            n_pairs = all_pairs(factors, n, pairs)
        if length < shortest:
            best = factors[: 3 * n].copy()
            shortest, since = length, 0
    return (factors[: 3 * n].copy() if length == shortest else best), done
