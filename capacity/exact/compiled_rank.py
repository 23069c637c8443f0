"""Gaussian elimination modulo the prime p = 2^31 - 1, compiled.

With residues a, f and x below p, s = f x + a is at most (p - 1) p. As 2^31 is 1 modulo p, s has the
residue of its upper bits plus its lower 31, which is at most 2 p - 2; so one subtraction of p
remains, and no division. Four or eight entries of a row are done at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.kept_code import kept

# the prime of `capacity.exact.modular_rank`, on whose form the arithmetic rests
PRIME = 2**31 - 1
P, BITS = np.uint64(PRIME), np.uint64(31)


def residues(matrix: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the residues of an integer array, as a new array."""
    found = np.empty(matrix.shape, np.uint32)
    _residues(matrix.ravel(), found.ravel())
    return found


@kept
def _residues(integers: Any, found: Any) -> None:
    for i in range(len(integers)):
        x = integers[i]
        if x < 0:
            x += PRIME
        found[i] = x if 0 <= x < PRIME else x % PRIME


@kept
def _product(a: Any, b: Any) -> Any:
    s = a * b
    s = (s & P) + (s >> BITS)
    return min(s, s - P)


@kept
def _add(row: Any, factor: Any, other: Any) -> None:
    """Add a multiple of another row."""
    for j in range(len(row)):
        s = factor * np.uint64(other[j]) + np.uint64(row[j])
        s = (s & P) + (s >> BITS)
        # a negative difference wraps to more than s
        row[j] = np.uint32(min(s, s - P))


@kept
def row_rank(A: Any, above: int, enough: int) -> int:
    """Rank of a matrix of residues, which is overwritten; limits as in `rank_modulo`."""
    m, n = A.shape
    rank = 0
    for c in range(n):
        if rank >= enough or rank + min(m - rank, n - c) <= above:
            break
        pivot = rank
        while pivot < m and A[pivot, c] == 0:
            pivot += 1
        if pivot == m:
            continue
        if pivot != rank:
            for j in range(c, n):
                A[pivot, j], A[rank, j] = A[rank, j], A[pivot, j]
        # -1 / the pivot, by Fermat's theorem; most pivots are 1 or -1
        x = np.uint64(A[rank, c])
        inverse = np.uint64(1)
        if x == 1:
            inverse = P - np.uint64(1)
        elif x != P - np.uint64(1):
            exponent = PRIME - 2
            while exponent:
                if exponent & 1:
                    inverse = _product(inverse, x)
                x = _product(x, x)
                exponent >>= 1
            inverse = P - inverse
        for i in range(pivot + 1, m):
            if A[i, c]:
                factor = _product(inverse, np.uint64(A[i, c]))
                _add(A[i, c:], factor, A[rank, c:])
        rank += 1
    return rank


@kept
def difference_ranks(nodes: Any, ranks: Any) -> None:
    """Write the rank of nodes[j] - nodes[i] to ranks[i, j], for all i < j."""
    k, m, n = nodes.shape
    narrow = min(m, n)
    A = np.empty((m, n), np.uint32)
    for i in range(k):
        for j in range(i + 1, k):
            for a in range(m):
                for b in range(n):
                    x, y = nodes[j, a, b], nodes[i, a, b]
                    A[a, b] = x - y if x >= y else PRIME - (y - x)
            ranks[i, j] = row_rank(A, 0, narrow)
