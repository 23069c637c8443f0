"""A table of cells, and the errors about its columns, which say what would read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capacity.checks import cut, shown
from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.io.files.foreign import AS_TEXT, foreign_text
from capacity.database.io.tables.headers import Row, role_order, roles_among
from capacity.errors import DatabaseFormatError


@dataclass(frozen=True)
class Table:
    """Rows of cells, as a file holds them.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    format : str
        Name of its format.
    rows : list of Row
        Numbers of lines, and cells. None stands for a missing cell, which a text has none of.
    names : tuple of str, or None
        Names of the columns; None where the first row may be a header.
    """

    name: str
    format: str
    rows: list[Row]
    names: tuple[str, ...] | None = None

    def error(self, reason: str, line: int | None = None, advice: str | None = None) -> Exception:
        """Make an error about this table."""
        return DatabaseFormatError(self.name, reason, format=self.format, line=line, advice=advice)


def may_be_wide(table: Table, names: tuple[str, ...], line: int | None) -> Exception:
    """Make an error about a table that may have one column a property."""
    return table.error(
        f"the table may have one column a property, with the names {cut(' '.join(names))}",
        line,
        'Say table="wide" if so: the first column holds subjects, and an empty cell is no fact. '
        'Say table="long" if each row is a fact'
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
        f'Say table="long" if it is a fact, {_by_name(names, columns)} if it is a header.',
    )


def _by_name(names: tuple[str, ...], columns: Sequence[int] | None = None) -> str:
    """Say that the first row is a header, with columns as given or in the order of roles."""
    order = role_order(names) if len(names) == 3 and columns is None else None
    named = [names[i] for i in order] if order is not None else list(names)
    return "delete it" if len(set(named)) < len(named) else f"columns={named!r:.200}"


def wrong_width(table: Table, line: int | None, row: tuple[str, ...], arity: int) -> Exception:
    """Make an error about a row that has another number of cells than facts."""
    holds = "subject, predicate and object" if arity == 3 else f"{arity} cells"
    cells = len(row)
    if line is not None and (foreign := foreign_text(",".join(row))):
        return table.error(f"it is {foreign.what}", None, foreign.advice)
    if cells == 1 and (other := next((c for c in ";|" if c in row[0]), None)):
        advice = (
            f'If {other} is between cells, give pd.read_csv(path, sep="{other}", {AS_TEXT}) to '
            "from_pandas, with header=None if the first row is a fact."
        )
        return table.error(f"a row must hold {holds}; this one has 1 cell", line, advice)
    first = table.rows[0][1]
    advice = "TSV is split at tabs, CSV at commas. If the file is RDF, say which format."
    if row is first and arity == 3 and cells > 1:
        advice = 'If it has one column a property, say table="wide".'
        roles = roles_among(first)
        if roles is not None:
            advice = f"Say columns={[first[i] for i in roles]!r:.200}."
    if LEAST <= cells <= MOST:
        advice += f" Facts of {cells} columns are read with `arity={cells}`."
        if cells > arity:
            advice += " `columns` chooses some."
    return table.error(
        f"a row must hold {holds}; this one has {cells} cell{'s' * (cells != 1)}", line, advice
    )


def wrong_columns(table: Table, names: tuple[str, ...], arity: int) -> Exception:
    """Make an error about a table with names that has other columns than facts."""
    roles = roles_among(names) if arity == 3 else None
    advice = "Choose with `columns`."
    if roles is not None:
        advice = f"Say columns={[names[i] for i in roles]!r:.200}."
    elif arity == 3 and len(names) > 1:
        advice += ' If it has one column a property, say table="wide".'
    return table.error(
        f"it must have the columns {', '.join(role_names(arity))}; it has {shown(list(names))}",
        None,
        advice,
    )
