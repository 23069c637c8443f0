"""Tables to count: TSV, CSV and Parquet files, and tables of DuckDB files, in a stream."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, cast

from capacity.database.io.parsing import MAX_TERM_BYTES
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.parquet import (
    broken_parquet,
    cells_of_column,
    require_text,
    text_batches,
    written_terms,
)
from capacity.database.io.tables.rows import narrowed
from capacity.database.io.tables.table import Table
from capacity.errors import DatabaseFormatError
from capacity.stores.scratch import HELD, ROWS, Scratch
from capacity.stores.streams import Stream, lines_of, not_utf_8, open_regular, opened
from capacity.stores.table_cells import TableFile
from capacity.stores.table_layout import Layout, Rows, lazy_table

if TYPE_CHECKING:
    import pyarrow as pa

# rows that are held as objects of Python, and those that are read before their size is looked at
ROWS_HELD, _AT_ONCE = ROWS // 12, 64


def text_table(
    db: Scratch, where: str, format: str, options: TableOptions, *, said: bool
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
    said : bool
        Whether the user says what table it is, so that nothing is doubtful.
    """
    split = _split_csv if format == "csv" else _split_tsv
    latest: list[Stream] = []

    def rows() -> Iterator[Row]:
        with opened(where) as stream:
            latest[:] = [stream]
            yield from split(stream)

    def batches(layout: Layout) -> Iterator[pa.RecordBatch]:
        found = islice(rows(), layout.skip, None)
        yield from batches_of_rows(found, layout.order, lambda: latest[0].passed if latest else 0)

    return TableFile(
        lazy_table(where, format, Rows(rows)),
        options,
        batches,
        lambda _: db.tell(f"bytes of {where}", latest[0].done, latest[0].size),
        doubtful=not said,
        quoted=format != "csv" and not said and _holds_a_quote(where),
    )


def _holds_a_quote(where: str) -> bool:
    with opened(where) as stream:
        return any(b'"' in piece for piece in iter(stream.read, b""))


def _split_tsv(stream: Stream) -> Iterator[Row]:
    try:
        # only \n ends a row
        for number, line in enumerate(lines_of(stream, "\n"), start=1):
            bare = line.removesuffix("\n").removesuffix("\r")
            if bare:
                yield number, tuple(bare.split("\t"))
    except UnicodeDecodeError:
        raise not_utf_8(stream.where) from None


def _split_csv(stream: Stream) -> Iterator[Row]:
    reader = csv.reader(lines_of(stream, ""), strict=True)
    csv.field_size_limit(max(csv.field_size_limit(), MAX_TERM_BYTES))
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
        raise not_utf_8(stream.where) from None


def batches_of_rows(
    rows: Iterator[Row], order: Sequence[int], passed: Callable[[], int]
) -> Iterator[pa.RecordBatch]:
    """Make batches of the cells of some columns, of some thousand rows, or of fewer long ones."""
    import pyarrow as pa

    more = True
    while more:
        held: list[tuple[str, ...]] = []
        start = passed()
        while more and len(held) < ROWS_HELD and passed() - start < HELD // 2:
            some = [row for _, row in islice(rows, _AT_ONCE)]
            held += some
            more = bool(some)
        columns = [[row[i] for row in held] for i in order]
        yield pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], [*"spo"])


def parquet_table(
    where: str, options: TableOptions, tell: Callable[[str, int, int], object], *, said: bool
) -> TableFile:
    """Make the table of a Parquet file.

    Parameters
    ----------
    where : str
        The file.
    options : TableOptions
        What the user says of it.
    tell : callable
        Function of what is read, how much of it, and how much there is.
    said : bool
        Whether the user says what form the cells have.

    Raises
    ------
    DatabaseFormatError
        If it can't be read as Parquet, or a column isn't of text.
    """
    import pyarrow.parquet as pq

    open_regular(where).close()
    with _parquet(where):
        file = pq.ParquetFile(where)
        schema, meta = file.schema_arrow, file.metadata
        file.close()
    size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    at_once = max(1024, min(ROWS // 2, HELD * meta.num_rows // max(1, size)))
    table, at, options = narrowed_table(where, "parquet", tuple(schema.names), options)
    require_text(where, "parquet", schema, at)
    if not said and options.terms is None:
        options = replace(options, terms=written_terms(schema))

    def batches(layout: Layout) -> Iterator[pa.RecordBatch]:
        chosen = [schema.names[at[i]] for i in layout.order]
        with _parquet(where):
            yield from text_batches(where, chosen, at_once)

    def rows() -> Iterator[Row]:
        found = (
            row
            for batch in batches(Layout(0, (0, 1, 2)))
            for row in zip(*map(cells_of_column, batch.columns), strict=True)
        )
        # a missing cell is None, which the types don't tell
        yield from enumerate(cast(Iterator[tuple[str, ...]], found), start=1)

    rows_of = lazy_table(where, "parquet", Rows(rows), table.names)
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
