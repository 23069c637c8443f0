"""Linear algebra over F_3, compiled, on rows of two words for 64 coefficients.

The first word of a pair has the bits of the coefficients that are 1, and the second those that are
-1. A sum takes seven operations (K. Kawahara, K. Aoki, T. Takagi, Faster implementation of eta_T
pairing over GF(3^m) using minimum number of logical instructions for GF(3)-addition, 2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.binary import Words, packed, unpacked
from capacity.kept_code import kept


def packed_rows(numbers: NDArray[np.integer]) -> Words:
    """Pack rows of numbers modulo 3, in the form -1, 0 and 1.

    Parameters
    ----------
    numbers : ndarray of int, shape (n, m)
        The rows.

    Returns
    -------
    ndarray of uint64, shape (n, ceil(m / 64), 2)

    Examples
    --------
    >>> packed_rows(np.array([[1, 0, -1]])).tolist()
    [[[1, 4]]]
    """
    return np.stack([packed(numbers == 1), packed(numbers == -1)], axis=-1)


def unpacked_rows(words: Words, n: int) -> NDArray[np.int64]:
    """Unpack rows of n numbers, along the last axis but one.

    Examples
    --------
    >>> unpacked_rows(np.array([[[1, 4]]], np.uint64), 3).tolist()
    [[1, 0, -1]]
    """
    plus, minus = (unpacked(words[..., i], n).astype(np.int64) for i in range(2))
    return plus - minus


@kept
def sum_of(p: Any, m: Any, q: Any, n: Any) -> Any:
    """Return both words of the sum of (p, m) and (q, n)."""
    t = (p | n) ^ (m | q)
    return (m | n) ^ t, (p | q) ^ t


@kept
def echelon(rows: Any, n_words: int, pivots: Any) -> int:
    """Move independent rows to the front, each reduced by those before it; return their number.

    Rows are compared by their first `n_words` pairs of words; the others are added along. A row's
    coefficient at its pivot is 1, and rows after it have 0 there.

    Parameters
    ----------
    rows : (n, m, 2) uint64
        The rows, which are changed.
    n_words : int
        Number of pairs of words that count.
    pivots : (n,) int64
        Is filled with the place of each independent row that rows after it don't have.
    """
    rank = 0
    for u in range(len(rows)):
        row = rows[u].copy()
        reduce_row(row, rows, pivots, rank)
        for w in range(n_words):
            both = row[w, 0] | row[w, 1]
            if both:
                bit = 0
                while not (both >> np.uint64(bit)) & np.uint64(1):
                    bit += 1
                pivots[rank] = 64 * w + bit
                turn = (row[w, 1] >> np.uint64(bit)) & np.uint64(1)
                for v in range(len(row)):
                    p, m = row[v, 0], row[v, 1]
                    rows[rank, v, 0] = m if turn else p
                    rows[rank, v, 1] = p if turn else m
                rank += 1
                break
    return rank


@kept
def reduce_row(row: Any, rows: Any, pivots: Any, rank: int) -> None:
    """Subtract multiples of rows of an echelon form, so that a row is 0 at their pivots."""
    for k in range(rank):
        first, bit = pivots[k] >> 6, np.uint64(pivots[k] & 63)
        plus = (row[first, 0] >> bit) & np.uint64(1)
        if plus or (row[first, 1] >> bit) & np.uint64(1):
            for w in range(first, len(row)):
                p, m = rows[k, w, 0], rows[k, w, 1]
                if plus:
                    p, m = m, p
                row[w, 0], row[w, 1] = sum_of(row[w, 0], row[w, 1], p, m)
