"""Refuse hostile input before a parser sees it.

As measured on the parsers in use, a nine-level XML entity bomb aborts the process, JSON nested
6,000 deep crashes it, as do 10,000 terms of a JSON-LD context that are each defined by the next,
and an XML element with 200,000 attributes takes minutes. The checks here read the text with the
standard library alone, which expands and fetches nothing, in time proportional to its length.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

import numpy as np

from capacity.database.terms import MAX_TRIPLE_DEPTH
from capacity.errors import DatabaseFormatError

MAX_JSON_DEPTH = 128
MAX_XML_DEPTH = 1000
# of one element, and declarations in scope: the parser compares each with all others
MAX_XML_ATTRIBUTES = 1000
MAX_XML_NAMESPACES = 1000
# terms of a JSON-LD context, each defined by the next
MAX_CONTEXT_CHAIN = 128
# each context is merged with the one around it: contexts times terms of the largest
MAX_CONTEXT_MERGES = 10**8
# entities may expand to this, or to this many times the file if that is more, which is below
# expat's own limits
FREE_EXPANSION, MAX_EXPANSION = 2**22, 16
# no group inside a repetition: a string costs no memory for each of its characters
_JSON_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_TURTLE_TEXT = re.compile(
    rb'"""(?>[^"\\]+|\\.|"(?!""))*"""'
    rb"|'''(?>[^'\\]+|\\.|'(?!''))*'''"
    rb'|"(?>[^"\\\n]+|\\.)*"'
    rb"|'(?>[^'\\\n]+|\\.)*'"
    rb"|<[^<>\"\s]*>|#[^\n]*|\\.",
    re.DOTALL,
)
_ENTITY = re.compile(
    rb"<!ENTITY\s+([^\s%\"'<>&;]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>", re.IGNORECASE
)
_ENCODING = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']*)")
# each letter of the key can be written as an escape
_CONTEXT_KEY_TEXT = re.compile(
    '"' + "".join(rf"(?:{c}|\\u00(?i:{ord(c):02x}))" for c in "@context") + r'"\s*:\s*'
)
_CONTEXT_KEY = re.compile(_CONTEXT_KEY_TEXT.pattern.encode())


def refuse_hostile_xml(name: str, data: bytes) -> None:
    """Refuse XML that is truncated, nested too deeply, or has entities other than abbreviations.

    Flat internal entities, which OWL files use to abbreviate namespaces, pass. Declarations are
    searched for in the whole raw text, because parsers differ in which of them they read.

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """
    encoding = _ENCODING.match(data.lstrip())
    if encoding and encoding[1].lower() not in (b"utf-8", b"us-ascii", b"ascii"):
        raise _refused_xml(name, f"it declares the encoding {encoding[1]!r:.60}, not UTF-8", 1)
    _refuse_expanding_entities(name, data)
    depth = 0
    # namespaces that each open element declares
    declared: list[int] = []
    in_scope = 0

    def start(_tag: str, attributes: list[str]) -> None:
        nonlocal depth, in_scope
        depth += 1
        here = sum(one.startswith("xmlns") for one in attributes[::2])
        declared.append(here)
        in_scope += here
        if depth > MAX_XML_DEPTH:
            reason = f"its elements nest over {MAX_XML_DEPTH} deep"
        elif len(attributes) > 2 * MAX_XML_ATTRIBUTES:
            reason = (
                f"an element has {len(attributes) // 2:,} attributes, over {MAX_XML_ATTRIBUTES:,}"
            )
        elif in_scope > MAX_XML_NAMESPACES:
            reason = f"over {MAX_XML_NAMESPACES:,} namespaces are declared around one element"
        else:
            return
        raise _refused_xml(name, reason, parser.CurrentLineNumber)

    def end(_tag: str) -> None:
        nonlocal depth, in_scope
        depth -= 1
        in_scope -= declared.pop()

    # parse the whole document: the RDF/XML parser accepts a truncated one
    parser = expat.ParserCreate()
    parser.ordered_attributes = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _refused_xml(name, f"broken XML ({error})", error.lineno) from None


def _refused_xml(name: str, reason: str, line: int | None = None) -> DatabaseFormatError:
    return DatabaseFormatError(
        name, reason, format="rdfxml", line=line,
        advice="Mend the file, or convert it to Turtle with the program that wrote it.",
    )  # fmt: skip


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
        raise _refused_xml(name, reason, data.count(b"\n", 0, entity.start()) + 1)
    if len(re.findall(rb"<!ENTITY", data, re.IGNORECASE)) != len(sizes):
        raise _refused_xml(name, "external, parameter or broken entity: nothing is fetched")
    if not sizes:
        return
    used = Counter(found[1] for found in re.finditer(rb"&([^\s&;<#]+);", data))
    expanded = sum(sizes.get(entity, 0) * times for entity, times in used.items())
    if expanded > max(FREE_EXPANSION, MAX_EXPANSION * len(data)):
        raise _refused_xml(name, f"its entities expand to {expanded:,} bytes")


def refuse_deep_triple_terms(name: str, data: bytes) -> None:
    """Refuse triple terms (RDF 1.2) nested too deeply.

    Raises
    ------
    DatabaseFormatError
        If they nest more than `MAX_TRIPLE_DEPTH` deep.
    """
    if data.count(b"<<") <= MAX_TRIPLE_DEPTH:
        return
    outside = _TURTLE_TEXT.sub(b" ", data).replace(b">>", b"]").replace(b"<<", b"[")
    if _deepest(outside, b"[", b"]") > MAX_TRIPLE_DEPTH:
        raise DatabaseFormatError(
            name,
            f"triple terms nest over {MAX_TRIPLE_DEPTH} deep",
            advice="Name the inner facts by reifiers, << s p o ~ name >>.",
        )


def refuse_hostile_json(name: str, data: bytes) -> None:
    """Refuse JSON that is nested too deeply, and JSON-LD contexts that would crash the parser.

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """
    deepest = _deepest(_JSON_STRING.sub(b"", data), b"[{", b"]}")
    if deepest > MAX_JSON_DEPTH:
        raise DatabaseFormatError(
            name,
            f"its JSON nests {deepest} deep, over {MAX_JSON_DEPTH}",
            format="jsonld",
            advice="Flatten it, or convert it to N-Quads.",
        )
    largest = times = 0
    for context in _contexts(data):
        if any(_has_long_chain(one) for one in _objects(context)):
            raise DatabaseFormatError(
                name,
                f"over {MAX_CONTEXT_CHAIN} terms of a context are each defined by the next",
                format="jsonld",
                advice="Write the terms' whole IRIs into the context.",
            )
        times += 1
        size = sum(len(one) for one in _listed(context) if isinstance(one, dict))
        largest = max(largest, size)
    if times * largest > MAX_CONTEXT_MERGES:
        raise DatabaseFormatError(
            name,
            f"its {times:,} contexts would be merged with up to {largest:,} terms each",
            format="jsonld",
            advice="Write one context at the beginning.",
        )


def _contexts(data: bytes) -> Iterator[Any]:
    """Find the values of the key ``@context``, without parsing the data around them."""
    if not _CONTEXT_KEY.search(data):
        return
    text = data.decode("utf-8")
    read = json.JSONDecoder(object_pairs_hook=_all_values, parse_int=str).raw_decode
    end = 0
    for key in _CONTEXT_KEY_TEXT.finditer(text):
        # those within another context were found in it
        if key.start() >= end:
            try:
                context, end = read(text, key.end())
            except json.JSONDecodeError:
                # the parser will say what is wrong
                return
            yield context


def _all_values(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of pairs; parsers differ in which of two equal keys counts, so keep both."""
    made = dict(pairs)
    if len(made) < len(pairs):
        return {key: [value for other, value in pairs if other == key] for key in made}
    return made


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """List the objects in a context: itself, and the definitions and contexts of its terms."""
    for one in _listed(value):
        if isinstance(one, dict):
            yield one
            for inner in one.values():
                yield from _objects(inner)


def parse_json(name: str, data: bytes, **options: Any) -> Any:
    """Parse JSON that isn't nested deeply; options are those of `json.loads`.

    Raises
    ------
    DatabaseFormatError
        If it is broken, with the line.
    """
    try:
        # Python limits the length of an integer
        return json.loads(data.decode("utf-8"), **{"parse_int": str, **options})
    except json.JSONDecodeError as error:
        raise DatabaseFormatError(
            name,
            f"broken JSON ({error.msg})",
            format="jsonld",
            line=error.lineno,
            advice="Mend the file.",
        ) from None


def _deepest(data: bytes, opening: bytes, closing: bytes) -> int:
    """Count the brackets that are open at once, at most."""
    step = np.zeros(256, dtype=np.int8)
    step[list(opening)], step[list(closing)] = 1, -1
    depth = deepest = 0
    # by pieces, for the sums take eight bytes a character
    for start in range(0, len(data), 2**20):
        sums = np.cumsum(
            step[np.frombuffer(data[start : start + 2**20], dtype=np.uint8)], dtype=np.int64
        )
        deepest = max(deepest, depth + int(sums.max()))
        depth += int(sums[-1])
    return deepest


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _words(value: Any) -> Iterator[str]:
    """List the strings of a term's definition that may name other terms."""
    for one in _listed(value):
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from _words([one[key] for key in ("@id", "@type", "@reverse") if key in one])


def _has_long_chain(context: dict[str, Any]) -> bool:
    """Return True if over `MAX_CONTEXT_CHAIN` terms are each defined by the next."""
    if len(context) <= MAX_CONTEXT_CHAIN:
        return False
    # terms that a term needs, itself not
    needs = {
        term: {
            found
            for word in (*_words(value), term)
            for found in (word, word.partition(":")[0])
            if found in context and found != term
        }
        for term, value in context.items()
    }
    heights: dict[str, int] = {}
    for first in needs:
        # without recursion; a term is left when all that it needs has its height
        path = [first]
        while path:
            term = path[-1]
            lacking = None
            if term not in heights:
                heights[term] = 0
                lacking = [one for one in needs[term] if one not in heights]
            if lacking:
                path += lacking
                continue
            path.pop()
            heights[term] = 1 + max((heights[one] for one in needs[term]), default=0)
            if heights[term] > MAX_CONTEXT_CHAIN:
                return True
    return False
