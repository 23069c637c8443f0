"""A table of cells as facts: its columns, its header, and one column a property if it is wide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capacity.checks import shown
from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.tables.cells import database_of_rows
from capacity.database.io.tables.headers import (
    Row,
    find_header,
    find_header_of,
    is_variable,
    looks_wide,
    role_order,
    unlike_the_rest,
)
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.table import (
    Table,
    may_be_header,
    may_be_wide,
    wrong_columns,
    wrong_width,
)
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source


def narrowed(table: Table, options: TableOptions) -> tuple[list[int], TableOptions]:
    """Find the columns of a table with names that are to be read, and the options for them.

    Raises
    ------
    DatabaseFormatError
        If it lacks one of the columns asked for, or has more or fewer than facts have.
    """
    names, roles = table.names or (), role_names(options.arity)
    if options.columns is not None:
        at = [column_position(table, names, one) for one in options.columns]
    elif not options.wide and all(names.count(role) == 1 for role in roles):
        at = [names.index(role) for role in roles]
    elif options.wide or len(names) == options.arity:
        return list(range(len(names))), options
    else:
        raise wrong_columns(table, names, options.arity)
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
        rows, variables = _chosen(table, options, options.columns)
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
            raise wrong_width(table, line, row, arity)
    if not rows:
        return [], False
    line, first = rows[0]
    unsaid = options.wide is None
    header = find_header(rows, arity)
    if header is None and unsaid:
        raise may_be_header(table)
    if header is None:
        return rows, False
    if header.rows and len(rows) == 1:
        return [], False
    if unsaid and not header.rows:
        if arity == 3 and looks_wide(rows[1:], first):
            raise may_be_wide(table, first, line)
        _refuse_unlike(table)
    return [(at, tuple(row[i] for i in header.order)) for at, row in rows[header.rows :]], (
        header.variables
    )


def _by_names(table: Table, names: tuple[str, ...], options: TableOptions) -> list[Row]:
    """Rows of a table whose columns have names."""
    rows = _whole(table, table.rows)
    order = role_order(names) if options.arity == 3 else None
    if order is None:
        unsaid = options.wide is None and options.arity == 3
        if unsaid and looks_wide(rows, names):
            raise may_be_wide(table, names, None)
        order = tuple(range(options.arity))
    return [(at, tuple(row[i] for i in order)) for at, row in rows]


def _chosen(
    table: Table, options: TableOptions, columns: tuple[str | int, ...]
) -> tuple[list[Row], bool]:
    """Keep some columns, in the order asked for, and tell whether they are named by variables."""
    by_name = any(isinstance(one, str) for one in columns)
    names, rows = _named(table, header=by_name)
    at = [column_position(table, names, one) for one in columns]
    whole = rows
    rows = _whole(table, [(line, tuple(row[i] for i in at)) for line, row in rows])
    if table.names is not None or options.wide is not None or not rows:
        return rows, False
    if by_name:
        return rows, all(map(is_variable, (names[i] for i in at)))
    # positions are of a table without a header, unless the first row, with all cells, is one
    header = find_header_of(whole, at)
    if header is None:
        raise may_be_header(table, at)
    if not header.rows:
        _refuse_unlike(table, at)
    return rows[header.rows :], header.variables


def _refuse_unlike(table: Table, columns: list[int] | None = None) -> None:
    why = unlike_the_rest(table.rows)
    if why is not None:
        raise may_be_header(table, columns, why)


def _melted(table: Table, options: TableOptions) -> list[Row]:
    """Facts of a wide table: of each row a fact for each cell that isn't empty."""
    names, rows = _named(table, header=True)
    at = list(range(len(names)))
    if options.columns is not None:
        at = [column_position(table, names, one) for one in options.columns]
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
