"""Tables to count: TSV, CSV and Parquet files, and tables of DuckDB files, in a stream."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, cast

from capacity.database.io.parsing import MAX_TERM_BYTES
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.parquet import (
    broken_parquet,
    cells_of_column,
    not_text,
    require_text,
    text_batches,
    written_terms,
)
from capacity.database.io.tables.rows import narrowed
from capacity.database.io.tables.table import Table
from capacity.errors import DatabaseFormatError
from capacity.limits import cut, shown
from capacity.stores.scratch import HELD, ROWS, Scratch
from capacity.stores.streams import Stream, lines_of, not_utf_8, open_regular, opened
from capacity.stores.table_cells import TableFile
from capacity.stores.table_layout import Layout, Rows, lazy_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# rows that are held as objects of Python, and those that are read before their size is looked at
_HELD, _AT_ONCE = ROWS // 12, 64


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
        yield from _batches(found, layout.order, lambda: latest[0].passed if latest else 0)

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


def _batches(
    rows: Iterator[Row], order: Sequence[int], passed: Callable[[], int]
) -> Iterator[pa.RecordBatch]:
    """Make batches of the cells of some columns, of some thousand rows, or of fewer long ones."""
    import pyarrow as pa

    more = True
    while more:
        held: list[tuple[str, ...]] = []
        start = passed()
        while more and len(held) < _HELD and passed() - start < HELD // 2:
            some = [row for _, row in islice(rows, _AT_ONCE)]
            held += some
            more = bool(some)
        columns = [[row[i] for row in held] for i in order]
        yield pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], [*"spo"])


def parquet_table(db: Scratch, where: str, options: TableOptions, *, said: bool) -> TableFile:
    """Make the table of a Parquet file; parameters are those of `text_table`.

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
    table, at, options = _narrowed(where, "parquet", tuple(schema.names), options)
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
    tell = partial(db.tell, f"rows of {where}")
    return TableFile(rows_of, options, batches, lambda n: tell(n, meta.num_rows))


def _narrowed(
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


# types of a database that are text
_TEXTS = ("VARCHAR", "ENUM", '"NULL"')


@contextmanager
def database_table(
    db: Scratch, where: str, name: str | None, options: TableOptions
) -> Iterator[TableFile]:
    """Open a table, or a view, of a DuckDB file, for reading alone.

    Parameters
    ----------
    db : Scratch
        The temporary database, which is told how far reading is.
    where : str
        Path of the file.
    name : str or None
        Name of the table, with or without its schema; None if there is one alone.
    options : TableOptions
        What the user says of its columns and cells.

    Raises
    ------
    DatabaseFormatError
        If the file can't be opened, there is no such table, or a column isn't of text.
    """
    import duckdb

    open_regular(where).close()
    # a view may name other files: it can't read them
    config = {"enable_external_access": "false", "autoload_known_extensions": "false",
              "autoinstall_known_extensions": "false", "python_enable_replacements": "false",
              "memory_limit": "128MB", "threads": "1"}  # fmt: skip
    with _database(where):
        con = duckdb.connect(where, read_only=True, config=config)  # type: ignore[arg-type]
    try:
        yield _table_of(db, con, where, name, options)
    finally:
        con.close()


@contextmanager
def _database(where: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise DatabaseFormatError(
            where,
            f"DuckDB {duckdb.__version__} can't read it ({' '.join(str(error).split()):.300})",
            format="duckdb",
            advice="If a newer version wrote it, install that; if another program has it open, "
            "close it there; if a view reads other files, make a table of it.",
        ) from None


def _table_of(
    db: Scratch, con: duckdb.DuckDBPyConnection, where: str, name: str | None, options: TableOptions
) -> TableFile:
    schema, table = _find_table(con, where, name)
    columns = con.execute(
        "select column_name, data_type from information_schema.columns where table_schema = ? and "
        "table_name = ? and table_catalog = current_database() order by ordinal_position",
        [schema, table],
    ).fetchall()
    names = tuple(column for column, _ in columns)
    where_in = f"{where}, table {cut(table)}"
    narrow, at, options = _narrowed(where_in, "duckdb", names, options)
    for i in at:
        if not columns[i][1].startswith(_TEXTS):
            raise not_text(where_in, "duckdb", *columns[i])
    chosen = ", ".join(f"{_identifier(names[i])}::varchar" for i in at)
    sql = f"select {chosen} from {_identifier(schema)}.{_identifier(table)}"
    with _database(where):
        ((n_rows,),) = con.execute(f"select count(*) from ({sql})").fetchall()

    def rows() -> Iterator[Row]:
        with _database(where), con.cursor() as cursor:
            cursor.execute(sql)
            found = iter(lambda: cursor.fetchmany(_HELD), [])
            yield from enumerate(chain.from_iterable(found), start=1)

    rows_of = lazy_table(where_in, "duckdb", Rows(rows), narrow.names)
    tell = partial(db.tell, f"rows of {where_in}")
    return TableFile(
        rows_of,
        options,
        lambda layout: _batches(rows(), layout.order, lambda: 0),
        lambda n: tell(n, n_rows),
    )


def _find_table(con: duckdb.DuckDBPyConnection, where: str, name: str | None) -> tuple[str, str]:
    """Find a table by its name, or that of its schema, a dot and its name."""
    every = con.execute(
        "select table_schema, table_name from information_schema.tables "
        "where table_catalog = current_database() order by all"
    ).fetchall()
    found = [one for one in every if name is None or name in (one[1], ".".join(one))]
    if len(found) == 1:
        return found[0]
    several = [".".join(one) for one in every]
    listed = f"It has {', '.join(several):.300}." if several else "It has no table."
    reason = "it must be said which table holds the facts"
    if name is not None:
        reason = f"{'no' if not found else 'more than one'} table is called {shown(name)}"
    raise DatabaseFormatError(
        where, reason, format="duckdb", advice=f"Name it with `table`. {listed}"
    )


def _identifier(name: str) -> str:
    """Quote a name that the database itself has told, as SQL says."""
    return '"' + name.replace('"', '""') + '"'
