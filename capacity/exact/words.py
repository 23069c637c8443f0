"""Rows of numbers modulo 2 or 3, packed into words of 64 bits.

Modulo 3 a pair of words has 64 numbers: the first word has the bits of those that are 1, and the
second of those that are -1. A sum takes seven operations (K. Kawahara, K. Aoki, T. Takagi, Faster
implementation of eta_T pairing over GF(3^m) using minimum number of logical instructions for
GF(3)-addition, 2008). `capacity.exact.binary_rows` has linear algebra modulo 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Mask

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


def packed_ternary(numbers: NDArray[np.integer]) -> Words:
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
    >>> packed_ternary(np.array([[1, 0, -1]])).tolist()
    [[[1, 4]]]
    """
    return np.stack([packed(numbers == 1), packed(numbers == -1)], axis=-1)


def unpacked_ternary(words: Words, n: int) -> NDArray[np.int64]:
    """Unpack rows of n numbers, along the last axis but one.

    Examples
    --------
    >>> unpacked_ternary(np.array([[[1, 4]]], np.uint64), 3).tolist()
    [[1, 0, -1]]
    """
    plus, minus = (unpacked(words[..., i], n).astype(np.int64) for i in range(2))
    return plus - minus
