"""Every figure of an experiment can be read: titles, legends, no text over another, an SVG too.

They are drawn from the committed tables and conclusions, and laid out as for a file.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase

from capacity.plots import figure_theme
from experiments import EXPERIMENTS
from experiments.common.harness import committed, results_of

# inches of a page's text
WIDEST = 7.3
# pixels by which the boxes of letters may touch, or leave the figure
TOUCH = 1.5
# these take over five seconds
SLOW = {"capacity_law", "figures"}
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in EXPERIMENTS]


@cache
def figures_of(name: str) -> dict[str, Figure]:
    results = results_of(name)
    found = json.loads((results / f"{name}.json").read_text())
    keys = [
        path.stem.removeprefix(f"{name}-") for path in sorted(results.glob(f"{name}-*.parquet"))
    ]
    with figure_theme():
        tables = {key: committed(name, key) for key in keys}
        return dict(importlib.import_module(EXPERIMENTS[name]).plot(tables, found))


def faults(figure: Figure) -> list[str]:
    """List the faults of a figure, a line for each."""
    shown = _texts(figure)
    data = [axes for axes in figure.axes if axes.has_data() and not hasattr(axes, "_colorbar")]
    said = {_look(line) for legend in figure.findobj(Legend) for line in legend.legend_handles
            if isinstance(line, Line2D)}  # fmt: skip
    return [
        *(f"{figure.get_figwidth():.1f} in wide" for _ in [0] if figure.get_figwidth() > WIDEST),
        *(f"no title: axes {i}" for i, axes in enumerate(data) if not _titled(axes)),
        *(f"not in a legend: a line of axes {i}" for i, axes in enumerate(data)
          for line in _references(axes) if _look(line) not in said),
        *(f"outside the figure: {text.get_text()!r}" for text, box in shown
          if not _inside(box, figure.bbox)),
        *(f"one over the other: {a.get_text()!r}, {b.get_text()!r}"
          for (a, one), (b, other) in combinations(shown, 2) if _meet(one, other)),
    ]  # fmt: skip


def _texts(figure: Figure) -> list[tuple[Text, Bbox]]:
    """The texts that are drawn, and where; those in the cells of maps left out."""
    maps = [axes for axes in figure.axes if axes.images or axes.findobj(QuadMesh)]
    cells = {text for axes in maps for text in axes.texts}
    shown: dict[Text, Bbox] = {}
    drawn = Text.draw

    def draw(text: Text, renderer: object, *args: object, **kwargs: object) -> None:
        if text.get_visible() and text.get_text().strip() and text not in cells:
            shown[text] = Text.get_window_extent(text, renderer)  # type: ignore[arg-type]
        drawn(text, renderer, *args, **kwargs)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch, figure_theme():
        patch.setattr(Text, "draw", draw)
        FigureCanvasAgg(figure).draw()
    return list(shown.items())


def _titled(axes: Axes) -> bool:
    """Tell if a panel has a title, or one above it has; one alone may have its figure's."""
    figure, place = axes.figure, axes.get_subplotspec()
    assert isinstance(figure, Figure)
    if len(figure.axes) == 1 and figure.get_suptitle():
        return True
    column = [
        other for other in figure.axes
        if place and (at := other.get_subplotspec())
        and at.get_gridspec() is place.get_gridspec() and at.colspan == place.colspan
        and at.rowspan.start < place.rowspan.start
    ]  # fmt: skip
    places = ("left", "center", "right")
    return any(one.get_title(loc=where) for one in [axes, *column] for where in places)


def _references(axes: Axes) -> Iterator[Line2D]:
    """Straight lines without points, such as those of `axhline`; zero explains itself."""
    for line in axes.lines:
        x, y = (list(ends) for ends in (line.get_xdata(), line.get_ydata()))  # type: ignore[arg-type]
        points = len(x) != 2 or line.get_marker() != "None"
        if not points and line.get_visible() and [0, 0] not in (x, y):
            yield line


def _look(line: Line2D) -> tuple[str, str]:
    return to_hex(line.get_color()), str(line.get_linestyle())


def _inside(box: Bbox, figure: BboxBase) -> bool:
    return (
        min(box.x0 - figure.x0, box.y0 - figure.y0, figure.x1 - box.x1, figure.y1 - box.y1) > -TOUCH
    )


def _meet(one: Bbox, other: Bbox) -> bool:
    across = min(one.x1, other.x1) - max(one.x0, other.x0)
    return min(across, min(one.y1, other.y1) - max(one.y0, other.y0)) > TOUCH


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_figure_can_be_read(name: str) -> None:
    wrong = {key: faults(figure) for key, figure in figures_of(name).items()}
    assert not {key: found for key, found in wrong.items() if found}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_those_figures_as_png_and_svg(name: str) -> None:
    for suffix in ("png", "svg"):
        files = {path.stem for path in results_of(name).glob(f"{name}-*.{suffix}")}
        assert files == {f"{name}-{key}" for key in figures_of(name)}


def _two_panels() -> tuple[Figure, list[Axes]]:
    with figure_theme():
        figure = Figure(figsize=(6, 2.5))
        panels = list(figure.subplots(1, 2))
    for axes in panels:
        axes.plot([1, 2, 3], label="a line")
        axes.set_title("a title")
    return figure, panels


def _collide(figure: Figure, panels: list[Axes]) -> None:
    for axes in panels:
        axes.set_title("a title that is as long as both of the panels are wide, and longer still")


def _leave(figure: Figure, panels: list[Axes]) -> None:
    figure.text(0.99, 0.5, "a text that leaves it")


def _hide(figure: Figure, panels: list[Axes]) -> None:
    panels[0].set_title("")


def _refer(figure: Figure, panels: list[Axes]) -> None:
    panels[0].axhline(2, color="black", label="two")
    panels[1].legend()


def _widen(figure: Figure, panels: list[Axes]) -> None:
    figure.set_figwidth(12)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (_collide, "one over the other: 'a title that"),
        (_leave, "outside the figure: 'a text that leaves it'"),
        (_hide, "no title: axes 0"),
        (_refer, "not in a legend: a line of axes 0"),
        (_widen, "12.0 in wide"),
    ],
)
def test_a_figure_with_a_fault_is_found_out(
    spoil: Callable[[Figure, list[Axes]], None], fault: str
) -> None:
    figure, panels = _two_panels()
    assert not faults(figure)
    figure, panels = _two_panels()
    spoil(figure, panels)
    assert any(found.startswith(fault) for found in faults(figure))
