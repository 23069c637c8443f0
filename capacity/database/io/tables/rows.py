"""A table of cells as facts: its columns, its header, and one column a property if it is wide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.facts import Database
from capacity.database.io.foreign import foreign_text
from capacity.database.io.tables.cells import database_of_rows
from capacity.database.io.tables.headers import Row, find_header, looks_wide, role_order
from capacity.database.io.tables.options import TableOptions
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
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


def narrowed(table: Table, options: TableOptions) -> tuple[list[int], TableOptions]:
    """Find the columns of a table with names that are to be read, and the options for them.

    Raises
    ------
    DatabaseFormatError
        If it lacks one of the columns asked for, or has more or fewer than facts have.
    """
    names, roles = table.names or (), role_names(options.arity)
    if options.columns is not None:
        at = [_position(table, names, one) for one in options.columns]
    elif not options.wide and all(names.count(role) == 1 for role in roles):
        at = [names.index(role) for role in roles]
    elif options.wide or len(names) == options.arity:
        return list(range(len(names))), options
    else:
        raise _wrong_columns(table, names, options.arity)
    return at, replace(options, columns=tuple(range(len(at))))


def read_rows(
    table: Table,
    options: TableOptions,
    *,
    multi: MultiPolicy | None = None,
    source: Source | None = None,
    allow_empty: bool = False,
) -> Database:
    """Read a table as facts.

    Parameters
    ----------
    table : Table
        Rows, with or without a header.
    options : TableOptions
        What the user says of the table.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs.
    source : Source, optional
        The file.
    allow_empty : bool
        Whether a table without rows is an empty database, and no error.

    Raises
    ------
    DatabaseFormatError
        For rows of other lengths, a column that isn't there, a table without rows, a cell that
        isn't a term, and a table that can be read in two ways.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    variables = False
    if options.wide:
        rows = _melted(table, options)
    elif options.columns is not None:
        rows = _chosen(table, options.columns)
    elif table.names is not None:
        rows = _by_names(table, table.names, options)
    else:
        rows, variables = _without_header(table, options)
    if not rows and allow_empty:
        none = np.zeros((0, options.arity), dtype=np.int64)
        return Database.from_ids([], none, arity=options.arity, source=source, allow_empty=True)
    if not rows:
        raise table.error("the table has no rows")
    return database_of_rows(
        table.name,
        rows,
        table.format,
        terms="n3" if variables and options.terms is None else options.terms,
        short_forms=variables,
        multi=multi,
        source=source,
    )


def _without_header(table: Table, options: TableOptions) -> tuple[list[Row], bool]:
    """Rows of a table whose first row may be a header, and whether that names variables."""
    rows, arity = table.rows, options.arity
    for line, row in rows:
        if len(row) != arity:
            raise _wrong_width(table, line, row, arity)
    if not rows:
        return [], False
    line, first = rows[0]
    header = find_header(rows, arity)
    if header is None:
        raise table.error(
            f"the first row, {cut(' '.join(first))}, may be a header and may be a fact",
            line,
            f"Say columns={list(first)!r:.200} if it is a header, columns={[*range(arity)]} if it "
            "is a fact.",
        )
    if header.rows and len(rows) == 1:
        return [], False
    unsaid = options.wide is None and arity == 3 and not header.rows
    if unsaid and looks_wide(rows[1:], first):
        raise _may_be_wide(table, first, line)
    return [(at, tuple(row[i] for i in header.order)) for at, row in rows[header.rows :]], (
        header.variables
    )


def _may_be_wide(table: Table, names: tuple[str, ...], line: int | None) -> Exception:
    return table.error(
        f"the table may have one column a property, with the names {cut(' '.join(names))}",
        line,
        'Say table="wide" if so: the first column holds subjects, and an empty cell is no fact. '
        'Say table="long" if each row is a fact.',
    )


def _by_names(table: Table, names: tuple[str, ...], options: TableOptions) -> list[Row]:
    """Rows of a table whose columns have names."""
    order = role_order(names) if options.arity == 3 else None
    if order is None:
        unsaid = options.wide is None and options.arity == 3
        if unsaid and looks_wide(table.rows, names):
            raise _may_be_wide(table, names, None)
        order = tuple(range(options.arity))
    return _whole(table, [(at, tuple(row[i] for i in order)) for at, row in table.rows])


def _chosen(table: Table, columns: tuple[str | int, ...]) -> list[Row]:
    """Keep some columns, in the order asked for: by the names in a header, or by positions."""
    names, rows = _named(table, header=any(isinstance(one, str) for one in columns))
    at = [_position(table, names, one) for one in columns]
    return _whole(table, [(line, tuple(row[i] for i in at)) for line, row in rows])


def _melted(table: Table, options: TableOptions) -> list[Row]:
    """Facts of a wide table: of each row a fact for each cell that isn't empty."""
    names, rows = _named(table, header=True)
    at = list(range(len(names)))
    if options.columns is not None:
        at = [_position(table, names, one) for one in options.columns]
    subject, properties = at[0], at[1:]
    if not properties:
        raise table.error("a wide table must have a column of subjects and others; this has one")
    heads = [names[i] for i in properties]
    if not all(isinstance(head, str) and head for head in heads) or len(set(heads)) < len(heads):
        raise table.error(
            "a wide table must name each property in words, and each once",
            advice=f"Its columns are {shown(heads)}.",
        )
    facts: list[Row] = []
    for line, row in rows:
        values = [(names[i], row[i]) for i in properties if row[i]]
        if values and not row[subject]:
            raise table.error("the subject, in the first column, must not be empty", line)
        facts += [(line, (row[subject], *value)) for value in values]
    return facts


def _named(table: Table, *, header: bool) -> tuple[tuple[str, ...], list[Row]]:
    """Names of the columns, and the rows below them, which must be as long."""
    rows, names = table.rows, table.names
    if not rows:
        return names or (), []
    if names is None:
        names, rows = rows[0][1], rows[1:] if header else rows
    for line, row in rows:
        if len(row) != len(names):
            raise table.error(
                f"a row must hold {len(names)} cells, as the first one does; this one has "
                f"{len(row)}",
                line,
            )
    return names, rows


def _position(table: Table, names: tuple[str, ...], column: str | int) -> int:
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
            advice="Without a header, give positions, such as columns=[0, 1, 2]."
            if table.names is None
            else None,
        )
    return names.index(column)


def _whole(table: Table, rows: list[Row]) -> list[Row]:
    for line, row in rows:
        if None in row:
            raise table.error(
                "a cell is missing",
                line,
                'Drop the row or fill it; in a table with one column a property, table="wide", a '
                "missing cell is no fact.",
            )
    return rows


def _wrong_width(table: Table, line: int | None, row: tuple[str, ...], arity: int) -> Exception:
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


def _wrong_columns(table: Table, names: tuple[str, ...], arity: int) -> Exception:
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
