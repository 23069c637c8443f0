"""Formats of RDF: their names, how the beginning of a file distinguishes them, and their writer."""

from __future__ import annotations

import re

import pyoxigraph as ox

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.io.files.formats import FileHead, Format, register_format
from capacity.database.io.rdf.parsing import parse_rdf_content
from capacity.database.io.rdf.quads import SYNTAXES
from capacity.database.terms.nodes import node_of
from capacity.database.terms.term import with_stable_names
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


_XML = re.compile(r"<\?xml|<!DOCTYPE|<!--|<rdf:RDF|<[\w.-]+(:[\w.-]+)?\s+xmlns")
_DIRECTIVE = re.compile(r"@?(prefix|base|version)\b", re.IGNORECASE)
_VERSION = re.compile(r"VERSION\s*[\"'].*")
# possessive, or two repetitions of the same characters would take a line's length squared
_N_STATEMENT = re.compile(r"(<[^>]*+>|_:[^\s<]++)\s*+<[^>]*+>.*\.\s*+(#.*)?")
_GRAPH = re.compile(r"^[^#\n{]*+\{|^[ \t]*+GRAPH\b", re.MULTILINE)


def _possible_rdf(head: FileHead) -> tuple[str, ...]:
    """List the RDF formats that a file may have, the likeliest first."""
    text, first = head.text, head.first
    if _XML.match(first):
        return ("rdfxml",)
    if first.startswith("{"):
        return ("jsonld",) if re.match(r'\s*\{\s*["}]', text) else ("trig", "jsonld")
    if first.startswith("["):
        lists = re.match(r"\s*\[\s*[{\]]", text)
        turtles = ("turtle", "trig", "n3")
        return ("jsonld", *turtles) if lists else (*turtles, "jsonld")
    if version := _VERSION.match(first):
        # a directive of all these formats since RDF 1.2
        lines = (line.strip() for line in text[text.index(version[0]) :].splitlines()[1:])
        rest = next((line for line in lines if line and line[0] != "#"), "")
        if _N_STATEMENT.fullmatch(rest):
            return ("nquads", "ntriples", "trig", "turtle")
    if _DIRECTIVE.match(first):
        # TriG is Turtle with graphs
        return ("trig", "turtle", "n3") if _GRAPH.search(text) else ("turtle", "trig", "n3")
    if first.startswith(("<", "_:")):
        # N-Quads holds N-Triples, and TriG holds Turtle
        lines, others = ("nquads", "ntriples"), ("trig", "turtle", "n3")
        return (*lines, *others) if _N_STATEMENT.fullmatch(first) else (*others, *lines)
    return ()


def _register_rdf(name: str, *aliases: str) -> None:
    def likelihood(head: FileHead) -> int:
        possible = _possible_rdf(head)
        return len(possible) - possible.index(name) if name in possible else 0

    write = write_rdf if name in WRITTEN else None
    register_format(
        Format(name, (name, *aliases), None, "rdf", likelihood, write, parse_rdf_content)
    )


_register_rdf("turtle", "ttl", "text/turtle")
_register_rdf("ntriples", "nt", "n-triples", "application/n-triples")
_register_rdf("nquads", "nq", "n-quads", "application/n-quads")
_register_rdf("trig", "application/trig")
_register_rdf("n3", "text/n3")
_register_rdf("rdfxml", "rdf", "owl", "xml", "rdf/xml", "application/rdf+xml")
_register_rdf("jsonld", "json-ld", "json", "application/ld+json")
