"""RDF text as numbered triples, and the graphs that they are in.

pyoxigraph parses what `guards` let pass. The limits here are those of sizes that no guard knows
before the text is parsed.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.foreign import foreign_text
from capacity.database.io.files.formats import FORMATS, Format
from capacity.database.io.rdf.contexts import known_contexts, missing_context, with_contexts
from capacity.database.io.rdf.graphs import graph_names
from capacity.database.io.rdf.guards.json import (
    HALF_CHARACTER,
    parse_json,
    refuse_costly_contexts,
    refuse_deep_json,
)
from capacity.database.io.rdf.guards.texts import refuse_hostile_turtle
from capacity.database.io.rdf.labels import QuadsOfJson, has_digits, mark_for, with_labels
from capacity.database.io.rdf.rdfxml.reading import QuadsOfXml
from capacity.database.io.rdf.type_maps import without_type_maps
from capacity.database.io.skipping import VERSION
from capacity.database.terms.term import Ids
from capacity.errors import DatabaseFormatError, InvalidArgumentError

# the parser's name of each format
SYNTAXES = {
    "turtle": ox.RdfFormat.TURTLE,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "nquads": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
    "n3": ox.RdfFormat.N3,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}
_LIKE_TURTLE = ("turtle", "ntriples", "nquads", "trig", "n3")
# terms may take this, or this many times the file if that is more: a prefix abbreviates much
FREE_EXPANSION, MAX_EXPANSION = 2**28, 64
# quads that are read before their terms' size is looked at
_AT_ONCE = 256
Column: TypeAlias = "array[int]"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


@dataclass(frozen=True)
class Quads:
    """Parsed RDF: nodes, and triples as their numbers.

    Attributes
    ----------
    ids : dict of pyoxigraph node to int
        Number of each node, in order of first use.
    rows : ndarray of int64, shape (n, 3)
        Subject, predicate and object of each triple of the file.
    graph : ndarray of int64, shape (n,), or None
        Graph of each triple, as an index into `graphs`; None if nobody asked for it.
    graphs : tuple of str
        Names of the graphs.
    prefixes : mapping of str to str
        Namespace of each prefix.
    """

    ids: Ids
    rows: NDArray[np.int64]
    graph: NDArray[np.int64] | None
    graphs: tuple[str, ...]
    prefixes: Mapping[str, str]

    def counts(self) -> dict[str, int]:
        """Count the triples of each graph."""
        each = Counter([] if self.graph is None else self.graph.tolist())
        return {name: each[i] for i, name in enumerate(self.graphs)}


def checked_text(
    content: Content, format: Format, base: str | None, contexts: object
) -> tuple[str, bytes]:
    """Return the base IRI of checked content, and its text as the parser may be given it.

    Options and errors are those of `capacity.database.read_rdf`.
    """
    where = base_of(content.name, base)
    return where, _checked(content, format, where, contexts)


def parse_quads(
    content: Content, format: Format, where: str, data: bytes, *, with_graphs: bool = True
) -> Quads:
    """Parse a text, whole, as triples and the graphs that they are in.

    Parameters
    ----------
    content : Content
        The file, for messages.
    format : Format
        A format of RDF.
    where, data : str, bytes
        Its base IRI and its text, from `checked_text`.
    with_graphs : bool
        Whether to return the graph of each triple.

    Raises
    ------
    DatabaseFormatError
        If the text is broken.
    """
    syntax = SYNTAXES[format.name]
    # a formula of N3 is a graph to the parser
    with_graphs = with_graphs or syntax == ox.RdfFormat.N3
    ids, graph_ids = Ids(), Ids()
    column, graphs = array("q"), array("q")
    parser = parser_of(content, syntax, where, data)
    numbered = _number(parser, ids, column, graph_ids, graphs if with_graphs else None)
    excess = None
    left = max(FREE_EXPANSION, MAX_EXPANSION * len(data))
    try:
        while left >= 0 and (size := next(numbered, None)) is not None:
            left -= size
            if excess := content.limits.excess(rows=len(column) // 3):
                break
    except DatabaseFormatError:
        # of `RdfXmlLines`, with its line
        raise
    except (SyntaxError, MemoryError, ValueError) as error:
        raise broken(content, format.name, error) from None
    refuse_excess(content.name, format.name, excess)
    if left < 0:
        raise DatabaseFormatError(
            content.name,
            f"its terms, written out, take over {MAX_EXPANSION} times its size",
            format=format.name,
            advice="Shorten its prefixes and its base.",
        )
    refuse_formulas(content.name, format.name, graph_ids)
    return Quads(
        ids,
        np.frombuffer(column, dtype=np.int64).reshape(-1, 3),
        np.frombuffer(graphs, dtype=np.int64) if with_graphs else None,
        tuple(graph_names(graph_ids, data)),
        parser.prefixes,
    )


def parser_of(
    content: Content, syntax: ox.RdfFormat, where: str, data: bytes
) -> ox.QuadParser | QuadsOfXml | QuadsOfJson:
    """Make the parser of a text, which `checked_text` returned with its base IRI."""
    if syntax == ox.RdfFormat.RDF_XML:
        return QuadsOfXml(content, where)
    quads = ox.parse(data, format=syntax, base_iri=where)
    if syntax == ox.RdfFormat.JSON_LD and has_digits(content.data, data):
        return QuadsOfJson(quads, mark_for(content.data))
    return quads


def _number(
    quads: Iterator[ox.Quad],
    ids: Ids,
    column: Column,
    graph_ids: Ids,
    graphs: Column | None,
) -> Iterator[int]:
    """Number the nodes of all quads, and their graphs if these are asked for.

    Yields
    ------
    int
        Size of the nodes that are new among some quads, before the next are read.
    """
    add, known, n = column.append, 0, -1
    while n < len(column):
        n = len(column)
        for quad in islice(quads, _AT_ONCE):
            add(ids[quad.subject])
            add(ids[quad.predicate])
            add(ids[quad.object])
            if graphs is not None:
                graphs.append(graph_ids[quad.graph_name])
        new, known = len(ids) - known, len(ids)
        yield sum(map(len, map(str, islice(reversed(ids), new))))


def base_of(name: str, base: str | None) -> str:
    """Return the base IRI of a file; by default ``file:///`` and its name.

    Raises
    ------
    InvalidArgumentError
        If `base` isn't an absolute IRI.
    """
    if base is None:
        return f"file:///{quote(Path(name).name.encode('utf-8', 'replace'))}"
    try:
        return ox.NamedNode(base).value
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"`base` must be an absolute IRI, such as http://example.org/; got {shown(base)}."
        ) from None


def _checked(content: Content, format: Format, base: str, contexts: object) -> bytes:
    """Refuse what would harm the parser, and write what it doesn't know in another way."""
    if format.name == "rdfxml":
        # `RdfXmlLines` refuses it as it reads it
        return content.data
    if format.name == "jsonld":
        # a value takes two bytes where it is stored, and many times that as an object of Python
        values = sum(map(content.data.count, (b",", b"[", b"{")))
        refuse_excess(content.name, format.name, content.limits.excess(cells=2 * values))
        refuse_deep_json(content.name, content.data)
        data = content.data
        known = known_contexts(contexts)
        if contexts is not None or known:
            data = with_contexts(content, known, base)
        data = without_type_maps(content.name, data)
        data = with_labels(data, mark_for(content.data))
        refuse_costly_contexts(content.name, data)
        return data
    refuse_hostile_turtle(content.name, content.data)
    if format.name in ("ntriples", "nquads") and b"VERSION" in content.data:
        return VERSION.sub(b"", content.data)
    return content.data


def refuse_formulas(name: str, format: str, graphs: Iterable[object]) -> None:
    """Refuse N3 whose triples are in the graphs of formulas.

    Raises
    ------
    DatabaseFormatError
        If there is one.
    """
    if format == "n3" and any(not isinstance(graph, ox.DefaultGraph) for graph in graphs):
        raise DatabaseFormatError(
            name,
            "an N3 formula quotes triples without asserting them as facts",
            format=format,
            advice="Write the facts outside of braces.",
        )


def broken(content: Content, format: str, error: Exception) -> DatabaseFormatError:
    """Make the error of what the parser refuses, with advice that can help."""
    if isinstance(error, MemoryError):
        most = 8 if format == "jsonld" else 16
        return DatabaseFormatError(
            content.name,
            f"a term is longer than {most} MiB, the most that the parser of this format reads",
            format=format,
            advice="Shorten it, or store it elsewhere and refer to it by its IRI.",
        )
    reason, line = str(error), None
    if isinstance(error, SyntaxError):
        reason, line = str(error.msg), error.lineno
    foreign = foreign_text(content.data[:65536].decode("utf-8", "ignore"))
    advice = "Fix the file."
    if foreign is not None:
        reason, line, advice = f"it is {foreign.what}", None, foreign.advice
    elif format == "jsonld":
        if "LoadDocumentCallback" in reason:
            return missing_context(content)
        if _SURROGATE.search(content.data) and "end of file" in reason:
            reason = HALF_CHARACTER
        else:
            # which is clearer, if it is broken as JSON already
            parse_json(content.name, content.data)
    elif format != "rdfxml":
        turtle = {"ntriples": "turtle", "nquads": "trig"}.get(format)
        if turtle and b"<<" in content.data:
            advice = f"If it is RDF-star, whose << s p o >> may be subjects, read it as {turtle}."
        else:
            alike = ", ".join(f for f in _LIKE_TURTLE if f != format and f in FORMATS)
            advice = f"Fix the file, or choose its format: {alike}."
    # parsers repeat what they can't read, however long
    short = re.sub(r"\S{60,}", lambda word: f"{word[0]:.57}...", f"{reason:.400}")
    return DatabaseFormatError(
        content.name,
        short,
        format=format,
        line=line,
        advice=advice,
    )
