"""Linear algebra over F_2, on rows of bits that are packed into words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Mask
from capacity.kept_code import kept

Words = NDArray[np.uint64]


def packed(bits: Mask) -> Words:
    """Pack rows of bits into words of 64, the first bit lowest.

    Parameters
    ----------
    bits : ndarray of bool, shape (n, m)
        The rows.

    Returns
    -------
    ndarray of uint64, shape (n, ceil(m / 64))

    Examples
    --------
    >>> packed(np.eye(2, 65, 64, dtype=bool)).tolist()
    [[0, 1], [0, 0]]
    """
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 64)))
    octets = np.ascontiguousarray(np.packbits(padded, axis=1, bitorder="little"))
    return octets.view("<u8").astype(np.uint64)


def unpacked(words: Words, n: int) -> Mask:
    """Unpack rows of n bits, along the last axis.

    Examples
    --------
    >>> unpacked(np.array([5], np.uint64), 4).tolist()
    [True, False, True, False]
    """
    octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little")[..., :n].astype(bool)


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
