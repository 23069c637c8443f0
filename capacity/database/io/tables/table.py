"""A table of cells, and the errors about its columns, which say what would read it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.io.foreign import foreign_text
from capacity.database.io.tables.headers import Row, role_order
from capacity.errors import DatabaseFormatError
from capacity.limits import cut, shown


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
        'Say table="long" if each row is a fact.',
    )


def wrong_width(table: Table, line: int | None, row: tuple[str, ...], arity: int) -> Exception:
    """Make an error about a row that has another number of cells than facts."""
    holds = "subject, predicate and object" if arity == 3 else f"{arity} cells"
    cells = len(row)
    if line is not None and (foreign := foreign_text(",".join(row))):
        return table.error(f"it is {foreign.what}", None, foreign.advice)
    first = table.rows[0][1]
    advice = "TSV is split at tabs, CSV at commas. If the file is RDF, say which format."
    if row is first and arity == 3 and cells > 1:
        advice = 'If it has one column a property, say table="wide".'
        roles = _roles_among(first)
        if roles is not None:
            advice = f"Say columns={roles!r:.200}."
    if LEAST <= cells <= MOST:
        advice += f" Facts of {cells} columns are read with `arity={cells}`."
        if cells > arity:
            advice += " `columns` chooses some."
    return table.error(
        f"a row must hold {holds}; this one has {cells} cell{'s' * (cells != 1)}", line, advice
    )


def wrong_columns(table: Table, names: tuple[str, ...], arity: int) -> Exception:
    """Make an error about a table with names that has other columns than facts."""
    roles = _roles_among(names) if arity == 3 else None
    advice = "Choose with `columns`."
    if roles is not None:
        advice = f"Say columns={roles!r:.200}."
    elif arity == 3 and len(names) > 1:
        advice += ' If it has one column a property, say table="wide".'
    return table.error(
        f"it must have the columns {', '.join(role_names(arity))}; it has {shown(list(names))}",
        None,
        advice,
    )


def _roles_among(names: tuple[str, ...]) -> list[str] | None:
    """Columns of subject, predicate and object among more, if their names tell them."""
    fitting = [three for three in combinations(names[:12], 3) if role_order(three) is not None]
    if len(fitting) != 1:
        return None
    (three,) = fitting
    order = role_order(three)
    return None if order is None else [three[i] for i in order]
