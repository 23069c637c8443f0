"""Refuse hostile RDF/XML before a parser sees it.

expat reads the text here, which expands and fetches nothing, in time proportional to its length.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from xml.parsers import expat

import numpy as np

from capacity.database.io.rdf.guards import MAX_NAMESPACE
from capacity.errors import DatabaseFormatError

MAX_DEPTH = 1000
# of one element, and declarations in scope: the parser compares each with all others
MAX_ATTRIBUTES = 1000
MAX_NAMESPACES = 1000
# a node and a property; XML literals have elements that are no triples
ELEMENTS_A_TRIPLE = 3
TAG_BYTES = 2**16
# entities may expand to this, or to this many times the file if that is more, which is below
# expat's own limits; and so may the namespaces that the parser writes into XML literals
FREE_EXPANSION, MAX_EXPANSION = 2**22, 16
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


def refuse_hostile_xml(name: str, data: bytes, *, most: int) -> None:
    """Refuse XML that is truncated, nested too deeply, or has entities other than abbreviations.

    Flat internal entities, which OWL files use to abbreviate namespaces, pass. Declarations are
    searched for in the whole raw text, because parsers differ in which of them they read.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    data : bytes
        The document.
    most : int
        Most triples that it may have; it may have `ELEMENTS_A_TRIPLE` elements for each.

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """
    encoding = _ENCODING.match(data.lstrip())
    if encoding and encoding[1].lower() not in (b"utf-8", b"us-ascii", b"ascii"):
        raise _refused(name, f"it declares the encoding {encoding[1]!r:.60}, not UTF-8", 1)
    _refuse_expanding_entities(name, data)
    check = _Check(name, len(data), ELEMENTS_A_TRIPLE * most)
    # parse the whole document: the RDF/XML parser accepts a truncated one
    try:
        check.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _refused(name, f"broken XML ({error})", error.lineno) from None


def longest_text(data: bytes) -> int:
    """Return how long a text, or an attribute, is at least, less than `TAG_BYTES` below it.

    It is what stands from one tag to the next, without the bytes that the tag may have. The parser
    holds terms against their limit, but takes minutes for one of 60 MB.
    """
    tags = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("<"))
    return int(np.diff(tags, append=len(data)).max(initial=0)) - TAG_BYTES


class _Check:
    """The elements of a document, one after the other."""

    def __init__(self, name: str, size: int, elements: int) -> None:
        self.name, self.most = name, max(FREE_EXPANSION, MAX_EXPANSION * size)
        self.elements, self.most_elements = 0, elements
        self.open: list[_Element] = [_Element()]
        # sums over the open elements, and over all XML literals
        self.namespaces = self.length = self.base = self.written = 0
        self.parser = expat.ParserCreate()
        self.parser.ordered_attributes = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end

    def start(self, _tag: str, attributes: list[str]) -> None:
        here = _Element()
        self.elements += 1
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

    def end(self, _tag: str) -> None:
        here = self.open.pop()
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
