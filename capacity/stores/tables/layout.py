"""Columns and header of a table that is too large for memory, as `load` finds them.

The decisions are those of `capacity.database.io.tables.rows`, over rows that are read anew for
each question. A law in the tests says that both read the same facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast, overload

from capacity.database.io.tables.headers import (
    NUMBER,
    Row,
    find_header,
    find_header_of,
    is_variable,
    looks_wide,
    role_order,
    unlike_the_rest,
)
from capacity.database.io.tables.options import TableOptions
from capacity.database.io.tables.rows import column_position
from capacity.database.io.tables.table import Table, may_be_header, may_be_wide, wrong_width
from capacity.errors import InvalidArgumentError

# rows of which all subjects are held
_HELD = 100_000
_AS_IS = (0, 1, 2)


class Rows(Sequence[Row]):
    """Rows of a file, which is read anew for each pass over them.

    Parameters
    ----------
    read : callable
        Function that yields all rows.
    skipped : int
        Number of rows at the beginning that are omitted.
    """

    def __init__(self, read: Callable[[], Iterable[Row]], skipped: int = 0) -> None:
        self._read, self._skipped = read, skipped

    def __iter__(self) -> Iterator[Row]:
        return islice(self._read(), self._skipped, None)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Rows: ...
    def __getitem__(self, at: int | slice) -> Row | Rows:
        if isinstance(at, slice):
            return Rows(self._read, self._skipped + (at.start or 0))
        return list(islice(self, at, at + 1))[0]  # noqa: RUF015 - an index error, and no stop


@dataclass(frozen=True)
class Layout:
    """Place of the facts in a table.

    Attributes
    ----------
    skip : int
        Number of rows of its header.
    order : tuple of int
        Columns of subject, predicate and object.
    variables : bool
        Whether the header names variables of SPARQL, so that the cells are terms of RDF.
    doubt : Exception or None
        The error to raise if no two rows have one subject, which is left to the database.
    names : tuple of str
        Cells that then must not occur.
    """

    skip: int
    order: tuple[int, ...]
    variables: bool = False
    doubt: Exception | None = None
    names: tuple[str, ...] = ()


def lazy_table(name: str, format: str, rows: Rows, names: tuple[str, ...] | None = None) -> Table:
    """Make a table of rows that aren't held; its functions go through them, and no more."""
    return Table(name, format, cast(Any, rows), names)


def require_rows_of_facts(name: str, options: TableOptions) -> None:
    """Refuse options of tables that can't be honoured out of core.

    Raises
    ------
    InvalidArgumentError
        For a wide table, and facts of another number of columns than 3.
    """
    if options.wide:
        raise InvalidArgumentError(
            f"{name}: a table with one column a property isn't counted out of core. Write it as "
            "rows of three columns, or load it."
        )
    if options.arity != 3:
        raise InvalidArgumentError(
            f"{name}: facts of 3 columns are counted out of core; got {options.arity}. Choose 3 "
            "with `columns`, the object's last."
        )


def layout_of(table: Table, options: TableOptions) -> Layout:
    """Find columns and header of a table; one with names has the columns of facts alone.

    Raises
    ------
    DatabaseFormatError
        For rows of other lengths, a column that isn't there, a table without rows, and one that
        can be read in two ways.
    """
    if table.names is not None:
        found = Layout(0, _AS_IS)
        if options.columns is None:
            found = _by_names(table, table.names, options)
    elif options.columns is not None:
        found = _chosen(table, options, options.columns)
    else:
        found = _without_header(table, options)
    if not table.rows[found.skip :]:
        raise table.error("the table has no rows")
    return found


def _without_header(table: Table, options: TableOptions) -> Layout:
    for line, row in table.rows:
        if len(row) != 3:
            raise wrong_width(table, line, row, 3)
    if not table.rows:
        return Layout(0, _AS_IS)
    line, first = table.rows[0]
    unsaid = options.wide is None
    header = find_header(table.rows, 3)
    if header is None:
        if unsaid:
            raise may_be_header(table)
        return Layout(0, _AS_IS)
    if unsaid and not header.rows:
        found = _maybe_wide(table, table.rows[1:], first, line)
        _refuse_unlike(table)
        return found
    return Layout(header.rows, header.order, header.variables)


def _by_names(table: Table, names: tuple[str, ...], options: TableOptions) -> Layout:
    order = role_order(names)
    if order is not None or options.wide is not None:
        return Layout(0, order or _AS_IS)
    return _maybe_wide(table, table.rows, names, None)


def _chosen(table: Table, options: TableOptions, columns: tuple[str | int, ...]) -> Layout:
    by_name = any(isinstance(one, str) for one in columns)
    if not table.rows:
        return Layout(0, _AS_IS)
    names = table.rows[0][1]
    for line, row in table.rows:
        if len(row) != len(names):
            raise table.error(
                f"a row must hold {len(names)} cells, as the first one does; this one has "
                f"{len(row)}",
                line,
            )
    at = [column_position(table, names, one) for one in columns]
    if by_name:
        variables = options.wide is None and all(map(is_variable, (names[i] for i in at)))
        return Layout(1, tuple(at), variables)
    if options.wide is not None:
        return Layout(0, tuple(at))
    header = find_header_of(table.rows, at)
    if header is None:
        raise may_be_header(table, at)
    if not header.rows:
        _refuse_unlike(table, at)
    return Layout(header.rows, tuple(at), header.variables)


def _refuse_unlike(table: Table, columns: list[int] | None = None) -> None:
    why = unlike_the_rest(table.rows)
    if why is not None:
        raise may_be_header(table, columns, why)


def _maybe_wide(table: Table, rows: Sequence[Row], first: tuple[str, ...], line: int | None) -> (
    Layout
):  # fmt: skip
    """Refuse a table that looks wide; where all subjects would be held, leave that to the database.

    It looks so by numbers below a name, or by subjects that differ (`looks_wide`).
    """
    as_is = Layout(0, _AS_IS)
    beginning = list(islice(rows, _HELD))
    error = may_be_wide(table, first, line)
    if len(beginning) < _HELD:
        if looks_wide(beginning, first):
            raise error
        return as_is
    if not NUMBER.fullmatch(first[1]) and all(NUMBER.fullmatch(row[1]) for _, row in rows):
        raise error
    subjects = {row[0] for _, row in beginning}
    if len(subjects) < _HELD or not set(first).isdisjoint(c for _, row in beginning for c in row):
        return as_is
    return Layout(0, _AS_IS, doubt=error, names=first)
