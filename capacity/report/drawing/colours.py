"""Colours of a page's pictures: scales that colour-blind readers can follow, and ink upon them."""

from __future__ import annotations

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
