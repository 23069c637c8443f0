"""The columns of a Parquet file that are facts: its own, and those that its folders name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from capacity.database.io.table_options import TableOptions
from capacity.database.io.tables.headers import role_order, roles_among
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.table import Table, wrong_columns
from capacity.errors import DatabaseFormatError

if TYPE_CHECKING:
    import pyarrow as pa

# value of a column that a folder names where there is none
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def columns_of_facts(
    name: str, schema: pa.Schema, options: TableOptions
) -> tuple[list[str], TableOptions]:
    """Choose the columns of facts, of the file's own and of those that its folders name.

    Raises
    ------
    DatabaseFormatError
        If it has others than facts have, or one that isn't of text, with its name and type.
    """
    own = tuple(schema.names)
    every = (*own, *(one for one in columns_of_folders(name) if one not in own))
    # a folder of a date, say, adds nothing to a table of facts
    by_names = options.columns is None and options.wide is not True
    names = every if role_order(every) and by_names else own if options.columns is None else every
    if len(names) < len(every) and by_names and options.arity == 3:
        is_told = role_order(own) or roles_among(own)
        if not is_told and (len(own) != 3 or roles_among(every)):
            raise wrong_columns(Table(name, "parquet", [], every), every, 3)
    at, options = narrowed(Table(name, "parquet", [], names), options)
    for i in at:
        if i < len(own) and not _is_text(schema.field(i).type):
            raise not_text(name, "parquet", own[i], schema.field(i).type)
    return [names[i] for i in at], options


def columns_of_folders(name: str) -> dict[str, str | None]:
    """Read the columns, and their values, that the folders of a file name; None is no value.

    Examples
    --------
    >>> columns_of_folders("people/year=1990/relation=born%20in/part.0.parquet")
    {'year': '1990', 'relation': 'born in'}
    """
    found: dict[str, str | None] = {}
    for folder in reversed(Path(name).parts[:-1]):
        column, equals, value = folder.partition("=")
        if not (column and equals):
            break
        found.setdefault(unquote(column), None if value == _NO_VALUE else unquote(value))
    return dict(reversed(found.items()))


def _is_text(of: Any) -> bool:
    import pyarrow.types as types

    # such as of JSON, whose texts are kept as they are
    while hasattr(of, "storage_type"):
        of = of.storage_type
    if types.is_dictionary(of):
        of = of.value_type
    kinds = types.is_string, types.is_large_string, types.is_string_view, types.is_null
    return any(is_kind(of) for is_kind in kinds)


def not_text(name: str, format: str, column: str, type: object) -> DatabaseFormatError:
    """Make the error for a column of another type than text."""
    return DatabaseFormatError(
        name,
        f"each column of facts must hold text; {column!r:.60} is of type {type!s:.60}",
        format=format,
        advice="Choose others with `columns`, or turn it into text first.",
    )
