"""Formats of RDF: their names, and how the beginning of a file distinguishes them."""

from __future__ import annotations

import re
from functools import partial

import pyoxigraph as ox

from capacity.database.io.formats import FileHead, Format, register_format
from capacity.database.io.rdf import parse_rdf_content

_XML = re.compile(r"<\?xml|<!DOCTYPE|<!--|<rdf:RDF|<[\w.-]+(:[\w.-]+)?\s+xmlns")
_DIRECTIVE = re.compile(r"@?(prefix|base|version)\b", re.IGNORECASE)
_N_STATEMENT = re.compile(r"(<[^>]*>|_:\S+)\s*<[^>]*>\s*.*\.\s*(#.*)?")


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
    if _DIRECTIVE.match(first):
        # TriG is Turtle with graphs
        graphs = re.search(r"^[ \t]*(GRAPH\b|[^#\n]*\{)", text, re.M)
        return ("trig", "turtle", "n3") if graphs else ("turtle", "trig", "n3")
    if first.startswith(("<", "_:")):
        # N-Quads holds N-Triples, and TriG holds Turtle
        lines, others = ("nquads", "ntriples"), ("trig", "turtle", "n3")
        return (*lines, *others) if _N_STATEMENT.fullmatch(first) else (*others, *lines)
    return ()


def _register_rdf(name: str, syntax: ox.RdfFormat, *aliases: str) -> None:
    def likelihood(head: FileHead) -> int:
        possible = _possible_rdf(head)
        return len(possible) - possible.index(name) if name in possible else 0

    parse = partial(parse_rdf_content, syntax=syntax)
    register_format(Format(name, (name, *aliases), "rdf", parse, likelihood))


_register_rdf("turtle", ox.RdfFormat.TURTLE, "ttl", "text/turtle")
_register_rdf("ntriples", ox.RdfFormat.N_TRIPLES, "nt", "n-triples", "application/n-triples")
_register_rdf("nquads", ox.RdfFormat.N_QUADS, "nq", "n-quads", "application/n-quads")
_register_rdf("trig", ox.RdfFormat.TRIG, "application/trig")
_register_rdf("n3", ox.RdfFormat.N3, "text/n3")
_register_rdf("rdfxml", ox.RdfFormat.RDF_XML, "rdf", "owl", "xml", "rdf/xml", "application/rdf+xml")
_register_rdf("jsonld", ox.RdfFormat.JSON_LD, "json-ld", "json", "application/ld+json")
