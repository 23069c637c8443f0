"""Pictures of grids and of attention, in colours that colour-blind readers can follow.

A picture is a PNG of a few colours, as an address that holds it.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.evaluator.laws.grid import DATABASE_BIN, LAYER_BIN
from capacity.report.rendering import Picture

if TYPE_CHECKING:
    import pandas as pd


# viridis (van der Walt and Smith 2015), from 0 to 1 in steps of an eighth
_VIRIDIS = (
    "440154",
    "472d7b",
    "3b528b",
    "2c728e",
    "21918c",
    "28ae80",
    "5ec962",
    "addc30",
    "fde725",
)
# from -1 to 1: blue, white, vermilion
_SIGNED = ("0173b2", "ffffff", "d55e00")
Colour = tuple[int, int, int]


def sequential(share: float) -> Colour:
    """Colour of a number from 0 to 1; others get that of the nearer end.

    Examples
    --------
    >>> hexadecimal(sequential(0.0)), hexadecimal(sequential(1.0))
    ('#440154', '#fde725')
    """
    return _between(_VIRIDIS, share)


def signed(value: float) -> Colour:
    """Colour of a number from -1 to 1, with white for 0.

    Examples
    --------
    >>> hexadecimal(signed(0.0)), hexadecimal(signed(1.0))
    ('#ffffff', '#d55e00')
    """
    return _between(_SIGNED, (value + 1) / 2)


def hexadecimal(colour: Colour) -> str:
    """Write a colour as styles and SVG have it."""
    return "#" + "".join(f"{part:02x}" for part in colour)


def ink(ground: Colour) -> str:
    """Black or white, whichever is read more easily on a colour; the contrast is 4.5 or more."""
    dark, light = contrast((0, 0, 0), ground), contrast((255, 255, 255), ground)
    return "#000000" if dark >= light else "#ffffff"


def contrast(one: Colour, other: Colour) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2, relative luminance).

    Examples
    --------
    >>> round(contrast((0, 0, 0), (255, 255, 255)))
    21
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    parts = (part / 255 for part in colour)
    linear = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _between(scale: tuple[str, ...], share: float) -> Colour:
    """Interpolate between the two nearest colours of a scale."""
    at = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    ends = [[int(text[i : i + 2], 16) for i in (0, 2, 4)] for text in scale[low : low + 2]]
    red, green, blue = (round(a + (at - low) * (b - a)) for a, b in zip(*ends, strict=True))
    return red, green, blue


WIDTH, HEIGHT = 48, 36
# of the labels at the left, above and below
LEFT, ABOVE, BELOW = 44, 28, 40
# what a page draws; more are drawn by `capacity grid`
MOST_CELLS = 2500


@dataclass(frozen=True)
class GridCell:
    """A cell: its bins by their upper ends, its numbers, its place in pixels, and its colours."""

    layer_bin: int
    database_bin: int
    accuracy: float | None
    n_runs: int
    n_diverged: int
    x: int
    y: int
    fill: str
    ink: str
    lines: tuple[str, str]
    says: str


@dataclass(frozen=True)
class GridPicture:
    """A grid of cells, with ticks at the edges of bins and the line of equal bounds.

    Attributes
    ----------
    title : str
        What counts as recalled.
    width, height : int
        Its size in pixels, with labels.
    cells : tuple of GridCell
        Those that have runs.
    columns, rows : tuple of (int, int)
        Position in pixels and rank of each edge, from left to right and from the top down.
    equal : tuple of int
        Ends of the line where the two bounds are equal: x1, y1, x2, y2.
    """

    title: str
    width: int
    height: int
    cells: tuple[GridCell, ...]
    columns: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, int], ...]
    equal: tuple[int, int, int, int]


def grid_pictures(grids: Mapping[str, pd.DataFrame]) -> tuple[GridPicture, ...]:
    """Draw accuracy grids side by side, on the same axes.

    Parameters
    ----------
    grids : mapping of str to DataFrame
        Grids of `capacity.evaluator.accuracy_grid`, by title.

    Returns
    -------
    tuple of GridPicture
        In the same order, as long as all of them have at most `MOST_CELLS` cells.
    """
    n_columns = max(int(grid["layer_rank_bin"].max()) for grid in grids.values()) // LAYER_BIN
    n_rows = max(int(grid["database_rank_bin"].max()) for grid in grids.values()) // DATABASE_BIN
    found: list[GridPicture] = []
    left = MOST_CELLS
    for title, grid in grids.items():
        left -= len(grid)
        if left < 0:
            break
        found.append(_picture(title, grid, n_columns, n_rows))
    return tuple(found)


def _picture(title: str, grid: pd.DataFrame, n_columns: int, n_rows: int) -> GridPicture:
    base = ABOVE + n_rows * HEIGHT
    # the line goes as far as both axes do
    top = min(n_columns * LAYER_BIN, n_rows * DATABASE_BIN)
    return GridPicture(
        title,
        LEFT + n_columns * WIDTH + 16,
        base + BELOW,
        tuple(_cell(row, base) for row in grid.to_dict("records")),
        tuple((LEFT + i * WIDTH, i * LAYER_BIN) for i in range(n_columns + 1)),
        tuple((base - j * HEIGHT, j * DATABASE_BIN) for j in range(n_rows, -1, -1)),
        (LEFT, base, LEFT + round(top / LAYER_BIN * WIDTH),
         base - round(top / DATABASE_BIN * HEIGHT)),
    )  # fmt: skip


def _cell(row: Mapping[Any, Any], base: int) -> GridCell:
    i, j = int(row["layer_rank_bin"]), int(row["database_rank_bin"])
    n, diverged = int(row["n_runs"]), int(row["n_diverged"])
    mean = row["accuracy"]
    # a cell where all runs diverged has no mean
    known = mean == mean
    colour = sequential(mean) if known else (255, 255, 255)
    crossed = f" x{diverged}" if diverged else ""
    what = f"mean accuracy {mean:.3f} of {n}" if known else "no mean: all"
    return GridCell(
        i, j, float(mean) if known else None, n, diverged,
        LEFT + (i // LAYER_BIN - 1) * WIDTH, base - j // DATABASE_BIN * HEIGHT,
        hexadecimal(colour), ink(colour),
        (f"{mean:.2f}" if known else "-", f"{n}{crossed}"),
        f"Layer rank bound {i - LAYER_BIN + 1} to {i}, database rank bound "
        f"{j - DATABASE_BIN + 1} to {j}: {what} runs"
        + (f"; {diverged} diverged." if diverged else "."),
    )  # fmt: skip


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
        drawn = {
            (one.kind, head): _attention_picture(one, head, tokens, largest) for one in patterns
        }
        left -= sum(len(one.source) + len(one.words) for one in drawn.values())
        if left < 0:
            break
        found |= drawn
    return found


def _attention_picture(of: Patterns, head: Head, tokens: Sequence[str], largest: float) -> Picture:
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
