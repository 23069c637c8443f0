"""Plain terms of N-Triples in bytes of a text, by compiled code.

`scanning` defines what is plain; its indices are those of the text.

References
----------
RDF 1.1 N-Triples, section 7; RFC 3986, appendix A; RFC 3987, section 2.2; RFC 5646, section 2.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capacity.kept_code import kept


def _bytes(text: str) -> NDArray[np.bool_]:
    found = np.zeros(256, np.bool_)
    found[list(text.encode())] = True
    return found


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_LETTER, _DIGIT, _WORD = _bytes(_LETTERS), _bytes(_DIGITS), _bytes(_LETTERS + _DIGITS)
_SCHEME, _HOST = _bytes(_LETTERS + _DIGITS + "+-."), _bytes(_LETTERS + _DIGITS + "-._~")
_PATH = _bytes(_LETTERS + _DIGITS + "-._~!$&'()*+,;=:@/?")
# the bytes of U+00C0 to U+D7FF, which the paths of IRIs may all hold; what goes on as they do and
# begins otherwise isn't plain
_PATH[0x80:0xC0] = _PATH[0xC3:0xEE] = True
LABEL, FIRST = _bytes(_LETTERS + _DIGITS + "_-"), _bytes(_LETTERS + _DIGITS + "_")
# what no term of the parser's holds but at its end
INSIDE = np.ones(256, np.bool_)
INSIDE[: ord(" ") + 1] = INSIDE[list(b'<>"')] = False
_HEX = _bytes(_DIGITS + "ABCDEFabcdef")
_SLASH, COLON, HASH, _PERCENT, LESS, GREATER = (ord(c) for c in "/:#%<>")
QUOTE, BACKSLASH, AT, CARET, DOT, _DASH, UNDERSCORE = (ord(c) for c in '"\\@^.-_')
SPACE, _TAB, FEED, RETURN = (ord(c) for c in " \t\n\r")
BLANKS, IN_COMMENT = _bytes(" \t"), ~_bytes("\n\r")
_SHORT, _LONG = ord("u"), ord("U")
# what follows a backslash, and the character it stands for; 0 for what isn't plain
_ESCAPES = np.zeros(256, np.uint8)
_ESCAPES[list(b"tbnrf\"'\\")] = list(b"\t\b\n\r\f\"'\\")


@kept
def skip(data, at, end, of):  # type: ignore[no-untyped-def]
    """Return the first index from which a byte isn't one of some."""
    while at < end and of[data[at]]:
        at += 1
    return at


@kept
def plain_iri(data, at, end):  # type: ignore[no-untyped-def]
    """Return the index of the ">" of a plain IRI whose "<" is at an index, or -1."""
    at += 1
    if at >= end or not _LETTER[data[at]]:
        return -1
    at = skip(data, at, end, _SCHEME)
    if at >= end or data[at] != COLON:
        return -1
    at += 1
    if at + 1 < end and data[at] == _SLASH and data[at + 1] == _SLASH:
        at = skip(data, at + 2, end, _HOST)
        if at < end and data[at] == COLON:
            at = skip(data, at + 1, end, _DIGIT)
        if at >= end or not (data[at] == _SLASH or data[at] == GREATER):
            return -1
    hashes = 0
    while at < end:
        c = data[at]
        if _PATH[c]:
            at += 1
        elif c == HASH and hashes == 0:
            hashes = 1
            at += 1
        elif c == _PERCENT and at + 2 < end and _HEX[data[at + 1]] and _HEX[data[at + 2]]:
            at += 3
        else:
            return at if c == GREATER else -1
    return -1


@kept
def unescape(data, at, end):  # type: ignore[no-untyped-def]
    """Write the characters that escapes denote over a literal, from its first backslash on.

    Returns
    -------
    stop, at : int
        Where the text has ended, or -1 if it isn't plain, and the index of its quotation mark as it
        was written, or how far it was looked at.
    """
    stop = at
    while at < end and data[at] >= SPACE and data[at] != QUOTE:
        if data[at] != BACKSLASH:
            data[stop] = data[at]
            stop += 1
            at += 1
            continue
        if at + 1 >= end:
            return -1, at
        c = data[at + 1]
        if c != _SHORT and c != _LONG:
            if _ESCAPES[c] == 0:
                return -1, at
            data[stop] = _ESCAPES[c]
            stop += 1
            at += 2
            continue
        digits = at + 2
        at = digits + (4 if c == _SHORT else 8)
        if at > end:
            return -1, digits
        point = 0
        for i in range(digits, at):
            d = data[i]
            if not _HEX[d]:
                return -1, digits
            # letters of both cases end in 1 to 6
            point = point << 4 | (d & 15) + (9 if d > 64 else 0)
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            return -1, digits
        if point < 0x80:
            data[stop] = point
            stop += 1
            continue
        # UTF-8, which takes fewer bytes than the escape did
        more = 1 if point < 0x800 else 2 if point < 0x10000 else 3
        data[stop] = 0xFF00 >> more + 1 & 0xFF | point >> 6 * more
        stop += 1
        for i in range(more - 1, -1, -1):
            data[stop] = 0x80 | point >> 6 * i & 0x3F
            stop += 1
    return (stop if at < end and data[at] == QUOTE else -1), at


@kept
def plain_language(data, at, end):  # type: ignore[no-untyped-def]
    """Return where a plain language tag has ended whose "@" is at an index, or -1.

    It is of a language of two or three letters and at most one script, region and variant.
    """
    begin = at + 1
    at = skip(data, begin, end, _LETTER)
    if not 2 <= at - begin <= 3:
        return -1
    known = 0
    while at < end and data[at] == _DASH:
        part = at + 1
        letters = skip(data, part, end, _LETTER)
        at = skip(data, part, end, _WORD)
        n = at - part
        if n == 4 and letters == at:
            kind = 1
        elif (n == 2 and letters == at) or (n == 3 and skip(data, part, end, _DIGIT) == at):
            kind = 2
        elif 5 <= n <= 8:
            kind = 3
        else:
            return -1
        if kind <= known:
            return -1
        known = kind
    return -1 if at < end and _WORD[data[at]] else at
