"""Tables in Parquet, which holds any label: its columns have names, and its cells types.

Columns are found by their names as in the header of a text, and must hold text. A table that
`write` has written says in its metadata whether its cells are labels or N-Triples terms.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.content import MAX_BYTES, Content
from capacity.database.io.foreign import is_parquet
from capacity.database.io.formats import Format, register_format
from capacity.database.io.tables.cells import cells_of
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import Columns, TableForm, TableTerms, table_options
from capacity.database.io.tables.rows import narrowed, read_rows
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.errors import DatabaseFormatError, InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# key of the form of the cells in a file's metadata
_KEY = b"capacity.terms"
_BATCH = 2**16
# bytes that a row takes in memory, at least
_ROW = 64


def parse_parquet_content(
    content: Content,
    format: Format,
    *,
    multi: MultiPolicy | None = None,
    table: TableForm | None = None,
    terms: TableTerms | None = None,
    arity: int | None = None,
    columns: Columns | None = None,
    allow_empty: bool = False,
) -> Database:
    """Parse the bytes of a Parquet file.

    Options and errors are those of `capacity.database.read_table`.
    """
    options = table_options(table, terms, arity, columns)
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
        names = tuple(file.schema_arrow.names)
        at, options = narrowed(Table(content.name, format.name, [], names), options)
        _check(content.name, format.name, file, at)
        rows = list(_rows(content.data, at, names))
        written = (file.schema_arrow.metadata or {}).get(_KEY)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = f"it can't be read as Parquet ({str(error).partition(chr(10))[0]:.200})"
        raise DatabaseFormatError(
            content.name, reason, format=format.name, advice="Fetch or write it again."
        ) from None
    if terms is None and table is None and written in (b"label", b"n3"):
        options = replace(options, terms="label" if written == b"label" else "n3")
    return read_rows(
        Table(content.name, format.name, rows, tuple(names[i] for i in at)),
        options,
        multi=multi,
        source=Source(Path(content.name).name, content.sha256, format.name),
        allow_empty=allow_empty,
    )


def _check(name: str, format: str, file: pq.ParquetFile, at: list[int]) -> None:
    """Refuse columns of other types than text, and more rows than the memory is for."""
    import pyarrow.types as types

    for i in at:
        field = file.schema_arrow.field(i)
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not (types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind)):
            raise DatabaseFormatError(
                name,
                f"each column of facts must hold text; {field.name!r:.60} is of type {field.type}",
                format=format,
                advice="Choose others with `columns`, or turn it into text first.",
            )
    meta = file.metadata
    size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    if size > MAX_BYTES or meta.num_rows * _ROW * len(at) > MAX_BYTES:
        raise DatabaseFormatError(
            name,
            f"it holds {meta.num_rows:,} rows and {size:,} bytes, decompressed, more than "
            f"{MAX_BYTES:,} bytes in memory",
            format=format,
            advice="Split it, or use a part of it.",
        )


def _rows(data: bytes, at: list[int], names: tuple[str, ...]) -> Iterator[Row]:
    import pyarrow.parquet as pq

    chosen = [names[i] for i in at]
    # each text once a batch: a few bytes of a hostile file can else become many gigabytes
    file = pq.ParquetFile(io.BytesIO(data), read_dictionary=chosen, page_checksum_verification=True)
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH, columns=chosen):
        # a damaged file may hold indices beyond its dictionary, and bytes that aren't UTF-8
        batch.validate(full=True)
        columns = [_cells(batch.column(name)) for name in chosen]
        for cells in zip(*columns, strict=True):
            number += 1
            # None, which the types don't tell, is a missing cell
            yield number, cast(tuple[str, ...], cells)


def _cells(column: Any) -> list[str | None]:
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
    try:
        arrays = [pa.array(column, type=pa.string()) for column in columns]
    except (UnicodeEncodeError, pa.ArrowException) as error:
        raise InvalidArgumentError(
            f"A label must have a form in UTF-8; one has none ({error!s:.60}). Make a database of "
            "other labels first."
        ) from None
    sink = io.BytesIO()
    whole = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(whole, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


register_format(
    Format("parquet", ("parquet", "pq", "application/vnd.apache.parquet"), "table",
           parse_parquet_content, lambda head: 99 * head.text.startswith("PAR1"), write_parquet)
)  # fmt: skip
