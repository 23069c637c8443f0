"""Refuse hostile input before a parser sees it.

As measured on the parsers in use, a nine-level XML entity bomb aborts the process, JSON nested
6,000 deep crashes it, and a remote JSON-LD context makes a parser fetch a page. The checks here
read the text with the standard library alone, which expands and fetches nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.parsers import expat

from capacity.errors import DatabaseFormatError

MAX_JSON_DEPTH = 128
MAX_ENTITY_BYTES = 2**26
MAX_XML_DEPTH = 1000
MAX_TRIPLE_DEPTH = 1000
# no group inside a repetition: a string costs no memory for each of its characters
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


_ENTITY = re.compile(
    rb"<!ENTITY\s+([^\s%\"'<>&;]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>", re.IGNORECASE
)
_ENCODING = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']*)")


def refuse_hostile_xml(name: str, data: bytes) -> None:
    """Refuse XML that is truncated, nested too deeply, or has entities other than abbreviations.

    Flat internal entities, which OWL files use to abbreviate namespaces, pass. Declarations are
    searched for in the whole raw text, because parsers differ in which of them they read.

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """

    def refuse(reason: str, line: int | None = None) -> DatabaseFormatError:
        return DatabaseFormatError(
            name, reason, format="rdfxml", line=line,
            advice="Mend the file, or convert it to Turtle.",
        )  # fmt: skip

    encoding = _ENCODING.match(data.lstrip())
    if encoding and encoding[1].lower() not in (b"utf-8", b"us-ascii", b"ascii"):
        raise refuse(f"it declares the encoding {encoding[1]!r:.60}; it must be UTF-8", 1)
    sizes: dict[bytes, int] = {}
    for entity in _ENTITY.finditer(data):
        value = entity[2] if entity[2] is not None else entity[3]
        line = data.count(b"\n", 0, entity.start()) + 1
        # numeric references and the five of XML itself are plain characters
        if re.search(rb"&(?!#|(?:lt|gt|amp|apos|quot);)", value):
            raise refuse(f"entity {entity[1].decode()!r:.60} refers to another entity", line)
        if entity[1] in sizes:
            raise refuse(f"entity {entity[1].decode()!r:.60} is declared twice", line)
        sizes[entity[1]] = len(value)
    if len(re.findall(rb"<!ENTITY", data, re.IGNORECASE)) != len(sizes):
        raise refuse("external, parameter or broken entity: nothing is fetched")
    expanded = sum(size * data.count(b"&" + entity + b";") for entity, size in sizes.items())
    if expanded > MAX_ENTITY_BYTES:
        raise refuse(f"its entities expand to {expanded:,} bytes, over {MAX_ENTITY_BYTES:,}")
    depth = 0

    def start(_tag: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_XML_DEPTH:
            raise refuse(f"its elements nest over {MAX_XML_DEPTH} deep", parser.CurrentLineNumber)

    def end(_tag: str) -> None:
        nonlocal depth
        depth -= 1

    # parse the whole document: the RDF/XML parser accepts a truncated one
    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise refuse(f"broken XML ({error})", error.lineno) from None


def refuse_deep_triple_terms(name: str, data: bytes) -> None:
    """Refuse triple terms (RDF 1.2) nested too deeply.

    Raises
    ------
    DatabaseFormatError
        If they nest more than `MAX_TRIPLE_DEPTH` deep.
    """
    if data.count(b"<<") <= MAX_TRIPLE_DEPTH:
        return
    depth = 0
    for bracket in re.findall(rb"<<|>>", _STRING.sub(b"", data)):
        depth += 1 if bracket == b"<<" else -1
        if depth > MAX_TRIPLE_DEPTH:
            raise DatabaseFormatError(name, f"triple terms nest over {MAX_TRIPLE_DEPTH} deep")


def refuse_hostile_json(name: str, data: bytes) -> None:
    """Refuse JSON that is broken or nested too deeply, and remote JSON-LD contexts.

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """
    text = data.decode("utf-8")
    depth = deepest = 0
    # brackets outside strings
    for bracket in re.findall(rb"[\[\]{}]", _STRING.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_JSON_DEPTH:
        raise DatabaseFormatError(
            name,
            f"its JSON nests {deepest} deep, over {MAX_JSON_DEPTH}",
            format="jsonld",
            advice="Flatten it, or convert it to N-Quads.",
        )

    def refuse_remote(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # pairs, not the dict, so that a repeated key can't hide the first one
        for key, value in pairs:
            inner = value if isinstance(value, list) else [value]
            if key == "@import" or (key == "@context" and any(isinstance(c, str) for c in inner)):
                raise DatabaseFormatError(
                    name,
                    f"{key} is remote ({value!r:.60}): nothing is fetched",
                    format="jsonld",
                    advice="Write the context into the file.",
                )
        return dict(pairs)

    # a key can hide behind an escape, but not otherwise
    if not any(sign in text for sign in ("@context", "@import", "\\u")):
        return
    try:
        json.loads(text, object_pairs_hook=refuse_remote, parse_int=str)
    except json.JSONDecodeError as error:
        raise DatabaseFormatError(
            name, f"broken JSON ({error.msg})", format="jsonld", line=error.lineno
        ) from None
