"""Parts that figures share: estimates with intervals, and titles that tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from numpy.typing import NDArray

# of the two recipes, in every figure
KINDS = ("plain", "best")
# what data are held against, beside the colours of the recipes
REFERENCE = "#262626"


def value_of(one: Mapping[str, Any]) -> float:
    """The mean, value or slope of a conclusion; NaN if there is none."""
    found = next((one[key] for key in ("mean", "value", "slope") if key in one), None)
    return np.nan if found is None else float(found)


def ends_of(one: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of its interval; NaN if there is none."""
    interval = one.get("interval")
    return (np.nan, np.nan) if interval is None else (float(interval[0]), float(interval[1]))


def told(one: Mapping[str, Any], digits: int = 2, *, interval: bool = False) -> str:
    """A conclusion as text: 0.77, or 0.77 [0.75, 0.78]."""
    text = f"{value_of(one):.{digits}f}"
    low, high = ends_of(one)
    return f"{text} [{low:.{digits}f}, {high:.{digits}f}]" if interval else text


def percent(one: Mapping[str, Any], *, interval: bool = False) -> str:
    """A share as text: 77 %, or 77 % [75, 78]."""
    low, high = ends_of(one)
    text = f"{100 * value_of(one):.0f} %"
    return f"{text} [{100 * low:.0f}, {100 * high:.0f}]" if interval else text


def estimates(
    axes: Axes,
    places: Sequence[float] | NDArray[Any],
    of: Sequence[Mapping[str, Any]],
    *,
    colour: str,
    marker: str = "o",
    label: str | None = None,
    line: str = "none",
    hollow: bool = False,
    across: bool = False,
) -> ErrorbarContainer:
    """Draw conclusions with their intervals, at heights, or `across` at places on the y axis."""
    middle = np.array([value_of(one) for one in of])
    low, high = np.array([ends_of(one) for one in of]).reshape(-1, 2).T
    # a resampled interval may leave its estimate just outside
    errors = np.maximum([middle - low, high - middle], 0)
    where: dict[str, Any] = {"x": middle, "y": places, "xerr": errors} if across else {
        "x": places, "y": middle, "yerr": errors}  # fmt: skip
    return axes.errorbar(
        **where, fmt=marker, color=colour, linestyle=line, label=label, capsize=2, elinewidth=1,
        linewidth=1, markeredgewidth=1, markerfacecolor="white" if hollow else to_rgba(colour),
    )  # fmt: skip


def headline(figure: Figure, text: str) -> None:
    """Say the finding above all panels, from the left."""
    # given with the text, a place would be kept out of the layout
    figure.suptitle(text, ha="left").set_x(0.01)
