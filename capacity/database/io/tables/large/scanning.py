"""Find the cells of rows of tables of text, by compiled code.

They are those that `capacity.database.io.tables.large.plain_cells` finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.io.files.numbering import Numbering, hash_of
from capacity.database.io.tables.large.plain_cells import SEPARATORS, is_simple_csv
from capacity.database.terms.columns import CODES
from capacity.kept_code import kept

if TYPE_CHECKING:
    from capacity.database.io.tables.headers import Row

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


class CompiledCells:
    """Numbers of the cells of a table, as `large.plain_cells` finds them.

    Parameters
    ----------
    format : {'tsv', 'csv'}
        Its format.
    width : int
        Number of cells of each row.
    """

    def __init__(self, format: str, width: int) -> None:
        self._format, self._width, self._numbering = format, width, Numbering()

    def numbered(self, lines: memoryview) -> tuple[NDArray[np.int32], int, list[Row]] | None:
        """Number the cells of whole lines (`SplitCells.numbered`)."""
        if self._format == "csv" and not is_simple_csv(bytes(lines)):
            return None
        data, width = np.frombuffer(lines, np.uint8), self._width
        most = int(np.count_nonzero(data == _FEED)) + 1
        begins, ends, codes = (np.empty(most * width, np.int32) for _ in range(3))
        hashes, strange = np.empty(most * width, np.uint64), np.empty(most, np.int64)
        separator = SEPARATORS[self._format][0]
        n, m, plain = scan(data, separator, width, begins, ends, codes, hashes, strange)
        if n < 0:
            return None
        quoted: list[Row] = []
        for row in strange[:m].tolist():
            cells = range(row * width, (row + 1) * width)
            quoted.append((0, tuple(bytes(lines[begins[i] : ends[i]]).decode() for i in cells)))
        k = n * width
        rows = self._numbering.number(data, begins[:k], ends[:k], codes[:k], hashes[:k])
        return rows.reshape(-1, width), plain, quoted

    def texts(self) -> pa.LargeStringArray:
        """Return the distinct cells, in order of their numbers."""
        return self._numbering.texts()
