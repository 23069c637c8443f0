"""The theme of every figure, and its file: fonts, colours that colour-blind readers tell apart.

The colours are seaborn's palette ``colorblind``; in one figure a colour stands for one thing. The
same figure and versions of packages give the same file, byte for byte.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.errors import InvalidArgumentError
from capacity.safe_files import require_replaceable, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# width of a page's text, in inches
WIDTH = 7.2
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
