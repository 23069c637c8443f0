"""Accuracy grids as heat maps."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.evaluator.laws.grid import accuracy_grid
from capacity.layer.recall import Threshold
from capacity.optional import needed_by, require_packages
from capacity.plots.theme import LINE, WIDTH, canvas, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_accuracy_grid(
    grid: pd.DataFrame,
    *,
    tau: Threshold = 0.95,
    title: str | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw an accuracy grid as a heat map, with the line where the two rank bounds are equal.

    Parameters
    ----------
    grid : DataFrame
        Runs of a sweep, as `capacity.sweep.load` reads them, or a grid of them, as
        `capacity.evaluator.accuracy_grid` makes it.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold of the accuracies of runs, as for `accuracy_grid`; a grid already has one.
    title : str, optional
        Title of the figure; if omitted, the threshold and the number of runs for a table of runs,
        and none for a grid.
    ax : matplotlib.axes.Axes, optional
        Panel of a figure of yours to draw into; by default a new figure is made.
    figsize : (float, float), optional
        Width and height of a new figure, in inches; by default as large as the content needs.
    path : path, optional
        File to write it to, as for `save_figure`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InvalidArgumentError
        For a table that is neither, a grid without cells, a `tau` that the runs weren't scored at,
        or another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Notes
    -----
    Each cell shows its mean accuracy and below it the number of runs that did not diverge, with the
    number of diverged runs after a cross. Layers whose rank bound is at least the database's lie
    below the line.

    Examples
    --------
    >>> grid = pd.DataFrame({"layer_rank_bin": [5, 10], "database_rank_bin": [10, 10],
    ...     "accuracy": [0.5, 1.0], "n_runs": [2, 3], "n_diverged": [0, 1]})
    >>> plot_accuracy_grid(grid, title="p >= 0.95").axes[0].get_title()
    'p >= 0.95'
    >>> runs = pd.DataFrame({"layer_rank_bound": [4, 8], "database_rank_bound": 10,
    ...     "status": "completed", "accuracy_p75": [0.5, 1.0]})
    >>> plot_accuracy_grid(runs, tau=0.75).axes[0].get_title()
    'accuracy by p >= 0.75: 2 runs'
    """
    # before the runs are averaged
    require_packages("A plot of accuracy grids", ("seaborn", "matplotlib"), "plots")
    if "layer_rank_bin" not in grid.columns:
        runs, grid = len(grid), accuracy_grid(grid, tau)
        by = f"p {'>' if tau == 0.5 else '>='} {tau}" if not isinstance(tau, str) else tau
        title = f"accuracy by {by}: {runs} runs" if title is None else title
    titled = {title or "": grid}
    return _draw(titled, of="mean accuracy", path=path, labels=True, ax=ax, figsize=figsize)


def plot_accuracy_grids(
    grids: Mapping[str, pd.DataFrame],
    *,
    of: str = "mean accuracy",
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw several accuracy grids side by side, with the same axes and colours.

    Parameters
    ----------
    grids : mapping of str to DataFrame
        Grids of `capacity.evaluator.accuracy_grid`, by title.
    of : str
        Label of the colour bar: the quantity that the colours show.
    figsize : (float, float), optional
        Width and height of a new figure, in inches; by default as large as the content needs.
    path : path, optional
        File to write it to, as for `save_figure`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InvalidArgumentError
        Without grids, for a grid without cells, or another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Examples
    --------
    >>> grid = pd.DataFrame({"layer_rank_bin": [5, 10], "database_rank_bin": [10, 10],
    ...     "accuracy": [0.5, 1.0], "n_runs": [2, 3], "n_diverged": [0, 1]})
    >>> figure = plot_accuracy_grids({"p >= 0.75": grid, "p >= 0.95": grid})
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['p >= 0.75', 'p >= 0.95']
    """
    return _draw(grids, of=of, path=path, labels=False, figsize=figsize)


def _draw(
    grids: Mapping[str, pd.DataFrame],
    *,
    of: str,
    path: str | os.PathLike[str] | None,
    labels: bool,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
) -> Figure:
    with needed_by("A plot of accuracy grids"):
        import seaborn as sns

    for grid in grids.values():
        if not {"layer_rank_bin", "database_rank_bin", "accuracy"} <= set(grid.columns):
            raise InvalidArgumentError(
                "A grid must be what capacity.evaluator.accuracy_grid(runs, tau) returns; got a "
                f"table with the columns {', '.join(map(str, grid.columns)) or 'none':.160}."
            )
    if not grids or any(grid.empty for grid in grids.values()):
        raise InvalidArgumentError("A grid must have at least one cell to be drawn; it has none.")
    if path is not None:
        require_drawable(path)
    with figure_theme():
        every = pd.concat(grids.values())
        layer_bins = list(range(5, int(every["layer_rank_bin"].max()) + 1, 5))
        database_bins = list(range(10, int(every["database_rank_bin"].max()) + 1, 10))
        # four make a square
        across = 2 if len(grids) == 4 else min(len(grids), 3)
        down = math.ceil(len(grids) / across)
        size = _size(len(layer_bins), len(database_bins), across, down, labels)
        figure = canvas(figsize, size, None if ax is None else [ax])
        every_axes: list[Axes] = [] if ax is None else [ax]
        if not every_axes:
            every_axes = list(figure.subplots(down, across, squeeze=False, sharey=True).ravel())
        bar, holes = None, False
        for number, (axes, (title, grid)) in enumerate(
            zip(every_axes, grids.items(), strict=False)
        ):
            columns = [
                _cells(grid, name, layer_bins, database_bins)
                for name in ("accuracy", "n_runs", "n_diverged")
            ]
            texts = [
                [_label(*numbers, long=labels) for numbers in zip(*lines, strict=True)]
                for lines in zip(*(one.to_numpy(float) for one in columns), strict=True)
            ]
            sns.heatmap(
                columns[0], ax=axes, vmin=0, vmax=1, cmap="viridis", fmt="", annot=texts,
                linewidths=0.5, annot_kws={"size": 7 if labels else 5.5}, cbar=False,
            )  # fmt: skip
            bar = axes.collections[0]
            holes |= bool(columns[1].isna().to_numpy().any())
            _mark(axes, layer_bins, database_bins, named=axes is every_axes[0])
            lowest, leftmost = number + across >= len(grids), number % across == 0
            axes.set(
                xlabel=_LAYER[labels] if lowest else "",
                ylabel="database rank bound (Prop. 2.1)" if leftmost else "",
            )
            # left, and yet the title that `get_title` returns
            axes.set_title(_wrapped(title, across), loc="center", x=0, ha="left")
        _explain(figure, every_axes, len(grids), bar, of, holes=holes, given=ax is not None)
        save_figure(figure, path)
    return figure


_LAYER = {
    True: "layer rank bound, d_model + n_heads · d_head_vo (eq. 9)",
    False: "layer rank bound (eq. 9)",
}


def _wrapped(title: str, across: int) -> str:
    """A title in lines as long as its panel is wide."""
    return "\n".join(textwrap.wrap(title, {1: 70, 2: 42}.get(across, 27)))


def _explain(
    figure: Figure,
    every_axes: list[Axes],
    n: int,
    bar: Any,
    of: str,
    *,
    holes: bool,
    given: bool = False,
) -> None:
    """The scale of the colours and the meaning of the line, in a free panel if there is one."""
    from matplotlib.patches import Patch

    handles, lines = every_axes[0].get_legend_handles_labels()
    if holes:
        handles.append(Patch(facecolor="white", edgecolor="#949494", linewidth=0.8))
        lines.append("no runs")
    if n == len(every_axes):
        figure.colorbar(bar, ax=every_axes, label=of, shrink=0.8)
        if given:
            # what stands beside the panel is the user's
            every_axes[0].legend(handles, lines, loc="upper left", frameon=True, fontsize=7)
            return
        figure.legend(handles, lines, loc="outside lower center", ncols=2)
        return
    for axes in every_axes[n:]:
        axes.set_axis_off()
    free = every_axes[-1]
    scale = free.inset_axes((0.0, 0.66, 1.0, 0.06))
    figure.colorbar(bar, cax=scale, label=of, orientation="horizontal")
    lines = [text.replace(" = ", "\n= ") for text in lines]
    free.legend(handles, lines, loc="upper left", bbox_to_anchor=(-0.05, 0.4), borderpad=0)


def _size(
    n_layers: int, n_databases: int, across: int, down: int, labels: bool
) -> tuple[float, float]:
    """Size in inches: cells with labels need room, and others fit the width of a page."""
    if labels:
        return max(0.75 * n_layers + 2.4, 4.6), max(0.52 * n_databases + 1.9, 3.4)
    return WIDTH if across > 1 else 4.6, max(0.19 * n_databases, 1.2) * down + 1.5


def _cells(
    grid: pd.DataFrame, column: str, layer_bins: list[int], database_bins: list[int]
) -> pd.DataFrame:
    wide = grid.pivot(index="database_rank_bin", columns="layer_rank_bin", values=column)
    # databases grow upwards
    return wide.reindex(index=database_bins[::-1], columns=layer_bins)


def _mark(axes: Axes, layer_bins: list[int], database_bins: list[int], *, named: bool) -> None:
    """Draw the line of equal bounds, and label the edges of the cells."""
    n_rows = len(database_bins)
    # a rank r lies at r/5 cells from the left, and at r/10 cells from the bottom
    top = min(layer_bins[-1], database_bins[-1])
    axes.plot(
        [0, top / 5], [n_rows, n_rows - top / 10], color=LINE, linewidth=2,
        label="layer rank bound = database rank bound" if named else None,
    )  # fmt: skip
    axes.set_xticks(range(len(layer_bins) + 1), [str(i) for i in [0, *layer_bins]], rotation=0)
    edges = [*database_bins[::-1], 0]
    # every other edge if there are many
    some = 1 + (n_rows > 8)
    axes.set_yticks(range(n_rows, -1, -some), [str(j) for j in edges[::-some]], rotation=0)


def _label(mean: float, n_runs: float, n_diverged: float, *, long: bool) -> str:
    """A cell's mean, and, if it is `long`, its numbers of runs below."""
    if pd.isna(n_runs):
        return ""
    value = "-" if pd.isna(mean) else f"{mean:.2f}"
    if not long:
        # .88 and 1.0 are as wide
        return value.removeprefix("0") if value != "1.00" else "1.0"
    crossed = f" x{int(n_diverged)}" if n_diverged else ""
    return f"{value}\n{int(n_runs)}{crossed}"
