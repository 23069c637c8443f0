"""Plain tables of text as columns, which Arrow reads.

A table is plain if no rule of `headers`, `table` or `cells` makes it doubtful, all of its rows
have one length, and its quotes, if it is CSV, are those of RFC 4180. Every other table is left to
the rows of `text`, which are read in the same way, and more slowly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.from_columns import from_columns
from capacity.database.io.files.content import Content
from capacity.database.io.files.pieces import UnsuitedError, pieces_of
from capacity.database.io.reading import Reading
from capacity.database.io.table_options import TableOptions
from capacity.database.io.tables.comments import after_comments, comments_before, notes_on
from capacity.database.io.tables.headers import Row, rows_of_header
from capacity.database.io.tables.table import SEPARATORS, quoted_cell
from capacity.database.policy import MultiPolicy
from capacity.database.terms.columns import CODES, UnsortedTerms, compute
from capacity.progress import bar

# rows that are looked at for a header
_SAMPLE = 2**12
# rows with quotes, which are held until the end; and bytes that one cell in quotes may take
_MOST_QUOTED, _LONGEST = 100_000, 2**26
# bytes of cells that are numbered together
_AT_ONCE = 2**27
_QUOTE, _FEED, _RETURN = (ord(c) for c in '"\n\r')


@dataclass
class PlainTable:
    """Reader of a plain table, to which its lines are given in pieces.

    Attributes
    ----------
    format : {'tsv', 'csv'}
        Its format.
    options : TableOptions
        The caller's options for it.
    wide_texts : bool
        Whether the cells of a column may be over 2 GiB together.
    """

    format: str
    options: TableOptions

    wide_texts: bool = False

    def __post_init__(self) -> None:
        self._skip: int | None = None
        self._some_plain = False
        self._quoted: list[Row] = []

    def cells(self, lines: bytes | memoryview) -> pa.Table:
        """Read whole lines as columns of text, without a header.

        Raises
        ------
        UnsuitedError
            If they aren't rows of the table's columns.
        """
        cells = self._read(bytes(lines))
        if self._skip is None:
            columns = [column.to_pylist() for column in cells.slice(0, _SAMPLE).columns]
            rows = [(0, row) for row in zip(*columns, strict=True)]
            self._skip = rows_of_header(rows, self.options)
        skipped, self._skip = self._skip, max(0, self._skip - cells.num_rows)
        return cells.slice(skipped)

    def numbered(self, parts: list[pa.Table]) -> tuple[pa.Array, NDArray[np.int32]]:
        """Number the cells of some rows.

        Parameters
        ----------
        parts : list of pyarrow.Table
            The rows, at least one, as `cells` has read them; the list is emptied, to free memory.

        Returns
        -------
        texts : pyarrow.Array
            The different cells.
        rows : ndarray of int32, shape (n_rows, arity)
            Number of each cell.

        Raises
        ------
        UnsuitedError
            If they aren't rows of a plain table.
        """
        n_rows, arity = sum(cells.num_rows for cells in parts), self.options.arity
        chunks = [chunk for i in range(arity) for cells in parts for chunk in cells[i].chunks]
        parts.clear()
        encoded = compute().dictionary_encode(pa.chunked_array(chunks))
        del chunks
        rows, at = np.empty((n_rows, arity), np.int32), 0
        for chunk in encoded.chunks:
            # no chunk is of two columns
            column, start = divmod(at, n_rows)
            rows[start : start + len(chunk), column] = chunk.indices
            at += len(chunk)
        texts = encoded.chunk(0).dictionary
        self._look_at(texts, rows)
        return texts, rows

    def require_plain(self) -> None:
        """Refuse a table that all of its rows together make doubtful.

        Raises
        ------
        UnsuitedError
            If its cells may be terms, or are quoted as those of another format.
        """
        if self.options.terms is None and not self._some_plain:
            raise UnsuitedError
        if quoted_cell(self._quoted) is not None:
            raise UnsuitedError

    def _read(self, text: bytes) -> pa.Table:
        # a return alone is a character of a label in TSV, and ends a line to Arrow; but one before
        # the end of the text is of that end
        text = text.removesuffix(b"\r")
        if b"\r" in text and text.count(b"\r") > text.count(b"\r\n"):
            raise UnsuitedError
        is_csv = self.format == "csv"
        has_quotes = is_csv and b'"' in text
        if is_csv and (b"\0" in text or (has_quotes and not _quoted_well(text))):
            raise UnsuitedError
        names = role_names(self.options.arity)
        kind = pa.large_string() if self.wide_texts else pa.string()
        try:
            return arrow_csv.read_csv(
                pa.py_buffer(text),
                arrow_csv.ReadOptions(
                    use_threads=False, column_names=list(names), block_size=len(text) + 1
                ),
                arrow_csv.ParseOptions(
                    delimiter=SEPARATORS[self.format],
                    quote_char='"' if is_csv else False,
                    newlines_in_values=has_quotes,
                ),
                arrow_csv.ConvertOptions(check_utf8=False, column_types=dict.fromkeys(names, kind)),
            )
        except pa.ArrowException as error:
            raise UnsuitedError from error

    def _look_at(self, texts: pa.Array, rows: NDArray[np.int32]) -> None:
        """Find what makes the table doubtful."""
        pc = compute()
        # an IRI
        if pc.any(pc.starts_with(texts, "<")).as_py():
            raise UnsuitedError
        empty = pc.index(texts, "").as_py()
        if empty >= 0 and (rows == empty).all(axis=1).any():
            raise UnsuitedError
        if not self._some_plain:
            marked = pc.match_substring_regex(texts, '^["_]')
            self._some_plain = pc.any(pc.invert(pc.or_(marked, pc.equal(texts, "")))).as_py()
        if self.format != "tsv" or self.options.wide is not None:
            return
        quoted = np.asarray(pc.match_substring(texts, '"'))
        if quoted.any():
            with_quotes = rows[quoted[rows].any(axis=1)]
            if len(self._quoted) + len(with_quotes) > _MOST_QUOTED:
                raise UnsuitedError
            columns = [texts.take(pa.array(column)).to_pylist() for column in with_quotes.T]
            self._quoted += [(0, row) for row in zip(*columns, strict=True)]


def _quoted_well(text: bytes) -> bool:
    """Return True if each quote begins a cell, ends one, or is doubled within one (RFC 4180)."""
    data = np.frombuffer(text, np.uint8)
    at = np.flatnonzero(data == _QUOTE)
    if len(at) % 2:
        return False
    # what isn't there is a line's end
    before = np.where(at[::2] > 0, data[at[::2] - 1], _FEED)
    after = np.where(at[1::2] + 1 < len(data), data[np.minimum(at[1::2] + 1, len(data) - 1)], _FEED)
    outside = np.array([ord(","), _FEED, _QUOTE], np.uint8)
    return bool(np.isin(before, outside).all() and np.isin(after, [*outside, _RETURN]).all())


def within_quotes(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    r"""Put pieces of whole lines together where a cell in quotes has a line's end in it.

    Raises
    ------
    UnsuitedError
        For a cell of many lines, which may be one whose quote has no end.

    Examples
    --------
    >>> list(within_quotes([b'a,p,"b\n', b'c"\n', b"d,p,e\n"]))
    [b'a,p,"b\nc"\n', b'd,p,e\n']
    """
    held, odd = [], False
    for piece in map(bytes, pieces):
        held.append(piece)
        odd ^= bool(piece.count(b'"') % 2)
        if odd and sum(map(len, held)) > _LONGEST:
            raise UnsuitedError
        if not odd:
            yield b"".join(held)
            held = []
    if held:
        yield b"".join(held)


def read_plain(
    content: Content,
    format: str,
    reading: Reading,
    *,
    multi: MultiPolicy | None,
) -> Database | None:
    """Read a checked table as columns, if it is plain.

    Parameters
    ----------
    content : Content
        The file.
    format : str
        ``tsv`` or ``csv``.
    reading : Reading
        The caller's options for the table.
    multi : MultiPolicy or None
        Policy for multi-valued pairs.

    Returns
    -------
    Database or None
        The same as `read_rows` makes; None if it must read the table.

    Raises
    ------
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    if reading.comment is not None or reading.split is not None:
        return None
    start = after_comments(content.data, comments_before(format, reading))
    large = len(content.data) >= 2**31
    try:
        numbers = _numbered(content, start, PlainTable(format, reading.of_table, large))
    except UnsuitedError:
        return None
    if not numbers.n_rows:
        return None
    texts, rows = numbers.finished()
    del numbers
    n, kind = len(texts), CODES["label"]
    terms = UnsortedTerms(np.full(n, kind, np.uint8), texts, np.zeros(n, np.int32), [("", "")])
    del texts
    n_comments = content.data.count(b"\n", 0, start)
    content.drop_text()
    source = content.source(format, notes_on(n_comments))
    return from_columns(terms, rows, multi=multi, source=source)


def _numbered(content: Content, start: int, table: PlainTable) -> _Numbers:
    """Number the cells of a table; UnsuitedError if it isn't plain, or passes a limit."""
    numbers = _Numbers(table)
    with bar() as progress:
        pieces: Iterable[bytes | memoryview]
        pieces = pieces_of(content.data, partial(progress, "reading"), start)
        for piece in within_quotes(pieces) if table.format == "csv" else pieces:
            numbers.add(table.cells(piece))
            n_rows = numbers.n_rows
            excess = content.limits.excess(rows=n_rows, cells=n_rows * table.options.arity)
            if excess is not None:
                raise UnsuitedError
    numbers.encode()
    table.require_plain()
    # what Arrow keeps for later is as much as the text
    pa.default_memory_pool().release_unused()
    return numbers


class _Numbers:
    """Numbers of the cells of tables, whose texts are held once each, but for those of some tables.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    """

    def __init__(self, table: PlainTable) -> None:
        self.n_rows, self._table, self._held, self._size = 0, table, list[pa.Table](), 0
        self._texts: list[pa.Array] = []
        self._rows: list[NDArray[np.int32]] = []

    def add(self, cells: pa.Table) -> None:
        """Number the cells of some rows, perhaps later."""
        if cells.num_rows:
            self.n_rows += cells.num_rows
            self._held.append(cells)
            self._size += cells.nbytes
        if self._size > _AT_ONCE:
            self.encode()

    def encode(self) -> None:
        """Number the cells that are held."""
        if self._held:
            texts, rows = self._table.numbered(self._held)
            self._texts.append(texts)
            self._rows.append(rows)
            self._size = 0

    def finished(self) -> tuple[pa.LargeStringArray, list[NDArray[np.int32]]]:
        """Return the different cells, and the facts as their numbers."""
        if len(self._texts) == 1:
            return self._texts[0].cast(pa.large_string()), self._rows
        # parts have cells in common
        every = compute().dictionary_encode(pa.chunked_array(self._texts))
        for rows, chunk in zip(self._rows, every.chunks, strict=True):
            rows[:] = np.asarray(chunk.indices)[rows]
        return every.chunk(0).dictionary.cast(pa.large_string()), self._rows
