"""Formats of RDF: their names, and how the beginning of a file distinguishes them."""

from __future__ import annotations

import re

from capacity.database.io.files.formats import FileHead, Format, register_format
from capacity.database.io.rdf.parsing import parse_rdf_content
from capacity.database.io.rdf.writers import WRITTEN, write_rdf

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
