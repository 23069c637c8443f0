"""The theme of every figure: fonts, colours that colour-blind readers tell apart, sizes.

The colours are seaborn's palette ``colorblind``; in one figure a colour stands for one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
