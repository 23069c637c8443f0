"""Facts of documents of RDF/XML, as this library reads them, and rdflib, by expat, too."""

from __future__ import annotations

import warnings

import pyoxigraph as ox

from capacity.database import Database, parse_rdf
from capacity.database.terms.nodes import term_to_pyoxigraph
from tests.rdf_xml_documents import BASE
from tests.w3c import by_graph, canonical


def by_rdflib(text: str) -> dict[str, list[list[str]]] | None:
    """Lines of the facts that rdflib reads; None if it refuses the document."""
    try:
        return _by_rdflib(text)
    # of SAX, and whatever else comes of what it doesn't expect
    except Exception:
        return None


def _by_rdflib(text: str) -> dict[str, list[list[str]]]:
    import rdflib

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # or it would write XML literals in its own way
        normalize, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            graph = rdflib.Graph().parse(data=text.encode(), format="xml", publicID=BASE)
        finally:
            rdflib.NORMALIZE_LITERALS = normalize
    lines = graph.serialize(format="nt", encoding="utf-8")
    return canonical(by_graph(ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)))


def by_capacity(text: str) -> dict[str, list[list[str]]]:
    """Lines of the facts that are read, or the error."""
    return lines_of(
        parse_rdf(
            text, "rdfxml", base=BASE, multi="keep", allow_empty=True, annotations_of_facts="keep"
        )
    )


def lines_of(db: Database) -> dict[str, list[list[str]]]:
    """Lines of facts that are the same whatever the names of blank nodes."""
    tokens = [term_to_pyoxigraph(token) for token in db.tokens]
    triples = {ox.Triple(*(tokens[i] for i in row)) for row in db.token_triples.tolist()}  # type: ignore[arg-type]
    return canonical({"default": [triples]})
