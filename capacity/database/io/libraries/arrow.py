"""Conversion of tables of Arrow to `Database`, as pyarrow, polars and DuckDB return them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from capacity.database.facts import Database
from capacity.database.io.cell_texts import values_of
from capacity.database.io.libraries.frames import database_of_columns
from capacity.database.io.table_options import Columns, TableForm, TableTerms, table_options
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidTypeError


def from_arrow(
    data: Any,
    *,
    table: TableForm | None = None,
    terms: TableTerms | None = None,
    arity: int | None = None,
    columns: Columns | None = None,
    split: str | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Make a database from a table of Arrow.

    Parameters
    ----------
    data : pyarrow.Table, polars.DataFrame or another object with ``__arrow_c_stream__``
        Columns as `from_pandas` has them.
    table, terms, arity, columns, split : optional
        Form of the table, of its cells, and columns, as `from_pandas` has them.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The rows of the table.

    Raises
    ------
    InvalidTypeError
        If `data` is something else, or a cell is neither text, a number, nor a date.
    DatabaseFormatError
        For other columns, a missing cell, a table without rows, or one that can be read in two
        ways.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> table = pa.table({"subject": ["a", "b"], "predicate": ["p", "p"], "object": [1980, 1990]})
    >>> str(from_arrow(table)("a", "p"))
    '1980'
    """
    options = table_options(table, terms, arity, columns, split)
    if not hasattr(data, "__arrow_c_stream__"):
        raise InvalidTypeError(
            f"`data` must be a table of Arrow; got {type(data).__name__}. For a file use "
            "read_table."
        )
    try:
        given = pa.table(data)
    except pa.ArrowException:
        raise InvalidTypeError(
            f"`data` must be a table with columns; got {type(data).__name__}."
        ) from None

    def column(i: int) -> list[Any]:
        return values_of(given.column(i))

    names = tuple(given.column_names)
    return database_of_columns("the table", "arrow", names, column, options, multi)
