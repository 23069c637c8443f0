"""Rows of coefficients in F_3, as two words for 64 of them.

The first word of a pair has the bits of the coefficients that are 1, and the second those that are
-1. A sum takes seven operations (K. Kawahara, K. Aoki, T. Takagi, Faster implementation of eta_T
pairing over GF(3^m) using minimum number of logical instructions for GF(3)-addition, 2008).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capacity.exact.binary import Words, packed, unpacked


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
