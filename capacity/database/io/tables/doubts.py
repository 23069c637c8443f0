"""Rows that a program other than this one means in another way: empty ones, and quoted TSV.

Excel ends a CSV with rows of commas alone, which are no facts of empty labels; and it writes TSV
with the quotes of CSV, around cells with a comma, a quote, a tab or a line break, which are no part
of the names. Both are refused, for nothing that a file holds is skipped in silence.

References
----------
Y. Shafranovich, RFC 4180, 2005, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from capacity.database.io.files.foreign import AS_TEXT
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.table import Table, empty_row
from capacity.database.terms.grammar import is_term

# "Hello, ""world""": quotes around, and between them quotes by twos, at least two
_DOUBLED = re.compile(r'"[^"]*+""(?:[^"]|"")*+"')


def is_empty(row: Iterable[str]) -> bool:
    """Return whether all cells of a row are empty.

    Examples
    --------
    >>> is_empty(("", "", "")), is_empty(("a", "p", ""))
    (True, False)
    """
    return not any(row)


def refuse_empty_rows(table: Table) -> None:
    """Refuse a table that has a row of nothing but empty cells.

    Raises
    ------
    DatabaseFormatError
        With the line of the first such row.
    """
    line = next((line for line, row in table.rows if is_empty(row)), None)
    if line is not None:
        raise empty_row(table, line)


def quoted_cell(rows: Iterable[Row]) -> Row | None:
    r"""Find a cell that has its quotes from a program that quotes as CSV does.

    It begins and ends with a quote, and has doubled ones between; or it begins with a quote that a
    later cell ends, so that a tab or a line break is between them.

    Parameters
    ----------
    rows : iterable of Row
        Rows of a TSV, split at its tabs and line breaks.

    Returns
    -------
    tuple of int and tuple of str, or None
        The number of the line, and the cell alone.

    Examples
    --------
    >>> quoted_cell([(1, ("Ann", "got", '"an ""A"" in it"'))])
    (1, ('"an ""A"" in it"',))
    >>> quoted_cell([(1, ("Ann", "said", '"Hello')), (2, ('world"',))])
    (1, ('"Hello',))
    >>> quoted_cell([(1, ("Ann", "said", '"Hello"'))]) is None
    True
    """
    opened: Row | None = None
    for line, row in rows:
        for cell in row:
            if '"' not in cell:
                continue
            if _DOUBLED.fullmatch(cell):
                return line, (cell,)
            # an even number of quotes leaves open what was open; those of a term are escaped
            if cell.count('"') % 2 == 0 or is_term(cell):
                continue
            if cell.startswith('"'):
                opened = line, (cell,)
            elif opened is not None and cell.endswith('"'):
                return opened
            else:
                opened = None
    return None


def refuse_quoting(table: Table) -> None:
    """Refuse a TSV whose cells are quoted as those of CSV.

    Raises
    ------
    DatabaseFormatError
        With the line of the first such cell.
    """
    found = quoted_cell(table.rows)
    if found is not None:
        line, (cell,) = found
        raise table.error(
            f"TSV has no quoting, and {cell!r:.60} is quoted as in CSV",
            line,
            f'Pass pd.read_csv(path, sep="\\t", {AS_TEXT}) to from_pandas, with header=None if the '
            'first row is a fact; or pass table="long" if the quotes are part of the names.',
        )
