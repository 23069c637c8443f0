"""Parsing of RDF text as a `Database`.

pyoxigraph parses, and keeps lexical forms as they are written (except that JSON numbers become
canonical). From file to ids it takes a quarter to a seventh of the time of rdflib, for JSON-LD half
(``benchmarks/load_rdf.py``). Input is checked by `capacity.database.io.guards` first, and no facts
are returned before all of it is parsed.

Conventions: graphs are merged unless one is named; blank nodes are renamed ``b0``, ``b1``, ... in
the order of the file, unless it labels all of them; relative IRIs are resolved against the given
base, else against ``file:///`` and the file's name; a triple term of RDF 1.2 is a token.

References
----------
RDF 1.1 Concepts and Abstract Syntax, W3C 2014; RDF 1.2 Concepts and Abstract Data Model.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.database.blank_nodes import with_stable_names
from capacity.database.facts import Database
from capacity.database.io.annotations import apply_choice, check_choice, find_annotations
from capacity.database.io.content import Content
from capacity.database.io.contexts import (
    Contexts,
    check_contexts,
    missing_context,
    with_contexts,
)
from capacity.database.io.foreign import foreign_text
from capacity.database.io.formats import FORMATS, Format
from capacity.database.io.graphs import check_graph, find_graph, graph_names
from capacity.database.io.guards import (
    parse_json,
    refuse_deep_triple_terms,
    refuse_hostile_json,
    refuse_hostile_xml,
)
from capacity.database.policy import MultiPolicy
from capacity.database.required import require_triples
from capacity.database.source import Source
from capacity.database.terms import Ids, term_from_pyoxigraph
from capacity.database.vocabularies import schema_predicates
from capacity.errors import AnnotationWarning, DatabaseFormatError, InvalidArgumentError
from capacity.limits import shown

# a line of RDF 1.2 N-Triples and N-Quads; no literal of theirs has several lines
_VERSION = re.compile(
    rb"^[ \t]*VERSION[ \t]*(?:\"[^\"\\\r\n]*\"|'[^'\\\r\n]*')[ \t]*(?=#|\r|$)", re.MULTILINE
)
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


def parse_rdf_content(
    content: Content,
    format: Format,
    *,
    multi: MultiPolicy | None = None,
    graph: str | None = None,
    base: str | None = None,
    contexts: Contexts | None = None,
    annotations_of_facts: str | None = None,
    allow_empty: bool = False,
) -> Database:
    """Parse checked content as RDF.

    Options and errors are those of `capacity.database.read_rdf`.
    """
    wanted, choice = check_graph(graph), check_choice(annotations_of_facts)
    quads = parse_quads(
        content, format, base=base, contexts=contexts, with_graphs=wanted is not None
    )
    rows = quads.rows
    n_of_file = len(rows)
    if wanted is not None:
        counts = quads.counts()
        name = find_graph(wanted, counts, quads.prefixes, content.name, format.name)
        rows = rows[quads.graph == (-1 if name is None else list(counts).index(name))]
    in_other_graphs = n_of_file - len(rows)
    if not len(rows) and not allow_empty:
        raise DatabaseFormatError(
            content.name,
            "no triples were found" + (" in the default graph" if wanted is not None else ""),
            format=format.name,
            advice="Check the file and its format; `allow_empty` makes an empty database of it.",
        )
    notes: tuple[str, ...] = ()
    if (found := find_annotations(quads.ids, rows)) is not None:
        iris = {i: node.value for node, i in quads.ids.items() if isinstance(node, ox.NamedNode)}
        rows, note = apply_choice(found, rows, choice, iris, quads.prefixes)
        notes = (note,)
        if choice is None:
            warnings.warn(
                f"{note} Choose with annotations_of_facts=: keep, drop, order-4 or order-5.",
                AnnotationWarning,
                stacklevel=4,
            )
    elif choice not in (None, "keep", "drop"):
        raise DatabaseFormatError(
            content.name,
            f"no fact is annotated, as `annotations_of_facts` = {shown(choice)} needs",
            format=format.name,
            advice="Omit it.",
        )
    if notes and not len(rows) and not allow_empty:
        raise DatabaseFormatError(
            content.name,
            f"nothing is left of it. {notes[0]}",
            format=format.name,
            advice="Choose otherwise with `annotations_of_facts`.",
        )
    return Database.from_ids(
        with_stable_names([term_from_pyoxigraph(node) for node in quads.ids]),
        rows,
        arity=rows.shape[1],
        multi=multi,
        prefixes=quads.prefixes,
        source=Source(Path(content.name).name, content.sha256, format.name, notes, in_other_graphs),
        allow_empty=allow_empty,
    )


def parse_quads(
    content: Content,
    format: Format,
    *,
    base: str | None = None,
    contexts: Contexts | None = None,
    with_graphs: bool = True,
) -> Quads:
    """Parse checked content, whole, as triples and the graphs that they are in.

    Options and errors are those of `capacity.database.read_rdf`.
    """
    where, syntax = _base(content.name, base), SYNTAXES[format.name]
    data = _checked(content, format, where, contexts)
    # a formula of N3 is a graph to the parser
    with_graphs = with_graphs or syntax == ox.RdfFormat.N3
    ids, graph_ids = Ids(), Ids()
    column, graphs = array("q"), array("q")
    add, add_graph = column.append, graphs.append
    parser = ox.parse(data, format=syntax, base_iri=where)
    try:
        for quad in parser:
            add(ids[quad.subject])
            add(ids[quad.predicate])
            add(ids[quad.object])
            if with_graphs:
                add_graph(graph_ids[quad.graph_name])
    except SyntaxError as error:
        raise _broken(content, format.name, str(error.msg), error.lineno) from None
    except MemoryError:
        raise DatabaseFormatError(
            content.name,
            "a term is longer than 16 MiB, the most that the parser of this format reads",
            format=format.name,
            advice="Shorten it, or store it elsewhere and give its IRI.",
        ) from None
    except ValueError as error:
        raise _broken(content, format.name, str(error), None) from None
    if syntax == ox.RdfFormat.N3 and graph_ids.keys() - {ox.DefaultGraph()}:
        raise DatabaseFormatError(
            content.name,
            "an N3 formula quotes triples without asserting them as facts",
            format=format.name,
            advice="Write the facts outside of braces.",
        )
    return Quads(
        ids,
        np.frombuffer(column, dtype=np.int64).reshape(-1, 3),
        np.frombuffer(graphs, dtype=np.int64) if with_graphs else None,
        tuple(graph_names(graph_ids, data)),
        _first_prefixes(data, where) if syntax == ox.RdfFormat.RDF_XML else parser.prefixes,
    )


def _first_prefixes(data: bytes, base: str) -> Mapping[str, str]:
    """Read the prefixes of RDF/XML at its first triple; at its end all elements are closed."""
    parser = ox.parse(data, format=ox.RdfFormat.RDF_XML, base_iri=base)
    next(parser, None)
    return parser.prefixes


def _base(name: str, base: str | None) -> str:
    if base is None:
        return f"file:///{quote(Path(name).name.encode('utf-8', 'replace'))}"
    try:
        return ox.NamedNode(base).value
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"`base` must be an absolute IRI, such as http://example.org/; got {shown(base)}."
        ) from None


def _checked(content: Content, format: Format, base: str, contexts: Contexts | None) -> bytes:
    """Refuse what would harm the parser, and write what it doesn't know in another way."""
    if format.name == "rdfxml":
        refuse_hostile_xml(content.name, content.data)
    elif format.name == "jsonld":
        refuse_hostile_json(content.name, content.data)
        if contexts is not None:
            return with_contexts(content, check_contexts(contexts), base)
    else:
        refuse_deep_triple_terms(content.name, content.data)
    if format.name in ("ntriples", "nquads") and b"VERSION" in content.data:
        return _VERSION.sub(b"", content.data)
    return content.data


def _broken(content: Content, format: str, reason: str, line: int | None) -> DatabaseFormatError:
    """Make the error of what the parser refuses, with advice that can help."""
    foreign = foreign_text(content.data[:65536].decode("utf-8", "ignore"))
    advice = "Mend the file."
    if foreign is not None:
        reason, line, advice = f"it is {foreign.what}", None, foreign.advice
    elif format == "jsonld":
        if "LoadDocumentCallback" in reason:
            return missing_context(content)
        if _SURROGATE.search(content.data) and "end of file" in reason:
            reason = "a string holds half of a surrogate pair, \\ud800 to \\udfff"
        else:
            # which is clearer, if it is broken as JSON already
            parse_json(content.name, content.data)
    elif format != "rdfxml":
        turtle = {"ntriples": "turtle", "nquads": "trig"}.get(format)
        if turtle and b"<<" in content.data:
            advice = f"If it is RDF-star, whose << s p o >> may be subjects, read it as {turtle}."
        else:
            alike = ", ".join(f for f in _LIKE_TURTLE if f != format and f in FORMATS)
            advice = f"Mend the file, or say which format it is: {alike}."
    # parsers repeat what they can't read, however long, with its control characters
    short = re.sub(r"\S{60,}", lambda word: f"{word[0]:.57}...", f"{reason:.400}")
    return DatabaseFormatError(
        content.name,
        "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short),
        format=format,
        line=line,
        advice=advice,
    )


def schema_rows(db: Database) -> NDArray[np.bool_]:
    """Mark the facts that are schema: ``rdf:type`` and the predicates of RDFS, OWL and SHACL.

    Ontologies can be mostly schema (71 % of Brick). ``db.select(schema="drop")`` omits it.

    Parameters
    ----------
    db : Database
        Facts with IRIs as predicates; others are no schema.

    Returns
    -------
    ndarray of bool, shape (n_triples,)
        True for the facts of ``db.triples`` that are schema.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3.

    Examples
    --------
    >>> from capacity.database import parse_rdf
    >>> db = parse_rdf("<x:Astrid> a <x:Person> ; <x:born_in> <x:Singapore> .", "turtle")
    >>> schema_rows(db)
    array([ True, False])
    """
    require_triples(db, "schema_rows(db)")
    return schema_predicates(db)[db.triples[:, 1]]
