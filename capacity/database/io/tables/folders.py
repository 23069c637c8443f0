"""Columns that folders name, as ``relation=knows``: Hive, Spark, Dask and pandas divide tables so.

A file in such a folder has that column, with one value in all rows, unless it has a column of that
name itself. In a table of text the names decide whether the first row is a header: with those of
the folders they are a word for each role. Files without a header, as Spark writes them, are facts
if the words of the folders and their own columns, in order, are the three roles. What could be
meant in another way is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, overload
from urllib.parse import unquote_to_bytes

from capacity.checks import cut, shown
from capacity.database.arity import role_names
from capacity.database.io.table_options import TableOptions
from capacity.database.io.tables.headers import (
    Row,
    is_variable,
    repeats,
    role_of,
    role_order,
    roles_among,
    unlike_the_rest,
)
from capacity.database.io.tables.table import Table, empty_row, uneven_width, wrong_columns

# value of a column that a folder names where there is none
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def columns_of_folders(path: str) -> dict[str, str | None]:
    """Read the columns, and their values, that the folders of a file name; None is no value.

    Examples
    --------
    >>> columns_of_folders("people/year=1990/relation=born%20in/part.0.parquet")
    {'year': '1990', 'relation': 'born in'}
    """
    columns: dict[str, str | None] = {}
    for folder in reversed(Path(path).parts[:-1]):
        column, equals, value = folder.partition("=")
        if not (column and equals):
            break
        try:
            name, text = (unquote_to_bytes(part.encode()).decode() for part in (column, value))
        except UnicodeError:
            # no text, and so no name and no label
            break
        columns.setdefault(name, None if value == _NO_VALUE else text)
    return dict(reversed(columns.items()))


def names_with_folders(
    name: str, format: str, own: tuple[str, ...], options: TableOptions
) -> tuple[str, ...]:
    """Return the names of the columns of a file with names, and those that its folders add.

    Raises
    ------
    DatabaseFormatError
        If the caller must specify which of them are those of facts.
    """
    every = (*own, *(one for one in columns_of_folders(name) if one not in own))
    if options.columns is not None or options.wide or len(every) == len(own):
        return every if options.columns is not None else own
    # a folder of a date, say, adds nothing to a table of facts
    if _order(every, options.arity) is not None:
        return every
    if options.arity == 3 and not _is_complete(own) and (len(own) != 3 or roles_among(every)):
        raise wrong_columns(Table(name, format, [], every), every, 3)
    return own


def _is_complete(own: Sequence[str]) -> bool:
    return bool(role_order(own) or roles_among(own))


def _order(names: Sequence[str], arity: int) -> tuple[int, ...] | None:
    """Find the columns of the roles, if all names are of one."""
    if arity == 3 and (order := role_order(names)) is not None:
        return order
    roles = role_names(arity)
    return tuple(map(names.index, roles)) if sorted(names) == sorted(roles) else None


def has_folders_of_roles(name: str) -> bool:
    """Return whether a folder of a file names a column that facts may need.

    Examples
    --------
    >>> has_folders_of_roles("relation=knows/a.csv"), has_folders_of_roles("year=1990/a.csv")
    (True, False)
    """
    return any(role_of(one) is not None for one in columns_of_folders(name))


def with_folders(table: Table, options: TableOptions) -> tuple[Table, TableOptions]:
    """Add the columns that folders name to a table of text, if its facts need them.

    Parameters
    ----------
    table : Table
        The rows of a file, of which the first may be a header.
    options : TableOptions
        The caller's options for it.

    Returns
    -------
    Table
        Its rows but for a header, with the names of all columns; or the table as it is.
    TableOptions
        The options, with the columns of the facts in it.

    Raises
    ------
    DatabaseFormatError
        If the caller must specify what the first row is, or which columns are those of facts.
    """
    folders = columns_of_folders(table.name)
    if not folders or options.wide or not table.rows:
        return table, options
    _, first = table.rows[0]
    added = {name: value for name, value in folders.items() if name not in first}
    whole = _Folders(table, options, first, added)
    return whole.recognised() if options.columns is None else whole.chosen(options.columns)


@dataclass(frozen=True)
class _Folders:
    """A table with its first row, and the columns that its folders add."""

    table: Table
    options: TableOptions
    first: tuple[str, ...]
    added: Mapping[str, str | None]

    @property
    def names(self) -> tuple[str, ...]:
        """The cells of the first row, and the names of the folders."""
        return (*self.first, *self.added)

    def chosen(self, columns: tuple[str | int, ...]) -> tuple[Table, TableOptions]:
        """Add the columns that the user asks for."""
        n_own = len(self.first)
        if not any(one in self.added if isinstance(one, str) else one >= n_own for one in columns):
            return self.table, self.options
        is_named = any(isinstance(one, str) and one not in self.added for one in columns)
        if is_named or self._has_header():
            return self._extended(1, self.options)
        self._refuse_doubt({*range(len(columns))})
        return self._extended(0, self.options)

    def recognised(self) -> tuple[Table, TableOptions]:
        """Add the columns that facts need, by their names."""
        n_own, arity = len(self.first), self.options.arity
        if (order := _order(self.names, arity)) is not None and self.added:
            if self._is_alone(self.names):
                return self._extended(1, replace(self.options, columns=order))
            if self.options.wide is None:
                raise self._doubt("the names of columns are in another row, too")
        known = self._roles()
        roles = known if arity == 3 and len(known) == len(self.added) else {}
        if n_own == arity or _is_complete(self.first):
            self._refuse_other_values(roles)
            return self.table, self.options
        if roles and n_own + len(roles) == arity:
            if all(map(is_variable, self.first)) and self._is_alone(self.first):
                return self._extended(1, replace(self.options, columns=self._in_order(roles)))
            self._refuse_doubt(set(range(arity)) - roles.keys())
            return self._extended(0, replace(self.options, columns=self._in_order(roles)))
        if self.added and n_own < arity and arity == 3:
            raise self._unclear()
        return self.table, self.options

    def _in_order(self, roles: Mapping[int, int]) -> tuple[int, ...]:
        """Return the columns of facts, where those of the file are the other roles in order."""
        own = iter(range(len(self.first)))
        return tuple(roles[i] if i in roles else next(own) for i in range(self.options.arity))

    def _has_header(self) -> bool:
        order = _order(self.names, self.options.arity) or roles_among(self.names)
        return order is not None and self._is_alone(self.names)

    def _is_alone(self, names: tuple[str, ...]) -> bool:
        return not repeats(names, self.table.rows, range(len(self.first)))

    def _refuse_doubt(self, roles: set[int]) -> None:
        """Refuse a first row that may be a header, because a word of it names a missing role."""
        if self.options.wide is not None:
            return
        if any(role_of(cell) in roles for cell in self.first) and self._is_alone(self.first):
            raise self._doubt("it has a word for a column")
        rows = self.table.rows
        # those of another length are refused when they are read
        if all(len(row) == len(self.first) for _, row in rows) and (why := unlike_the_rest(rows)):
            raise self._doubt(why)

    def _refuse_other_values(self, roles: Mapping[int, int]) -> None:
        """Refuse whole facts that their folder denies: not all may be of its relation."""
        n_own = len(self.first)
        if not roles or n_own != len(role_names(self.options.arity)) or self.options.wide is False:
            return
        if _is_complete(self.first) and self._is_alone(self.first):
            return
        if roles_among(self.names) is not None:
            raise wrong_columns(self.table, self.names, 3)
        values = list(self.added.values())
        at = [(role, values[i - n_own]) for role, i in roles.items()]
        for line, row in self.table.rows:
            if len(row) == n_own and any(row[role] != value for role, value in at):
                raise self.table.error(
                    f"it has {n_own} columns, and its folders name {shown(list(self.added))}, too",
                    line,
                    'Pass table="long" if each row is a fact, or choose with `columns`, such as '
                    f"columns={_example(n_own, roles)}.",
                )

    def _doubt(self, why: str) -> Exception:
        line = self.table.rows[0][0]
        order = _order(self.names, self.options.arity) or _example(len(self.first), self._roles())
        return self.table.error(
            f"the first row, {cut(' '.join(self.first))}, may be a header and may be a fact, "
            f"beside {shown(list(self.added))} of its folders: {why}",
            line,
            f'Pass table="long" if it is a fact, columns={[self.names[i] for i in order]!r:.200}, '
            "in the order of facts, if it is a header.",
        )

    def _unclear(self) -> Exception:
        if roles_among(self.names) is not None:
            return wrong_columns(self.table, self.names, 3)
        example = _example(len(self.first), self._roles() or {1: len(self.first)})
        return self.table.error(
            "no names show which columns are subject, predicate and object: the first row has "
            f"{shown(list(self.first))}, and its folders name {shown(list(self.added))}",
            self.table.rows[0][0],
            "Choose with `columns`: by names if the first row is a header, such as "
            f"columns={[self.names[i] for i in example]!r:.200}, or by positions, of which those "
            f"of the folders are the last, such as columns={example}.",
        )

    def _roles(self) -> dict[int, int]:
        """Find the columns of folders whose names are words for roles."""
        found = {role_of(name): i for i, name in enumerate(self.added, start=len(self.first))}
        return {role: i for role, i in found.items() if role is not None}

    def _extended(self, n_header: int, options: TableOptions) -> tuple[Table, TableOptions]:
        own: tuple[str | int, ...] = self.first if n_header else tuple(range(len(self.first)))
        if options.terms is None and n_header and all(map(is_variable, self.first)):
            options = replace(options, terms="n3")
        # a missing cell is None, which the types don't tell
        values = cast("tuple[str, ...]", tuple(self.added.values()))
        rows = _Extended(self.table, self.table.rows[n_header:], len(self.first), values,
                         refuses_empty=options.wide is None)  # fmt: skip
        # columns without names have positions
        names = cast("tuple[str, ...]", (*own, *self.added))
        return Table(self.table.name, self.table.format, rows, names), options


def _example(n_own: int, roles: Mapping[int, int]) -> list[int]:
    """Positions of the columns of facts, if those of the file are in order."""
    own = iter(range(n_own))
    return [roles[i] if i in roles else next(own, n_own) for i in range(3)]


@dataclass(frozen=True, eq=False)
class _Extended(Sequence[Row]):
    """The rows of a table, each with the values of its folders.

    Attributes
    ----------
    table : Table
        The table, for messages.
    rows : sequence of Row
        Its rows but for a header.
    width : int
        Number of their cells.
    values : tuple
        What follows them.
    refuses_empty : bool
        Whether a row of nothing but empty cells, before these, is refused.
    """

    table: Table
    rows: Sequence[Row]
    width: int
    values: tuple[str, ...]
    refuses_empty: bool

    def __iter__(self) -> Iterator[Row]:
        return map(self._with_values, self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> _Extended: ...
    def __getitem__(self, at: int | slice) -> Row | _Extended:
        if isinstance(at, slice):
            return replace(self, rows=self.rows[at])
        return self._with_values(self.rows[at])

    def _with_values(self, numbered: Row) -> Row:
        line, row = numbered
        if len(row) != self.width:
            raise uneven_width(self.table, line, len(row), self.width)
        if self.refuses_empty and not any(row):
            raise empty_row(self.table, line)
        return line, (*row, *self.values)
