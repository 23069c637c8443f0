"""Counts of facts in files that are larger than memory, by a temporary database on the disk.

Facts are read in a stream into a DuckDB database, as integers, and counted there by aggregates that
use the disk where memory is too small. Nothing is fetched from a network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from capacity.checks import shown
from capacity.database.io.files.content import Content
from capacity.database.io.files.formats import FORMATS, format_called, resolve_format
from capacity.database.io.files.several import Name, files_of, is_one, name_of_all
from capacity.database.io.sparql.client import require_seconds
from capacity.database.io.tables.options import Columns, TableOptions, table_options
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by
from capacity.progress import Progress
from capacity.reading_limits import MAX_GROWTH, MAX_TERM_BYTES, Limits
from capacity.stores.aggregates import count_keyed
from capacity.stores.counts.counts import StoreCounts
from capacity.stores.lines.rdf_lines import LINES, stage_lines
from capacity.stores.scratch.scratch import Scratch, scratch
from capacity.stores.scratch.streams import ends_of, head_of
from capacity.stores.tables.cells import stage_table
from capacity.stores.tables.databases import database_table
from capacity.stores.tables.files import parquet_table, stage_plain, text_table
from capacity.stores.tables.layout import require_rows_of_facts

MEMORY_LIMIT = "1GB"
# seconds for a view
TIMEOUT = 60.0
# names of the formats whose files are counted
COUNTED = ("parquet", *LINES, "tsv", "csv", "duckdb")


def count_duckdb(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,
    table: str | None = None,
    columns: Columns | None = None,
    views: bool = False,
    timeout: float = TIMEOUT,
    max_growth: int = MAX_GROWTH,
    max_rows: int | None = None,
    max_cells: int | None = None,
    max_term_bytes: int = MAX_TERM_BYTES,
    memory_limit: str | int = MEMORY_LIMIT,
    temp_folder: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> StoreCounts:
    r"""Count facts that may be larger than memory, and bound their rank by the counts.

    Parameters
    ----------
    path : path, or list of these
        Parquet, N-Triples, N-Quads, TSV or CSV files, the last four of which may be compressed, as
        `capacity.load` reads them; folders, and patterns such as ``parts/*.parquet``. Or a DuckDB
        database, which is opened for reading alone.
    format : str, optional
        Format of all files; by default it is guessed of each.
    table : str, optional
        Of a DuckDB database, the name of a table; of other tables, their form, ``long`` or ``n3``,
        as `capacity.load` has it.
    columns : sequence of str or int, optional
        Columns of subject, predicate and object, by name or by position from 0.
    views : bool
        Whether `table` may also be a view of a DuckDB database, which is a program: a process of
        its own evaluates it, limited by `timeout`, `max_rows` and, on Linux, half a gigabyte.
    timeout : float
        Seconds for reading a view.
    max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of each file, as `capacity.load` has them. The bytes of a file aren't limited.
    memory_limit : str or int
        Memory of the whole process, such as ``"1GB"``; what doesn't fit goes to the disk.
    temp_folder : path, optional
        Folder for the temporary database, which is removed at the end, and if this process is
        killed by the next count there; by default that of the system, which the variable ``TMPDIR``
        names. It takes up to some times the size of the text.
    threads : int, optional
        Number of threads; by default as many as there are processors and memory for.
    progress : callable, optional
        Function that is told how far the work is: bytes or rows read, then steps of counting.

    Returns
    -------
    StoreCounts
        Numbers of facts and tokens, and bounds of the rank. Named graphs are merged, and facts are
        a set. Blank nodes of two files are two.

    Raises
    ------
    DatabaseFormatError
        If a file can't be read as facts, as by `capacity.load`, is of another format, or passes a
        limit.
    InvalidTypeError
        If `path` holds anything but paths.
    InvalidArgumentError
        For an unknown form of the table, other numbers of columns than 3, a wrong limit, or a wrong
        number of threads.
    MemoryBudgetError
        If `memory_limit` is too little.
    StorageError
        If the disk is full, or the folder can't be used.
    MissingExtraError
        If the extra ``duckdb`` isn't installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "towns.nt")
    ...     _ = path.write_text("<x:Oslo> <x:in> <x:Norway> .\n<x:Bergen> <x:in> <x:Norway> .")
    ...     found = count_duckdb(path)
    >>> found
    StoreCounts(towns.nt: 2 facts, 2 x 1 x 1; functional; rank in [1, 1])
    """
    with needed_by("Counting out of core"):
        import duckdb as duckdb
        import pyarrow as pyarrow
    limits = Limits(sys.maxsize, max_growth, max_rows, max_cells, max_term_bytes)
    seconds = require_seconds("timeout", timeout) if views else None
    names = _named(path)
    alone = len(names) == 1 and bool(is_one(names[0]))
    first = names[0] if alone else None
    stored = first is not None and _is_duckdb(first, format)
    options = table_options(None if stored else table, None, None, columns)
    require_rows_of_facts(first or "the files", options)
    files, notes = ([first], ()) if first is not None else files_of(names, format)
    source = Path(first).name if first is not None else name_of_all(names, len(files))
    with scratch(
        source,
        memory_limit=memory_limit,
        temp_folder=temp_folder,
        threads=threads,
        progress=progress,
    ) as db:
        db.run("create table keyed (s varchar, p varchar, o varchar)")
        for number, where in enumerate(map(str, files), start=1):
            one_of = number if len(files) > 1 else None
            if stored:
                with database_table(db, where, table, options, limits, seconds) as of:
                    stage_table(db, of, one_of)
            else:
                _stage(db, where, format, options, limits, table is not None, one_of)
        return count_keyed(db, source, notes)


def _named(path: Name | Iterable[Name]) -> list[str]:
    if isinstance(path, str | os.PathLike):
        path = [path]
    names = list(path) if isinstance(path, Iterable) else [path]
    for name in names:
        if not isinstance(name, str | os.PathLike):
            raise InvalidTypeError(
                f"Files to count must be named by paths, for they are read more than once; got "
                f"{shown(name)}."
            )
        if os.fspath(name) in ("", "-"):
            raise InvalidArgumentError(
                "Files to count must be named by paths, for they are read more than once; got "
                f"{shown(name)}. Save standard input to a file first."
            )
    return [os.fsdecode(name) for name in names]


def _is_duckdb(where: str, format: str | None) -> bool:
    if format is not None:
        return format.lower() == "duckdb"
    return ends_of(where)[0][8:12] == b"DUCK"


def _stage(
    db: Scratch,
    where: str,
    format: str | None,
    options: TableOptions,
    limits: Limits,
    said: bool,
    file: int | None,
) -> None:
    """Append the facts of a file of any format to the table ``keyed``."""
    chosen = _format_of(where, format, limits)
    if chosen in LINES:
        if said or options.columns is not None:
            what = "table" if said else "columns"
            raise DatabaseFormatError(
                where, f"`{what}` is an option of tables", format=chosen, advice=f"Omit `{what}`."
            )
        stage_lines(db, where, chosen, file, limits)
    elif chosen == "parquet":
        stage_table(db, parquet_table(where, options, limits, db.tell, said=said), file)
    elif not stage_plain(db, where, chosen, options, limits):
        stage_table(db, text_table(db, where, chosen, options, limits, said=said), file)


def _format_of(where: str, format: str | None, limits: Limits) -> str:
    """Tell the format of a file, or refuse one that can't be counted in a stream."""
    beginning, end = ends_of(where)
    if format is None and beginning[:4] == end == b"PAR1":
        return "parquet"
    called = format_called(format) if format is not None else None
    if called is not None and called.name == "parquet":
        return "parquet"
    head = head_of(where, limits)
    found = resolve_format(Content(where, head.data, head.sha256), format).name
    if found not in COUNTED:
        raise DatabaseFormatError(
            where,
            f"{found} isn't counted out of core, but {', '.join(COUNTED)} are",
            format=found if found in FORMATS else None,
            advice="Write it as N-Triples: riot --output=ntriples FILE, or pyoxigraph.serialize.",
        )
    return found
