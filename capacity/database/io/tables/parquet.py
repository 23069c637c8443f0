"""Tables in Parquet, which holds any label: its columns have names, and its cells types.

Columns are found by their names as in the header of a text, and must hold text. A table that
`write` has written says in its metadata whether its cells are labels or N-Triples terms.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.foreign import is_parquet
from capacity.database.io.files.formats import Format, register_format
from capacity.database.io.tables.cells import cells_of
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.options import Columns, TableForm, TableTerms, table_options
from capacity.database.io.tables.rows import narrowed, read_rows
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.database.terms.arrow import compute
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.reading_limits import Limits

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# key of the form of the cells in a file's metadata
_KEY = b"capacity.terms"
_BATCH = 2**16
# bytes of texts that are made at once, where a page may stand for more than it holds
_HELD = 2**25


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
        require_text(content.name, format.name, file.schema_arrow, at)
        chosen = [names[i] for i in at]
        require_room(content.name, file, io.BytesIO(content.data), len(at), content.limits)
        rows = list(_rows(content, chosen))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise broken_parquet(content.name, error) from None
    if terms is None and table is None:
        options = replace(options, terms=options.terms or written_terms(file.schema_arrow))
    return read_rows(
        Table(content.name, format.name, rows, tuple(names[i] for i in at)),
        options,
        multi=multi,
        source=Source(Path(content.name).name, content.sha256, format.name),
        allow_empty=allow_empty,
    )


def broken_parquet(name: str, error: Exception) -> DatabaseFormatError:
    """Make the error for a file that pyarrow doesn't read."""
    said = str(error).partition("\n")[0]
    advice = "Fetch or write it again."
    if "Not yet implemented" in said:
        advice = "Write it with another encoding of its columns, such as PLAIN."
    reason = f"it can't be read as Parquet ({said:.200})"
    return DatabaseFormatError(name, reason, format="parquet", advice=advice)


def written_terms(schema: pa.Schema) -> TableTerms | None:
    """Return the form of the cells that `write` has noted in a file; None if there is no note."""
    noted = (schema.metadata or {}).get(_KEY)
    return "label" if noted == b"label" else "n3" if noted == b"n3" else None


def require_text(name: str, format: str, schema: pa.Schema, at: Sequence[int]) -> None:
    """Refuse columns of other types than text.

    Raises
    ------
    DatabaseFormatError
        With the name of the column, and its type.
    """
    for i in at:
        field = schema.field(i)
        if not _is_text(field.type):
            raise not_text(name, format, field.name, field.type)


def _is_text(of: Any) -> bool:
    import pyarrow.types as types

    # such as of JSON, whose texts are kept as they are
    while hasattr(of, "storage_type"):
        of = of.storage_type
    if types.is_dictionary(of):
        of = of.value_type
    kinds = types.is_string, types.is_large_string, types.is_string_view, types.is_null
    return any(is_kind(of) for is_kind in kinds)


def not_text(name: str, format: str, column: str, type: object) -> DatabaseFormatError:
    """Make the error for a column of another type than text."""
    return DatabaseFormatError(
        name,
        f"each column of facts must hold text; {column!r:.60} is of type {type!s:.60}",
        format=format,
        advice="Choose others with `columns`, or turn it into text first.",
    )


def require_room(
    name: str, file: pq.ParquetFile, data: IO[bytes], n_columns: int, limits: Limits
) -> None:
    """Refuse a file that promises more than the limits allow, before a page is read.

    The metadata say its rows, and the headers of its pages their sizes. Of its columns, `n_columns`
    are to be read.

    Raises
    ------
    DatabaseFormatError
        With the limit, or if its pages aren't where the metadata say.
    """
    # every command imports this module, and few read such a file
    from capacity.database.io.tables.pages import sizes_of_pages

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


def _rows(content: Content, chosen: list[str]) -> Iterator[Row]:
    number = 0
    for batch in text_batches(content.name, io.BytesIO(content.data), chosen, content.limits):
        for cells in zip(*map(cells_of_column, batch.columns), strict=True):
            number += 1
            # None, which the types don't tell, is a missing cell
            yield number, cast(tuple[str, ...], cells)


def text_batches(
    name: str, source: str | io.BytesIO, chosen: list[str], limits: Limits, at_once: int = _BATCH
) -> Iterator[pa.RecordBatch]:
    """Read some columns of text, checked, in batches of at most `at_once` rows.

    Raises
    ------
    DatabaseFormatError
        Before a text is made of a cell that is too long, or of more cells than the limits allow.
    """
    rows = text = 0
    for batch in checked_batches(source, chosen, at_once):
        longest, size = _lengths(batch)
        rows, text = rows + batch.num_rows, text + size
        excess = replace(limits, packed=True).excess(rows=rows, text=text, term=longest)
        refuse_excess(name, "parquet", excess)
        yield batch


def checked_batches(
    source: str | io.BytesIO, chosen: list[str], at_once: int = _BATCH, group: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Read some columns of text, of all groups of rows or of one, as what they should be.

    Every column is a dictionary of texts, or of no type if it has none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # each text once a batch: a few bytes of a hostile file can else become many gigabytes
    file = pq.ParquetFile(source, read_dictionary=chosen, page_checksum_verification=True)
    whole = pq.ParquetFile(source, page_checksum_verification=True)
    for groups, most in _ways(source, file, chosen, group):
        if most is None:
            batches = file.iter_batches(batch_size=at_once, row_groups=groups, columns=chosen)
        else:
            # few rows of whole texts, which are put together once they are known
            n = max(1, min(at_once, most))
            few = whole.iter_batches(batch_size=n, row_groups=groups, columns=chosen)
            batches = _together(map(_whole_texts, few), at_once)
        for batch in batches:
            # a damaged file may hold indices beyond its dictionary, and bytes that aren't UTF-8
            batch.validate(full=True)
            columns = [_with_dictionary(batch.column(name)) for name in chosen]
            yield pa.RecordBatch.from_arrays(columns, chosen)


def _ways(
    source: str | io.BytesIO, file: pq.ParquetFile, chosen: list[str], group: int | None
) -> Iterator[tuple[list[int], int | None]]:
    """Yield groups of rows, and how many of them may be made whole texts at once.

    It is None where dictionaries are read: pyarrow makes them of plain pages and of those that have
    one, and of no column of an extension type. A page may stand for more than it holds if it has a
    dictionary, or differences from the text before; none of its texts is longer than a page.
    """
    from capacity.database.io.tables.pages import DELTA_LENGTHS, DELTAS, PLAIN, pages_of

    schema = file.schema
    at = {schema.column(i).path: i for i in range(len(schema))}
    wanted = {at[name] for name in chosen if name in at}
    numbers = range(file.metadata.num_row_groups) if group is None else [group]
    has_extension = any(hasattr(file.schema_arrow.field(c).type, "storage_type") for c in chosen)
    dense = set(numbers) if has_extension else set[int]()
    # of each group the largest page of each column, of those in which texts may be repeated
    largest: dict[int, dict[int, int]] = {number: {} for number in numbers}
    repeating = set[tuple[int, int]]()
    with Path(source).open("rb") if isinstance(source, str) else nullcontext(source) as data:
        for page in pages_of(data, group):
            if page.column in wanted:
                sizes = largest[page.group]
                sizes[page.column] = max(page.size, sizes.get(page.column, 0))
                if {DELTA_LENGTHS, DELTAS}.intersection(page.encodings):
                    dense.add(page.group)
                if not {PLAIN, DELTA_LENGTHS}.issuperset(page.encodings):
                    repeating.add((page.group, page.column))

    longest = max(
        (
            sum(size for column, size in sizes.items() if (number, column) in repeating)
            for number, sizes in largest.items()
            if number in dense
        ),
        default=0,
    )
    most = _HELD // longest if longest else _BATCH
    for is_dense, of_numbers in groupby(numbers, dense.__contains__):
        yield list(of_numbers), most if is_dense else None


def _whole_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn columns of any type of text into plain ones; those of no type stay."""
    import pyarrow as pa

    batch.validate(full=True)
    columns: list[Any] = []
    for column in batch.columns:
        texts = getattr(column, "storage", column)
        columns.append(texts if pa.types.is_null(texts.type) else texts.cast(pa.large_string()))
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _together(batches: Iterator[pa.RecordBatch], at_once: int) -> Iterator[pa.RecordBatch]:
    """Put small batches together, up to a number of rows or of bytes."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in chain(batches, [None]):
        if batch is not None:
            held.append(batch)
        rows, size = sum(b.num_rows for b in held), sum(b.nbytes for b in held)
        if held and (batch is None or rows >= at_once or size >= _HELD):
            (whole,) = pa.Table.from_batches(held).combine_chunks().to_batches()
            held = []
            yield whole


def _with_dictionary(column: Any) -> Any:
    """Give a column of texts one type, whatever that of the file is: a dictionary of texts."""
    import pyarrow as pa

    wanted = pa.dictionary(pa.int32(), pa.string())
    if column.type == wanted or pa.types.is_null(column.type):
        return column
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    indices, texts = column.indices.cast(pa.int32()), column.dictionary.cast(pa.string())
    return pa.DictionaryArray.from_arrays(indices, texts)


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


def cells_of_column(column: Any) -> list[str | None]:
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
