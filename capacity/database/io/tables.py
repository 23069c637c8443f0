"""Conversion between tables in files (TSV, CSV) and `Database`.

TSV has no quoting; CSV follows RFC 4180. Cells are text and are never interpreted: a quote,
``NA``, ``null`` or an empty cell is a label like any other. The first row is a header only if it
reads ``subject predicate object``. With ``terms="n3"`` cells hold N-Triples terms, not labels.

A table has three columns unless the user says otherwise: a column of notes or of row numbers would
else become part of each fact. Either `arity` gives the number of columns, the last of them the
object, and a header reads ``key_1 key_2 ... object``; or `columns` names some of those that the
first row names.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from capacity.database.arity import LEAST, MOST, require_arity, role_names
from capacity.database.facts import Database
from capacity.database.io.content import Content
from capacity.database.io.formats import Format, register_format
from capacity.database.n3_terms import parse_n3
from capacity.database.policy import MultiPolicy
from capacity.database.required import require_triples
from capacity.database.source import Source
from capacity.database.terms import label
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.limits import shown
from capacity.safe_files import write_whole

TableTerms: TypeAlias = Literal["label", "n3"]
Row: TypeAlias = tuple[int, tuple[str, ...]]


def parse_table_content(
    content: Content,
    format: Format,
    *,
    multi: MultiPolicy | None = None,
    terms: TableTerms = "label",
    arity: int = 3,
    columns: Sequence[str] | None = None,
    allow_empty: bool = False,
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
    arity : int
        Number of columns of the facts.
    columns : sequence of str, optional
        Columns of the facts, `arity` of those that the first row names.
    allow_empty : bool
        Whether a table without rows is an empty database, and no error.

    Raises
    ------
    DatabaseFormatError
        For a row with another number of cells, a cell that isn't a term, a table without rows, or
        without one of the `columns`.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    text = content.data.decode("utf-8")
    rows = list(_split_csv(content.name, text) if format.name == "csv" else _split_tsv(text))
    if columns is not None:
        rows = _named_columns(content.name, format.name, rows, columns)
    else:
        for line, row in rows:
            if len(row) != arity:
                raise _wrong_width(content.name, format.name, line, len(row), arity)
        if rows and rows[0][1] == role_names(arity):
            del rows[0]
    source = Source(Path(content.name).name, content.sha256, format.name)
    if not rows and allow_empty:
        none = np.zeros((0, arity), dtype=np.int64)
        return Database.from_ids([], none, arity=arity, source=source, allow_empty=True)
    if not rows:
        raise DatabaseFormatError(content.name, "the table has no rows", format=format.name)
    return from_rows(content.name, rows, format.name, terms, multi, source)


def _wrong_width(name: str, format: str, line: int, cells: int, arity: int) -> DatabaseFormatError:
    holds = "subject, predicate and object" if arity == 3 else f"{arity} cells"
    advice = "TSV is split at tabs, CSV at commas. If the file is RDF, say which format."
    if LEAST <= cells <= MOST:
        advice += f" Facts of {cells} columns are read with `arity={cells}`."
    return DatabaseFormatError(
        name,
        f"a row must hold {holds}; this one has {cells} cell{'s' * (cells != 1)}",
        format=format,
        line=line,
        advice=advice,
    )


def _named_columns(name: str, format: str, rows: list[Row], columns: Sequence[str]) -> list[Row]:
    """Keep some of the columns that the first row names, in the order asked for."""
    header = list(rows[0][1]) if rows else []
    if wrong := [column for column in columns if header.count(column) != 1]:
        raise DatabaseFormatError(
            name,
            f"the first row must name the column {wrong[0]!r:.60} once; it reads {shown(header)}",
            format=format,
            advice="Without `columns`, the first row is a fact like any other.",
        )
    for line, row in rows:
        if len(row) != len(header):
            raise DatabaseFormatError(
                name,
                f"a row must hold {len(header)} cells, as the first one does; this one has "
                f"{len(row)}",
                format=format,
                line=line,
            )
    at = [header.index(column) for column in columns]
    return [(line, tuple(row[i] for i in at)) for line, row in rows[1:]]


def check_terms(terms: str) -> None:
    """Raise an InvalidArgumentError unless `terms` is ``label`` or ``n3``."""
    if terms not in ("label", "n3"):
        raise InvalidArgumentError(f"`terms` must be 'label' or 'n3'; got {terms!r:.60}.")


def arity_of(arity: int | None, columns: Sequence[object] | None) -> int:
    """Number of columns that a user asks for; 3 by default.

    Raises
    ------
    InvalidArgumentError
        For a number that isn't from 2 to 32, for columns that aren't names, each once, or are of
        another number than `arity`.
    """
    if columns is None:
        return 3 if arity is None else require_arity(arity)
    names = [] if isinstance(columns, str) or not isinstance(columns, Sequence) else list(columns)
    named = all(isinstance(one, str | int) for one in names) and len(set(names)) == len(names)
    if not named or not LEAST <= len(names) <= MOST:
        raise InvalidArgumentError(
            f"`columns` must list from {LEAST} to {MOST} names of columns, each once, the object's "
            f"last; got {shown(columns)}."
        )
    if arity is not None and arity != len(names):
        raise InvalidArgumentError(
            f"`arity` must be the number of `columns`, {len(names)}; got {shown(arity)}. Omit it."
        )
    return len(names)


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


def from_rows(
    name: str,
    rows: list[Row],
    format: str,
    terms: TableTerms,
    multi: MultiPolicy | None,
    source: Source | None,
) -> Database:
    """Make a database from rows of cells, at least one, that were checked to have one length.

    Raises
    ------
    DatabaseFormatError
        For a cell that isn't a term.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.
    """
    ids: dict[str, int] = {}
    tuples = [[ids.setdefault(cell, len(ids)) for cell in row] for _, row in rows]
    numbers = np.array(tuples, dtype=np.int64)
    arity = numbers.shape[1]
    if terms == "label":
        tokens = [label(cell) for cell in ids]
        return Database.from_ids(tokens, numbers, arity=arity, multi=multi, source=source)
    try:
        parsed = parse_n3(ids)
    except ValueError as error:
        raise DatabaseFormatError(name, str(error), format=format) from None
    # "a" and "a"^^xsd:string are two cells and one term
    distinct = {term: i for i, term in enumerate(dict.fromkeys(parsed.values()))}
    renumber = np.array([distinct[parsed[cell]] for cell in ids], dtype=np.int64)
    tokens = list(distinct)
    return Database.from_ids(tokens, renumber[numbers], arity=arity, multi=multi, source=source)


def cells_of(db: Database, terms: TableTerms | None) -> list[list[str]]:
    """Write the terms of the facts as cells; by default labels if all tokens are labels.

    Raises
    ------
    InvalidArgumentError
        If a token has no such form, so that the table would be read as other facts.
    """
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
    return [[texts[i] for i in row] for row in db.token_tuples.tolist()]


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
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3, which `to_pandas` writes; if a token has no such form, or
        for a label that TSV can't hold: one with a tab or a line break, or without a form in UTF-8.
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
    require_triples(db, "write_tsv(db, path)")
    rows = cells_of(db, terms)
    for row in rows:
        for cell in row:
            if any(c in cell for c in "\t\n\r\0"):
                raise InvalidArgumentError(
                    f"TSV has no quoting, and {cell!r:.60} holds a tab or a line break. Write "
                    "CSV with to_pandas(db).to_csv(path, index=False, quoting=csv.QUOTE_ALL)."
                )
    text = "".join("\t".join(row) + "\n" for row in [list(role_names(3)), *rows])
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
