"""Tables to count: TSV, CSV and Parquet files, and tables of DuckDB files, in a stream."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from capacity.database.io.files.content import refuse_excess
from capacity.database.io.files.pieces import LARGE
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.parquet import (
    broken_parquet,
    cells_of_column,
    require_room,
    text_batches,
    written_terms,
)
from capacity.database.io.tables.parquet_columns.chosen import columns_of_facts
from capacity.database.io.tables.rows import narrowed
from capacity.database.io.tables.table import Table
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import FREE_CELLS, Limits
from capacity.stores.scratch.scratch import HELD, ROWS, Scratch
from capacity.stores.scratch.streams import (
    Stream,
    lines_of,
    not_utf_8,
    open_regular,
    opened,
    whole_lines,
)
from capacity.stores.tables.cells import TableFile
from capacity.stores.tables.layout import Layout, Rows, lazy_table

if TYPE_CHECKING:
    import pyarrow as pa

# rows that are held as objects of Python, and those that are read before their size is looked at
ROWS_HELD, _AT_ONCE = ROWS // 12, 64


def text_table(
    db: Scratch, where: str, format: str, options: TableOptions, limits: Limits, *, said: bool
) -> TableFile:
    """Make the table of a file of TSV or CSV.

    Parameters
    ----------
    db : Scratch
        The temporary database, which is told how far reading is.
    where : str
        Path of the file.
    format : {'tsv', 'csv'}
        Its format.
    options : TableOptions
        What the user says of it.
    limits : Limits
        What it is held to.
    said : bool
        Whether the user says what table it is, so that nothing is doubtful.
    """
    split = _split_csv if format == "csv" else _split_tsv
    latest: list[Stream] = []

    def rows() -> Iterator[Row]:
        with opened(where, limits) as stream:
            latest[:] = [stream]
            yield from within(where, format, split(stream, limits), limits.of(stream.size))

    def batches(layout: Layout) -> Iterator[pa.RecordBatch]:
        found = islice(rows(), layout.skip, None)
        yield from batches_of_rows(found, layout.order)

    return TableFile(
        lazy_table(where, format, Rows(rows)),
        options,
        batches,
        lambda _: db.tell(f"bytes of {where}", latest[0].done, latest[0].size),
        doubtful=not said,
        quoted=format != "csv" and not said and _holds_a_quote(where, limits),
    )


def stage_plain(
    db: Scratch, where: str, format: str, options: TableOptions, limits: Limits
) -> bool:
    """Append the facts of a large plain table of text to the table ``keyed``, if it is one.

    Parameters
    ----------
    db, where, format, options, limits
        As `text_table` has them.
    """
    with opened(where, limits) as stream:
        if stream.size < LARGE:
            return False
        # imports that a small file doesn't need
        from capacity.database.io.rdf.lines.columns import UnsuitedError
        from capacity.stores.tables.plain_rows import plain_rows

        batches = plain_rows(whole_lines(stream), format, options, limits.of(stream.size))
        tell = partial(db.tell, f"bytes of {where}")
        n_rows = db.append_all(
            "keyed", batches, lambda _: tell(stream.done, stream.size), UnsuitedError
        )
    return n_rows is not None


def _holds_a_quote(where: str, limits: Limits) -> bool:
    with opened(where, limits) as stream:
        return any(b'"' in piece for piece in iter(stream.read, b""))


def _split_tsv(stream: Stream, limits: Limits) -> Iterator[Row]:
    long = min(FREE_CELLS, limits.cells)
    try:
        # only \n ends a row
        for number, line in enumerate(lines_of(stream, "\n"), start=1):
            if len(line) >= long:
                _refuse_wide(stream, "tsv", line.count("\t"), limits)
            bare = line.removesuffix("\n").removesuffix("\r")
            if bare:
                yield number, tuple(bare.split("\t"))
    except UnicodeDecodeError:
        raise not_utf_8(stream.where, limits) from None


def _split_csv(stream: Stream, limits: Limits) -> Iterator[Row]:
    long = min(FREE_CELLS, limits.cells)

    def lines() -> Iterator[str]:
        for line in lines_of(stream, ""):
            if len(line) >= long:
                _refuse_wide(stream, "csv", line.count(","), limits)
            yield line

    reader = csv.reader(lines(), strict=True)
    # one more than a term may have, for which there is a message
    csv.field_size_limit(max(csv.field_size_limit(), limits.max_term_bytes + 1))
    try:
        for row in reader:
            if row:
                yield reader.line_num, tuple(row)
    except csv.Error as error:
        raise DatabaseFormatError(
            stream.where, str(error), format="csv", line=reader.line_num,
            advice="Quote as RFC 4180 says.",
        ) from None  # fmt: skip
    except UnicodeDecodeError:
        raise not_utf_8(stream.where, limits) from None


def _refuse_wide(stream: Stream, format: str, commas: int, limits: Limits) -> None:
    """Refuse a line of more cells than a file may have, before it is divided into them."""
    refuse_excess(stream.where, format, limits.of(stream.size).excess(cells=commas))


def within(where: str, format: str, rows: Iterable[Row], limits: Limits) -> Iterator[Row]:
    """Yield rows as long as they are within the limits of a file.

    Raises
    ------
    DatabaseFormatError
        For a row, or a cell, too many or too long.
    """
    most_rows, most_cells, most_text = limits.rows, limits.cells, limits.text
    n_rows = cells = text = 0
    for number, row in rows:
        size, longest = sum(map(len, filter(None, row) if None in row else row)), 0
        n_rows, cells, text = n_rows + 1, cells + len(row), text + size
        # a character takes four bytes at most
        if 4 * size > limits.max_term_bytes:
            lengths = [len(cell.encode()) for cell in row if cell]
            text, longest = text - size + sum(lengths), max(lengths)
        if (
            n_rows > most_rows
            or cells > most_cells
            or text > most_text
            or longest > limits.max_term_bytes
        ):
            excess = limits.excess(rows=n_rows, cells=cells, text=text, term=longest)
            refuse_excess(where, format, excess)
        yield number, row


def batches_of_rows(rows: Iterator[Row], order: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Make batches of the cells of some columns, of some thousand rows, or of fewer long ones."""
    import pyarrow as pa

    more = True
    while more:
        held: list[tuple[str, ...]] = []
        size = 0
        while more and len(held) < ROWS_HELD and size < HELD // 2:
            some = [row for _, row in islice(rows, _AT_ONCE)]
            held += some
            size += sum(len(row[i]) for row in some for i in order if row[i])
            more = bool(some)
        columns = [[row[i] for row in held] for i in order]
        yield pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], [*"spo"])


def parquet_table(
    where: str,
    options: TableOptions,
    limits: Limits,
    tell: Callable[[str, int, int], object],
    *,
    said: bool,
) -> TableFile:
    """Make the table of a Parquet file.

    Parameters
    ----------
    where : str
        The file.
    options : TableOptions
        What the user says of it.
    limits : Limits
        What it is held to.
    tell : callable
        Function of what is read, how much of it, and how much there is.
    said : bool
        Whether the user says what form the cells have.

    Raises
    ------
    DatabaseFormatError
        If it can't be read as Parquet, a column isn't of text, or it passes a limit.
    """
    import pyarrow.parquet as pq

    open_regular(where).close()
    # facts of any number are counted
    limits = replace(limits, max_bytes=sys.maxsize, stored=Path(where).stat().st_size)
    with _parquet(where):
        file = pq.ParquetFile(where)
        schema, meta = file.schema_arrow, file.metadata
        file.close()
    size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    at_once = max(1024, min(ROWS // 2, HELD * meta.num_rows // max(1, size)))
    names, options = columns_of_facts(where, schema, options)
    with open_regular(where) as data:
        require_room(where, file, data, len(names), limits)
    if not said and options.terms is None:
        options = replace(options, terms=written_terms(schema))

    def batches(layout: Layout) -> Iterator[pa.RecordBatch]:
        chosen = [names[i] for i in layout.order]
        with _parquet(where):
            yield from text_batches(where, where, chosen, limits, at_once)

    def rows() -> Iterator[Row]:
        found = (
            row
            for batch in batches(Layout(0, (0, 1, 2)))
            for row in zip(*map(cells_of_column, batch.columns), strict=True)
        )
        # a missing cell is None, which the types don't tell
        yield from enumerate(cast(Iterator[tuple[str, ...]], found), start=1)

    rows_of = lazy_table(where, "parquet", Rows(rows), tuple(names))
    what = f"rows of {where}"
    return TableFile(rows_of, options, batches, lambda n: tell(what, n, meta.num_rows))


def narrowed_table(
    where: str, format: str, names: tuple[str, ...], options: TableOptions
) -> tuple[Table, list[int], TableOptions]:
    """Choose the columns of facts of a table with names."""
    at, options = narrowed(Table(where, format, [], names), options)
    return Table(where, format, [], tuple(names[i] for i in at)), at, options


@contextmanager
def _parquet(where: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise broken_parquet(where, error) from None
