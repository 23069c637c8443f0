"""Tables to count: TSV, CSV and Parquet files, and tables of DuckDB files, in a stream."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

from capacity.database.io.files.formats import Format
from capacity.database.io.files.pieces import LARGE, UnsuitedError
from capacity.database.io.reading import Reading
from capacity.database.io.tables.folders import has_folders_of_roles, with_folders
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import Layout
from capacity.database.io.tables.parquet import (
    broken_parquet,
    columns_of_facts,
    require_room,
    rows_of_batches,
    text_batches,
    written_terms,
)
from capacity.database.io.tables.table import SEPARATORS, Table
from capacity.database.io.tables.text import rows_of_text, uncommented
from capacity.database.terms.columns import compute
from capacity.reading_limits import Limits
from capacity.stores.scratch.scratch import HELD, ROWS, Scratch
from capacity.stores.scratch.streams import FileText, Stream, open_regular, opened, whole_lines
from capacity.stores.tables.cells import TableFile

if TYPE_CHECKING:
    import pyarrow as pa

# rows that are held as objects of Python, and those that are read before their size is looked at
ROWS_HELD, _AT_ONCE = ROWS // 12, 64
# the first character of a label's key
_LABEL = "="


class Rows(Sequence[Row]):
    """Rows of a file, which is read again for each pass over them.

    Parameters
    ----------
    read : callable
        Function that yields all rows.
    skipped : int
        Number of rows at the beginning that are omitted.
    """

    def __init__(self, read: Callable[[], Iterable[Row]], skipped: int = 0) -> None:
        self._read, self._skipped = read, skipped

    def __iter__(self) -> Iterator[Row]:
        return islice(self._read(), self._skipped, None)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Rows: ...
    def __getitem__(self, at: int | slice) -> Row | Rows:
        if isinstance(at, slice):
            return Rows(self._read, self._skipped + (at.start or 0))
        return list(islice(self, at, at + 1))[0]  # noqa: RUF015 - an index error, and no stop


def text_table(db: Scratch, where: str, format: Format, reading: Reading) -> TableFile:
    """Make the table of a file of text.

    Parameters
    ----------
    db : Scratch
        The temporary database, which reports the progress of reading.
    where : str
        Path of the file.
    format : Format
        Its format, which splits it into rows.
    reading : Reading
        The caller's options for it.
    """
    said = reading.table is not None
    text = FileText(where, reading.limits)

    def rows() -> Iterator[Row]:
        return rows_of_text(uncommented(text, format, reading), format, reading)

    own = Table(where, format.name, Rows(rows))
    table, options = with_folders(own, reading.of_table)
    return TableFile(
        table,
        options,
        lambda layout: batches_of_rows(layout.facts(table)),
        lambda _: db.tell(f"bytes of {where}", text.done, text.size),
        own=own,
        doubtful=not said,
        quoted=format.name == "tsv" and not said and _holds_a_quote(where, reading.limits),
    )


def stage_plain(db: Scratch, where: str, format: Format, reading: Reading) -> bool:
    """Append the facts of a large plain table of text to the table ``keyed``, if it is one.

    Parameters
    ----------
    db, where, format, reading
        As `text_table` has them.
    """
    with opened(where, reading.limits) as stream:
        is_plain = format.name in SEPARATORS and reading.comment is None
        is_plain = is_plain and not has_folders_of_roles(where)
        if stream.size < LARGE or not is_plain:
            return False
        batches = _plain_batches(stream, format.name, reading)
        tell = partial(db.tell, f"bytes of {where}")
        n_rows = db.append_all(
            "keyed", batches, lambda _: tell(stream.done, stream.size), UnsuitedError
        )
    return n_rows is not None


def _plain_batches(stream: Stream, format: str, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield the keys of facts of a plain table; UnsuitedError, also at the end, if it isn't one."""
    # which a small file doesn't need
    import pyarrow as pa

    from capacity.database.io.tables.comments import after_comments, comments_before
    from capacity.database.io.tables.plain import PlainTable, within_quotes

    pc, limits = compute(), stream.limits
    table, n_facts = PlainTable(format, reading.of_table), 0
    pieces: Iterable[bytes] = whole_lines(stream)
    separator = comments_before(format, reading)
    for piece in within_quotes(pieces) if format == "csv" else pieces:
        try:
            codecs.utf_8_decode(piece, "strict", True)
        except UnicodeDecodeError as error:
            raise UnsuitedError from error
        # in the first piece alone
        start, separator = after_comments(piece, separator), None
        cells = table.cells(piece[start:])
        if not cells.num_rows:
            continue
        texts, rows = table.numbered([cells])
        n_facts += len(rows)
        longest = pc.max(pc.binary_length(texts)).as_py()
        if limits.excess(rows=n_facts, cells=3 * n_facts, term=longest) is not None:
            raise UnsuitedError
        keys = pc.binary_join_element_wise(_LABEL, texts, "")
        yield pa.RecordBatch.from_arrays([keys.take(pa.array(at)) for at in rows.T], [*"spo"])
    if not n_facts:
        raise UnsuitedError
    table.require_plain()


def _holds_a_quote(where: str, limits: Limits) -> bool:
    with opened(where, limits) as stream:
        return any(b'"' in piece for piece in iter(stream.read, b""))


def batches_of_rows(rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
    """Make batches of facts, of some thousand, or of fewer long ones."""
    import pyarrow as pa

    more = True
    while more:
        held: list[tuple[str, ...]] = []
        size = 0
        while more and len(held) < ROWS_HELD and size < HELD // 2:
            some = [row for _, row in islice(rows, _AT_ONCE)]
            held += some
            size += sum(len(cell) for row in some for cell in row)
            more = bool(some)
        columns = [[row[i] for row in held] for i in range(3)]
        yield pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], [*"spo"])


def parquet_table(
    where: str, reading: Reading, tell: Callable[[str, int, int], object]
) -> TableFile:
    """Make the table of a Parquet file.

    Parameters
    ----------
    where : str
        The file.
    reading : Reading
        The caller's options for it.
    tell : callable
        Function of what is read, how much of it, and how much there is.

    Raises
    ------
    DatabaseFormatError
        If it can't be read as Parquet, a column has no texts, or it passes a limit.
    """
    import pyarrow.parquet as pq

    open_regular(where).close()
    # facts of any number are counted
    stored = Path(where).stat().st_size
    limits = replace(reading.limits, max_bytes=sys.maxsize, stored=stored)
    with _parquet(where):
        file = pq.ParquetFile(where)
        schema, meta = file.schema_arrow, file.metadata
        file.close()
    size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    at_once = max(1024, min(ROWS // 2, HELD * meta.num_rows // max(1, size)))
    names, options = columns_of_facts(where, schema, reading.of_table)
    with open_regular(where) as data:
        require_room(where, file, data, len(names), limits)
    if reading.table is None and options.terms is None:
        options = replace(options, terms=written_terms(schema))

    def columns(chosen: Sequence[int]) -> Iterator[pa.RecordBatch]:
        with _parquet(where):
            yield from text_batches(where, where, [names[i] for i in chosen], limits, at_once)

    def rows() -> Iterator[Row]:
        return rows_of_batches(columns(range(len(names))))

    table = Table(where, "parquet", Rows(rows), tuple(names))

    def batches(layout: Layout) -> Iterator[pa.RecordBatch]:
        if layout.properties is not None:
            return batches_of_rows(layout.facts(table))
        return columns(layout.order)

    what = f"rows of {where}"
    return TableFile(table, options, batches, lambda n: tell(what, n, meta.num_rows))


@contextmanager
def _parquet(where: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise broken_parquet(where, error) from None
