"""Conversion between tables (TSV, CSV, pandas) and `Database`.

TSV has no quoting; CSV follows RFC 4180. Cells are text and are never interpreted: a quote,
``NA``, ``null`` or an empty cell is a label like any other. The first row is a header only if it
reads ``subject predicate object``. With ``terms="n3"`` cells hold N-Triples terms, not labels.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from capacity.database.facts import Database
from capacity.database.io.content import Content
from capacity.database.io.formats import Format, register_format
from capacity.database.policy import MultiPolicy
from capacity.database.required import require_database
from capacity.database.source import Source
from capacity.database.terms import label, parse_n3
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.extras import needed_by
from capacity.safe_files import write_whole

if TYPE_CHECKING:
    import pandas as pd

TableTerms: TypeAlias = Literal["label", "n3"]
HEADER = ("subject", "predicate", "object")
Row: TypeAlias = tuple[int, tuple[str, ...]]


def parse_table_content(
    content: Content,
    format: Format,
    *,
    multi: MultiPolicy | None = None,
    terms: TableTerms = "label",
) -> Database:
    """Parse checked content as TSV or CSV.

    Parameters
    ----------
    content : Content
        Checked text.
    format : Format
        Format of the text.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    terms : {'label', 'n3'}
        Form of the cells: plain labels, or N-Triples terms.

    Raises
    ------
    DatabaseFormatError
        For a row that doesn't hold three cells, a cell that isn't a term, or a table without rows.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    text = content.data.decode("utf-8")
    rows = list(_split_csv(content.name, text) if format.name == "csv" else _split_tsv(text))
    for line, row in rows:
        if len(row) != 3:
            raise DatabaseFormatError(
                content.name,
                f"a row must hold subject, predicate and object; this one has {len(row)} "
                f"cell{'s' * (len(row) != 1)}",
                format=format.name,
                line=line,
                advice="TSV is split at tabs, CSV at commas. If the file is RDF, say which format.",
            )
    if rows and rows[0][1] == HEADER:
        del rows[0]
    if not rows:
        raise DatabaseFormatError(content.name, "the table has no rows", format=format.name)
    source = Source(Path(content.name).name, content.sha256, format.name)
    return _from_rows(content.name, rows, format.name, terms, multi, source)


def check_terms(terms: str) -> None:
    """Raise an InvalidArgumentError unless `terms` is ``label`` or ``n3``."""
    if terms not in ("label", "n3"):
        raise InvalidArgumentError(f"`terms` must be 'label' or 'n3'; got {terms!r:.60}.")


def _split_tsv(text: str) -> Iterator[Row]:
    # only \n ends a row: str.splitlines would also cut labels at U+2028 and others
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.removesuffix("\r")
        if bare:
            yield number, tuple(bare.split("\t"))


def _split_csv(name: str, text: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    # cells may have any length, because the size of the file is limited already
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        for row in reader:
            if row:
                yield reader.line_num, tuple(row)
    except csv.Error as error:
        raise DatabaseFormatError(
            name, str(error), format="csv", line=reader.line_num, advice="Quote as RFC 4180 says."
        ) from None


def _from_rows(
    name: str,
    rows: list[Row],
    format: str,
    terms: TableTerms,
    multi: MultiPolicy | None,
    source: Source | None,
) -> Database:
    ids: dict[str, int] = {}
    triples = [[ids.setdefault(cell, len(ids)) for cell in row] for _, row in rows]
    numbers = np.array(triples, dtype=np.int64)
    if terms == "label":
        return Database.from_ids([label(c) for c in ids], numbers, multi=multi, source=source)
    try:
        parsed = parse_n3(ids)
    except ValueError as error:
        raise DatabaseFormatError(name, str(error), format=format) from None
    # "a" and "a"^^xsd:string are two cells and one term
    distinct = {term: i for i, term in enumerate(dict.fromkeys(parsed.values()))}
    renumber = np.array([distinct[parsed[cell]] for cell in ids], dtype=np.int64)
    return Database.from_ids(list(distinct), renumber[numbers], multi=multi, source=source)


def from_pandas(
    frame: pd.DataFrame, *, terms: TableTerms = "label", multi: MultiPolicy | None = None
) -> Database:
    """Make a database from a DataFrame of text.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns named subject, predicate and object, and possibly others; or three columns in this
        order.
    terms : {'label', 'n3'}
        Form of the cells: plain labels, or N-Triples terms.
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
        For other columns, or unknown `terms`.
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
    """
    with needed_by("from_pandas"):
        import pandas as pd

    check_terms(terms)
    if not isinstance(frame, pd.DataFrame):
        raise InvalidTypeError(
            f"`frame` must be a pandas DataFrame; got {type(frame).__name__}. For a file use "
            "read_table."
        )
    named = set(HEADER) <= set(frame.columns)
    if not named and frame.shape[1] != 3:
        raise InvalidArgumentError(
            f"A DataFrame must have the columns {', '.join(HEADER)}, or three columns in that "
            f"order; got {list(frame.columns)}."
        )
    columns = frame[list(HEADER)] if named else frame
    rows: list[Row] = []
    for number, row in enumerate(columns.itertuples(index=False, name=None)):
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
    return _from_rows("the DataFrame", rows, "pandas", terms, multi, None)


def to_pandas(db: Database, *, terms: TableTerms | None = None) -> pd.DataFrame:
    """Write the facts as a DataFrame with columns subject, predicate, object.

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

    return pd.DataFrame(_cells(db, terms), columns=pd.Index(HEADER), dtype=str)


def _cells(db: Database, terms: TableTerms | None) -> list[list[str]]:
    plain = [t.kind == "label" for t in db.tokens]
    form = terms or ("label" if all(plain) else "n3")
    if form == "n3":
        texts = [token.n3() for token in db.tokens]
    elif all(plain):
        texts = [token.text for token in db.tokens]
    else:
        token = db.tokens[plain.index(False)]
        raise InvalidArgumentError(
            f"As a label the {token.kind} {token} would lose its kind. Write it with "
            '`terms="n3"`, or make a database of labels first.'
        )
    return [[texts[i] for i in row] for row in db.token_triples.tolist()]


def write_tsv(
    db: Database, path: str | os.PathLike[str], *, terms: TableTerms | None = None
) -> None:
    """Write the facts to a TSV file with a header row.

    Parameters
    ----------
    db : Database
        Facts to write.
    path : path
        File to write or to replace; missing folders are made.
    terms : {'label', 'n3'}, optional
        Form of the cells: plain labels, or N-Triples terms. By default labels if all tokens are
        labels, else N-Triples terms.

    Raises
    ------
    InvalidArgumentError
        If a token has no such form, or for a label that TSV can't hold: one with a tab or a line
        break, or without a form in UTF-8.
    StorageError
        If the file can't be written, or `path` is a folder, a pipe or a device. A file that was
        there before is unchanged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> db = Database.from_triples([("Astrid", "born_in", "Singapore")])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.tsv")
    ...     write_tsv(db, path)
    ...     path.read_text().split()
    ['subject', 'predicate', 'object', 'Astrid', 'born_in', 'Singapore']
    """
    require_database(db, "write_tsv(db, path)")
    rows = _cells(db, terms)
    for row in rows:
        for cell in row:
            if any(c in cell for c in "\t\n\r\0"):
                raise InvalidArgumentError(
                    f"TSV has no quoting, and {cell!r:.60} holds a tab or a line break. Write "
                    "CSV with to_pandas(db).to_csv(path, index=False, quoting=csv.QUOTE_ALL)."
                )
    text = "".join("\t".join(row) + "\n" for row in [list(HEADER), *rows])
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"A label must have a form in UTF-8; one holds {error.object[error.start]!r}, half of "
            "a character. Make a database of other labels first."
        ) from None
    write_whole(path, data)


register_format(
    Format("tsv", ("tsv", "tab", "text/tab-separated-values"), "table", parse_table_content,
           lambda head: int(head.first.count("\t") == 2))
)  # fmt: skip
register_format(Format("csv", ("csv", "text/csv"), "table", parse_table_content))
