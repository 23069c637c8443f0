"""Tables that other libraries hold: read by their columns, and written for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from capacity.database.facts import Database
from capacity.database.io.cell_texts import texts_of
from capacity.database.io.table_options import TableOptions, TableTerms, check_terms
from capacity.database.io.tables.cells import cells_of, read_rows, refuse_labels_like_terms
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy


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
