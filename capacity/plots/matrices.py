"""Matrices over named tokens as heat maps, each cell with its number where there is room."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.optional import needed_by, require_packages
from capacity.plots.theme import canvas, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

# most rows or columns whose names can be read beside one another, and most matrices in a figure
MOST_TOKENS = 40
MOST_MATRICES = 24
# inches of a cell, and of a name beside it
CELL = 0.3
NAME = 1.1
# cells up to this number show their values
NUMBERED = 240
# a colour bar; it leaves the panels at their corners
BAR: dict[str, Any] = {"shrink": 0.7, "aspect": 30, "panchor": False}
# characters of a name that are shown
LETTERS = 18


@dataclass(frozen=True)
class Scale:
    """A scale of colours.

    Attributes
    ----------
    cmap : str
        Name of the colours in matplotlib.
    least, most : float
        Values of its ends.
    """

    cmap: str
    least: float
    most: float


def plot_matrices(
    matrices: Mapping[str, pd.DataFrame],
    *,
    of: str = "value",
    title: str = "",
    across: int = 3,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw matrices over named tokens side by side, on one colour scale, lightest at 0.

    Parameters
    ----------
    matrices : mapping of str to DataFrame
        Matrices by title, with names of tokens in their rows and columns. The names of the index
        and of the columns label the axes.
    of : str
        Label of the colour bar: the quantity that the colours show.
    title : str
        Title of the figure.
    across : int
        Number of matrices side by side.
    ax : matplotlib.axes.Axes, optional
        Panel of a figure of yours to draw into, for a single matrix; by default a new figure is
        made. For several see `draw_matrix`.
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
        Without a matrix, for more than 24 of them, for one without cells or of more than 40 rows
        or columns, for `across` below 1, or another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Examples
    --------
    >>> born = pd.DataFrame([[0, 1], [2, 0]], index=["Astrid", "Colin"], columns=["m", "s"])
    >>> plot_matrices({"born_in": born}).axes[0].get_title()
    'born_in'
    """
    require_packages("plot_matrices", ("matplotlib", "seaborn"), "plots")
    require_legible(matrices, "Choose some of its rows and columns.")
    if across < 1:
        raise InvalidArgumentError(f"`across` must be at least 1; got {across}.")
    if path is not None:
        require_drawable(path)
    across = min(across, len(matrices))
    down = math.ceil(len(matrices) / across)
    shapes = [one.shape for one in matrices.values()]
    heights = [max(n for n, _ in shapes[i : i + across]) for i in range(0, len(shapes), across)]
    widths = [max(n for _, n in shapes[i::across]) for i in range(across)]
    with figure_theme():
        size = (
            sum(widths) * CELL + NAME * across + 0.8,
            sum(heights) * CELL + NAME * down + 0.4 * bool(title),
        )
        figure = canvas(figsize, size, None if ax is None else [ax], len(matrices))
        every: list[Axes] = [ax] if ax is not None else figure.subplots(
            down, across, squeeze=False, width_ratios=widths, height_ratios=heights
        ).ravel().tolist()  # fmt: skip
        scale = scale_of(matrices.values())
        bars = [
            draw_matrix(axes, matrix, title=name, scale=scale)
            for axes, (name, matrix) in zip(every, matrices.items(), strict=False)
        ]
        for axes in every[len(matrices) :]:
            axes.set_axis_off()
        figure.colorbar(bars[0], ax=every, label=of, **BAR)
        if title or ax is None:
            figure.suptitle(plain(title))
        save_figure(figure, path)
    return figure


def require_legible(matrices: Mapping[str, pd.DataFrame], advice: str) -> None:
    """Refuse matrices that can't be read when they are drawn: an InvalidArgumentError."""
    if not matrices or any(matrix.empty for matrix in matrices.values()):
        raise InvalidArgumentError("A figure must have a matrix of at least one cell; got none.")
    for name, matrix in matrices.items():
        if max(matrix.shape) > MOST_TOKENS:
            raise InvalidArgumentError(
                f"A matrix must have at most {MOST_TOKENS} rows and columns, or their names can't "
                f"be read; {name} has {matrix.shape[0]:,} x {matrix.shape[1]:,}. {advice}"
            )
    if len(matrices) > MOST_MATRICES:
        raise InvalidArgumentError(
            f"A figure must have at most {MOST_MATRICES} matrices; got {len(matrices)}. Draw them "
            "in several figures."
        )


def largest(matrices: Any) -> float:
    """Return the largest absolute value, or 1 if all are 0 or none is finite."""
    values = [abs(x) for matrix in matrices for x in matrix.to_numpy(float).ravel().tolist()]
    return max((x for x in values if math.isfinite(x)), default=0.0) or 1.0


def scale_of(matrices: Iterable[pd.DataFrame]) -> Scale:
    """Choose the scale of colours of some matrices: 0 is the lightest, and blue what is below.

    Where nothing is below, the scale begins at 0, and the whole of it is used.

    Parameters
    ----------
    matrices : iterable of DataFrame
        Matrices that are drawn with it.

    Returns
    -------
    Scale
        From red through white to blue, as far up as down, or shades of red.

    Examples
    --------
    >>> scale_of([pd.DataFrame([[0.0, 0.5]])]), scale_of([pd.DataFrame([[-1.0, 0.5]])])
    (Scale(cmap='Reds', least=0.0, most=0.5), Scale(cmap='RdBu_r', least=-1.0, most=1.0))
    """
    matrices = list(matrices)
    most = largest(matrices)
    negative = any((matrix.to_numpy(float) < 0).any() for matrix in matrices)
    return Scale("RdBu_r", -most, most) if negative else Scale("Reds", 0.0, most)


def draw_matrix(
    axes: Axes, matrix: pd.DataFrame, *, title: str = "", scale: Scale | None = None
) -> QuadMesh:
    """Draw one matrix of square cells into a panel.

    The circuits of a layer (`capacity.evaluator.circuit_tables`), the terms of a pair
    (`capacity.evaluator.pair_answer`) and any other matrix are drawn so.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The panel, such as ``plt.subplots()`` makes.
    matrix : DataFrame
        Numbers, with names of tokens in rows and columns. The names of the index and of the columns
        label the axes.
    title : str
        Title of the panel.
    scale : Scale, optional
        Colours, as `scale_of` makes them of all matrices that share them; by default of this one.

    Returns
    -------
    matplotlib.collections.QuadMesh
        What ``figure.colorbar`` takes.

    Raises
    ------
    InvalidArgumentError
        For a matrix without cells, or of more than 40 rows or columns.
    MissingExtraError
        If seaborn isn't installed (extra ``plots``).

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> born = pd.DataFrame([[0, 1], [2, 0]], index=["Astrid", "Colin"], columns=["m", "s"])
    >>> left, right = Figure().subplots(1, 2)
    >>> draw_matrix(right, born, title="born_in").get_clim()
    (0.0, 2.0)
    """
    with needed_by("A plot of matrices"):
        import seaborn as sns

    require_legible({title or "The matrix": matrix}, "Choose some of its rows and columns.")
    colours = scale_of([matrix]) if scale is None else scale
    most = colours.most
    numbered = matrix.size <= NUMBERED
    values = matrix.to_numpy(float).tolist()
    whole = all(float(x).is_integer() and abs(x) < 1e5 for row in values for x in row)
    texts = [[f"{x:.0f}" if whole else number(x, most) for x in row] for row in values]
    sns.heatmap(
        matrix.to_numpy(float), ax=axes, vmin=colours.least, vmax=most, cmap=colours.cmap,
        square=True, cbar=False, annot=texts if numbered else None, fmt="", annot_kws={"size": 5.5},
        linewidths=0.5, linecolor="#dddddd",
        xticklabels=[short(name) for name in matrix.columns],
        yticklabels=[short(name) for name in matrix.index],
    )  # fmt: skip
    axes.tick_params(labelsize=7, length=0)
    axes.tick_params(axis="x", rotation=90)
    axes.tick_params(axis="y", rotation=0)
    names = [plain(str(one.name or "")) for one in (matrix.columns, matrix.index)]
    axes.set(xlabel=names[0], ylabel=names[1])
    # left, and yet the title that `get_title` returns
    axes.set_title(plain(title), loc="center", x=0, ha="left")
    axes.set_anchor("NW")
    return cast("QuadMesh", axes.collections[0])


def number(x: float, most: float) -> str:
    """Write a number for a small cell, as precisely as its colour can be read.

    Examples
    --------
    >>> [number(x, 14.2) for x in (0.0, -0.01, 0.55, -12.34)], number(0.555, 0.9)
    (['0', '0', '0.6', '-12.3'], '0.555')
    >>> number(1234.5, 2e4), number(-2e6, 3e6)
    ('1234', '-2.0e+06')
    """
    if not 1e-3 <= most < 1e5:
        return f"{x:.1e}" if x else "0"
    text = f"{x:.{min(4, max(0, 2 - math.floor(math.log10(most * 1.05))))}f}"
    return text if float(text) else "0"


def short(name: object) -> str:
    """Cut a name that has no room beside a cell, as text that matplotlib draws unchanged.

    Examples
    --------
    >>> short("Singapore"), short("a name of far too many letters"), short("")
    ('Singapore', 'a name of far too…', '""')
    """
    text = str(name) or '""'
    return plain(text if len(text) <= LETTERS else text[: LETTERS - 1].rstrip() + "…")


def plain(text: str) -> str:
    r"""Escape what matplotlib would read as a formula.

    Examples
    --------
    >>> print(plain("from $5 to $6"))
    from \$5 to \$6
    """
    return text.replace("$", r"\$")
