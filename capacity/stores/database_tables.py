"""Tables and views of a DuckDB file, which is opened for reading alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.parquet import not_text
from capacity.errors import DatabaseFormatError
from capacity.limits import cut, shown
from capacity.stores.scratch import Scratch
from capacity.stores.streams import open_regular
from capacity.stores.table_cells import TableFile
from capacity.stores.table_files import ROWS_HELD, batches_of_rows, narrowed_table
from capacity.stores.table_layout import Rows, lazy_table

if TYPE_CHECKING:
    import duckdb

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
    narrow, at, options = narrowed_table(where_in, "duckdb", names, options)
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
            found = iter(lambda: cursor.fetchmany(ROWS_HELD), [])
            yield from enumerate(chain.from_iterable(found), start=1)

    rows_of = lazy_table(where_in, "duckdb", Rows(rows), narrow.names)
    tell = partial(db.tell, f"rows of {where_in}")
    return TableFile(
        rows_of,
        options,
        lambda layout: batches_of_rows(rows(), layout.order, lambda: 0),
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
