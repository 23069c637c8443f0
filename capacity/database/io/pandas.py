"""Conversion between DataFrames of pandas and `Database`: a row is a fact, its cells are text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from capacity.database.arity import role_names
from capacity.database.facts import Database
from capacity.database.io.tables import (
    Row,
    TableTerms,
    arity_of,
    cells_of,
    check_terms,
    from_rows,
)
from capacity.database.policy import MultiPolicy
from capacity.database.required import require_database
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.extras import needed_by
from capacity.limits import shown

if TYPE_CHECKING:
    import pandas as pd


def from_pandas(
    frame: pd.DataFrame,
    *,
    terms: TableTerms = "label",
    arity: int | None = None,
    columns: Sequence[str | int] | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Make a database from a DataFrame of text.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns named subject, predicate and object, and possibly others; or three columns in this
        order.
    terms : {'label', 'n3'}
        Form of the cells: plain labels, or N-Triples terms.
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
        For other columns, unknown `terms`, or an `arity` that isn't the number of `columns`.
    DatabaseFormatError
        For a cell that isn't a term, or a table without rows.
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
    """
    with needed_by("from_pandas"):
        import pandas as pd

    check_terms(terms)
    n_columns = arity_of(arity, columns)
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(
            f"`frame` must be a pandas DataFrame; got {type(frame).__name__}. For a file use "
            "read_table."
        )
    rows: list[Row] = []
    chosen = _chosen_columns(frame, n_columns, columns)
    for number, row in enumerate(chosen.itertuples(index=False, name=None)):
        for cell in row:
            # rdflib's nodes are str, too, and would lose their kind
            if type(cell) is not str:
                raise InvalidTypeError(
                    f"Each cell must be text; row {number} holds {cell!r:.60} of type "
                    f"{type(cell).__name__}. Turn numbers into text with astype(str); drop or fill "
                    "missing values; give rdflib nodes and Terms to Database.from_triples."
                )
        rows.append((number, tuple(map(str, row))))
    if not rows:
        raise DatabaseFormatError("the DataFrame", "the table has no rows")
    return from_rows("the DataFrame", rows, "pandas", terms, multi, None)


def _chosen_columns(
    frame: pd.DataFrame, arity: int, columns: Sequence[str | int] | None
) -> pd.DataFrame:
    names = list(role_names(arity) if columns is None else columns)
    named = set(names) <= set(frame.columns)
    chosen = frame[names] if named else frame
    # two columns may have one name, and both are then chosen
    if chosen.shape[1] == arity and (named or columns is None):
        return chosen
    others = "" if columns else f", or {'three' if arity == 3 else arity} columns in that order"
    have = frame.shape[1]
    advice = f" Facts of {have} columns are read with `arity={have}`, or choose with `columns`."
    raise InvalidArgumentError(
        f"A DataFrame must have the columns {', '.join(map(str, names))}{others}; got "
        f"{shown(list(frame.columns))}.{'' if columns or named or have == arity else advice}"
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

    return pd.DataFrame(cells_of(db, terms), columns=pd.Index(role_names(db.arity)), dtype=str)
