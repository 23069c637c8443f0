"""Read large tables of plain labels as columns, by compiled code.

Rows of one length, whose cells no rule of `headers`, `doubts` or `cells` makes doubtful, are read;
every other table is left to `capacity.database.io.tables.rows`, which reads any in the same way,
and more slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.from_columns import from_columns
from capacity.database.io.content import Content
from capacity.database.io.numbering import Numbering, hash_of
from capacity.database.io.pieces import pieces_of
from capacity.database.io.tables.doubts import quoted_cell
from capacity.database.io.tables.headers import Row, find_header, looks_wide, unlike_the_rest
from capacity.database.io.tables.options import TableOptions
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.database.term_columns import CODES, UnsortedTerms
from capacity.kept_code import kept
from capacity.progress import bar

SEPARATORS = {"tsv": b"\t", "csv": b","}
# rows that are looked at for a header
_SAMPLE = 2**12
_LABEL = CODES["label"]
_FEED, _RETURN, _QUOTE, _LESS, _COLON, _UNDERSCORE = (ord(c) for c in '\n\r"<:_')


@kept
def _scan(  # type: ignore[no-untyped-def]
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
            codes[t + column] = _LABEL
            hashes[t + column] = hash_of(data, begin, i, _LABEL)
            begin = i + 1
            column += 1
        if column != width or not full:
            return -1, 0, 0
        if quotes:
            quoted[strange] = rows
            strange += 1
        rows += 1
    return rows, strange, plain


def read_large_table(
    content: Content,
    format: str,
    options: TableOptions,
    *,
    multi: MultiPolicy | None,
    source: Source,
) -> Database | None:
    """Read a checked table as columns, if it can be read so.

    Parameters
    ----------
    content : Content
        The file.
    format : str
        ``tsv`` or ``csv``.
    options : TableOptions
        What the user says of the table.
    multi, source
        As `capacity.database.io.tables.rows.read_rows` has them.

    Returns
    -------
    Database or None
        The same as `read_rows` makes; None if it must read the table.

    Raises
    ------
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    data = content.data
    if options.wide or options.columns is not None or options.terms == "n3":
        return None
    first = rows_of_header(data, SEPARATORS[format].decode(), options)
    if first is None:
        return None
    numbering, rows, plain = Numbering(), [], 0
    quoted: list[Row] = []
    with bar() as progress:
        for piece in pieces_of(data, partial(progress, "reading")):
            found = scanned(piece, format, options.arity)
            if found is None:
                return None
            numbers = numbering.number(
                found.data, found.begins, found.ends, found.codes, found.hashes
            )
            rows.append(numbers.reshape(-1, options.arity))
            quoted += found.quoted
            plain += found.plain
    if format == "tsv" and options.wide is None and quoted_cell(quoted) is not None:
        return None
    if options.terms is None and not plain:
        return None
    rows[0] = rows[0][first:]
    if not any(map(len, rows)):
        return None
    n = numbering.n
    texts = numbering.texts()
    terms = UnsortedTerms(np.full(n, _LABEL, np.uint8), texts, np.zeros(n, np.int32), [("", "")])
    del numbering, texts, data
    content.drop_text()
    return from_columns(terms, rows, multi=multi, source=source)


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
    n, m, plain = _scan(text, SEPARATORS[format][0], width, begins, ends, codes, hashes, strange)
    if n < 0:
        return None
    quoted: list[Row] = []
    for row in strange[:m].tolist():
        cells = range(row * width, (row + 1) * width)
        quoted.append((0, tuple(bytes(piece[begins[i] : ends[i]]).decode() for i in cells)))
    k = n * width
    return Scanned(text, n, plain, begins[:k], ends[:k], codes[:k], hashes[:k], quoted)


def rows_of_header(data: bytes, separator: str, options: TableOptions) -> int | None:
    """Return the number of rows of the header; None if more than the first rows must tell.

    What these rules deny of the first rows, they deny of all: each needs all rows to agree.
    """
    lines = data[: 2**20].rpartition(b"\n")[0].decode("utf-8").split("\n")
    split = (line.removesuffix("\r").split(separator) for line in lines)
    rows = [(0, tuple(row)) for row in islice((row for row in split if row != [""]), _SAMPLE)]
    arity = options.arity
    if not rows or any(len(row) != arity for _, row in rows):
        return None
    first = rows[0][1]
    if first == role_names(arity):
        return 1
    # alone, so that it doesn't matter whether a word of it occurs again
    header = find_header(rows[:1], arity)
    if header is None or header.rows:
        return None
    if options.wide is not None:
        return 0
    wide = arity == 3 and looks_wide(rows[1:], first)
    numbered = first == tuple(map(str, range(arity)))
    return None if wide or numbered or unlike_the_rest(rows) is not None else 0
