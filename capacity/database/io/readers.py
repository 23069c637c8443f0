"""From a file of facts to a `Database`: content, format, parser."""

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
    """Read a file of facts: RDF in any common format, or a table of three columns.

    Parameters
    ----------
    path : path
        Maybe compressed (gzip, bzip2, xz, zstandard); ``-`` is standard input.
    format : str, optional
        A name, extension or media type of a registered format; guessed if left out.
    multi : MultiPolicy, optional
        What to do with multi-valued pairs; left out: ``keep``, with a warning.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read as a database: missing, empty, binary, broken or without facts.
    MultiValuedError
        As the policy says.
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
    format : str, optional
        Turtle, N-Triples, N-Quads, TriG, N3, RDF/XML or JSON-LD by name, extension or media type;
        guessed if left out.
    graph : str, optional
        IRI of the one named graph to read; left out, all graphs are merged.
    multi : MultiPolicy, optional
        What to do with multi-valued pairs; left out: ``keep``, with a warning.

    Raises
    ------
    DatabaseFormatError
        If the file isn't RDF, is broken, or holds no facts.
    MultiValuedError
        As the policy says.
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
    format, graph, multi
        As in `read_rdf`; the format must be given.

    Raises
    ------
    DatabaseFormatError
        If the text isn't RDF in that format, or holds no facts.
    MultiValuedError
        As the policy says.

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
        Three columns: subject, predicate, object.
    format : {'tsv', 'csv'}, optional
        Guessed from the file's name if left out.
    terms : {'label', 'n3'}
        What a cell holds: a plain label, or an N-Triples term.
    multi : MultiPolicy, optional
        What to do with multi-valued pairs; left out: ``keep``, with a warning.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read, for a row that hasn't three cells, a cell that is no term, a
        table without rows.
    InvalidArgumentError
        For unknown `terms`.
    MultiValuedError
        As the policy says.
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
        advice=f"Read it with load, or say which format it is: {names}.",
    )


def _parsed(content: Content, format: Format, **options: Any) -> Database:
    try:
        return format.parse(content, format, **options)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None
