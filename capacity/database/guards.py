"""Refuse hostile input before a parser sees it.

Measured on the parsers of the day: a nine-level XML entity bomb aborts the process, JSON nested
6,000 deep crashes it, and a remote JSON-LD context is an order to fetch a page. The checks here
read the text with the standard library only, which expands and fetches nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.parsers import expat

from capacity.errors import DatabaseFormatError

MAX_JSON_DEPTH = 128
MAX_ENTITY_BYTES = 2**26


class _BodyReached(Exception):  # noqa: N818 - a stop, no error
    """The document's first element: its prolog is over."""


def refuse_hostile_xml(name: str, data: bytes) -> None:
    """Refuse entities that nest, that point outside, or that blow the document up.

    Flat internal entities, common in OWL files as abbreviations of namespaces, pass.

    Raises
    ------
    DatabaseFormatError
    """
    if b"<!DOCTYPE" not in data:
        return
    sizes: dict[str, int] = {}

    def refuse(reason: str) -> DatabaseFormatError:
        return DatabaseFormatError(
            name,
            reason,
            format="rdfxml",
            line=parser.CurrentLineNumber,
            advice="Take the declaration out of the DOCTYPE, or convert the file to Turtle.",
        )

    def entity(
        entity_name: str, is_parameter: bool, value: str | None, *_external: str | None
    ) -> None:
        if is_parameter or value is None:
            raise refuse(f"external or parameter entity {entity_name!r}: nothing is fetched")
        # numeric references and the five of XML itself are plain characters
        if re.search(r"&(?!#|(?:lt|gt|amp|apos|quot);)", value):
            raise refuse(f"entity {entity_name!r} refers to another entity")
        sizes[entity_name] = len(value.encode())

    def body(_tag: str, _attributes: dict[str, str]) -> None:
        raise _BodyReached

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = entity
    parser.StartElementHandler = body
    try:
        parser.Parse(data, True)
    except _BodyReached:
        pass
    except expat.ExpatError as error:
        raise DatabaseFormatError(
            name, f"broken XML ({error})", format="rdfxml", line=error.lineno
        ) from None
    expanded = sum(size * data.count(f"&{entity};".encode()) for entity, size in sizes.items())
    if expanded > MAX_ENTITY_BYTES:
        raise refuse(f"its entities expand to {expanded:,} bytes, over {MAX_ENTITY_BYTES:,}")


def refuse_hostile_json(name: str, data: bytes) -> None:
    """Refuse JSON that nests too deep, and JSON-LD contexts that live elsewhere.

    Raises
    ------
    DatabaseFormatError
    """
    text = data.decode("utf-8")
    depth = deepest = 0
    # brackets outside strings
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'(?s)"(?:[^"\\]|\\.)*"?', "", text)):
        depth += 1 if bracket in "[{" else -1
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
                    f"{key} is remote ({value!r}): nothing is fetched",
                    format="jsonld",
                    advice="Write the context into the file.",
                )
        return dict(pairs)

    # a key can hide behind an escape, but not otherwise
    if not any(sign in text for sign in ("@context", "@import", "\\u")):
        return
    try:
        json.loads(text, object_pairs_hook=refuse_remote)
    except json.JSONDecodeError as error:
        raise DatabaseFormatError(
            name, f"broken JSON ({error.msg})", format="jsonld", line=error.lineno
        ) from None
