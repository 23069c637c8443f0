"""Figures drawn from tables that are computed elsewhere.

The same table and versions of packages give the same file, byte for byte.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.extras import needed_by
from capacity.safe_files import require_replaceable, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_accuracy_grid", "plot_accuracy_grids", "plot_attention"]

# without these, matplotlib writes the date into SVG and PDF
METADATA: dict[str, dict[str, None] | None] = {
    ".png": None,
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


def plot_accuracy_grid(
    grid: pd.DataFrame, *, title: str = "", path: str | os.PathLike[str] | None = None
) -> Figure:
    """Draw an accuracy grid as a heat map, with the line where the two rank bounds are equal.

    Parameters
    ----------
    grid : DataFrame
        Grid of `capacity.evaluator.accuracy_grid`.
    title : str
        Title of the figure.
    path : path, optional
        File to write the figure to, with the suffix .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which isn't registered with pyplot.

    Raises
    ------
    InvalidArgumentError
        For a grid without cells, or another suffix.
    StorageError
        If the file can't be written; no part of it is left then.
    MissingExtraError
        Without seaborn and matplotlib (extra ``plots``).

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
    """
    return _draw({title: grid}, of="mean accuracy", path=path, labels=True)


def plot_accuracy_grids(
    grids: Mapping[str, pd.DataFrame],
    *,
    of: str = "mean accuracy",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw several accuracy grids side by side, with the same axes and colours.

    Parameters
    ----------
    grids : mapping of str to DataFrame
        Grids of `capacity.evaluator.accuracy_grid`, by title.
    of : str
        Label of the colour bar: the quantity that the colours show.
    path : path, optional
        File to write the figure to, with the suffix .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which isn't registered with pyplot.

    Raises
    ------
    InvalidArgumentError
        Without grids, for a grid without cells, or another suffix.
    StorageError
        If the file can't be written; no part of it is left then.
    MissingExtraError
        Without seaborn and matplotlib (extra ``plots``).

    Examples
    --------
    >>> grid = pd.DataFrame({"layer_rank_bin": [5, 10], "database_rank_bin": [10, 10],
    ...     "accuracy": [0.5, 1.0], "n_runs": [2, 3], "n_diverged": [0, 1]})
    >>> figure = plot_accuracy_grids({"p >= 0.75": grid, "p >= 0.95": grid})
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['p >= 0.75', 'p >= 0.95']
    """
    return _draw(grids, of=of, path=path, labels=False)


def plot_attention(
    patterns: Mapping[str, pd.DataFrame],
    *,
    title: str = "",
    shares: pd.DataFrame | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw attention patterns side by side, on one colour scale centred at 0.

    Parameters
    ----------
    patterns : mapping of str to DataFrame
        Attention weights by title: rows attend to columns, and both are labelled by tokens.
    title : str
        Title of the figure.
    shares : DataFrame, optional
        Effective share of each layer (rows) and head (columns), from 0 to 1, drawn in a panel to
        the left of the patterns.
    path : path, optional
        File to write the figure to, with the suffix .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which isn't registered with pyplot.

    Raises
    ------
    InvalidArgumentError
        Without a pattern, for a pattern without tokens, or another suffix.
    StorageError
        If the file can't be written; no part of it is left then.
    MissingExtraError
        Without seaborn and matplotlib (extra ``plots``).

    Examples
    --------
    >>> tokens = ["Astrid", "born_in"]
    >>> pattern = pd.DataFrame([[1.0, 0.0], [0.3, 0.7]], index=tokens, columns=tokens)
    >>> plot_attention({"head 0": pattern}).axes[0].get_ylabel()
    'from'
    """
    with needed_by("plot_attention"):
        import seaborn as sns
        from matplotlib.figure import Figure

    if not patterns or any(pattern.empty for pattern in patterns.values()):
        raise InvalidArgumentError(
            "A figure of attention must have a pattern of at least one token; got none."
        )
    if path is not None:
        require_drawable(path)
    n = len(next(iter(patterns.values())))
    most = max(float(pattern.abs().to_numpy().max()) for pattern in patterns.values())
    panels = len(patterns) + (shares is not None)
    figure = Figure(figsize=(1 + 6 * panels, 6.2), layout="constrained", dpi=110)
    axes = list(figure.subplots(1, panels, squeeze=False)[0])
    if shares is not None:
        first = axes.pop(0)
        sns.heatmap(shares, ax=first, vmin=0, vmax=1, cmap="viridis", square=True,
                    cbar_kws={"label": "effective share", "shrink": 0.4})  # fmt: skip
        first.set_title("all heads", fontsize=10)
    # more labels than these overlap
    labels = n <= 64
    for one, (name, pattern) in zip(axes, patterns.items(), strict=True):
        # white is 0; negative weights, which effective attention can have, are blue
        sns.heatmap(pattern, ax=one, cmap="RdBu_r", vmin=-most, vmax=most, square=True,
                    cbar=one is axes[-1], cbar_kws={"label": "weight", "shrink": 0.7},
                    xticklabels=labels, yticklabels=labels)  # fmt: skip
        one.set_title(name, fontsize=10)
        one.tick_params(labelsize=max(5, 9 - n // 10))
    axes[0].set_ylabel("from")
    for one in axes:
        one.set_xlabel("to")
    figure.suptitle(title, fontsize=11)
    _write(figure, path)
    return figure


def _draw(
    grids: Mapping[str, pd.DataFrame],
    *,
    of: str,
    path: str | os.PathLike[str] | None,
    labels: bool,
) -> Figure:
    with needed_by("A plot of accuracy grids"):
        import matplotlib as mpl
        import seaborn as sns
        from matplotlib.figure import Figure

    for grid in grids.values():
        if not {"layer_rank_bin", "database_rank_bin", "accuracy"} <= set(grid.columns):
            raise InvalidArgumentError(
                "A grid must be what capacity.evaluator.accuracy_grid(runs, tau) returns; got a "
                f"table with the columns {', '.join(map(str, grid.columns)):.160}."
            )
    if not grids or any(grid.empty for grid in grids.values()):
        raise InvalidArgumentError("A grid must have at least one cell to be drawn; it has none.")
    if path is not None:
        require_drawable(path)
    every = pd.concat(grids.values())
    layer_bins = list(range(5, int(every["layer_rank_bin"].max()) + 1, 5))
    database_bins = list(range(10, int(every["database_rank_bin"].max()) + 1, 10))
    n_rows = len(database_bins)

    def cells(grid: pd.DataFrame, column: str) -> pd.DataFrame:
        wide = grid.pivot(index="database_rank_bin", columns="layer_rank_bin", values=column)
        # databases grow upwards
        return wide.reindex(index=database_bins[::-1], columns=layer_bins)

    with mpl.rc_context({"font.size": 9}):
        cell = (0.75, 0.52) if labels else (0.42, 0.26)
        width, height = cell[0] * len(layer_bins) + 1.2, cell[1] * n_rows + 1.9
        size = (max(width * len(grids) + 1.2, 4.6), max(height, 3.4))
        figure = Figure(figsize=size, layout="constrained", dpi=150)
        row = figure.subplots(1, len(grids), squeeze=False)[0]
        for panel, (axes, (title, grid)) in enumerate(zip(row, grids.items(), strict=True)):
            names = ("accuracy", "n_runs", "n_diverged")
            columns = [cells(grid, name).to_numpy(float) for name in names]
            texts = [
                [_label(*numbers) for numbers in zip(*lines, strict=True)]
                for lines in zip(*columns, strict=True)
            ]
            sns.heatmap(
                cells(grid, "accuracy"), ax=axes, vmin=0, vmax=1, cmap="viridis", fmt="",
                annot=texts if labels else None, linewidths=0.5, annot_kws={"size": 7},
                cbar=panel == len(grids) - 1, cbar_kws={"label": of},
            )  # fmt: skip
            # a rank r lies at r/5 cells from the left, and at r/10 cells from the bottom
            top = min(layer_bins[-1], database_bins[-1])
            axes.plot(
                [0, top / 5], [n_rows, n_rows - top / 10], color="crimson", linewidth=2,
                label=None if panel else "layer rank bound = database rank bound",
            )  # fmt: skip
            axes.set_xticks(range(len(layer_bins) + 1), [str(i) for i in [0, *layer_bins]],
                            rotation=0)  # fmt: skip
            axes.set_yticks(range(n_rows + 1), [str(j) for j in [*database_bins[::-1], 0]],
                            rotation=0)  # fmt: skip
            axes.set_xlabel(
                "" if panel else "layer rank bound, d_model + n_heads · d_head_vo  (eq. 9)"
            )
            axes.set_ylabel("" if panel else "database rank bound  (Prop. 2.1)")
            axes.set_title(title, fontsize=10)
        figure.legend(loc="outside lower center", frameon=False, fontsize=8)
    _write(figure, path)
    return figure


def require_drawable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no figure can be written to, before the figure is computed.

    Parameters
    ----------
    path : path
        File of a figure.

    Raises
    ------
    InvalidArgumentError
        If its suffix isn't .png, .svg or .pdf.
    StorageError
        If it is a folder, a pipe or a device.

    Examples
    --------
    >>> require_drawable("figure.svg")
    """
    if Path(path).suffix.lower() not in METADATA:
        raise InvalidArgumentError(f"A figure's name must end in .png, .svg or .pdf; got {path}.")
    require_replaceable(Path(path))


def _write(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    import matplotlib as mpl

    if path is None:
        return
    suffix, drawn = Path(path).suffix.lower(), io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "capacity"}):
        figure.savefig(drawn, format=suffix[1:], metadata=METADATA[suffix])
    write_whole(path, drawn.getvalue())


def _label(mean: float, n_runs: float, n_diverged: float) -> str:
    if pd.isna(n_runs):
        return ""
    crossed = f" x{int(n_diverged)}" if n_diverged else ""
    return f"{'-' if pd.isna(mean) else f'{mean:.2f}'}\n{int(n_runs)}{crossed}"
