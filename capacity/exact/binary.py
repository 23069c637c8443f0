"""Rows of bits, packed into words; `capacity.exact.binary_rows` has their linear algebra."""

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
