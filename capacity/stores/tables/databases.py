"""Tables of a DuckDB file, which is opened for reading alone, and views if they are asked for.

A view is a program, which a file of a few bytes may hold: `capacity.stores.tables.views` evaluates
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from capacity.checks import cut, shown
from capacity.database.io.files.content import refuse_excess
from capacity.database.io.reading import Reading
from capacity.database.io.table_options import TableOptions
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.parquet import not_text
from capacity.database.io.tables.table import Table, within
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import Limits
from capacity.stores.scratch.scratch import Scratch
from capacity.stores.scratch.streams import open_regular
from capacity.stores.tables.cells import TableFile
from capacity.stores.tables.files import Rows, batches_of_rows
from capacity.stores.tables.view_process import AT_ONCE, CONFIG
from capacity.stores.tables.views import cannot_read, rows_of_view, write_view

if TYPE_CHECKING:
    import duckdb

# types of a database that are text
_TEXTS = ("VARCHAR", "ENUM", '"NULL"')
# as versions of DuckDB write it: max_string_length': 5, and Max String Length: 5
_LENGTH = re.compile(r"(max|total)_string_length'?\"?:_?(\d+)")


@contextmanager
def database_table(
    db: Scratch,
    where: str,
    name: str | None,
    reading: Reading,
    seconds: float | None,
) -> Iterator[TableFile]:
    """Open a table, or a view, of a DuckDB file, for reading alone.

    Parameters
    ----------
    db : Scratch
        The temporary database, which reports the progress of reading.
    where : str
        Path of the file.
    name : str or None
        Name of the table, with or without its schema; None if there is one alone.
    reading : Reading
        The caller's options for its columns and cells.
    seconds : float or None
        Seconds for reading a view; None if views aren't read.

    Raises
    ------
    DatabaseFormatError
        If the file can't be opened, there is no such table, a column isn't of text, or it passes a
        limit.
    """
    import duckdb

    open_regular(where).close()
    with _database(where):
        con = duckdb.connect(where, read_only=True, config=CONFIG)  # type: ignore[arg-type]
    try:
        limits = reading.limits.of(Path(where).stat().st_size)
        yield _table_of(db, con, where, name, reading.of_table, limits, seconds)
    finally:
        con.close()


@contextmanager
def _database(where: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise cannot_read(where, error) from None


def _table_of(
    db: Scratch,
    con: duckdb.DuckDBPyConnection,
    where: str,
    name: str | None,
    options: TableOptions,
    limits: Limits,
    seconds: float | None,
) -> TableFile:
    schema, table, view = _find_table(con, where, name, views=seconds is not None)
    columns = con.execute(
        "select column_name, data_type from information_schema.columns where table_schema = ? and "
        "table_name = ? and table_catalog = current_database() order by ordinal_position",
        [schema, table],
    ).fetchall()
    names = tuple(column for column, _ in columns)
    where_in = f"{where}, table {cut(table)}"
    at, options = narrowed(Table(where_in, "duckdb", [], names), options)
    for i in at:
        if not columns[i][1].startswith(_TEXTS):
            raise not_text(where_in, "duckdb", *columns[i])
    chosen = ", ".join(f"{_identifier(names[i])}::varchar" for i in at)
    of = f"{_identifier(schema)}.{_identifier(table)}"
    # one row more than there may be is enough to know of
    sql = f"select {chosen} from {of} limit {limits.rows + 1}"
    held = Path(db.folder, "view")
    if view and seconds is not None:
        n_rows = write_view(where_in, where, sql, held, limits, seconds)
    else:
        with _database(where_in):
            ((n_rows,),) = con.execute(f"select count(*) from ({sql})").fetchall()
    longest, text = (0, 0) if view else _lengths(con, of, [names[i] for i in at])
    excess = limits.excess(rows=n_rows, cells=n_rows * len(at), term=longest, text=text)
    refuse_excess(where_in, "duckdb", excess)

    def rows() -> Iterator[Row]:
        found = rows_of_view(held) if view else _rows_of_table(con, where_in, sql)
        yield from within(where_in, "duckdb", found, limits)

    whole = Table(where_in, "duckdb", Rows(rows), tuple(names[i] for i in at))
    tell = partial(db.tell, f"rows of {where_in}")
    return TableFile(
        whole,
        options,
        lambda layout: batches_of_rows(layout.facts(whole)),
        lambda n: tell(n, n_rows),
    )


def _rows_of_table(con: duckdb.DuckDBPyConnection, where: str, sql: str) -> Iterator[Row]:
    with _database(where), con.cursor() as cursor:
        cursor.execute(sql)
        found = iter(lambda: cursor.fetchmany(AT_ONCE), [])
        yield from enumerate(chain.from_iterable(found), start=1)


def _lengths(con: duckdb.DuckDBPyConnection, of: str, names: list[str]) -> tuple[int, int]:
    """Return the bytes of the longest value of some columns, and of all, by the file's statistics.

    No value is read for them, for one may take far more memory than the limit of the database.
    """
    literal = "'" + of.replace("'", "''") + "'"
    told = con.execute(
        f"select stats::varchar from pragma_storage_info({literal}) "
        "where column_name in (select unnest(?)) and segment_type = 'VARCHAR'",
        [names],
    ).fetchall()
    said = [
        {word[0]: int(word[1]) for word in _LENGTH.findall((stats or "").lower().replace(" ", "_"))}
        for (stats,) in told
    ]
    return max((one.get("max", 0) for one in said), default=0), sum(
        one.get("total", 0) for one in said
    )


def _find_table(
    con: duckdb.DuckDBPyConnection, where: str, name: str | None, *, views: bool
) -> tuple[str, str, bool]:
    """Find a table by its name, or by schema, dot and name; return whether it is a view, too."""
    every = con.execute(
        "select table_schema, table_name, table_type = 'VIEW' from information_schema.tables "
        "where table_catalog = current_database() order by all"
    ).fetchall()
    read = [one for one in every if views or not one[2]]
    found = [one for one in read if name is None or name in (one[1], ".".join(one[:2]))]
    if len(found) == 1:
        return found[0]
    listed = (
        f"It has {', '.join('.'.join(one[:2]) for one in read):.300}."
        if read
        else ("It has no table.")
    )
    if len(read) < len(every):
        listed += f" Views aren't read, {len(every) - len(read):,} of them, but with `views`."
    reason = "the table that holds the facts must be named"
    if name is not None:
        reason = f"{'no' if not found else 'more than one'} table is called {shown(name)}"
    raise DatabaseFormatError(
        where, reason, format="duckdb", advice=f"Name it with `table`. {listed}"
    )


def _identifier(name: str) -> str:
    """Quote a name that the database itself has returned, as SQL requires."""
    return '"' + name.replace('"', '""') + '"'
