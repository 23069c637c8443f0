"""Refuse hostile RDF/XML before a parser sees it.

expat reads the text here, which expands and fetches nothing, in time proportional to its length.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from xml.parsers import expat

from capacity.database.io.files.content import refuse_excess
from capacity.database.io.rdf.guards.texts import MAX_NAMESPACE
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import MAX_TERM_BYTES, Limits

MAX_DEPTH = 1000
# of one element, and declarations in scope: the parser compares each with all others
MAX_ATTRIBUTES = 1000
MAX_NAMESPACES = 1000
# a node and a property; XML literals have elements that are no triples
ELEMENTS_A_TRIPLE = 3
# entities may expand to this, or to this many times the file if that is more, which is below
# expat's own limits; and so may the namespaces that the parser writes into XML literals
FREE_EXPANSION, MAX_EXPANSION = 2**22, 16
# expat before 2.6 begins a comment, an instruction or a tag anew with each megabyte of it
_BEGUN_ANEW = ((b"<", b"<"), (b"<!--", b"-->"), (b"<?", b"?>"))
_ENTITY = re.compile(
    rb"<!ENTITY\s+([^\s%\"'<>&;]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>", re.IGNORECASE
)
_ENCODING = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']*)")


@dataclass
class _Element:
    """An open element: what it adds to those around it.

    Attributes
    ----------
    namespaces, length : int
        Namespaces that it declares, and their bytes.
    base : int
        Bytes of its base, against which those within are resolved.
    literal : bool
        True if its content is an XML literal.
    """

    namespaces: int = 0
    length: int = 0
    base: int = 0
    literal: bool = False


def refuse_hostile_xml(name: str, data: bytes, limits: Limits) -> None:
    """Refuse XML that is truncated, nested too deeply, or has entities other than abbreviations.

    Flat internal entities, which OWL files use to abbreviate namespaces, pass. Declarations are
    searched for in the whole raw text, because parsers differ in which of them they read.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    data : bytes
        The document.
    limits : Limits
        Its limits of triples, for each of which it may have `ELEMENTS_A_TRIPLE` elements, and of
        terms.

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """
    encoding = _ENCODING.match(data.lstrip())
    if encoding and encoding[1].lower() not in (b"utf-8", b"us-ascii", b"ascii"):
        raise _refused(name, f"it declares the encoding {encoding[1]!r:.60}, not UTF-8", 1)
    _refuse_expanding_entities(name, data)
    _refuse_endless(name, data, limits)
    check = _Check(name, len(data), limits)
    # parse the whole document: the RDF/XML parser accepts a truncated one
    try:
        check.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _refused(name, f"broken XML ({error})", error.lineno) from None


class _Check:
    """The elements of a document, one after the other."""

    def __init__(self, name: str, size: int, limits: Limits) -> None:
        self.name, self.most = name, max(FREE_EXPANSION, MAX_EXPANSION * size)
        self.elements, self.most_elements = 0, ELEMENTS_A_TRIPLE * limits.rows
        self.limits, self.text = limits, 0
        self.open: list[_Element] = [_Element()]
        # sums over the open elements, and over all XML literals
        self.namespaces = self.length = self.base = self.written = 0
        self.parser = expat.ParserCreate()
        self.parser.ordered_attributes = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        # a handler of text takes time, and a term of a shorter file is short without it
        if size > limits.max_term_bytes:
            # expat has a piece for each line, and even for each bracket of a section of CDATA
            self.parser.buffer_text, self.parser.buffer_size = True, 2**16
            self.parser.CharacterDataHandler = self.add_text

    def start(self, _tag: str, attributes: list[str]) -> None:
        here = _Element()
        self.elements, self.text = self.elements + 1, 0
        if self.elements > self.most_elements:
            raise _refused(
                self.name,
                f"it has more than {self.most_elements:,} elements, for which its triples would be "
                "too many",
                advice="Use a part of it, or raise `max_rows`.",
            )
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            if key.startswith("xmlns"):
                here.namespaces += 1
                here.length += len(key) + len(value)
                if len(value) > MAX_NAMESPACE:
                    raise self.refused(f"a namespace is longer than {MAX_NAMESPACE:,} characters")
            elif key == "xml:base":
                here.base = len(value)
            elif key.endswith("parseType"):
                here.literal = value not in ("Resource", "Collection")
            if len(value) > self.limits.max_term_bytes:
                self.refuse_term(len(value))
        self.namespaces += here.namespaces
        self.length += here.length
        self.base += here.base
        # each child of an XML literal is written with all namespaces
        self.written += self.length * self.open[-1].literal
        self.open.append(here)
        if len(self.open) > MAX_DEPTH + 1:
            raise self.refused(f"its elements nest over {MAX_DEPTH} deep")
        if len(attributes) > 2 * MAX_ATTRIBUTES:
            raise self.refused(
                f"an element has {len(attributes) // 2:,} attributes, over {MAX_ATTRIBUTES:,}"
            )
        if self.namespaces > MAX_NAMESPACES:
            raise self.refused(
                f"over {MAX_NAMESPACES:,} namespaces are declared around one element"
            )
        if self.base > MAX_NAMESPACE:
            raise self.refused(f"its base is longer than {MAX_NAMESPACE:,} characters")
        if self.written > self.most:
            raise self.refused(f"namespaces in XML literals expand to over {self.most:,} bytes")

    def add_text(self, piece: str) -> None:
        """Add a piece of the text between two tags, which may have sections of CDATA."""
        self.text += len(piece)
        if self.text > self.limits.max_term_bytes:
            self.refuse_term(self.text)

    def refuse_term(self, length: int) -> None:
        refuse_excess(self.name, "rdfxml", self.limits.excess(term=length))

    def end(self, _tag: str) -> None:
        here, self.text = self.open.pop(), 0
        self.namespaces -= here.namespaces
        self.length -= here.length
        self.base -= here.base

    def refused(self, reason: str) -> DatabaseFormatError:
        return _refused(self.name, reason, self.parser.CurrentLineNumber)


def _refused(
    name: str,
    reason: str,
    line: int | None = None,
    advice: str = "Mend the file, or convert it to Turtle with the program that wrote it.",
) -> DatabaseFormatError:
    return DatabaseFormatError(name, reason, format="rdfxml", line=line, advice=advice)


def _refuse_endless(name: str, data: bytes, limits: Limits) -> None:
    """Refuse a text, a tag, a comment or an instruction of more than two steps.

    It covers one of them from end to end. What only looks like the beginning of a comment, in a
    section of CDATA, is refused if none ends for as long.
    """
    step = max(limits.max_term_bytes, MAX_TERM_BYTES)
    for at in range(step, len(data) - step, step):
        for begin, end in _BEGUN_ANEW:
            last = max(data.rfind(end, at - step, at), at - step)
            if data.find(end, at, at + step) < 0 <= data.find(begin, last, at):
                refuse_excess(name, "rdfxml", limits.excess(term=step + 1))


def _refuse_expanding_entities(name: str, data: bytes) -> None:
    sizes: dict[bytes, int] = {}
    for entity in _ENTITY.finditer(data):
        value = entity[2] if entity[2] is not None else entity[3]
        # numeric references and the five of XML itself are plain characters
        if re.search(rb"&(?!#|(?:lt|gt|amp|apos|quot);)", value):
            reason = f"entity {entity[1].decode()!r:.60} refers to another entity"
        elif entity[1] in sizes:
            reason = f"entity {entity[1].decode()!r:.60} is declared twice"
        else:
            sizes[entity[1]] = len(value)
            continue
        raise _refused(name, reason, data.count(b"\n", 0, entity.start()) + 1)
    if len(re.findall(rb"<!ENTITY", data, re.IGNORECASE)) != len(sizes):
        raise _refused(name, "external, parameter or broken entity: nothing is fetched")
    if not sizes:
        return
    used = Counter(found[1] for found in re.finditer(rb"&([^\s&;<#]+);", data))
    expanded = sum(sizes.get(entity, 0) * times for entity, times in used.items())
    if expanded > max(FREE_EXPANSION, MAX_EXPANSION * len(data)):
        raise _refused(name, f"its entities expand to {expanded:,} bytes")
