"""Files of any format as keys of facts in the temporary database."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from capacity.database.facts import Database
from capacity.database.io.files.content import Content
from capacity.database.io.files.formats import Cells, Format, format_called, resolve_format
from capacity.database.io.parsing import parsed, rows_of_terms
from capacity.database.io.rdf.quads import SYNTAXES
from capacity.database.io.reading import (
    ColumnOptions,
    GraphOptions,
    GrowthOptions,
    Reading,
    reading_of,
)
from capacity.database.io.tables.text import uncommented
from capacity.database.terms.term import Term, label
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.stores.lines.rdf_lines import stage_rdf
from capacity.stores.lines.sources import read_within
from capacity.stores.scratch.keys import key_of
from capacity.stores.scratch.scratch import ROWS, Scratch
from capacity.stores.scratch.streams import FileText, ends_of, head_of
from capacity.stores.tables.cells import stage_table
from capacity.stores.tables.files import parquet_table, stage_plain, text_table

if TYPE_CHECKING:
    import pyarrow as pa

_HELD = ROWS // 12


class CountingOptions(GrowthOptions, GraphOptions, ColumnOptions, total=False):
    """Keywords of reading files whose facts are counted, of any number of bytes."""

    format: str | None
    # its form, or of a database the name of one
    table: str | None


def counted_reading(call: str, options: Mapping[str, Any]) -> Reading:
    """Make a `Reading` of the keywords of a function that counts.

    Parameters
    ----------
    call : str
        Name of the function, for messages.
    options : mapping
        Its keywords (`CountingOptions`).

    Raises
    ------
    InvalidTypeError
        For an unknown keyword.
    InvalidArgumentError
        For a wrong option, and for facts of another number of columns than 3.
    """
    reading, _ = reading_of(call, CountingOptions, options)
    if reading.of_table.arity != 3:
        raise InvalidArgumentError(
            f"Facts of 3 columns are counted out of core; got {reading.of_table.arity}. Choose 3 "
            "with `columns`, the object's last."
        )
    if reading.split is not None:
        raise InvalidArgumentError(
            "Cells of several values are split where facts are loaded, and not out of core; got "
            f"split={reading.split!r:.20}. Load the file: capacity.load(path, split=...)."
        )
    # facts of any number are counted
    return replace(reading, max_bytes=sys.maxsize)


def stage(db: Scratch, where: str, reading: Reading, file: int | None) -> tuple[str, ...]:
    """Append the facts of a file to the table ``keyed``.

    Parameters
    ----------
    db : Scratch
        The temporary database.
    where : str
        Path of the file.
    reading : Reading
        The caller's options for it.
    file : int or None
        Number of the file, if there are several: blank nodes of two files are two.

    Returns
    -------
    tuple of str
        Sentences about what was omitted.

    Raises
    ------
    DatabaseFormatError
        If it can't be read as facts, as by `capacity.load`, or passes a limit.
    MemoryBudgetError
        If it is of a format that is held as a whole, and takes too much of the memory.
    """
    format = format_of(where, reading)
    reading.require_kind(where, format.name, format.kind)
    if reading.skip_errors and format.name not in SYNTAXES:
        raise DatabaseFormatError(
            where,
            "`skip_errors` of a table needs its rows in memory, and these are counted where they "
            "are",
            format=format.name,
            advice="Omit it, or load the file with capacity.load, which has it.",
        )
    if format.name in SYNTAXES:
        return stage_rdf(db, where, format, reading, file)
    if format.kind == "table" and format.split is None and format.name != "parquet":
        raise DatabaseFormatError(
            where, "files of this format are loaded, and not counted out of core",
            format=format.name,
            advice="Load it by capacity.load, which reads it; what capacity.database.write makes "
            "of it as .nt or .tsv is counted.",
        )  # fmt: skip
    if format.name == "parquet":
        stage_table(db, parquet_table(where, reading, db.tell), file)
    elif format.kind == "table" and format.split is not None:
        if not stage_plain(db, where, format, reading):
            stage_table(db, text_table(db, where, format, reading), file)
    elif not db.append("keyed", _keys(db, where, format, reading, file), lambda _: None):
        raise DatabaseFormatError(where, "it holds no facts", format=format.name)
    return notes_on_comments(where, format, reading)


def notes_on_comments(where: str, format: Format, reading: Reading) -> tuple[str, ...]:
    """List the lines of a table of text that are recognised as comments."""
    if format.kind != "table" or format.split is None:
        return ()
    text = uncommented(FileText(where, reading.limits), format, reading)
    # the first line tells
    next(text.lines(), None)
    return text.notes


def format_of(where: str, reading: Reading) -> Format:
    """Return the format of a file, by its beginning and its end if it isn't specified.

    Raises
    ------
    DatabaseFormatError
        For a file that can't be read, or whose format nothing determines.
    """
    beginning, end = ends_of(where)
    parquet = format_called("parquet")
    named = parquet if reading.format is None else format_called(reading.format)
    is_whole = reading.format is not None or beginning[:4] == end == b"PAR1"
    if parquet is not None and named is parquet and is_whole:
        return parquet
    head = head_of(where, reading.limits, reading.skip_errors)
    return resolve_format(Content(where, head.data, head.sha256), reading.format)


def _keys(
    db: Scratch, where: str, format: Format, reading: Reading, file: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the keys of the facts of a format from outside, in batches."""
    if format.split is None:
        content = read_within(where, format.name, reading.limits, db.memory)
        parts = _of_database(parsed(content, format, reading, multi="keep"))
        yield from _batches(parts, file)
        return
    text = FileText(where, reading.limits)
    yield from _batches((row for _, row in rows_of_terms(text, format, reading)), file)


def _of_database(db: Database) -> Iterator[tuple[Term, ...]]:
    for row in db.token_tuples.tolist():
        yield tuple(db.tokens[i] for i in row)


def _batches(rows: Iterable[tuple[Cells, ...]], file: int | None) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    rows = iter(rows)
    while held := list(islice(rows, _HELD)):
        columns = [
            [key_of(label(cell) if isinstance(cell, str) else cell, file) for cell in column]
            for column in zip(*held, strict=True)
        ]
        arrays = [pa.array(column, pa.string()) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, [*"spo"])
