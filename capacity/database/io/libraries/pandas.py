"""Conversion between DataFrames of pandas and `Database`: a row is a fact, its cells are text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from capacity.checks import shown
from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.table_options import (
    Columns,
    TableForm,
    TableOptions,
    TableTerms,
    check_terms,
    table_options,
)
from capacity.database.io.tables.cells import cells_of, read_rows, refuse_labels_like_terms
from capacity.database.io.tables.headers import Row
from capacity.database.io.tables.layout import narrowed
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.database.required import require_database
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by

if TYPE_CHECKING:
    import pandas as pd


def from_pandas(
    frame: pd.DataFrame,
    *,
    table: TableForm | None = None,
    terms: TableTerms | None = None,
    arity: int | None = None,
    columns: Columns | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Make a database from a DataFrame of text.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns named subject, predicate and object, and possibly others; or three columns that name
        these roles in other words (head, relation, tail; source, target, relation; ...), or are in
        this order.
    table : {'long', 'wide', 'n3'}, optional
        Form of the table, as `read_table` has it. In a ``wide`` one, with one column a property, a
        missing value and an empty text are no facts.
    terms : {'label', 'n3'}, optional
        Form of the cells: plain labels, or N-Triples terms; by default terms if all cells are, with
        an IRI among them.
    arity : int, optional
        Number of columns of the facts if they aren't triples: the table then has the columns key_1,
        key_2, ..., object, and possibly others; or `arity` columns, the object's last.
    columns : sequence of str or int, optional
        Columns of the facts, the object's last; others are ignored.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The rows of the table.

    Raises
    ------
    InvalidTypeError
        If `frame` is not a DataFrame, or a cell is not a str.
    InvalidArgumentError
        For other columns, an unknown `table` or `terms`, or an `arity` that isn't the number of
        `columns`.
    DatabaseFormatError
        For a cell that isn't a term, a table without rows, or one that can be read in two ways.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([["Astrid", "born_in", "Singapore"]])
    >>> str(from_pandas(frame)("Astrid", "born_in"))
    'Singapore'
    >>> frame = pd.DataFrame([["Oslo", "May", "sun"]], columns=["city", "month", "weather"])
    >>> from_pandas(frame, columns=["city", "weather"])
    Database(1 facts of arity 2: 1 x 1, 2 tokens; functional)
    >>> frame = pd.DataFrame({"name": ["Bob", "Ann"], "born": ["1980", "90"], "in": ["Rome", None]})
    >>> from_pandas(frame, table="wide").n_triples
    3
    """
    with needed_by("from_pandas"):
        import pandas as pd

    options = table_options(table, terms, arity, columns)
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(
            f"`frame` must be a pandas DataFrame; got {type(frame).__name__}. For a file use "
            "read_table."
        )
    _require_columns(frame, options)
    names = tuple(frame.columns)
    if options.columns is not None:
        # a number is the name of a column here, which may stand anywhere
        options = replace(options, columns=tuple(names.index(one) for one in options.columns))
    at, options = narrowed(Table("the DataFrame", "pandas", [], names), options)
    rows = _rows(frame.iloc[:, at], missing=bool(options.wide))
    return read_rows(
        Table("the DataFrame", "pandas", rows, tuple(names[i] for i in at)), options, multi=multi
    )


def _rows(frame: pd.DataFrame, *, missing: bool) -> list[Row]:
    """Rows of text; missing values become empty cells, if there may be any."""
    rows: list[Row] = []
    for number, row in enumerate(frame.itertuples(index=False, name=None)):
        cells: list[str] = []
        for cell in row:
            # rdflib's nodes are str, too, and would lose their kind
            if type(cell) is str:
                cells.append(str(cell))
            elif missing and _is_missing(cell):
                cells.append("")
            else:
                raise InvalidTypeError(
                    f"Each cell must be text; row {number} holds {cell!r:.60} of type "
                    f"{type(cell).__name__}. Turn numbers into text with astype(str); drop or fill "
                    "missing values; give rdflib nodes and Terms to Database.from_triples."
                )
        rows.append((number, tuple(cells)))
    return rows


def _is_missing(cell: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def _require_columns(frame: pd.DataFrame, options: TableOptions) -> None:
    """Refuse a frame without the columns to read."""
    names, have = list[object](frame.columns), frame.shape[1]
    wanted = role_names(options.arity) if options.columns is None else options.columns
    named = all(names.count(one) == 1 for one in wanted)
    none_twice = not set(wanted) <= set(names)
    whole = options.columns is None and have == options.arity and none_twice
    if named or whole or (options.wide and options.columns is None):
        return
    arity = options.arity
    others = (
        "" if options.columns else f", or {'three' if arity == 3 else arity} columns in that order"
    )
    advice = (
        f" Facts of {have} columns are read with `arity={have}`, or choose with `columns`; one "
        'column a property is read with table="wide".'
    )
    raise InvalidArgumentError(
        f"A DataFrame must have the columns {', '.join(map(str, wanted))}{others}; got "
        f"{shown(names)}.{'' if options.columns or have == arity else advice}"
    )


def to_pandas(db: Database, *, terms: TableTerms | None = None) -> pd.DataFrame:
    """Write the facts as a DataFrame with columns subject, predicate, object.

    Facts of another arity have the columns key_1, key_2, ..., object.

    Parameters
    ----------
    db : Database
        Facts to write.
    terms : {'label', 'n3'}, optional
        Form of the cells: plain labels, or N-Triples terms. By default labels if all tokens are
        labels, else N-Triples terms.

    Returns
    -------
    pandas.DataFrame
        One row per fact, with columns of str.

    Raises
    ------
    InvalidArgumentError
        If a token has no such form, so that the table would be read as other facts.

    Examples
    --------
    >>> db = Database.from_triples([("Astrid", "born_in", "Singapore")])
    >>> to_pandas(db).iloc[0].tolist()
    ['Astrid', 'born_in', 'Singapore']
    """
    require_database(db, "to_pandas(db)")
    with needed_by("to_pandas"):
        import pandas as pd

    check_terms(terms)
    form, cells = cells_of(db, terms)
    if form == "label" and terms is None:
        refuse_labels_like_terms(db)
    return pd.DataFrame(list(cells), columns=pd.Index(role_names(db.arity)), dtype=str)
