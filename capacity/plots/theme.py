"""The theme of every figure, and its file: fonts, colours that colour-blind readers distinguish.

The colours are seaborn's palette ``colorblind``; each colour denotes one thing in a figure. The
same figure and versions of packages yield the same file, byte for byte.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.safe_files import require_replaceable, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# width of a page's text, in inches, and most inches of a side
WIDTH = 7.2
MOST_INCHES = 200
# blue, orange, green, vermilion, purple, brown, sky, grey
COLOURS = (
    "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#56b4e9", "#949494",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# lines that data are held against, such as that of equal bounds
LINE = "#d55e00"
_THEME: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.titlesize": 10.5,
    "figure.labelsize": 9,
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.markersize": 4,
    "savefig.dpi": 150,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}


@contextmanager
def figure_theme() -> Iterator[None]:
    """Draw in the theme of this library's figures, within a ``with`` block.

    Yields
    ------
    None
        Nothing: the settings of matplotlib are changed, and restored afterwards.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> with figure_theme():
    ...     mpl.rcParams["axes.titlelocation"]
    'left'
    """
    import matplotlib as mpl
    from cycler import cycler

    settings: Any = {**_THEME, "axes.prop_cycle": cycler(color=COLOURS)}
    with mpl.rc_context(settings):
        yield


def canvas(
    figsize: tuple[float, float] | None,
    size: tuple[float, float],
    axes: Sequence[Axes] | None = None,
    n_axes: int = 1,
) -> Figure:
    """Return a new figure of a size, or that of the axes that a user passes.

    Parameters
    ----------
    figsize : (float, float), optional
        What the user asks for, in inches.
    size : (float, float)
        What the content needs.
    axes : sequence of Axes, optional
        Panels of a figure of the user.
    n_axes : int
        Number of panels that are drawn.

    Raises
    ------
    InvalidTypeError
        If `axes` holds anything but panels.
    InvalidArgumentError
        For another number of panels, both panels and a size, or a size that isn't two positive
        numbers.
    """
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if figsize is not None:
        sides = [] if isinstance(figsize, str) else list(figsize)
        right = [isinstance(side, int | float) and 0 < side <= MOST_INCHES for side in sides]
        if len(right) != 2 or not all(right):
            raise InvalidArgumentError(
                f"`figsize` must be a width and a height in inches, above 0 and at most "
                f"{MOST_INCHES}; got {shown(figsize)}."
            )
    if axes is None:
        return Figure(figsize=figsize or size)
    if not all(isinstance(one, Axes) for one in axes):
        raise InvalidTypeError(
            f"A panel must be an Axes of matplotlib, as plt.subplots() returns; got {shown(axes)}."
        )
    if len(axes) != n_axes:
        raise InvalidArgumentError(
            f"This figure has {n_axes} panel{'s' * (n_axes > 1)}; got axes for {len(axes)}. Omit "
            "`axes`, and the function makes a figure."
        )
    if figsize is not None:
        raise InvalidArgumentError(
            "`figsize` is the size of a new figure, and panels of a figure were given. Choose one "
            "of them."
        )
    # of the panel itself, which may lie in a subfigure
    return cast(Figure, axes[0].get_figure(root=True))


# without these, matplotlib writes the date into SVG and PDF
METADATA: dict[str, dict[str, None] | None] = {
    ".png": None,
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}


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


def save_figure(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a figure to a file, completely or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : path, optional
        File with the suffix .png, .svg or .pdf; if omitted, nothing is written.

    Raises
    ------
    InvalidArgumentError
        For another suffix.
    StorageError
        If the file can't be written; no part of it is left then.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from matplotlib.figure import Figure
    >>> with TemporaryDirectory() as folder:
    ...     save_figure(Figure(), Path(folder, "empty.svg"))
    ...     Path(folder, "empty.svg").exists()
    True
    """
    import matplotlib as mpl

    if path is None:
        return
    require_drawable(path)
    suffix, drawn = Path(path).suffix.lower(), io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "capacity"}):
        figure.savefig(drawn, format=suffix[1:], metadata=METADATA[suffix])
    write_whole(path, drawn.getvalue())
