"""Linear algebra over F_3, compiled, on rows that `capacity.exact.words` packs."""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.kept_code import kept


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
