"""Linear algebra over F_2, compiled, on rows of bits that `capacity.exact.words` packs."""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.kept_code import kept


@kept
def echelon(rows: Any, n_words: int, pivots: Any) -> int:
    """Move independent rows to the front, each reduced by those before it; return their number.

    Rows are compared by their first `n_words` words; the others are added along. A row's pivot is
    its first bit, so that it has none at the pivots of rows before it.

    Parameters
    ----------
    rows : (n, m) uint64
        The rows, which are changed.
    n_words : int
        Number of words that count.
    pivots : (n,) int64
        Is filled with the bit of each independent row that rows after it don't have.
    """
    rank = 0
    for u in range(len(rows)):
        row = rows[u].copy()
        reduce_row(row, rows, pivots, rank)
        for w in range(n_words):
            if row[w]:
                bit = 0
                while not (row[w] >> np.uint64(bit)) & np.uint64(1):
                    bit += 1
                pivots[rank] = 64 * w + bit
                rows[rank] = row
                rank += 1
                break
    return rank


@kept
def reduce_row(row: Any, rows: Any, pivots: Any, rank: int) -> None:
    """Add rows of an echelon form to a row, so that its bits at their pivots become 0."""
    for k in range(rank):
        at = pivots[k]
        if (row[at >> 6] >> np.uint64(at & 63)) & np.uint64(1):
            for w in range(at >> 6, len(row)):
                row[w] ^= rows[k, w]
