"""Keys of the labels of plain tables of text, by compiled code.

What is plain, `capacity.database.io.tables.large` says. A table that isn't, because a rule makes it
doubtful or else, is left to `capacity.stores.table_cells` as a whole (`UnsuitedError`).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.io.numbering import texts_of
from capacity.database.io.rdf.lines import UnsuitedError
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.large import all_plain, rows_of_header
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.scanning import SEPARATORS, Scanned, scanned
from capacity.kept_code import kept
from capacity.reading_limits import Limits

# the first character of a label's key
_FIRST = ord("=")
# rows with quotes, which are held
_MOST_QUOTED = 100_000


@kept
def _copied(data, begins, ends, column, width, starts, text):  # type: ignore[no-untyped-def]
    """Copy the cells of a column as keys, one after the other."""
    at = 0
    for row in range(len(starts) - 1):
        t = row * width + column
        starts[row] = at
        text[at] = _FIRST
        at += 1
        for i in range(begins[t], ends[t]):
            text[at] = data[i]
            at += 1
    starts[len(starts) - 1] = at


def plain_rows(
    chunks: Iterable[bytes], format: str, options: TableOptions, limits: Limits
) -> Iterator[pa.RecordBatch]:
    """Yield the keys of facts, of each chunk of whole lines a batch.

    Parameters
    ----------
    chunks : iterable of bytes
        The text, in pieces of whole lines.
    format : {'tsv', 'csv'}
        Its format.
    options : TableOptions
        What the user says of the table.
    limits : Limits
        What the file is held to.

    Raises
    ------
    UnsuitedError
        Also after the last batch, if the table must be read in another way.
    """
    skip: int | None = None
    quoted: list[Row] = []
    plain, n_rows, facts = 0, 0, False
    for lines in chunks:
        if skip is None:
            skip = rows_of_header(lines, SEPARATORS[format].decode(), options)
        found = None if skip is None else _scanned(lines, format, options, limits)
        if skip is None or found is None:
            raise UnsuitedError
        n_rows += found.n
        plain += found.plain
        quoted += found.quoted
        excess = limits.excess(rows=n_rows, cells=n_rows * options.arity)
        if excess is not None or len(quoted) > _MOST_QUOTED:
            raise UnsuitedError
        if found.n > skip:
            facts = True
            yield _batch(found, skip, options.arity)
        skip = max(0, skip - found.n)
    if not facts or not all_plain(format, options, plain, quoted):
        raise UnsuitedError


def _scanned(lines: bytes, format: str, options: TableOptions, limits: Limits) -> Scanned | None:
    """Return the cells of whole lines; None if they aren't plain text, or one is too long."""
    try:
        codecs.utf_8_decode(lines, "strict", True)
    except UnicodeDecodeError:
        return None
    found = scanned(memoryview(lines), format, options.arity)
    if found is None or (found.ends - found.begins).max(initial=0) > limits.max_term_bytes:
        return None
    return found


def _batch(found: Scanned, skip: int, width: int) -> pa.RecordBatch:
    begins, ends = found.begins[skip * width :], found.ends[skip * width :]
    columns = [_column(found.data, begins, ends, column, width) for column in range(width)]
    return pa.RecordBatch.from_arrays(columns, [*"spo"])


def _column(
    data: NDArray[np.uint8],
    begins: NDArray[np.int32],
    ends: NDArray[np.int32],
    column: int,
    width: int,
) -> pa.LargeStringArray:
    n = len(begins) // width
    room = int((ends[column::width] - begins[column::width]).sum()) + n
    starts, text = np.empty(n + 1, np.int64), np.empty(room, np.uint8)
    _copied(data, begins, ends, column, width, starts, text)
    return texts_of(starts, text)
