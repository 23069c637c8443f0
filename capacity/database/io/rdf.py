"""Conversion between RDF text, rdflib graphs and `Database`.

pyoxigraph parses, and keeps lexical forms as they are written (except that JSON numbers become
canonical). From file to ids it takes a quarter to a seventh of the time of rdflib, for JSON-LD half
(``benchmarks/load_rdf.py``). Graphs are exchanged as rdflib graphs. Input is checked by
`capacity.database.io.guards` first, and no facts are returned before all of it is parsed.

Conventions: named graphs are merged unless one is named; blank nodes are renamed ``b0``, ``b1``,
... in the order of the file; relative IRIs are resolved against ``file:///`` and the file's name.

References
----------
RDF 1.1 Concepts and Abstract Syntax, W3C 2014.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.io.content import Content
from capacity.database.io.formats import FORMATS, Format
from capacity.database.io.guards import (
    refuse_deep_triple_terms,
    refuse_hostile_json,
    refuse_hostile_xml,
)
from capacity.database.policy import MultiPolicy
from capacity.database.required import require_triples
from capacity.database.source import Source
from capacity.database.terms import (
    BlankNames,
    Term,
    term_from_pyoxigraph,
    term_from_rdflib,
    term_to_rdflib,
)
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.extras import needed_by

if TYPE_CHECKING:
    import rdflib

_SCHEMA = (
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2002/07/owl#",
    "http://www.w3.org/ns/shacl#",
)
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class _Ids(dict[Any, int]):
    """Numbers 0, 1, ... for keys, in order of first use."""

    def __missing__(self, key: Any) -> int:
        self[key] = fresh = len(self)
        return fresh


def parse_rdf_content(
    content: Content,
    format: Format,
    *,
    syntax: ox.RdfFormat,
    multi: MultiPolicy | None = None,
    graph: str | None = None,
) -> Database:
    """Parse checked content as RDF; `syntax` is the parser's name of the format.

    Options and errors are those of `capacity.database.read_rdf`.
    """
    if format.name == "rdfxml":
        refuse_hostile_xml(content.name, content.data)
    elif format.name == "jsonld":
        refuse_hostile_json(content.name, content.data)
    else:
        refuse_deep_triple_terms(content.name, content.data)
    ids = _Ids()
    column = array("q")
    add = column.append
    only, default = None if graph is None else _iri(graph), ox.DefaultGraph()
    parser = ox.parse(
        content.data,
        format=syntax,
        base_iri=f"file:///{quote(Path(content.name).name.encode('utf-8', 'replace'))}",
    )
    try:
        for quad in parser:
            if format.name == "n3" and quad.graph_name != default:
                raise InvalidArgumentError(
                    "an N3 formula quotes triples without asserting them as facts"
                )
            if only is None or quad.graph_name == only:
                add(ids[quad.subject])
                add(ids[quad.predicate])
                add(ids[quad.object])
        names = BlankNames()
        tokens = [term_from_pyoxigraph(node, names) for node in ids]
    except SyntaxError as error:
        raise _broken(content.name, format.name, str(error.msg), error.lineno) from None
    except MemoryError:
        raise _broken(content.name, format.name, "a term is longer than 16 MiB", None) from None
    except ValueError as error:
        raise _broken(content.name, format.name, str(error), None) from None
    if not tokens:
        where = "" if graph is None else f" in the graph <{graph}>"
        raise DatabaseFormatError(
            content.name,
            f"no triples were found{where}",
            format=format.name,
            advice="A database must hold facts; check the file and its format.",
        )
    return Database.from_ids(
        tokens,
        np.frombuffer(column, dtype=np.int64).reshape(-1, 3),
        multi=multi,
        prefixes=parser.prefixes,
        source=Source(Path(content.name).name, content.sha256, format.name),
    )


def _iri(graph: str) -> ox.NamedNode:
    try:
        return ox.NamedNode(graph)
    except ValueError:
        raise InvalidArgumentError(
            f"`graph` must be the IRI of a named graph; got {graph!r:.60}."
        ) from None


def _broken(name: str, format: str, reason: str, line: int | None) -> DatabaseFormatError:
    others = ", ".join(f for f in FORMATS if f != format)
    # parsers repeat what they can't read, however long, with its control characters
    short = re.sub(r"\S{60,}", lambda word: f"{word[0]:.57}...", f"{reason:.400}")
    return DatabaseFormatError(
        name,
        "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short),
        format=format,
        line=line,
        advice=f"Mend the file, or say which format it is: {others}.",
    )


def from_rdflib(
    source: rdflib.Graph, *, graph: str | None = None, multi: MultiPolicy | None = None
) -> Database:
    """Make a database from an rdflib ``Graph`` or ``Dataset``.

    Parameters
    ----------
    source : rdflib.Graph
        The graph or dataset; its namespace prefixes are kept for display.
    graph : str, optional
        IRI of the only named graph of a ``Dataset`` to read; by default all graphs are merged.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The triples of the graph.

    Raises
    ------
    InvalidTypeError
        If `source` is not an rdflib graph.
    InvalidArgumentError
        If `graph` is given for a ``Graph``, which has no named graphs.
    DatabaseFormatError
        If it holds no facts.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> import rdflib
    >>> graph = rdflib.Graph().parse(data="<x:Astrid> <x:born_in> <x:Singapore> .", format="nt")
    >>> str(from_rdflib(graph)(rdflib.URIRef("x:Astrid"), rdflib.URIRef("x:born_in")))
    '<x:Singapore>'
    """
    with needed_by("from_rdflib"):
        import rdflib

    if not isinstance(source, rdflib.Graph):
        raise InvalidTypeError(
            f"`source` must be an rdflib Graph; got {type(source).__name__}. "
            "For a file use read_rdf, for text parse_rdf, for rows Database.from_triples."
        )
    triples: Iterable[tuple[Any, Any, Any]]
    if isinstance(source, rdflib.Dataset | rdflib.ConjunctiveGraph):
        only = None if graph is None else rdflib.URIRef(graph)
        triples = (
            (s, p, o)
            for s, p, o, g in source.quads((None, None, None, None))
            if only is None or getattr(g, "identifier", g) == only
        )
    elif graph is None:
        triples = source
    else:
        raise InvalidArgumentError(
            "`graph` names a graph of an rdflib Dataset; a Graph has none. Omit it."
        )
    ids = _Ids()
    rows = [(ids[s], ids[p], ids[o]) for s, p, o in triples]
    if not rows:
        raise DatabaseFormatError("the rdflib graph", "no triples were found")
    # two rdflib nodes can be one term: "a" and "a"^^xsd:string
    terms = {node: term_from_rdflib(node) for node in ids}
    distinct = {term: i for i, term in enumerate(dict.fromkeys(terms.values()))}
    renumber = np.array([distinct[terms[node]] for node in ids], dtype=np.int64)
    return Database.from_ids(
        list(distinct),
        renumber[np.array(rows)],
        multi=multi,
        prefixes={p: str(n) for p, n in source.namespaces()},
    )


def to_rdflib(db: Database, *, base: str | None = None) -> rdflib.Graph:
    """Write the facts as an rdflib graph.

    Parameters
    ----------
    db : Database
        Facts to write, with their prefixes.
    base : str, optional
        Beginning of the IRIs that replace labels and sets, which have no form in RDF: `base` and
        the percent-encoded text. Without it they are an error.

    Returns
    -------
    rdflib.Graph
        The facts as triples.

    Raises
    ------
    InvalidArgumentError
        For facts of another arity than 3, labels without a base, a new IRI that is in use already,
        a subject that is a literal, or a predicate that isn't an IRI.

    Examples
    --------
    >>> db = Database.from_triples([("Astrid", "born_in", "Singapore")])
    >>> print(to_rdflib(db, base="http://example.org/").serialize(format="nt").strip())
    <http://example.org/Astrid> <http://example.org/born_in> <http://example.org/Singapore> .
    """
    require_triples(db, "to_rdflib(db)")
    with needed_by("to_rdflib"):
        import rdflib

    minted: dict[Term, Any] = {}
    in_use = {t.text for t in db.tokens if t.kind == "iri"}
    for token in db.tokens:
        if token.kind in ("label", "set"):
            if base is None:
                raise InvalidArgumentError(
                    f"RDF has no form for the {token.kind} {token.text!r:.60}. Give labels IRIs "
                    'with `base`, such as base="http://example.org/".'
                )
            iri = base + quote(token.text, safe="")
            if iri in in_use:
                raise InvalidArgumentError(
                    f"<{iri}> would stand for two tokens. Choose another `base`."
                )
            in_use.add(iri)
            minted[token] = rdflib.URIRef(iri)
        else:
            minted[token] = term_to_rdflib(token)
    graph = rdflib.Graph()
    for prefix, namespace in db.prefixes.items():
        graph.bind(prefix, namespace)
    nodes = [minted[token] for token in db.tokens]
    for k, q, v in db.token_triples.tolist():
        if isinstance(nodes[k], rdflib.Literal) or not isinstance(nodes[q], rdflib.URIRef):
            raise InvalidArgumentError(
                f"An RDF subject must not be a literal, and a predicate must be an IRI; got "
                f"({db.tokens[k]}, {db.tokens[q]}, ...)."
            )
        graph.add((nodes[k], nodes[q], nodes[v]))
    return graph


def schema_rows(db: Database) -> NDArray[np.bool_]:
    """Mark the facts that are schema: ``rdf:type`` and the predicates of RDFS, OWL and SHACL.

    Ontologies can be mostly schema (71 % of Brick). ``db.subset(~schema_rows(db))`` drops it.

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
    schema = [
        p.kind == "iri" and (p.text == _RDF_TYPE or p.text.startswith(_SCHEMA))
        for p in db.predicates
    ]
    return np.array(schema, dtype=bool)[db.triples[:, 1]]
