"""Conversion between DataFrames of pandas and `Database`: a row is a fact, or a subject."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from capacity.checks import shown
from capacity.database.arity import LEAST, MOST, role_names
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_database
from capacity.database.io.libraries.frames import database_of_columns, unmistakable_cells
from capacity.database.io.table_options import (
    Columns,
    TableForm,
    TableOptions,
    TableTerms,
    table_options,
)
from capacity.database.io.tables.headers import role_order
from capacity.database.policy import MultiPolicy
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
    split: str | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Make a database from a DataFrame.

    Cells are text. Numbers, truth values and dates are written as text: whole numbers without a
    point, also where pandas holds them as floats beside a missing one.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns named subject, predicate and object, and possibly others; or three columns that name
        these roles in other words (head, relation, tail; source, target, relation; ...), or are in
        this order.
    table : {'long', 'wide', 'n3'}, optional
        Form of the table, as `read_table` has it. In a ``wide`` one, with one column per property,
        a missing value (None, NaN, NaT, NA) and an empty text are no facts, and the subjects are
        the index if it has a name or holds text, or else the first column.
    terms : {'label', 'n3'}, optional
        Form of the cells: plain labels, or N-Triples terms; by default terms if all cells are, with
        an IRI among them.
    arity : int, optional
        Number of columns of the facts if they aren't triples: the table then has the columns key_1,
        key_2, ..., object, and possibly others; or `arity` columns, the object's last.
    columns : sequence of str or int, optional
        Columns of the facts, the object's last; others are ignored.
    split : str, optional
        What separates the values of a cell that holds several, as `read_table` has it.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The rows of the table.

    Raises
    ------
    InvalidTypeError
        If `frame` is not a DataFrame, or a cell is neither text, a number, a truth value, nor a
        date.
    InvalidArgumentError
        For an index that may hold the subjects and may not, other columns, an unknown `table` or
        `terms`, or an `arity` that isn't the number of `columns`.
    DatabaseFormatError
        For a missing cell where a row is a fact, one that isn't a term, a table without rows, or
        one that can be read in two ways.
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
    >>> frame = pd.DataFrame({"name": ["Bob", "Ann"], "born": [1980, None], "in": ["Rome", None]})
    >>> str(from_pandas(frame, table="wide")("Bob", "born"))
    '1980'
    >>> from_pandas(frame.set_index("name"), table="wide").n_triples
    2
    """
    with needed_by("from_pandas"):
        import pandas as pd

    options = table_options(table, terms, arity, columns, split)
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(
            f"`frame` must be a pandas DataFrame; got {type(frame).__name__}. For a file use "
            "read_table."
        )
    frame = _with_index(frame, options, columns)
    _require_columns(frame, options)
    names = tuple(frame.columns)
    if options.columns is not None:
        # a number is the name of a column here, which may stand anywhere
        options = replace(options, columns=tuple(names.index(one) for one in options.columns))

    def column(i: int) -> Any:
        return frame.iloc[:, i].array

    return database_of_columns("the DataFrame", "pandas", names, column, options, multi)


def _with_index(
    frame: pd.DataFrame, options: TableOptions, columns: Columns | None
) -> pd.DataFrame:
    """Make the index the first column where it holds subjects, or a column that is asked for.

    Raises
    ------
    InvalidArgumentError
        If that is in doubt: an index of numbers without a name is left by a choice of rows, too;
        and any column may be of a fact beside an index, or of a property.
    """
    index = frame.index
    if columns is not None:
        wanted = index.name is not None and index.name in columns
        return frame.reset_index() if wanted and index.name not in frame.columns else frame
    if not options.wide:
        return frame if options.wide is False else _long(frame, options.arity)
    if index.name is None and list(index) == list(range(len(index))):
        return frame
    if index.nlevels > 1:
        raise InvalidArgumentError(
            "A wide DataFrame must have an index of one level, which holds the subjects; got one "
            f"of {index.nlevels}. Use frame.reset_index(), and choose the `columns` to read."
        )
    if index.name is None and index.dtype.kind in "iuf":
        raise InvalidArgumentError(
            "The index of a wide DataFrame must have a name if its numbers are the subjects; got "
            f"{shown(list(index[:5]))} without one, as choosing or sorting rows leaves them. Use "
            "frame.reset_index(drop=True) if the first column holds the subjects, and "
            'frame.rename_axis("subject") if the index does.'
        )
    name: Any = index.name if index.name is not None else "subject"
    while name in frame.columns:
        name = f"{name}_"
    return frame.rename_axis(name).reset_index()


def _long(frame: pd.DataFrame, arity: int) -> pd.DataFrame:
    """Make columns of an index that names roles; refuse one that may hold subjects."""
    names, columns = list(frame.index.names), list(frame.columns)
    if {*names} & {*role_names(arity)} and {*role_names(arity)} <= {*names, *columns}:
        return frame if {*names} & {*columns} else frame.reset_index()
    holds = any(name is not None for name in names) or frame.index.dtype.kind not in "iuf"
    known = role_order(columns) is not None or {*role_names(arity)} <= {*columns}
    if holds and len(columns) == arity and not known:
        raise InvalidArgumentError(
            "A DataFrame with an index that has a name or holds text may have one column per "
            f"property, or one row per fact; got the index {shown(frame.index.name or 'of text')} "
            f'and the columns {shown(columns)}. Pass table="wide" if the index holds the subjects, '
            'and table="long" if a row is a fact.'
        )
    return frame


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
    of_arity = f" Facts of {have} columns are read with `arity={have}`, or choose with `columns`."
    advice = f"{of_arity if LEAST <= have <= MOST else ''} "
    advice += 'A table with one column per property is read with table="wide".'
    raise InvalidArgumentError(
        f"A DataFrame must have the columns {', '.join(map(str, wanted))}{others}; got "
        f"{shown(names)}.{'' if options.columns or have == arity else advice}"
    )


def to_pandas(db: DatabaseLike, *, terms: TableTerms | None = None) -> pd.DataFrame:
    """Write the facts as a DataFrame with columns subject, predicate, object.

    Facts of another arity have the columns key_1, key_2, ..., object.

    Parameters
    ----------
    db : Database, or what `as_database` takes
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
    db = require_database(db, "to_pandas(db)")
    with needed_by("to_pandas"):
        import pandas as pd

    return pd.DataFrame(
        list(unmistakable_cells(db, terms)), columns=pd.Index(role_names(db.arity)), dtype=str
    )
