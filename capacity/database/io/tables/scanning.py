"""Find the cells of rows of tables of text, by compiled code.

Cells of plain labels alone are found: rows with a cell that begins as an IRI does, and CSV with
quotes, are left to `capacity.database.io.tables.rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.database.io.numbering import hash_of
from capacity.database.term_columns import CODES
from capacity.kept_code import kept

if TYPE_CHECKING:
    from capacity.database.io.tables.headers import Row

SEPARATORS = {"tsv": b"\t", "csv": b","}
LABEL = CODES["label"]
_FEED, _RETURN, _QUOTE, _LESS, _UNDERSCORE = (ord(c) for c in '\n\r"<_')


@kept
def scan(  # type: ignore[no-untyped-def]
    data, separator, width, begins, ends, codes, hashes, quoted
):
    """Find the cells of rows; return numbers of rows, of rows with quotes, and of plain cells.

    The first is -1 if a row has another length than `width`, is empty but for its separators, or
    has a cell that begins as an IRI does.
    """
    at, end, rows, strange, plain = 0, len(data), 0, 0, 0
    while at < end:
        line = at
        while at < end and data[at] != _FEED:
            at += 1
        stop = at
        at += 1
        if stop > line and data[stop - 1] == _RETURN:
            stop -= 1
        if stop == line:
            continue
        if stop - line < width:
            # no room for a character beside the separators
            return -1, 0, 0
        t, begin, quotes = rows * width, line, False
        column, full = 0, False
        for i in range(line, stop + 1):
            if i < stop and data[i] == _QUOTE:
                quotes = True
            if i < stop and data[i] != separator:
                continue
            if column == width:
                return -1, 0, 0
            if i > begin:
                full = True
                c = data[begin]
                if c == _LESS:
                    return -1, 0, 0
                if c != _QUOTE and c != _UNDERSCORE:
                    plain += 1
            begins[t + column], ends[t + column] = begin, i
            codes[t + column] = LABEL
            hashes[t + column] = hash_of(data, begin, i, LABEL)
            begin = i + 1
            column += 1
        if column != width or not full:
            return -1, 0, 0
        if quotes:
            quoted[strange] = rows
            strange += 1
        rows += 1
    return rows, strange, plain


@dataclass(frozen=True)
class Scanned:
    """Cells of whole lines of a table, all rows of one length.

    Attributes
    ----------
    data : ndarray of uint8
        The lines.
    n, plain : int
        Numbers of rows, and of cells that can't be terms.
    begins, ends, codes : ndarrays of int32, shape (n * width,)
        Where each cell is, and the code of labels.
    hashes : ndarray of uint64, shape (n * width,)
        Their hashes (`hash_of`).
    quoted : list of Row
        Rows in which there are quotes.
    """

    data: NDArray[np.uint8]
    n: int
    plain: int
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    codes: NDArray[np.int32]
    hashes: NDArray[np.uint64]
    quoted: list[Row]


def scanned(piece: memoryview, format: str, width: int) -> Scanned | None:
    """Find the cells of whole lines of a table; None if they must be read in another way.

    Parameters
    ----------
    piece : memoryview
        The lines.
    format : {'tsv', 'csv'}
        Format of the table; CSV with quotes, and with line ends of other systems, isn't read.
    width : int
        Number of cells of each row.
    """
    text = np.frombuffer(piece, np.uint8)
    if format == "csv":
        data = bytes(piece)
        # a search for one byte takes a tenth of the time of one for two
        alone = b"\r" in data and data.count(b"\r") > data.count(b"\r\n")
        if b'"' in data or b"\0" in data or alone:
            return None
    most = int(np.count_nonzero(text == _FEED)) + 1
    begins, ends, codes = (np.empty(most * width, np.int32) for _ in range(3))
    hashes, strange = np.empty(most * width, np.uint64), np.empty(most, np.int64)
    n, m, plain = scan(text, SEPARATORS[format][0], width, begins, ends, codes, hashes, strange)
    if n < 0:
        return None
    quoted: list[Row] = []
    for row in strange[:m].tolist():
        cells = range(row * width, (row + 1) * width)
        quoted.append((0, tuple(bytes(piece[begins[i] : ends[i]]).decode() for i in cells)))
    k = n * width
    return Scanned(text, n, plain, begins[:k], ends[:k], codes[:k], hashes[:k], quoted)
