"""Matrices as small pictures: a PNG of a few colours, as an address that holds the picture."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from capacity.report.drawing.colours import Colour

# most pixels of a side; a larger matrix is averaged over squares
MOST_SIDE = 64


def averaged(
    matrix: NDArray[np.floating], most: int = MOST_SIDE
) -> tuple[NDArray[np.float64], int]:
    """Average a matrix over squares, so that no side is longer than `most`.

    Parameters
    ----------
    matrix : ndarray of float, shape (n, m)
        Any matrix.
    most : int
        The longest side allowed.

    Returns
    -------
    (ndarray of float64, int)
        The means, and the side of a square; squares at the lower and right edges are smaller.

    Examples
    --------
    >>> means, side = averaged(np.array([[1.0, 3.0, 5.0]] * 3), most=2)
    >>> means.tolist(), side
    ([[2.0, 5.0], [2.0, 5.0]], 2)
    """
    side = -(-max(matrix.shape) // most)
    if side == 1:
        return matrix.astype(np.float64), 1
    starts = [np.arange(0, n, side) for n in matrix.shape]
    sums = np.add.reduceat(np.add.reduceat(matrix.astype(np.float64), starts[0], 0), starts[1], 1)
    rows, columns = (
        np.diff(s, append=n).astype(np.float64) for s, n in zip(starts, matrix.shape, strict=True)
    )
    return sums / np.outer(rows, columns), side


def png_address(indices: NDArray[np.uint8], palette: tuple[Colour, ...]) -> str:
    """Write a picture with a palette as a ``data:`` address.

    Parameters
    ----------
    indices : ndarray of uint8, shape (height, width)
        Number of each pixel's colour.
    palette : tuple of Colour
        At most 256 colours.

    Returns
    -------
    str
        The address; the picture is an indexed PNG (ISO/IEC 15948).
    """
    height, width = indices.shape
    # each line begins with the number of its filter, 0 for none
    lines = np.pad(indices, ((0, 0), (1, 0))).tobytes()
    parts = (
        # eight bits a pixel, of a palette
        (b"IHDR", struct.pack(">2I5B", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(part for colour in palette for part in colour)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    raw = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return f"data:image/png;base64,{base64.b64encode(raw).decode()}"
