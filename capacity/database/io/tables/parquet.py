"""Tables in Parquet, which holds any label: its columns have names, and its cells types.

Columns are found by their names as in the header of a text, and hold texts, numbers, truth values
or days. A table that `write` has written contains in its metadata whether its cells are labels or
N-Triples terms. A file in a folder such as ``relation=knows``, as Hive, Spark and Dask divide
tables, has that column, too.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, cast

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.foreign import is_parquet
from capacity.database.io.files.formats import Format, register_format
from capacity.database.io.reading import Reading
from capacity.database.io.table_options import TableOptions, TableTerms
from capacity.database.io.tables.cells import cells_of, read_rows
from capacity.database.io.tables.folders import columns_of_folders, names_with_folders
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.parquet_texts import BATCH, checked_batches, is_of_values
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.database.terms.columns import compute
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.reading_limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


# key of the form of the cells in a file's metadata
_KEY = b"capacity.terms"


def parse_parquet_content(
    content: Content,
    format: Format,
    reading: Reading,
    *,
    multi: MultiPolicy | None = None,
) -> Database:
    """Parse the bytes of a Parquet file.

    Options and errors are those of `capacity.database.read_table`.
    """
    if not is_parquet(content.data):
        raise DatabaseFormatError(
            content.name,
            "the file doesn't begin and end as Parquet does",
            format=format.name,
            advice="Fetch it again, or omit the format.",
        )
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(content.data))
        chosen, options = columns_of_facts(content.name, file.schema_arrow, reading.of_table)
        require_room(content.name, file, io.BytesIO(content.data), len(chosen), content.limits)
        data = io.BytesIO(content.data)
        rows = list(rows_of_batches(text_batches(content.name, data, chosen, content.limits)))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise broken_parquet(content.name, error) from None
    if reading.terms is None and reading.table is None:
        options = replace(options, terms=options.terms or written_terms(file.schema_arrow))
    return read_rows(
        Table(content.name, format.name, rows, tuple(chosen)),
        options,
        multi=multi,
        source=content.source(format.name),
        allow_empty=reading.allow_empty,
    )


def broken_parquet(name: str, error: Exception) -> DatabaseFormatError:
    """Make the error for a file that pyarrow doesn't read."""
    said = str(error).partition("\n")[0]
    advice = "Fetch or write it again."
    if "Not yet implemented" in said:
        advice = "Write it with another encoding of its columns, such as PLAIN."
    elif "utf8" in said.lower():
        advice = "Write its texts in UTF-8, or choose other columns with `columns`."
    reason = f"it can't be read as Parquet ({said:.200})"
    return DatabaseFormatError(name, reason, format="parquet", advice=advice)


def written_terms(schema: pa.Schema) -> TableTerms | None:
    """Return the form of the cells that `write` has noted in a file; None if there is no note."""
    noted = (schema.metadata or {}).get(_KEY)
    return "label" if noted == b"label" else "n3" if noted == b"n3" else None


def require_room(
    name: str, file: pq.ParquetFile, data: IO[bytes], n_columns: int, limits: Limits
) -> None:
    """Refuse a file that promises more than the limits allow, before a page is read.

    The metadata contain the number of its rows, and the headers of its pages their sizes. Of its
    columns, `n_columns` are to be read.

    Raises
    ------
    DatabaseFormatError
        With the limit, or if its pages aren't where they are by the metadata.
    """
    # every command imports this module, and few read such a file
    from capacity.database.io.tables.parquet_pages import sizes_of_pages

    # of all columns: asking for one of them ends the process if the metadata is damaged
    meta = file.metadata
    size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    rows = meta.num_rows
    packed = replace(limits, packed=True)
    excess = packed.excess(rows=rows, cells=rows * n_columns, grown=size)
    refuse_excess(name, "parquet", excess)
    size, pages = 0, sizes_of_pages(data)
    try:
        while (page := next(pages, None)) is not None:
            size += page
            if excess := packed.excess(grown=size):
                break
    except InvalidArgumentError as error:
        raise broken_parquet(name, error) from None
    refuse_excess(name, "parquet", excess)


def rows_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows of batches, with their numbers from 1; a missing cell is None."""
    columns = (map(_cells_of_column, batch.columns) for batch in batches)
    rows = chain.from_iterable(zip(*cells, strict=True) for cells in columns)
    # which the types don't tell
    return enumerate(cast("Iterator[tuple[str, ...]]", rows), start=1)


def text_batches(
    name: str, source: str | io.BytesIO, chosen: list[str], limits: Limits, at_once: int = BATCH
) -> Iterator[pa.RecordBatch]:
    """Read some columns of text, checked, in batches of at most `at_once` rows.

    Raises
    ------
    DatabaseFormatError
        Before a text is made of a cell that is too long, or of more cells than the limits allow.
    """
    rows = text = 0
    for batch in checked_batches(source, chosen, at_once, of_folders=columns_of_folders(name)):
        longest, size = _lengths(batch)
        rows, text = rows + batch.num_rows, text + size
        excess = replace(limits, packed=True).excess(rows=rows, text=text, term=longest)
        refuse_excess(name, "parquet", excess)
        yield batch


def _lengths(batch: pa.RecordBatch) -> tuple[int, int]:
    """Return the bytes of the longest cell, and of all cells as they would be written out."""
    pc, longest, size = compute(), 0, 0
    for column in batch.columns:
        texts = getattr(column, "dictionary", column)
        # a column without a text may be of no type
        if texts.null_count == len(texts):
            continue
        lengths = pc.binary_length(texts)
        longest = max(longest, pc.max(lengths).as_py() or 0)
        each = lengths.take(column.indices) if texts is not column else lengths
        size += pc.sum(each, min_count=0).as_py()
    return longest, size


def _cells_of_column(column: Any) -> list[str | None]:
    """Return the cells of a column, with or without a dictionary; None for a missing one."""
    if not hasattr(column, "dictionary"):
        return column.to_pylist()
    texts = column.dictionary.to_pylist()
    return [None if i is None else texts[i] for i in column.indices.to_pylist()]


def write_parquet(db: Database, _: Format, *, terms: TableTerms | None = None) -> bytes:
    """Write facts as Parquet; options and errors are those of `write`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    form, rows = cells_of(db, terms)
    names = role_names(db.arity)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    schema = pa.schema([(name, pa.string()) for name in names], metadata={_KEY: form.encode()})
    arrays = [pa.array(column, type=pa.string()) for column in columns]
    sink = io.BytesIO()
    whole = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(whole, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


register_format(
    Format("parquet", ("parquet", "pq", "application/vnd.apache.parquet"), None, "table",
           lambda head: 99 * head.text.startswith("PAR1"), write_parquet, parse_parquet_content)
)  # fmt: skip


def columns_of_facts(
    name: str, schema: pa.Schema, options: TableOptions
) -> tuple[list[str], TableOptions]:
    """Choose the columns of facts, of the file's own and of those that its folders name.

    Raises
    ------
    DatabaseFormatError
        If it has others than facts have, or one without texts, with its name and type.
    """
    own = tuple(schema.names)
    names = names_with_folders(name, "parquet", own, options)
    at, options = narrowed(Table(name, "parquet", [], names), options)
    for i in at:
        if i < len(own) and not _has_texts(schema.field(i).type):
            what = "text, numbers, truth values or days"
            raise not_text(name, "parquet", own[i], schema.field(i).type, what)
    return [names[i] for i in at], options


def _has_texts(of: Any) -> bool:
    import pyarrow.types as types

    # such as of JSON, whose texts are kept as they are
    while hasattr(of, "storage_type"):
        of = of.storage_type
    if types.is_dictionary(of):
        of = of.value_type
    kinds = (
        types.is_string, types.is_large_string, types.is_string_view, types.is_null,
        # as older programs write texts; that they are UTF-8 is checked when they are read
        types.is_binary, types.is_large_binary, types.is_binary_view,
    )  # fmt: skip
    return is_of_values(of) or any(is_kind(of) for is_kind in kinds)


def not_text(
    name: str, format: str, column: str, type: object, what: str = "text"
) -> DatabaseFormatError:
    """Make the error for a column of another type than facts may have."""
    return DatabaseFormatError(
        name,
        f"each column of facts must hold {what}; {column!r:.60} is of type {type!s:.60}",
        format=format,
        advice="Choose others with `columns`, or turn it into text first.",
    )
