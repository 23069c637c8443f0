"""Read RDF, from files and from text."""

from __future__ import annotations

import os
from typing import Unpack

from capacity.database.facts import Database
from capacity.database.io.files.content import check, read
from capacity.database.io.parsing import content_of, format_of_kind, parsed
from capacity.database.io.rdf.quads import SYNTAXES, checked_text, parse_quads
from capacity.database.io.reading import (
    Contexts,
    RdfOptions,
    RdfTextOptions,
    reading_of,
    with_options,
)
from capacity.database.policy import MultiPolicy
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import MAX_BYTES, MAX_GROWTH, Limits


@with_options(RdfOptions)
def read_rdf(
    path: str | os.PathLike[str],
    *,
    multi: MultiPolicy | None = None,
    **options: Unpack[RdfOptions],
) -> Database:
    """Read an RDF file.

    Parameters
    ----------
    path : path
        RDF file, which may be compressed; ``-`` is standard input.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    format : str, optional
        Turtle, N-Triples, N-Quads, TriG, N3, RDF/XML or JSON-LD by name, extension or media type;
        by default it is guessed.
    graph : str, optional
        The only graph to read: its IRI, its prefixed name by a prefix of the file, ``_:`` and its
        blank name, or ``default`` for the triples outside of named graphs. By default, and for
        ``union``, all graphs are merged. `list_graphs` lists them.
    base : str, optional
        Absolute IRI against which relative ones are resolved; by default ``file:///`` and the
        file's name.
    contexts : mapping of str to path or dict, or path, optional
        JSON-LD contexts that the document refers to, by IRI: files, or parsed documents; or a JSON
        file of IRIs and files. Nothing is fetched, so that a document refers to other contexts in
        vain, unless the file that the variable ``CAPACITY_CONTEXTS`` names has them.
    annotations_of_facts : {'keep', 'drop', 'order-4', 'order-5'} or str, optional
        What becomes of triples about triples, which are the annotations and reifiers of RDF 1.2,
        ``rdf:Statement`` and ``owl:Axiom``. ``keep``: they stay as they are; ``drop``: they are
        omitted; ``order-5``: facts (subject, predicate, object, annotation, value); the IRI or the
        prefixed name of an annotation: facts (subject, predicate, value, object), as by a time;
        ``order-4``: the same by the only annotation of the file. By default ``keep``, with a
        warning if there are any.
    allow_empty : bool
        Whether text without triples is an empty database, of shape (0, 0, 0), and no error.
    max_bytes, max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of the text, as `capacity.load` has them; but for RDF/XML no term is over 16 MiB, and
        in JSON-LD none over 8.
    skip_errors : int
        Most broken lines of N-Triples and N-Quads that are omitted, as `load` has it.

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
        If `graph` can't name a graph or `base` isn't an absolute IRI, for an annotation that there
        isn't, a policy that is unknown, or a limit that isn't positive.
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
    reading, _ = reading_of("read_rdf", RdfOptions, options)
    content = content_of(path, reading)
    chosen = format_of_kind(content, reading.format, "rdf")
    return parsed(content, chosen, reading, multi=multi)


@with_options(RdfTextOptions)
def parse_rdf(
    text: str | bytes,
    format: str,
    *,
    multi: MultiPolicy | None = None,
    **options: Unpack[RdfTextOptions],
) -> Database:
    """Read RDF from text in a named format.

    Parameters
    ----------
    text : str or bytes
        RDF, in UTF-8 if it is given as bytes.
    format : str
        Turtle, N-Triples, N-Quads, TriG, N3, RDF/XML or JSON-LD by name, extension or media type.
    multi, graph, base, contexts, annotations_of_facts : optional
        As `read_rdf` has them.
    allow_empty, max_bytes, max_growth, max_rows, max_cells, max_term_bytes, skip_errors : optional
        As `read_rdf` has them.

    Returns
    -------
    Database
        The triples of the text or of one of its graphs.

    Raises
    ------
    DatabaseFormatError
        If the text isn't RDF in that format, or holds no facts.
    InvalidArgumentError
        If `graph` can't name a graph or `base` isn't an absolute IRI, for an annotation that there
        isn't, a policy that is unknown, or a limit that isn't positive.
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
    reading, _ = reading_of("parse_rdf", RdfTextOptions, options)
    content = check(
        "the given text", raw, limits=reading.limits, allow_empty=reading.allow_empty,
        skip_errors=reading.skip_errors,
    )  # fmt: skip
    chosen = format_of_kind(content, format, "rdf")
    return parsed(content, chosen, reading, multi=multi)


def list_graphs(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    base: str | None = None,
    contexts: Contexts | str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_BYTES,
    max_growth: int = MAX_GROWTH,
    max_rows: int | None = None,
) -> dict[str, int]:
    """List the graphs of an RDF file.

    Parameters
    ----------
    path : path
        RDF file, which may be compressed; ``-`` is standard input.
    format : str, optional
        Turtle, N-Triples, N-Quads, TriG, N3, RDF/XML or JSON-LD by name, extension or media type;
        by default it is guessed.
    base, contexts, max_bytes, max_growth, max_rows : optional
        As `read_rdf` has them.

    Returns
    -------
    dict of str to int
        Number of triples of each graph, by the name that `read_rdf` takes for it: ``default``, an
        IRI, or ``_:`` and a blank name. Graphs without triples are omitted.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read, isn't RDF, or is broken.
    InvalidTypeError
        If `path` is neither a str nor a path, or `contexts` isn't a mapping.
    InvalidArgumentError
        If `base` isn't an absolute IRI, or `max_bytes` isn't positive.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.trig")
    ...     _ = path.write_text("<x:a> <x:p> <x:b>, <x:c> . <x:g> { <x:a> <x:p> <x:b> }")
    ...     list_graphs(path)
    {'default': 2, 'x:g': 1}
    """
    limits = Limits(max_bytes, max_growth, max_rows)
    content = read(path, limits=limits, allow_empty=True)
    chosen = format_of_kind(content, format, "rdf")
    if chosen.name not in SYNTAXES:
        raise DatabaseFormatError(
            content.name,
            "graphs are listed of the library's own formats alone",
            format=chosen.name,
            advice=f"Pass one of {', '.join(SYNTAXES)}.",
        )
    return parse_quads(content, chosen, *checked_text(content, chosen, base, contexts)).counts()
