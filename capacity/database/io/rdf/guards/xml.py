"""Refuse hostile RDF/XML before a parser sees it.

What is looked at here is the beginning of a document, up to its first element, and how long its
tags and texts may be, in time proportional to its length. `rdfxml.reading` has the limits of what
follows.

References
----------
XML 1.0, sections 2.8 (prolog), 4.1 to 4.5 (entities) and 4.3.3 (encodings).
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from capacity.database.io.files.content import refuse_excess
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import MAX_TERM_BYTES, Limits

MAX_DEPTH = 1000
# of one element
MAX_ATTRIBUTES = 1000
# a node and a property; XML literals have elements that are no triples
ELEMENTS_A_TRIPLE = 3
# entities may expand to this, or to this many times the file if that is more, which is below
# expat's own limits; and so may namespaces in XML literals, and attributes that have defaults
FREE_EXPANSION, MAX_EXPANSION = 2**22, 16
# entities within entities: expat recurs into them
MAX_ENTITY_DEPTH = 100
# expat before 2.6 begins a comment, an instruction or a tag anew with each megabyte of it
_BEGUN_ANEW = ((b"<", b"<"), (b"<!--", b"-->"), (b"<?", b"?>"))
_MARK = b"\xef\xbb\xbf"
_ENCODING = re.compile(rb"<\?xml\s[^>]*?encoding\s*=\s*[\"']([^\"']*)")
_MISCELLANY = re.compile(rb"[ \t\r\n]++|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_QUOTED = rb"(?:\"[^\"]*+\"|'[^']*+')"
_DOCTYPE = re.compile(
    rb"<!DOCTYPE\s+[^\s\[>\"']++\s*"
    rb"(?P<elsewhere>(?:SYSTEM\s+%b|PUBLIC\s+%b\s+%b)\s*)?(?P<open>\[)?" % ((_QUOTED,) * 3)
)
_DECLARATION = re.compile(
    rb"<!(?P<kind>ENTITY|ATTLIST|ELEMENT|NOTATION)(?P<body>(?:[^\"'<>]++|%b)*+)>" % _QUOTED
)
_ENTITY = re.compile(rb"\s+([^\s%\"'<>&;]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*")
_NUMBER = re.compile(rb"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_REFERENCE = re.compile(rb"&([^\s&;<#]+);")
# an entity's value, and where it is declared
_Declared: TypeAlias = "tuple[bytes, int]"
_KNOWN = (b"lt", b"gt", b"amp", b"apos", b"quot")


@dataclass(frozen=True)
class Prolog:
    """The beginning of a document, as expat may be given it.

    Attributes
    ----------
    text : bytes
        The beginning, without what, by the declaration of its type, is elsewhere.
    end : int
        Where it has ended in the document.
    has_defaults : bool
        True if it may declare defaults of attributes.
    """

    text: bytes
    end: int
    has_defaults: bool


def before_expat(name: str, data: bytes, limits: Limits) -> Prolog:
    """Refuse XML of another encoding, whose entities expand too much, or with too long tags.

    Internal entities, which OWL files use to abbreviate namespaces, pass. A type that is declared
    elsewhere is omitted, for nothing is fetched; so expat refuses entities that are declared there.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    data : bytes
        The document, in UTF-8.
    limits : Limits
        Its limits of terms.

    Returns
    -------
    Prolog

    Raises
    ------
    DatabaseFormatError
        With the line, if it is known.
    """
    start = len(_MARK) * data.startswith(_MARK)
    declared = _ENCODING.match(data, start)
    if declared:
        _refuse_encoding(name, data, declared[1].decode("utf-8", "replace"))
    _refuse_endless(name, data, limits)
    at = _past_miscellany(data, start)
    doctype = _DOCTYPE.match(data, at)
    if doctype is None:
        return Prolog(b"", start, False)
    begin, at = doctype.span("elsewhere") if doctype["elsewhere"] else (at, at)
    # the same lines without it
    blank = re.sub(rb"[^\r\n]", b" ", data[begin:at])
    kept = data[start:begin] + blank
    if not doctype["open"]:
        return Prolog(kept, at, False)
    entities, has_defaults = _declared(name, data, doctype.end())
    _refuse_expanding(name, data, entities)
    return Prolog(kept, at, has_defaults)


def refused(
    name: str,
    reason: str,
    line: int | None = None,
    advice: str = "Fix the file, or convert it to Turtle with the program that wrote it.",
) -> DatabaseFormatError:
    """Make the error for RDF/XML that isn't read."""
    return DatabaseFormatError(name, reason, format="rdfxml", line=line, advice=advice)


def _refuse_encoding(name: str, data: bytes, encoding: str) -> None:
    """Refuse a document that isn't the same text in UTF-8."""
    known = bytes(range(128))
    try:
        codec = codecs.lookup(encoding).name
        if codec == "utf-8" or (data.isascii() and known.decode(codec) == known.decode()):
            return
    except (LookupError, ValueError):
        pass
    raise refused(name, f"it declares the encoding {encoding:.60}, and not UTF-8", 1)


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


def _past_miscellany(data: bytes, at: int) -> int:
    """Return where blanks, comments and instructions have ended."""
    while found := _MISCELLANY.match(data, at):
        at = found.end()
    return at


def _declared(name: str, data: bytes, at: int) -> tuple[dict[bytes, _Declared], bool]:
    """Read the entities of a declaration of a document's type, and whether there are defaults."""
    entities: dict[bytes, _Declared] = {}
    has_defaults = False
    while (at := _past_miscellany(data, at)) < len(data) and data[at] != ord("]"):
        found = _DECLARATION.match(data, at)
        if found is None:
            reason = "a broken declaration or a parameter entity: none is read"
            raise refused(name, reason, _line(data, at))
        if found["kind"] == b"ATTLIST":
            has_defaults = True
        elif found["kind"] == b"ENTITY":
            entity = _ENTITY.fullmatch(found["body"])
            if entity is None:
                reason = "external, parameter or broken entity: nothing is fetched"
                raise refused(name, reason, _line(data, at))
            # the first declaration of a name counts
            value = entity[2] if entity[2] is not None else entity[3]
            entities.setdefault(entity[1], (value, at))
        at = found.end()
    return entities, has_defaults


def _refuse_expanding(name: str, data: bytes, entities: dict[bytes, _Declared]) -> None:
    """Refuse entities that expand too much, or are nested too deeply.

    The size of an entity is that of its value and of all that this refers to, as expat counts.
    """
    values = {
        entity: _NUMBER.sub(_character, value)
        for entity, (value, _) in entities.items()
        if entity not in _KNOWN
    }
    sizes: dict[bytes, tuple[int, int]] = {}

    def size_of(entity: bytes, above: int) -> tuple[int, int]:
        if entity in sizes:
            return sizes[entity]
        if entity not in values:
            return 0, 0
        size, depth = len(values[entity]), 0
        for within in _REFERENCE.findall(values[entity]):
            if above < MAX_ENTITY_DEPTH:
                its_size, its_depth = size_of(within, above + 1)
                size, depth = size + its_size, max(depth, its_depth)
            if above + depth >= MAX_ENTITY_DEPTH:
                raise refused(
                    name,
                    f"entity {entity.decode()!r:.60} refers to itself, or entities refer to each "
                    f"other over {MAX_ENTITY_DEPTH} deep",
                    _line(data, entities[entity][1]),
                )
        sizes[entity] = size, depth + 1
        return sizes[entity]

    used = Counter(found[1] for found in _REFERENCE.finditer(data))
    expanded = sum(times * size_of(entity, 0)[0] for entity, times in used.items())
    for entity in values:
        size_of(entity, 0)
    if expanded > max(FREE_EXPANSION, MAX_EXPANSION * len(data)):
        shown = f"{expanded:,}" if expanded < 10**15 else "very many"
        raise refused(name, f"its entities expand to {shown} bytes")


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _character(number: re.Match[bytes]) -> bytes:
    point = int(number[1], 16) if number[1] else int(number[2])
    return chr(point).encode("utf-8", "replace") if point < 0x110000 else b""
