"""Place of the facts in a table: header, columns, and one column per property if it is wide.

The rows are those of a list, or are read again for each question about them where they don't fit
into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from capacity.checks import shown
from capacity.database.arity import role_names
from capacity.database.io.table_options import TableOptions
from capacity.database.io.tables.headers import (
    NUMBER,
    SSSOM_MODIFIER,
    Row,
    find_header,
    find_header_of,
    is_variable,
    looks_wide,
    role_order,
    sssom_order,
    unlike_the_rest,
)
from capacity.database.io.tables.table import (
    Table,
    column_position,
    empty_row,
    may_be_header,
    may_be_wide,
    missing_cell,
    uneven_width,
    wrong_columns,
    wrong_width,
)

# rows of which all subjects are held, where the rows themselves aren't
_HELD = 100_000


@dataclass(frozen=True)
class Layout:
    """Place of the facts in a table.

    Attributes
    ----------
    skip : int
        Number of rows of its header.
    order : tuple of int
        Columns of the roles, the object's last; of a wide table those of the subject and of the
        properties.
    variables : bool
        Whether the header names variables of SPARQL, so that the cells are terms of RDF.
    properties : tuple of str, or None
        Names of the properties of a wide table.
    doubt : Exception or None
        The error to raise if no two rows have one subject, where that is left to a database.
    names : tuple of str
        The names of the columns, of which no cell is another, or there is no doubt.
    refuses_empty : bool
        Whether facts of empty cells alone are refused.
    split : str or None
        What separates the values of an object's cell, each of which is a fact.
    """

    skip: int
    order: tuple[int, ...]
    variables: bool = False
    properties: tuple[str, ...] | None = None
    doubt: Exception | None = None
    names: tuple[str, ...] = ()
    refuses_empty: bool = False
    split: str | None = None

    def facts(self, table: Table) -> Iterator[Row]:
        """Yield the facts, each with its line: rows in the order of the roles.

        Raises
        ------
        DatabaseFormatError
            For a missing cell; in a wide table, for a missing subject of a row that isn't empty.
        """
        for line, row in table.rows[self.skip :]:
            cells = tuple(row[i] for i in self.order)
            if self.properties is None:
                if None in cells:
                    raise missing_cell(table, line)
                if self.refuses_empty and not any(cells):
                    raise empty_row(table, line)
                yield from ((line, one) for one in self._several(cells))
                continue
            subject, *values = cells
            held = [pair for pair in zip(self.properties, values, strict=True) if pair[1]]
            if held and not subject:
                reason = "the subject, in the first column, must not be empty"
                raise table.error(reason, line).about_row()
            for pair in held:
                yield from ((line, one) for one in self._several((subject, *pair)))

    def _several(self, cells: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Yield a fact for each value of the object's cell; one without a value stays as it is."""
        *key, last = cells
        values = [] if self.split is None else [one.strip() for one in last.split(self.split)]
        held = [value for value in values if value]
        yield from ((*key, value) for value in held or [last])


def layout_of(table: Table, options: TableOptions) -> Layout:
    """Find the columns and the header of a table.

    Raises
    ------
    DatabaseFormatError
        For rows of other lengths, a column that isn't there, and a table that can be read in two
        ways.
    """
    layout = _of_form(table, options)
    return layout if options.split is None else replace(layout, split=options.split)


def _of_form(table: Table, options: TableOptions) -> Layout:
    """Find the facts of a wide table, of chosen columns, or of a table of any other form."""
    if options.wide:
        return _wide(table, options)
    refuses_empty = options.wide is None and table.names is None
    if options.columns is not None:
        chosen = _chosen(table, options, options.columns)
        return replace(chosen, refuses_empty=refuses_empty)
    if table.names is not None:
        return _by_names(table, table.names, options)
    return _without_header(table, options)


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
    elif options.arity == 3 and (order := sssom_order(names)) is not None:
        if SSSOM_MODIFIER in names:
            raise table.error(
                f"a mapping with a value in the column {SSSOM_MODIFIER}, such as Not, is denied, "
                "and that column isn't among those of facts",
                advice=f"Drop such rows, and pass columns={[names[i] for i in order]}.",
            )
        at = list(order)
    else:
        raise wrong_columns(table, names, options.arity)
    return at, replace(options, columns=tuple(range(len(at))))


def _without_header(table: Table, options: TableOptions) -> Layout:
    """Find the facts of a table whose first row may be a header."""
    rows, arity = table.rows, options.arity
    as_is = Layout(0, tuple(range(arity)))
    if rows and arity == 3 and (order := sssom_order(rows[0][1])) is not None:
        _refuse_denied(table, _names(table))
        return Layout(1, order, refuses_empty=options.wide is None)
    for line, row in rows:
        if len(row) != arity:
            raise wrong_width(table, line, row, arity)
    if not rows:
        return as_is
    line, first = rows[0]
    header = find_header(rows, arity)
    if header is None:
        if options.wide is None:
            raise may_be_header(table)
        return as_is
    if options.wide is None and not header.rows:
        layout = _maybe_wide(table, rows[1:], first, line) if arity == 3 else as_is
        _refuse_unlike(table)
        return layout
    return Layout(header.rows, header.order, header.variables)


def _by_names(table: Table, names: tuple[str, ...], options: TableOptions) -> Layout:
    """Find the facts of a table whose columns have names."""
    arity = options.arity
    order = role_order(names) if arity == 3 else None
    if order is None and options.wide is None and arity == 3:
        return _maybe_wide(table, table.rows, names, None)
    return Layout(0, order or tuple(range(arity)))


def _chosen(table: Table, options: TableOptions, columns: tuple[str | int, ...]) -> Layout:
    """Find some columns, in the order asked for."""
    by_name = any(isinstance(one, str) for one in columns)
    rows = table.rows
    names = _names(table)
    at = tuple(column_position(table, names, one) for one in columns) if rows else ()
    if table.names is not None or not rows:
        return Layout(0, at)
    if by_name:
        variables = options.wide is None and all(map(is_variable, (names[i] for i in at)))
        return Layout(1, at, variables)
    if options.wide is not None:
        return Layout(0, at)
    # positions are of a table without a header, unless the first row, with all cells, is one
    header = find_header_of(rows, at)
    if header is None:
        raise may_be_header(table, at)
    if not header.rows:
        _refuse_unlike(table, at)
    return Layout(header.rows, at, header.variables)


def _wide(table: Table, options: TableOptions) -> Layout:
    """Find subjects and properties of a wide table."""
    names = _names(table)
    at = tuple(range(len(names)))
    if options.columns is not None:
        at = tuple(column_position(table, names, one) for one in options.columns)
    if len(at) == 1:
        raise table.error("a wide table must have a column of subjects and others; this has one")
    heads = tuple(names[i] for i in at[1:])
    if not all(isinstance(head, str) and head for head in heads) or len(set(heads)) < len(heads):
        raise table.error(
            "a wide table must name each property in words, and each once",
            advice=f"Its columns are {shown(list(heads))}.",
        )
    return Layout(0 if table.names is not None else 1, at, properties=heads)


def _refuse_denied(table: Table, names: tuple[str, ...]) -> None:
    """Refuse mappings of SSSOM that don't hold: their predicate has the modifier Not."""
    if SSSOM_MODIFIER not in names:
        return
    at = names.index(SSSOM_MODIFIER)
    denied = next(((line, row) for line, row in table.rows[1:] if row[at]), None)
    if denied is not None:
        line, row = denied
        raise table.error(
            f"the mapping is denied: its {SSSOM_MODIFIER} is {row[at]!r:.60}", line,
            "Delete such rows, or choose with `columns` to read them as facts.",
        ).about_row()  # fmt: skip


def _names(table: Table) -> tuple[str, ...]:
    """Return the names of the columns, or the first row, if all rows are as long."""
    if table.names is not None:
        return table.names
    names: tuple[str, ...] | None = None
    for line, row in table.rows:
        if names is None:
            names = row
        elif len(row) != len(names):
            raise uneven_width(table, line, len(row), len(names))
    return names or ()


def _refuse_unlike(table: Table, columns: Sequence[int] | None = None) -> None:
    why = unlike_the_rest(table.rows)
    if why is not None:
        raise may_be_header(table, columns, why)


def _maybe_wide(
    table: Table, rows: Iterable[Row], first: tuple[str, ...], line: int | None
) -> Layout:
    """Refuse a table that looks wide; where all subjects would be held, leave that to a database.

    It looks so by numbers below a name, or by subjects that differ (`looks_wide`).
    """
    as_is = Layout(0, (0, 1, 2))
    beginning = rows if isinstance(rows, list) else list(islice(rows, _HELD))
    for at, row in beginning:
        if None in row:
            raise missing_cell(table, at)
    if isinstance(rows, list) or len(beginning) < _HELD:
        if looks_wide(beginning, first):
            raise may_be_wide(table, first, line)
        return as_is
    if not NUMBER.fullmatch(first[1]) and all(NUMBER.fullmatch(row[1] or "") for _, row in rows):
        raise may_be_wide(table, first, line)
    subjects = {row[0] for _, row in beginning}
    if len(subjects) < _HELD or not set(first).isdisjoint(c for _, row in beginning for c in row):
        return as_is
    return replace(as_is, doubt=may_be_wide(table, first, line), names=first)
