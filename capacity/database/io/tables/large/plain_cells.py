"""Cells of tables of text in which all cells are plain labels, found by numpy all at once.

Rows with a cell that begins as an IRI does, and CSV with quotes, are left to
`capacity.database.io.tables.rows`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.terms.arrow import joined
from capacity.database.terms.term import Ids

if TYPE_CHECKING:
    from capacity.database.io.tables.headers import Row

SEPARATORS = {"tsv": b"\t", "csv": b","}
_FEED, _QUOTE, _LESS, _UNDERSCORE = (ord(c) for c in '\n"<_')
_EMPTY_LINES = re.compile(rb"\n\n+")


@dataclass(frozen=True)
class Cells:
    """Cells of whole lines of a table, all rows of one length.

    Attributes
    ----------
    text : bytes
        The lines, without empty ones; a line feed ends each.
    ends : ndarray of int64, shape (n * width,)
        Where each cell has ended; the next begins one byte further.
    plain : int
        Number of cells that can't be terms.
    quoted : list of Row
        Rows in which there are quotes.
    """

    text: bytes
    ends: NDArray[np.int64]
    plain: int
    quoted: list[Row]


def find_cells(lines: bytes | memoryview, format: str, width: int) -> Cells | None:
    r"""Find the cells of whole lines of a table.

    Parameters
    ----------
    lines : bytes or memoryview
        The lines.
    format : {'tsv', 'csv'}
        Format of the table.
    width : int
        Number of cells of each row.

    Returns
    -------
    Cells or None
        None if a row has another length, is empty but for its separators, or has a cell that begins
        as an IRI does, and for CSV with quotes or line ends of other systems.

    Examples
    --------
    >>> find_cells(b"a\tp\tb\r\n\na\tp\t\n", "tsv", 3).ends.tolist()
    [1, 3, 5, 7, 9, 10]
    """
    text = bytes(lines)
    if format == "csv" and not is_simple_csv(text):
        return None
    if b"\r" in text:
        # one before the end of a line, or of the text, is of that end
        text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if b"\n\n" in text:
        text = _EMPTY_LINES.sub(b"\n", text)
    text = text.removeprefix(b"\n")
    if text and not text.endswith(b"\n"):
        text += b"\n"
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((data == _FEED) | (data == SEPARATORS[format][0]))
    if len(ends) % width:
        return None
    last = (data[ends] == _FEED).reshape(-1, width)
    if not last[:, -1].all() or last[:, :-1].any():
        return None
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    # of an empty cell that is its end
    first, full = data[begins], begins < ends
    if (first == _LESS).any() or not full.reshape(-1, width).any(axis=1).all():
        return None
    plain = np.count_nonzero(full & (first != _QUOTE) & (first != _UNDERSCORE))
    return Cells(text, ends, int(plain), _quoted(text, data, ends, begins, width))


def is_simple_csv(text: bytes) -> bool:
    """Return True if CSV has no quotes, NULs, or line ends of other systems."""
    # a search for one byte takes a tenth of the time of one for two
    alone = b"\r" in text and text.count(b"\r") > text.count(b"\r\n")
    return not (b'"' in text or b"\0" in text or alone)


def _quoted(
    text: bytes,
    data: NDArray[np.uint8],
    ends: NDArray[np.int64],
    begins: NDArray[np.int64],
    width: int,
) -> list[Row]:
    if b'"' not in text:
        return []
    rows = np.unique(np.searchsorted(ends, np.flatnonzero(data == _QUOTE)) // width)
    cells = (np.arange(row * width, (row + 1) * width) for row in rows.tolist())
    return [(0, tuple(text[begins[i] : ends[i]].decode() for i in row)) for row in cells]


class SplitCells:
    """Numbers of the cells of a table, in Python, to which a text is fed in pieces.

    Parameters
    ----------
    format : {'tsv', 'csv'}
        Its format.
    width : int
        Number of cells of each row.
    """

    def __init__(self, format: str, width: int) -> None:
        self._format, self._width, self._ids = format, width, Ids()

    def numbered(self, lines: memoryview) -> tuple[NDArray[np.int32], int, list[Row]] | None:
        """Number the cells of whole lines.

        Returns
        -------
        rows : ndarray of int32, shape (n, width)
            Number of each cell.
        plain, quoted : int, list of Row
            As `Cells` has them.

        None is returned instead if `find_cells` finds none.
        """
        found = find_cells(lines, self._format, self._width)
        if found is None:
            return None
        separator = SEPARATORS[self._format]
        cells = found.text.replace(b"\n", separator).split(separator)
        # after the last line's end
        cells.pop()
        numbers = np.fromiter(map(self._ids.__getitem__, cells), np.int32, len(cells))
        return numbers.reshape(-1, self._width), found.plain, found.quoted

    def texts(self) -> pa.LargeStringArray:
        """Return the distinct cells, in order of their numbers."""
        return joined(list(self._ids))
