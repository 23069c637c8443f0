"""Read files of facts as a `Database`: content, format, parser."""

from __future__ import annotations

import os
from typing import Any

from capacity.database.facts import Database
from capacity.database.io.content import Content, check, read
from capacity.database.io.formats import FORMATS, Format, resolve_format
from capacity.database.io.tables import TableTerms, check_terms
from capacity.database.policy import MultiPolicy
from capacity.errors import DatabaseFormatError, MultiValuedError


def load(
    path: str | os.PathLike[str], *, format: str | None = None, multi: MultiPolicy | None = None
) -> Database:
    r"""Read a file of facts: RDF in any common format, or a table of three columns.

    Parameters
    ----------
    path : path
        File of facts, which may be compressed (gzip, bzip2, xz, zstandard); ``-`` is standard
        input.
    format : str, optional
        Name, extension or media type of a registered format; by default it is guessed.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The facts, with the file's name, hash and format as ``source``.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read as a database: missing, empty, binary, broken or without facts.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        For an unknown policy.
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
    content = read(path)
    return _parsed(content, resolve_format(content, format), multi=multi)


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
    multi: MultiPolicy | None = None,
) -> Database:
    """Read a TSV or CSV file.

    Parameters
    ----------
    path : path
        Table with three columns: subject, predicate, object. It may be compressed; ``-`` is
        standard input.
    format : {'tsv', 'csv'}, optional
        Format of the table; by default it is guessed.
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
    DatabaseFormatError
        If the file can't be read, for a row that doesn't hold three cells, a cell that isn't a
        term, or a table without rows.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        For unknown `terms` or an unknown policy.
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
    """
    check_terms(terms)
    content = read(path)
    chosen = _of_kind(content, resolve_format(content, format), "table", "a table")
    return _parsed(content, chosen, terms=terms, multi=multi)


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
