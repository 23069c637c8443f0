"""Attention of each head as pictures, standard beside effective, as many as a page can hold.

A picture is a PNG of a few colours, as an address that holds it.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.report.drawing.colours import Colour, signed
from capacity.report.rendering import Picture

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


# characters of all pictures of a page together
MOST_CHARACTERS = 600_000
# colours on either side of white
_STEPS = 24
_PALETTE = tuple(signed(i / _STEPS) for i in range(-_STEPS, _STEPS + 1))
Matrix = NDArray[np.floating]
Head = tuple[int, int]


@dataclass(frozen=True)
class Patterns:
    """Patterns of one kind: standard attention, or one of the effective ones.

    Attributes
    ----------
    kind : str
        ``standard``, ``plain``, ``simplex`` or ``causal``.
    of : mapping of (int, int) to ndarray, shape (n, m)
        The pattern of each layer and head, by their numbers.
    """

    kind: str
    of: Mapping[Head, Matrix]


def pictures(
    patterns: Sequence[Patterns], heads: Iterable[Head], tokens: Sequence[str], largest: float
) -> dict[tuple[str, Head], Picture]:
    """Draw heads in order, as long as the page can hold them, all kinds of a head or none.

    Parameters
    ----------
    patterns : sequence of Patterns
        The kinds.
    heads : iterable of (int, int)
        Layer and head of each, the most important first.
    tokens : sequence of str
        The tokens that are attended to.
    largest : float
        The absolute weight that has the strongest colour, one of 1; others have the square root.

    Returns
    -------
    dict
        A picture for each kind and head that was drawn.
    """
    found: dict[tuple[str, Head], Picture] = {}
    left = MOST_CHARACTERS
    for head in heads:
        drawn = {(one.kind, head): _picture(one, head, tokens, largest) for one in patterns}
        left -= sum(len(one.source) + len(one.words) for one in drawn.values())
        if left < 0:
            break
        found |= drawn
    return found


def _picture(of: Patterns, head: Head, tokens: Sequence[str], largest: float) -> Picture:
    pattern = of.of[head]
    means, side = averaged(pattern)
    # by the square root, so that small weights, which most are, aren't all white
    strength = np.sign(means) * np.sqrt(np.clip(np.abs(means) / largest, 0, 1))
    steps = np.rint(strength * _STEPS) + _STEPS
    row, column = divmod(int(np.abs(pattern).argmax()), pattern.shape[1])
    words = (
        f"Layer {head[0]}, head {head[1]}, {of.kind} attention: the largest weight is "
        f"{pattern[row, column]:.3f}, from token {row} to token {column}, {tokens[column]:.40}"
    )
    squares = f"; a pixel is the mean of {side} x {side} weights" if side > 1 else ""
    return Picture(png_address(steps.astype(np.uint8), _PALETTE), f"{words}{squares}.")
