"""Columns of tables that other libraries hold, as text: numbers, dates, and what is missing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.database.io.table_options import TableOptions, TableTerms, check_terms
from capacity.database.io.tables.cells import cells_of, read_rows, refuse_labels_like_terms
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidTypeError

# pandas' own values for what is missing, which isn't imported here
_MISSING = ("NAType", "NaTType")
_EMPTY = datetime.time()


def texts_of(cells: Iterable[Any], column: object) -> list[str | None]:
    """Write the cells of a column as text, and those without a value as None.

    Whole numbers are written without a point, whatever their type: pandas makes floats of integers
    beside a missing one, and one number has one text whatever other rows contain. Other numbers
    are written as Python writes them, and days without a time if no cell of the column has one.

    Parameters
    ----------
    cells : iterable
        Values of the column.
    column : object
        Its name, for messages.

    Returns
    -------
    list of str or None

    Raises
    ------
    InvalidTypeError
        For a cell that is neither text, nor a number, a truth value, a date or a time.

    Examples
    --------
    >>> texts_of([1980.0, float("nan"), None, "x"], "born")
    ['1980', None, None, 'x']
    >>> texts_of([1.5, 2.0], "size"), texts_of([True, 7], "is")
    (['1.5', '2'], ['True', '7'])
    """
    given = list(cells)
    if all(type(cell) is str for cell in given):
        return given
    moments = [c for c in given if isinstance(c, datetime.datetime) and not is_missing(c)]
    daily = all(moment.time() == _EMPTY and moment.tzinfo is None for moment in moments)
    return [_text(cell, number, column, daily) for number, cell in enumerate(given)]


def database_of_columns(
    name: str,
    format: str,
    names: tuple[Any, ...],
    column: Callable[[int], Iterable[Any]],
    options: TableOptions,
    multi: MultiPolicy | None,
) -> Database:
    """Make a database of a table whose columns a library holds, each by its position.

    Raises
    ------
    DatabaseFormatError
        As `narrowed` and `read_rows` do.
    InvalidTypeError
        As `texts_of` does.
    """
    at, options = narrowed(Table(name, format, [], names), options)
    cells = [texts_of(column(i), names[i]) for i in at]
    rows: list[Row] = list(enumerate(zip(*cells, strict=True)))  # type: ignore[arg-type]
    return read_rows(Table(name, format, rows, tuple(names[i] for i in at)), options, multi=multi)


def unmistakable_cells(db: Database, terms: TableTerms | None) -> Iterator[list[str]]:
    """Write cells for another library, as `cells_of` does, and refuse what it would mistake.

    Raises
    ------
    InvalidArgumentError
        For an unknown form, and as `cells_of` and `refuse_labels_like_terms` do.
    """
    check_terms(terms)
    form, cells = cells_of(db, terms)
    if form == "label" and terms is None:
        refuse_labels_like_terms(db)
    return cells


def is_missing(cell: object) -> bool:
    """Return whether a cell has no value: None, a float that isn't a number, or pandas' NA and NaT.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing(None), is_missing("nan"), is_missing("")
    (True, True, False, False)
    """
    if cell is None or type(cell).__name__ in _MISSING:
        return True
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    if isinstance(cell, float | np.floating | Decimal):
        return math.isnan(cell)
    return False


def _text(cell: Any, number: int, column: object, daily: bool) -> str | None:
    # rdflib's nodes are str, too, and would lose their kind
    if type(cell) in (str, np.str_):
        return str(cell)
    if is_missing(cell):
        return None
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, int | np.integer):
        return str(int(cell))
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if float(cell).is_integer() else str(cell)
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if daily else cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, np.datetime64 | Decimal | Fraction):
        return str(cell)
    raise InvalidTypeError(
        f"Each cell must be text, a number or a date; row {number} of the column {shown(column)} "
        f"holds {shown(cell)} of type {type(cell).__name__}. {_advice(cell)}"
    )


def _advice(cell: object) -> str:
    if isinstance(cell, list | tuple | set | np.ndarray):
        return "Put each of several values in a row of its own, with frame.explode(column)."
    return "Turn it into text; pass rdflib nodes and Terms to Database.from_triples."
