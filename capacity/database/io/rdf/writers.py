"""Facts as RDF text: N-Triples, N-Quads, Turtle and TriG, by pyoxigraph."""

from __future__ import annotations

import pyoxigraph as ox

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike
from capacity.database.io.files.formats import Format
from capacity.database.io.rdf.quads import SYNTAXES
from capacity.database.required import require_triples
from capacity.database.terms.blank_nodes import with_stable_names
from capacity.database.terms.n3 import node_of
from capacity.errors import InvalidArgumentError

# formats that hold any triples and are read as written; RDF/XML has no form for some predicates
WRITTEN = ("ntriples", "nquads", "turtle", "trig")


def write_rdf(db: DatabaseLike, format: Format) -> bytes:
    """Write triples of RDF terms as text; errors are those of `write`."""
    db = require_triples(db, f"Writing {format.name}")
    nodes = [node_of(token) for token in db.tokens]
    if with_stable_names(db.tokens) is not db.tokens:
        raise InvalidArgumentError(
            "Blank nodes whose names are those of anonymous ones, 16 to 32 hexadecimal digits, "
            "would get other names in RDF. Write a table, .tsv, .csv or .parquet, or rename them."
        )
    triples: list[ox.Triple] = []
    for k, q, v in db.token_triples.tolist():
        try:
            triples.append(ox.Triple(nodes[k], nodes[q], nodes[v]))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise InvalidArgumentError(
                "The subject of a triple of RDF must be an IRI or a blank node, and its predicate "
                f"an IRI; got ({db.tokens[k]!s:.60}, {db.tokens[q]!s:.60}, ...). A table, .tsv, "
                ".csv or .parquet, holds any terms."
            ) from None
    prefixes = _usable(db) if format.name in ("turtle", "trig") else None
    text = ox.serialize(triples, format=SYNTAXES[format.name], prefixes=prefixes)
    return text or b""


def _usable(db: Database) -> dict[str, str]:
    """Keep the prefixes that Turtle can write and that abbreviate an IRI."""
    iris = [token.text for token in db.tokens if token.kind == "iri"]
    kept: dict[str, str] = {}
    for prefix, namespace in db.prefixes.items():
        try:
            ox.serialize([], format=ox.RdfFormat.TURTLE, prefixes={prefix: namespace})
        except ValueError:
            continue
        if any(iri.startswith(namespace) for iri in iris):
            kept[prefix] = namespace
    return kept
