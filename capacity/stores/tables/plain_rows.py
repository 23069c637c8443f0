"""Keys of the labels of plain tables of text, found by numpy.

What is plain, `capacity.database.io.tables.large.reading` says. A table that isn't, because a rule
makes it doubtful or else, is left to `capacity.stores.tables.cells` as a whole (`UnsuitedError`).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from capacity.database.io.rdf.lines.columns import UnsuitedError
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.large.plain_cells import SEPARATORS, Cells, find_cells
from capacity.database.io.tables.large.reading import all_plain, rows_of_header
from capacity.database.io.tables.options import TableOptions
from capacity.database.terms.arrow import texts_of
from capacity.reading_limits import Limits

# the first character of a label's key
_FIRST = ord("=")
# rows with quotes, which are held
_MOST_QUOTED = 100_000


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
        found = None if skip is None else _found(lines, format, options, limits)
        if skip is None or found is None:
            raise UnsuitedError
        n = len(found.ends) // options.arity
        n_rows += n
        plain += found.plain
        quoted += found.quoted
        excess = limits.excess(rows=n_rows, cells=n_rows * options.arity)
        if excess is not None or len(quoted) > _MOST_QUOTED:
            raise UnsuitedError
        if n > skip:
            facts = True
            yield _batch(found, skip, options.arity)
        skip = max(0, skip - n)
    if not facts or not all_plain(format, options, plain, quoted):
        raise UnsuitedError


def _found(lines: bytes, format: str, options: TableOptions, limits: Limits) -> Cells | None:
    """Return the cells of whole lines; None if they aren't plain text, or one is too long."""
    try:
        codecs.utf_8_decode(lines, "strict", True)
    except UnicodeDecodeError:
        return None
    found = find_cells(lines, format, options.arity)
    if found is None or np.diff(found.ends, prepend=-1).max(initial=0) - 1 > limits.max_term_bytes:
        return None
    return found


def _batch(found: Cells, skip: int, width: int) -> pa.RecordBatch:
    # a cell and the byte before it, which separates it from the last one, are as long as its key
    text = np.frombuffer(b"\n" + found.text, np.uint8).copy()
    text[0] = text[found.ends + 1] = _FIRST
    keys = texts_of(np.concatenate([[0], found.ends + 1]), text)
    at = [np.arange(skip * width + column, len(keys), width) for column in range(width)]
    return pa.RecordBatch.from_arrays([keys.take(pa.array(column)) for column in at], [*"spo"])
