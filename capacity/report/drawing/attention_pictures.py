"""Attention of each head as pictures, standard beside effective, as many as a page can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.report.drawing.colours import signed
from capacity.report.drawing.pixels import averaged, png_address
from capacity.report.tables import Picture

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
