"""Refuse hostile input before a parser sees it.

As measured on the parsers in use, a nine-level XML entity bomb aborts the process, JSON nested
6,000 deep crashes it, as do 10,000 terms of a JSON-LD context that are each defined by the next,
an XML element with 200,000 attributes takes minutes, and a prefix of a megabyte, used in each line,
takes all memory. The checks here and in `guards_xml` and `guards_json` read the text with the
standard library alone, in time proportional to its length.
"""

from __future__ import annotations

import re

import numpy as np

from capacity.database.terms.grammar import MAX_TRIPLE_DEPTH
from capacity.errors import DatabaseFormatError

# of a prefix or a base, which is written out where it is used
MAX_NAMESPACE = 1000
_TURTLE_TEXT = re.compile(
    rb'"""(?>[^"\\]+|\\.|"(?!""))*"""'
    rb"|'''(?>[^'\\]+|\\.|'(?!''))*'''"
    rb'|"(?>[^"\\\n]+|\\.)*"'
    rb"|'(?>[^'\\\n]+|\\.)*'"
    rb"|<[^<>\"\s]*>|#[^\n]*|\\.",
    re.DOTALL,
)
_LONG_IRI = re.compile(rb"<[^<>\"\s]{%d}" % (MAX_NAMESPACE + 1))
_NAMESPACE = re.compile(
    rb"(?:prefix(?:\s|#[^\n]*\n)+[^\s:]*:|base)(?:\s|#[^\n]*\n)*<[^<>\"\s]{%d}"
    % (MAX_NAMESPACE + 1),
    re.IGNORECASE,
)


def refuse_hostile_turtle(name: str, data: bytes) -> None:
    """Refuse triple terms (RDF 1.2) nested too deeply, and too long prefixes and bases.

    Raises
    ------
    DatabaseFormatError
        With the line.
    """
    if _LONG_IRI.search(data) and (found := _NAMESPACE.search(data)):
        raise DatabaseFormatError(
            name,
            f"a prefix or a base is longer than {MAX_NAMESPACE:,} bytes",
            line=data.count(b"\n", 0, found.start()) + 1,
            advice="Shorten it.",
        )
    if data.count(b"<<") <= MAX_TRIPLE_DEPTH or _first_deep_triple(data, b" ") is None:
        return
    # once more, with all lines
    raise DatabaseFormatError(
        name,
        f"triple terms nest over {MAX_TRIPLE_DEPTH} deep",
        line=_first_deep_triple(data, None),
        advice="Name the inner facts by reifiers, << s p o ~ name >>.",
    )


def _first_deep_triple(data: bytes, instead: bytes | None) -> int | None:
    """Find the line of a triple term that is too deep; None if there is none.

    Strings, IRIs and comments are replaced, by default by the lines in them.
    """
    bare = _TURTLE_TEXT.sub(instead or (lambda text: b" " + b"\n" * text[0].count(b"\n")), data)
    bare = bare.replace(b">>", b"]").replace(b"<<", b"[")
    at = first_deeper(MAX_TRIPLE_DEPTH, bare, b"[", b"]")
    return None if at is None else bare.count(b"\n", 0, at) + 1


def first_deeper(most: int, data: bytes, opening: bytes, closing: bytes) -> int | None:
    """Find the first bracket within more than `most` others; None if there is none.

    Examples
    --------
    >>> first_deeper(1, b"[] [[]]", b"[", b"]")
    4
    """
    step = np.zeros(256, dtype=np.int8)
    step[list(opening)], step[list(closing)] = 1, -1
    depth = 0
    # by pieces, for the sums take eight bytes a character
    for start in range(0, len(data), 2**20):
        sums = depth + np.cumsum(
            step[np.frombuffer(data[start : start + 2**20], dtype=np.uint8)], dtype=np.int64
        )
        if (deeper := np.flatnonzero(sums > most)).size:
            return start + int(deeper[0])
        depth = int(sums[-1])
    return None
