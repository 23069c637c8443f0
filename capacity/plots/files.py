"""Files of figures. The same figure and versions of packages give the same file, byte for byte."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from capacity.errors import InvalidArgumentError
from capacity.safe_files import require_replaceable, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
