"""Read files of facts as a `Database`: content, format, parser."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from capacity.database.arity import require_arity
from capacity.database.facts import Database
from capacity.database.io.content import Content, check, read
from capacity.database.io.formats import FORMATS, Format, resolve_format
from capacity.database.io.tables import TableTerms, arity_of, check_terms
from capacity.database.policy import MultiPolicy
from capacity.errors import DatabaseFormatError, MultiValuedError


def load(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    arity: int = 3,
    multi: MultiPolicy | None = None,
) -> Database:
    r"""Read a file of facts: RDF in any common format, or a table of three columns.

    Parameters
    ----------
    path : path
        File of facts, which may be compressed (gzip, bzip2, xz, zstandard); ``-`` is standard
        input.
    format : str, optional
        Name, extension or media type of a registered format; by default it is guessed.
    arity : int
        Number of columns of the facts. Only tables have facts of another arity than 3.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The facts, with the file's name, hash and format as ``source``.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read as a database: missing, empty, binary, broken or without facts; a
        table with another number of columns, or another file than a table if `arity` isn't 3.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        For an unknown policy, or an `arity` that isn't from 2 to 32.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.tsv")
    ...     _ = path.write_text("Astrid\tborn_in\tSingapore")
    ...     db = load(path)
    >>> str(db("Astrid", "born_in"))
    'Singapore'
    """
    require_arity(arity)
    content = read(path)
    chosen = resolve_format(content, format)
    if arity == 3:
        return _parsed(content, chosen, multi=multi)
    if chosen.kind != "table":
        raise DatabaseFormatError(
            content.name,
            f"only tables hold facts of {arity} columns",
            format=chosen.name,
            advice="Omit `arity`, or give the table's format: tsv or csv.",
        )
    return _parsed(content, chosen, arity=arity, multi=multi)


def read_rdf(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    graph: str | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Read an RDF file.

    Parameters
    ----------
    path : path
        RDF file, which may be compressed; ``-`` is standard input.
    format : str, optional
        Turtle, N-Triples, N-Quads, TriG, N3, RDF/XML or JSON-LD by name, extension or media type;
        by default it is guessed.
    graph : str, optional
        IRI of the only named graph to read; by default all graphs are merged.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The triples of the file or of one of its graphs.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read, isn't RDF, is broken, or holds no facts.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        If `graph` isn't an IRI, or for an unknown policy.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.trig")
    ...     _ = path.write_text("<x:g> { <x:a> <x:p> <x:b> } <x:h> { <x:a> <x:p> <x:c> }")
    ...     db = read_rdf(path, graph="x:g")
    >>> db.n_triples
    1
    """
    content = read(path)
    chosen = _of_kind(content, resolve_format(content, format), "rdf", "RDF")
    return _parsed(content, chosen, graph=graph, multi=multi)


def parse_rdf(
    text: str | bytes,
    format: str,
    *,
    graph: str | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Read RDF from text in a named format.

    Parameters
    ----------
    text : str or bytes
        RDF, in UTF-8 if it is given as bytes.
    format : str
        Turtle, N-Triples, N-Quads, TriG, N3, RDF/XML or JSON-LD by name, extension or media type.
    graph : str, optional
        IRI of the only named graph to read; by default all graphs are merged.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The triples of the text or of one of its graphs.

    Raises
    ------
    DatabaseFormatError
        If the text isn't RDF in that format, or holds no facts.
    InvalidArgumentError
        If `graph` isn't an IRI, or for an unknown policy.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> parse_rdf("<x:a> <x:p> <x:b>, 'c' .", "turtle", multi="keep").shape
    (1, 1, 2)
    """
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise DatabaseFormatError("the given text", f"it has no UTF-8 form ({error})") from None
    content = check("the given text", raw)
    chosen = _of_kind(content, resolve_format(content, format), "rdf", "RDF")
    return _parsed(content, chosen, graph=graph, multi=multi)


def read_table(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    terms: TableTerms = "label",
    arity: int | None = None,
    columns: Sequence[str] | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    r"""Read a TSV or CSV file.

    Parameters
    ----------
    path : path
        Table with three columns: subject, predicate, object, unless `arity` or `columns` say
        otherwise. It may be compressed; ``-`` is standard input.
    format : {'tsv', 'csv'}, optional
        Format of the table; by default it is guessed.
    terms : {'label', 'n3'}
        Form of the cells: plain labels, or N-Triples terms.
    arity : int, optional
        Number of columns of the table if it isn't 3; the last one holds the object, the others the
        key. The first row is a header only if it reads ``key_1 key_2 ... object``.
    columns : sequence of str, optional
        Names of the columns to read, the object's last; the first row must name all columns.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The rows of the table.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read, for a row with another number of cells, a cell that isn't a term,
        a table without rows, or without one of the `columns`.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        For unknown `terms`, an unknown policy, an `arity` that isn't from 2 to 32, or that isn't
        the number of `columns`.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.csv")
    ...     _ = path.write_text("<x:Astrid>,<x:born_in>,<x:Singapore>")
    ...     db = read_table(path, terms="n3")
    >>> db.subjects[0].kind
    'iri'
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("id,city,month,year,weather\n1,Oslo,May,2024,sun")
    ...     read_table(path, columns=["city", "month", "year", "weather"])
    Database(1 facts of arity 4: 1 x 1 x 1 x 1, 4 tokens; functional)
    """
    check_terms(terms)
    options: dict[str, Any] = {"terms": terms}
    if arity_of(arity, columns) != 3 or columns is not None:
        options |= {"arity": arity_of(arity, columns), "columns": columns}
    content = read(path)
    chosen = _of_kind(content, resolve_format(content, format), "table", "a table")
    return _parsed(content, chosen, **options, multi=multi)


def _of_kind(content: Content, format: Format, kind: str, what: str) -> Format:
    if format.kind == kind:
        return format
    names = ", ".join(name for name, known in FORMATS.items() if known.kind == kind)
    raise DatabaseFormatError(
        content.name,
        f"it must be {what}",
        format=format.name,
        advice=f"Read it with `load`, or give its format: {names}.",
    )


def _parsed(content: Content, format: Format, **options: Any) -> Database:
    try:
        return format.parse(content, format, **options)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None
