"""Texts of columns of Parquet in batches, by their dictionaries or whole, as their pages are.

Numbers, truth values and days have the text that they have in a DataFrame (`from_pandas`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.database.io.cell_texts import texts_of, values_of
from capacity.database.terms.columns import compute

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# rows of a batch
BATCH = 2**16
# bytes of texts that are made at once, where a page may stand for more than it holds
_HELD = 2**25
# the first and the last day of Python's calendar, counted from 1970
_DAYS = -719_162, 2_932_896


def checked_batches(
    source: str | io.BytesIO,
    chosen: list[str],
    at_once: int = BATCH,
    group: int | None = None,
    *,
    of_folders: Mapping[str, str | None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read some columns as texts, of all groups of rows or of one.

    Every column is a dictionary of texts, or of no type if it has none. One that the file hasn't
    has the value that `of_folders` has for it in each row.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pq.ParquetFile(source, page_checksum_verification=True)
    wanted, chosen = chosen, [one for one in chosen if one in whole.schema_arrow.names]
    # each text once a batch: a few bytes of a hostile file can else become many gigabytes
    file = pq.ParquetFile(source, read_dictionary=chosen, page_checksum_verification=True)
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
            columns = [
                _with_dictionary(batch.column(name))
                if name in chosen
                else _repeated((of_folders or {})[name], batch.num_rows)
                for name in wanted
            ]
            yield pa.RecordBatch.from_arrays(columns, wanted)


def _ways(
    source: str | io.BytesIO, file: pq.ParquetFile, chosen: list[str], group: int | None
) -> Iterator[tuple[list[int], int | None]]:
    """Yield groups of rows, and how many of them may be made whole texts at once.

    It is None where dictionaries are read: pyarrow makes them of plain pages and of those that have
    one, and of no column of an extension type. A page may expand to more than it holds if it has a
    dictionary, or differences from the text before; none of its texts is longer than a page.
    """
    # every command imports this module, and few read such a file
    from capacity.database.io.tables.parquet_pages import (
        DELTA_LENGTHS,
        DELTAS,
        PLAIN,
        pages_of,
    )

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
    most = _HELD // longest if longest else BATCH
    for is_dense, of_numbers in groupby(numbers, dense.__contains__):
        yield list(of_numbers), most if is_dense else None


def _whole_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn columns of any type of text into plain ones; those of no type stay."""
    import pyarrow as pa

    batch.validate(full=True)
    columns: list[Any] = []
    for column in batch.columns:
        texts = as_texts(getattr(column, "storage", column))
        columns.append(texts if pa.types.is_null(texts.type) else texts.cast(pa.large_string()))
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _together(batches: Iterator[pa.RecordBatch], at_once: int) -> Iterator[pa.RecordBatch]:
    """Put small batches together, up to a number of rows or of bytes."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in chain(batches, [None]):
        if batch is not None:
            held.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if held and (batch is None or rows >= at_once or size >= _HELD):
            (whole,) = pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows, size = [], 0, 0
            yield whole


def _repeated(value: str | None, n_rows: int) -> Any:
    import pyarrow as pa

    indices = pa.repeat(pa.scalar(None if value is None else 0, pa.int32()), n_rows)
    return pa.DictionaryArray.from_arrays(indices, pa.array([value or ""], pa.string()))


def _with_dictionary(column: Any) -> Any:
    """Convert a column of texts to one type, whatever the file's type is: a dictionary of texts."""
    import pyarrow as pa

    wanted = pa.dictionary(pa.int32(), pa.string())
    if column.type == wanted or pa.types.is_null(column.type):
        return column
    if not pa.types.is_dictionary(column.type):
        # of the smaller decimals pyarrow makes no dictionary
        column = as_texts(column) if pa.types.is_decimal(column.type) else column
        column = column.dictionary_encode()
    indices, values = column.indices.cast(pa.int32()), column.dictionary
    return pa.DictionaryArray.from_arrays(indices, as_texts(values).cast(pa.string()))


def is_of_values(of: Any) -> bool:
    """Return whether each value of a type has one text: numbers, truth values and days do."""
    import pyarrow.types as types

    kinds = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_date)
    return any(is_kind(of) for is_kind in kinds)


def as_texts(column: Any) -> Any:
    """Write numbers, truth values and days as `texts_of` does; a column of texts stays.

    Raises
    ------
    pyarrow.ArrowInvalid
        For a day that no calendar of Python has.
    """
    import pyarrow as pa

    if not is_of_values(column.type):
        return column
    if pa.types.is_date(column.type):
        days = column.cast(pa.date32())
        ends = compute().min_max(days.view(pa.int32())).as_py()
        if ends["min"] is not None and not (_DAYS[0] <= ends["min"] and ends["max"] <= _DAYS[1]):
            raise pa.ArrowInvalid("a day is outside the years 1 to 9999")
        return days.cast(pa.string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return pa.array(texts_of(values_of(column), "of numbers"), pa.string())
