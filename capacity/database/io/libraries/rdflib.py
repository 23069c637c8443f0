"""Conversion between rdflib graphs and `Database`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.io.rdf.graphs import DEFAULT, check_graph
from capacity.database.policy import MultiPolicy
from capacity.database.terms.grammar import is_blank_name
from capacity.database.terms.nodes import term_from_rdflib, term_to_rdflib
from capacity.database.terms.term import Ids, Term
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by

if TYPE_CHECKING:
    import rdflib


def from_rdflib(
    source: rdflib.Graph, *, graph: str | None = None, multi: MultiPolicy | None = None
) -> Database:
    """Make a database from an rdflib ``Graph`` or ``Dataset``.

    Parameters
    ----------
    source : rdflib.Graph
        The graph or dataset; its namespace prefixes are kept for display.
    graph : str, optional
        The only graph of a ``Dataset`` to read: its IRI, ``_:`` and its blank name, or ``default``;
        by default all graphs are merged.
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
        If `graph` is given for a ``Graph``, which has no named graphs, or can't name one.
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
        only = _graph(check_graph(graph))
        triples = (
            (s, p, o)
            for s, p, o, g in source.quads((None, None, None, None))
            if only is None or getattr(g, "identifier", g) in only
        )
    elif check_graph(graph) is None:
        triples = source
    else:
        raise InvalidArgumentError(
            "`graph` names a graph of an rdflib Dataset; a Graph has none. Omit it."
        )
    ids = Ids()
    rows = [(ids[s], ids[p], ids[o]) for s, p, o in triples]
    if not rows:
        raise DatabaseFormatError("the rdflib graph", "no triples were found")
    # two rdflib nodes can be one term: "a" and "a"^^xsd:string
    names = _names(ids)
    terms = {node: names.get(node) or term_from_rdflib(node) for node in ids}
    distinct = {term: i for i, term in enumerate(dict.fromkeys(terms.values()))}
    renumber = np.array([distinct[terms[node]] for node in ids], dtype=np.int64)
    return Database.from_ids(
        list(distinct),
        renumber[np.array(rows)],
        multi=multi,
        prefixes={p: str(n) for p, n in source.namespaces()},
    )


def _names(nodes: Iterable[Any]) -> dict[Any, Term]:
    """Name all blank nodes ``b0``, ``b1``, ... unless other formats have all their names."""
    import rdflib

    blank = [node for node in nodes if isinstance(node, rdflib.BNode)]
    if all(map(is_blank_name, blank)):
        return {}
    return {node: Term("blank", f"b{i}") for i, node in enumerate(blank)}


def _graph(name: str | None) -> tuple[Any, ...] | None:
    """Return what rdflib may call a graph."""
    import rdflib
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    if name is None:
        return None
    if name == DEFAULT:
        return (None, DATASET_DEFAULT_GRAPH_ID)
    return (rdflib.BNode(name[2:]) if name.startswith("_:") else rdflib.URIRef(name),)


def to_rdflib(db: DatabaseLike, *, base: str | None = None) -> rdflib.Graph:
    """Write the facts as an rdflib graph.

    Parameters
    ----------
    db : Database, or what `as_database` takes
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
        a subject that is a literal, a predicate that isn't an IRI, or what RDF 1.2 has and rdflib
        hasn't: triple terms, and literals with a base direction.

    Examples
    --------
    >>> db = Database.from_triples([("Astrid", "born_in", "Singapore")])
    >>> print(to_rdflib(db, base="http://example.org/").serialize(format="nt").strip())
    <http://example.org/Astrid> <http://example.org/born_in> <http://example.org/Singapore> .
    """
    db = require_triples(db, "to_rdflib(db)")
    with needed_by("to_rdflib"):
        import rdflib

    minted: dict[Term, Any] = {}
    in_use = {t.text for t in db.tokens if t.kind == "iri"}
    for token in db.tokens:
        if token.kind in ("label", "set"):
            if base is None:
                raise InvalidArgumentError(
                    f"RDF has no form for the {token.kind} {token.text!r:.60}. Make IRIs of labels "
                    'with `base`, such as base="http://example.org/".'
                )
            iri = base + quote(token.text, safe="")
            if iri in in_use:
                raise InvalidArgumentError(
                    f"<{iri}> would denote two tokens. Choose another `base`."
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
