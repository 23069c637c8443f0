"""The registered formats, for what holds of each; what a format can is asked of its own record.

A name of a format ends the names of its files, beside shorter ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

from capacity.database import Database, Format, Term
from capacity.database.io.files.formats import FORMATS


def written(*kinds: str) -> list[str]:
    """Names of the formats that `write` knows, of some kinds or of all."""
    return [
        name
        for name, format in FORMATS.items()
        if format.write is not None and (not kinds or format.kind in kinds)
    ]


@dataclass(frozen=True)
class Text:
    """A format of text: a row with a term in it, and what stands around all rows."""

    row: str
    head: str = ""
    tail: str = ""

    def rows(self, n: int, term: str = "1") -> Iterator[bytes]:
        """The text of n equal rows, in pieces."""
        row, at_once = (self.row % term).encode(), max(1, 2**20 // len(term))
        yield self.head.encode()
        yield from repeat(row * at_once, n // at_once)
        yield row * (n % at_once) + self.tail.encode()


_XML = '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:"><r:Description>'
# by hand where a format isn't written, or where shorter rows are read than are written
_BY_HAND = {
    "turtle": Text('<x:a><x:b>"%s".\n'),
    "ntriples": Text('<x:a> <x:b> "%s" .\n'),
    "nquads": Text('<x:a> <x:b> "%s" <x:g> .\n'),
    "trig": Text('<x:g>{<x:a><x:b>"%s"}\n'),
    "n3": Text('<x:a><x:b>"%s".\n'),
    "rdfxml": Text("<x:p>%s</x:p>\n", _XML, "</r:Description></r:RDF>"),
    "jsonld": Text('{"@id":"x:a","x:p":"%s"},\n', "[", "{}]"),
    "tsv": Text("a\tb\t%s\n"),
    "csv": Text("a,b,%s\n"),
    "records": Text('{"s":"a","p":"b","o":"%s"}\n'),
}


def as_written(format: Format) -> Text | None:
    """The text of a format that writes text, a fact a line; None of another format."""
    if format.write is None:
        return None
    of_rdf = (Term("iri", "x:a"), Term("iri", "x:b"), Term("literal", "%s"))
    fact = of_rdf if format.kind == "rdf" else ("a", "b", "%s")
    try:
        text = format.write(Database.from_triples([fact]), format).decode()
    except UnicodeDecodeError:
        return None
    before, _, after = text.partition("%s")
    start, end = before.rfind("\n") + 1, after.find("\n") + 1
    return Text(f"{before[start:]}%s{after[:end]}", before[:start], after[end:])


def texts() -> dict[str, Text]:
    """The text of each registered format that has one."""
    known = {name: _BY_HAND.get(name) or as_written(format) for name, format in FORMATS.items()}
    return {name: text for name, text in known.items() if text is not None}
