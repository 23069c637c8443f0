"""Curves with bands in a page: points in pixels, from numbers that are computed elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 560, 300
LEFT, TOP, RIGHT, BELOW = 56, 12, 16, 44
# heights of the chart that a curve is followed beyond it, where a law can be infinite
_FAR = 10.0


@dataclass(frozen=True)
class Point:
    """A point of a curve: its numbers, with the ends of its interval, and its text."""

    x: float
    y: float
    low: float
    high: float
    says: str


@dataclass(frozen=True)
class Dot:
    """A mark of a chart in pixels, with its radius, its colour if it has one, and its text."""

    x: float
    y: float
    radius: float
    says: str
    fill: str | None = None


@dataclass(frozen=True)
class Curve:
    """A curve: its title, its line and band as points of SVG, and its marks."""

    title: str
    line: str
    band: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Chart:
    """A chart of some curves.

    Attributes
    ----------
    title, across, up : str
        Its title, and those of its axes.
    curves : tuple of Curve
        The curves.
    columns, rows : tuple of (float, str)
        Position in pixels and text of each tick.
    """

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    columns: tuple[tuple[float, str], ...]
    rows: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Scale:
    """The scale of a chart, from 0 to the largest numbers."""

    most_x: float
    most_y: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of two numbers in pixels; what lies far outside stays outside."""
        right, down = x / self.most_x, min(max(y / self.most_y, -_FAR), _FAR)
        return (
            round(LEFT + right * (WIDTH - LEFT - RIGHT), 2),
            round(HEIGHT - BELOW - down * (HEIGHT - TOP - BELOW), 2),
        )


def chart(
    title: str,
    across: str,
    up: str,
    curves: Sequence[tuple[str, Sequence[Point]]],
    scale: Scale,
    *,
    banded: str = "",
) -> Chart:
    """Place curves on a scale.

    Parameters
    ----------
    title, across, up : str
        Titles of the chart and of its axes.
    curves : sequence of (str, sequence of Point)
        Each curve with its title; its points from left to right.
    scale : Scale
        The scale of both axes.
    banded : str
        Title of the curve whose intervals are drawn as a band; several would hide one another.
    """
    columns = [(scale.at(tick, 0)[0], f"{tick:g}") for tick in ticks(scale.most_x)]
    rows = [(scale.at(0, tick)[1], f"{tick:g}") for tick in ticks(scale.most_y)]
    placed = [_curve(name, points, scale, name == banded) for name, points in curves]
    return Chart(title, across, up, tuple(placed), tuple(columns), tuple(rows))


def _curve(title: str, points: Sequence[Point], scale: Scale, with_band: bool) -> Curve:
    known = [one for one in points if one.low == one.low and one.high == one.high]
    band = [scale.at(one.x, one.low) for one in known if with_band]
    band += [scale.at(one.x, one.high) for one in reversed(known) if with_band]
    dots = (Dot(*scale.at(one.x, one.y), 4.5, one.says) for one in points if one.y <= scale.most_y)
    line = [scale.at(one.x, one.y) for one in points]
    return Curve(title, _written(line), _written(band), tuple(dots))


def ticks(most: float) -> list[float]:
    """Round numbers from 0 up to a number, at most eight.

    Examples
    --------
    >>> ticks(1.0), ticks(23)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0, 15.0, 20.0])
    """
    power = 10.0 ** math.floor(math.log10(most))
    step = next(s * power for s in (0.1, 0.2, 0.5, 1, 2, 5) if most / (s * power) <= 7)
    return [round(i * step, 10) for i in range(int(most / step + 1e-9) + 1)]


def _written(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
