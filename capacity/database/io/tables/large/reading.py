"""Read large tables of plain labels as columns, by numpy or by compiled code.

Rows of one length, whose cells no rule of `headers`, `doubts` or `cells` makes doubtful, are read;
every other table is left to `capacity.database.io.tables.rows`, which reads any in the same way,
and more slowly.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.from_columns import from_columns
from capacity.database.io.files.content import Content
from capacity.database.io.files.pieces import compiled_pays, pieces_of
from capacity.database.io.tables.doubts import quoted_cell
from capacity.database.io.tables.headers import Row, find_header, looks_wide, unlike_the_rest
from capacity.database.io.tables.large.plain_cells import SEPARATORS, SplitCells
from capacity.database.io.tables.options import TableOptions
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.database.terms.columns import CODES, UnsortedTerms
from capacity.progress import bar

if TYPE_CHECKING:
    from capacity.database.io.tables.large.scanning import CompiledCells

# rows that are looked at for a header
_SAMPLE = 2**12


def read_large_table(
    content: Content,
    format: str,
    options: TableOptions,
    *,
    multi: MultiPolicy | None,
    source: Source,
) -> Database | None:
    """Read a checked table as columns, if it can be read so.

    Parameters
    ----------
    content : Content
        The file.
    format : str
        ``tsv`` or ``csv``.
    options : TableOptions
        What the user says of the table.
    multi, source
        As `capacity.database.io.tables.rows.read_rows` has them.

    Returns
    -------
    Database or None
        The same as `read_rows` makes; None if it must read the table.

    Raises
    ------
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    data = content.data
    first = rows_of_header(data, SEPARATORS[format].decode(), options)
    if first is None:
        return None
    cells, rows, plain = _cells(len(data), format, options.arity), [], 0
    quoted: list[Row] = []
    with bar() as progress:
        for piece in pieces_of(data, partial(progress, "reading")):
            found = cells.numbered(piece)
            if found is None:
                return None
            rows.append(found[0])
            plain += found[1]
            quoted += found[2]
    if not all_plain(format, options, plain, quoted):
        return None
    rows[0] = rows[0][first:]
    if not any(map(len, rows)):
        return None
    texts = cells.texts()
    n, kind = len(texts), CODES["label"]
    terms = UnsortedTerms(np.full(n, kind, np.uint8), texts, np.zeros(n, np.int32), [("", "")])
    del cells, texts, data
    content.drop_text()
    return from_columns(terms, rows, multi=multi, source=source)


def _cells(size: int, format: str, width: int) -> SplitCells | CompiledCells:
    if not compiled_pays(size, Path(__file__).with_name("scanning.py"), "scan"):
        return SplitCells(format, width)
    # numba takes longer to import than a short table to read
    from capacity.database.io.tables.large.scanning import CompiledCells

    return CompiledCells(format, width)


def rows_of_header(data: bytes, separator: str, options: TableOptions) -> int | None:
    """Return the number of rows of the header; None if a table isn't read so, as far as they tell.

    What these rules deny of the first rows, they deny of all: each needs all rows to agree.
    """
    if options.wide or options.columns is not None or options.terms == "n3":
        return None
    lines = data[: 2**20].rpartition(b"\n")[0].decode("utf-8").split("\n")
    split = (line.removesuffix("\r").split(separator) for line in lines)
    rows = [(0, tuple(row)) for row in islice((row for row in split if row != [""]), _SAMPLE)]
    arity = options.arity
    if not rows or any(len(row) != arity for _, row in rows):
        return None
    first = rows[0][1]
    if first == role_names(arity):
        return 1
    # alone, so that it doesn't matter whether a word of it occurs again
    header = find_header(rows[:1], arity)
    if header is None or header.rows:
        return None
    if options.wide is not None:
        return 0
    wide = arity == 3 and looks_wide(rows[1:], first)
    numbered = first == tuple(map(str, range(arity)))
    return None if wide or numbered or unlike_the_rest(rows) is not None else 0


def all_plain(format: str, options: TableOptions, plain: int, quoted: list[Row]) -> bool:
    """Return True if the cells of a table are plain labels, as all rows tell.

    Parameters
    ----------
    format : {'tsv', 'csv'}
        Its format.
    options : TableOptions
        What the user says of it.
    plain : int
        Number of cells that can't be terms.
    quoted : list of Row
        Rows in which there are quotes.
    """
    if options.terms is None and not plain:
        return False
    return format != "tsv" or options.wide is not None or quoted_cell(quoted) is None
