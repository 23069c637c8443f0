"""A table of cells, the errors about its columns, and rows that another program means differently.

Excel ends a CSV with rows of commas alone, which are no facts of empty labels; and it writes TSV
with the quotes of CSV, around cells with a comma, a quote, a tab or a line break, which are no part
of the names. Both are refused, for nothing that a file holds is skipped in silence.

References
----------
Y. Shafranovich, RFC 4180, 2005, section 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from capacity.checks import cut, shown
from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.io.files.content import refuse_excess
from capacity.database.io.files.foreign import AS_TEXT, foreign_text
from capacity.database.io.tables.headers import Row, role_order, roles_among
from capacity.database.terms.grammar import is_term
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import Limits

# of the library's formats of text
SEPARATORS = {"tsv": "\t", "csv": ","}
# what lines of comments begin with in tables of other programs
_COMMENT = re.compile(r"#+|!+|%+|//|--|;(?!.*;)")


@dataclass(frozen=True)
class Table:
    """Rows of cells, as a file holds them.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    format : str
        Name of its format.
    rows : sequence of Row
        Numbers of lines, and cells. None is a missing cell; a text has none.
    names : tuple of str, or None
        Names of the columns; None where the first row may be a header.
    """

    name: str
    format: str
    rows: Sequence[Row]
    names: tuple[str, ...] | None = None

    def error(
        self, reason: str, line: int | None = None, advice: str | None = None
    ) -> DatabaseFormatError:
        """Make an error about this table."""
        return DatabaseFormatError(self.name, reason, format=self.format, line=line, advice=advice)


def within(name: str, format: str, rows: Iterable[Row], limits: Limits) -> Iterator[Row]:
    """Yield rows as long as they are within the limits of a file.

    Raises
    ------
    DatabaseFormatError
        For a row, or a cell, too many or too long.
    """
    most_rows, most_cells, most_text = limits.rows, limits.cells, limits.text
    n_rows = cells = text = 0
    for number, row in rows:
        size, longest = sum(map(len, filter(None, row) if None in row else row)), 0
        n_rows, cells, text = n_rows + 1, cells + len(row), text + size
        # a character takes four bytes at most
        if 4 * size > limits.max_term_bytes:
            lengths = [len(cell.encode()) for cell in row if cell]
            text, longest = text - size + sum(lengths), max(lengths)
        if (
            n_rows > most_rows
            or cells > most_cells
            or text > most_text
            or longest > limits.max_term_bytes
        ):
            excess = limits.excess(rows=n_rows, cells=cells, text=text, term=longest)
            refuse_excess(name, format, excess)
        yield number, row


def empty_row(table: Table, line: int | None) -> Exception:
    """Make an error about a row of nothing but empty cells."""
    return table.error(
        "all cells of the row are empty",
        line,
        'Delete the row, or pass table="long" if it is a fact of empty labels.',
    ).about_row()


def missing_cell(table: Table, line: int | None) -> Exception:
    """Make an error about a cell without a value."""
    return table.error(
        "a cell is missing",
        line,
        'Drop the row or fill it; in a table with one column per property, table="wide", a missing '
        "cell is no fact.",
    )


def may_be_wide(table: Table, names: tuple[str, ...], line: int | None) -> Exception:
    """Make an error about a table that may have one column per property."""
    return table.error(
        f"the table may have one column per property, with the names {cut(' '.join(names))}",
        line,
        'Pass table="wide" if so: the first column holds subjects, and an empty cell is no fact. '
        'Pass table="long" if each row is a fact'
        + ("." if line is None else f", {_by_name(names)} if the first row is a header."),
    )


def may_be_header(table: Table, columns: Sequence[int] | None = None, why: str = "") -> Exception:
    """Make an error about a first row that may be a header and may be a fact."""
    line, first = table.rows[0]
    names = first if columns is None else tuple(first[i] for i in columns)
    return table.error(
        f"the first row, {cut(' '.join(first))}, may be a header and may be a fact"
        + (f": {why}" if why else ""),
        line,
        f'Pass table="long" if it is a fact, {_by_name(names, columns)} if it is a header.',
    )


def _by_name(names: tuple[str, ...], columns: Sequence[int] | None = None) -> str:
    """Treat the first row as a header, with columns as given or in the order of roles."""
    order = role_order(names) if len(names) == 3 and columns is None else None
    named = [names[i] for i in order] if order is not None else list(names)
    return "delete it" if len(set(named)) < len(named) else f"columns={named!r:.200}"


def wrong_width(table: Table, line: int | None, row: tuple[str, ...], arity: int) -> Exception:
    """Make an error about a row that has another number of cells than facts."""
    holds = "subject, predicate and object" if arity == 3 else f"{arity} cells"
    cells = len(row)
    if line is not None and (foreign := foreign_text(",".join(row))):
        return table.error(f"it is {foreign.what}", None, foreign.advice)
    if cells > 5 and arity == 3 and row[4].startswith("GO:"):
        advice = "To read entities, their relations and terms of GO, pass columns=[1, 3, 4]."
        return table.error("it is a file of gene annotations (GAF)", line, advice)
    if cells == 1 and (mark := _COMMENT.match(row[0])):
        advice = (
            f"If lines that begin so are comments, pass comment={mark[0]!r}. If the file is RDF, "
            "pass its `format`."
        )
        said = f"a row must hold {holds}; this one has 1 cell, {cut(row[0])}"
        return table.error(said, line, advice).about_row(width=True)
    if cells == 1 and (other := next((c for c in ";|" if c in row[0]), None)):
        advice = (
            f'If {other} is between cells, pass pd.read_csv(path, sep="{other}", {AS_TEXT}) to '
            "from_pandas, with header=None if the first row is a fact."
        )
        said = f"a row must hold {holds}; this one has 1 cell"
        return table.error(said, line, advice).about_row(width=True)
    first = table.rows[0][1]
    advice = "TSV is split at tabs, CSV at commas. If the file is RDF, pass its `format`."
    # the first row that is wrong is the first of all if that is
    if len(first) != arity and arity == 3 and cells > 1:
        advice = 'If it has one column per property, pass table="wide".'
        roles = roles_among(first)
        if roles is not None:
            advice = f"Pass columns={[first[i] for i in roles]!r:.200}."
    if LEAST <= cells <= MOST:
        advice += f" Facts of {cells} columns are read with `arity={cells}`."
        if cells > arity:
            advice += " `columns` chooses some."
    return table.error(
        f"a row must hold {holds}; this one has {cells} cell{'s' * (cells != 1)}", line, advice
    ).about_row(width=True)


def wrong_columns(table: Table, names: tuple[str, ...], arity: int) -> Exception:
    """Make an error about a table with names that has other columns than facts."""
    roles = roles_among(names) if arity == 3 else None
    advice = "Choose with `columns`."
    if roles is not None:
        advice = f"Pass columns={[names[i] for i in roles]!r:.200}."
    elif arity == 3 and len(names) > 1:
        advice += ' If it has one column per property, pass table="wide".'
    return table.error(
        f"it must have the columns {', '.join(role_names(arity))}; it has {shown(list(names))}",
        None,
        advice,
    )


def uneven_width(table: Table, line: int | None, cells: int, width: int) -> Exception:
    """Make an error about a row that isn't as long as the first one."""
    return table.error(
        f"a row must hold {width} cells, as the first one does; this one has {cells}", line
    ).about_row(width=True)


def column_position(table: Table, names: tuple[str, ...], column: str | int) -> int:
    """Return the position of a column that is given by its name or its position.

    Raises
    ------
    DatabaseFormatError
        If there is none, or several of that name.
    """
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise table.error(
                f"`columns` counts from 0 to {len(names) - 1} in this table; got {column}"
            )
        return column
    if names.count(column) != 1:
        where = "the first row" if table.names is None else "the table"
        raise table.error(
            f"{where} must name the column {column!r:.60} once; it reads {shown(list(names))}",
            advice="Without a header, pass positions, such as columns=[0, 1, 2]."
            if table.names is None
            else None,
        )
    return names.index(column)


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
