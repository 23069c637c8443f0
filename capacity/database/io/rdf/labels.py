"""Blank nodes of JSON-LD by names that are no labels of Turtle, which pyoxigraph omits in silence.

In JSON-LD whatever follows ``_:`` names a blank node, and a processor replaces all of these names.
pyoxigraph takes those that are labels of Turtle, or have colons, and drops the facts of others. So
the others are written in hexadecimal digits after a colon, which `with_stable_names` renames. A
literal that begins as such a name does is no blank node, and is read back.

References
----------
JSON-LD 1.1, W3C 2020, section 4.5.1 "Identifying Blank Nodes"; JSON-LD 1.1 Processing Algorithms
and API, W3C 2020, section 7.4 "Generate Blank Node Identifier".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import pyoxigraph as ox

# a name that may be none of the parser's: neither ASCII, nor by escapes, needs a closer look
_ODD = re.compile(rb'"(?:_|\\u005[fF])(?::|\\u003[aA])(?!(?:[A-Za-z0-9_:](?:[\w:.-]*[\w:-])?)")')
_STRING = re.compile(rb'"(?:_|\\u005[fF])(?::|\\u003[aA])[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_JSON = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON")


def mark_for(data: bytes) -> bytes:
    """Return what names in digits begin with, which no name of a document does.

    Parameters
    ----------
    data : bytes
        The document as it is in its file.

    Examples
    --------
    >>> mark_for(b"{}"), mark_for(b'{"@id": "_:x:a"}')
    (b'x:', b'xx:')
    """
    mark = b"x:"
    while b"_:" + mark in data:
        mark = b"x" + mark
    return mark


def with_labels(data: bytes, mark: bytes) -> bytes:
    """Write the names of blank nodes so that the parser keeps them; the same bytes if it does so.

    Parameters
    ----------
    data : bytes
        A document of JSON-LD.
    mark : bytes
        What names in digits begin with.

    Examples
    --------
    >>> with_labels(b'{"@id": "_:a b", "http://x/p": "_:c"}', b"x:")
    b'{"@id": "_:x:612062", "http://x/p": "_:c"}'
    """
    if not _ODD.search(data):
        return data
    return _STRING.sub(lambda found: _written(found[0], mark), data)


def has_digits(original: bytes, data: bytes) -> bool:
    """Return whether names of a document are written in digits.

    Parameters
    ----------
    original : bytes
        The document as it is in its file.
    data : bytes
        What the parser is given.

    Examples
    --------
    >>> has_digits(b'{"@id": "_:a b"}', b'{"@id": "_:x:612062"}')
    True
    """
    return data is not original and b"_:" + mark_for(original) in data


def _written(text: bytes, mark: bytes) -> bytes:
    try:
        name = json.loads(text, strict=False)[2:]
        digits = name.encode().hex().encode()
    except (UnicodeEncodeError, json.JSONDecodeError):
        # the parser reports what is wrong
        return text
    try:
        ox.BlankNode(name)
    except ValueError:
        return b'"_:%s%s"' % (mark, digits)
    return text


class QuadsOfJson(Iterator[ox.Quad]):
    """Quads of a document that `with_labels` has written, with its literals as they were.

    Parameters
    ----------
    quads : pyoxigraph parser
        What reads the document.
    mark : bytes
        What names in digits begin with.
    """

    def __init__(self, quads: ox.QuadParser, mark: bytes) -> None:
        self._quads = quads
        self._name = re.compile(rf"_:{mark.decode()}((?:[0-9a-f]{{2}})*)")

    @property
    def prefixes(self) -> Mapping[str, str]:
        """Namespaces by prefix."""
        return self._quads.prefixes

    def __next__(self) -> ox.Quad:
        quad = next(self._quads)
        literal = quad.object
        if not isinstance(literal, ox.Literal) or not self._name.search(literal.value):
            return quad
        is_json = literal.datatype == _JSON
        text = self._name.sub(lambda one: _read(one[1], is_json), literal.value)
        kept = (
            ox.Literal(text, language=literal.language, direction=literal.direction)
            if literal.language
            else ox.Literal(text, datatype=literal.datatype)
        )
        return ox.Quad(quad.subject, quad.predicate, kept, quad.graph_name)


def _read(digits: str, is_json: bool) -> str:
    name = bytes.fromhex(digits).decode()
    return "_:" + (json.dumps(name, ensure_ascii=False)[1:-1] if is_json else name)
