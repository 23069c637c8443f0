"""Find the terms of plain lines of N-Triples and N-Quads, by compiled code.

A line is plain if it can be read one way alone, whatever the parser: literals, blank nodes and IRIs
of characters that need no further check, the IRIs without escapes. Others are left to the parser.
All that is plain must be right: where a rule has exceptions (ports, tags of languages, rare
alphabets), only its simplest case is plain. A line that the parser has written is *trusted*: its
terms are right, and only their ends are looked for.

References
----------
RDF 1.1 N-Triples, section 7; RFC 3986, appendix A; RFC 3987, section 2.2; RFC 5646, section 2.1.
"""

from __future__ import annotations

from itertools import pairwise

import numba as nb
import numpy as np
from numpy.typing import NDArray

from capacity.database.io.numbering import hash_of
from capacity.database.term_columns import CODES

BLANK, IRI, LITERAL = CODES["blank"], CODES["iri"], CODES["literal"]
# the name of the default graph
NO_GRAPH = 7
# bits of a code that hold the kind of a term; the others hold its tail's number
KIND_BITS = 3
# most tails, the datatypes and languages of literals, and the bytes of one
MOST_TAILS, LONGEST_TAIL = 2**15, 2**8


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
_LABEL, _FIRST = _bytes(_LETTERS + _DIGITS + "_-"), _bytes(_LETTERS + _DIGITS + "_")
# what no term of the parser's holds but at its end
_INSIDE = np.ones(256, np.bool_)
_INSIDE[: ord(" ") + 1] = _INSIDE[list(b'<>"')] = False
_HEX = _bytes(_DIGITS + "ABCDEFabcdef")
_SLASH, _COLON, _HASH, _PERCENT, _LESS, _GREATER = (ord(c) for c in "/:#%<>")
_QUOTE, _BACKSLASH, _AT, _CARET, _DOT, _DASH, _UNDERSCORE = (ord(c) for c in '"\\@^.-_')
_SPACE, _TAB, _FEED, _RETURN = (ord(c) for c in " \t\n\r")
_BLANKS, _IN_COMMENT = _bytes(" \t"), ~_bytes("\n\r")
_SHORT, _LONG = ord("u"), ord("U")
# what follows a backslash, and the character it stands for; 0 for what isn't plain
_ESCAPES = np.zeros(256, np.uint8)
_ESCAPES[list(b"tbnrf\"'\\")] = list(b"\t\b\n\r\f\"'\\")


@nb.njit(cache=True)
def _skip(data, at, end, of):  # type: ignore[no-untyped-def]
    """Return the first index from which a byte isn't one of some."""
    while at < end and of[data[at]]:
        at += 1
    return at


@nb.njit(cache=True)
def _iri(data, at, end):  # type: ignore[no-untyped-def]
    """Return the index of the ">" of a plain IRI whose "<" is at an index, or -1."""
    at += 1
    if at >= end or not _LETTER[data[at]]:
        return -1
    at = _skip(data, at, end, _SCHEME)
    if at >= end or data[at] != _COLON:
        return -1
    at += 1
    if at + 1 < end and data[at] == _SLASH and data[at + 1] == _SLASH:
        at = _skip(data, at + 2, end, _HOST)
        if at < end and data[at] == _COLON:
            at = _skip(data, at + 1, end, _DIGIT)
        if at >= end or not (data[at] == _SLASH or data[at] == _GREATER):
            return -1
    hashes = 0
    while at < end:
        c = data[at]
        if _PATH[c]:
            at += 1
        elif c == _HASH and hashes == 0:
            hashes = 1
            at += 1
        elif c == _PERCENT and at + 2 < end and _HEX[data[at + 1]] and _HEX[data[at + 2]]:
            at += 3
        else:
            return at if c == _GREATER else -1
    return -1


@nb.njit(cache=True)
def _unescape(data, at, end):  # type: ignore[no-untyped-def]
    """Write the characters that escapes stand for over a literal, from its first backslash on.

    Returns
    -------
    stop, at : int
        Where the text has ended, or -1 if it isn't plain, and the index of its quotation mark as it
        was written, or how far it was looked at.
    """
    stop = at
    while at < end and data[at] >= _SPACE and data[at] != _QUOTE:
        if data[at] != _BACKSLASH:
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
    return (stop if at < end and data[at] == _QUOTE else -1), at


@nb.njit(cache=True)
def _language(data, at, end):  # type: ignore[no-untyped-def]
    """Return where a plain language tag has ended whose "@" is at an index, or -1.

    It is of a language of two or three letters and at most one script, region and variant.
    """
    begin = at + 1
    at = _skip(data, begin, end, _LETTER)
    if not 2 <= at - begin <= 3:
        return -1
    known = 0
    while at < end and data[at] == _DASH:
        part = at + 1
        letters = _skip(data, part, end, _LETTER)
        at = _skip(data, part, end, _WORD)
        n = at - part
        if n == 4 and letters == at:
            kind = 1
        elif (n == 2 and letters == at) or (n == 3 and _skip(data, part, end, _DIGIT) == at):
            kind = 2
        elif 5 <= n <= 8:
            kind = 3
        else:
            return -1
        if kind <= known:
            return -1
        known = kind
    return -1 if at < end and _WORD[data[at]] else at


@nb.njit(cache=True)
def _tail(data, begin, end, slots, starts, pool, counts):  # type: ignore[no-untyped-def]
    """Return the number of a tail, from 1; -1 if there are too many, or it is too long."""
    if end - begin > LONGEST_TAIL:
        return -1
    at = np.int64(hash_of(data, begin, end, 0) & np.uint64(len(slots) - 1))
    while slots[at] != 0:
        i = slots[at]
        same = starts[i + 1] - starts[i] == end - begin
        for j in range(end - begin):
            if not same or pool[starts[i] + j] != data[begin + j]:
                same = False
                break
        if same:
            return i
        at = (at + 1) & (len(slots) - 1)
    i = counts[0]
    if i > MOST_TAILS:
        return -1
    counts[0] = i + 1
    slots[at] = i
    for j in range(end - begin):
        pool[starts[i] + j] = data[begin + j]
    starts[i + 1] = starts[i] + end - begin
    return i


@nb.njit(cache=True)
def scan(  # type: ignore[no-untyped-def]
    data, width, trusted, escaped, begins, ends, codes, hashes, others, slots, starts, pool, counts
):
    """Find the terms of plain lines, and the other lines; those without facts are neither.

    Parameters
    ----------
    data : ndarray of uint8
        Whole lines in UTF-8, the last of which may lack its line feed. Unless `escaped`, literals
        with escapes are overwritten by their texts.
    width : int
        3 for triples; 4 for quads, where the fourth column is the name of the graph.
    trusted : bool
        Whether the parser has written the lines.
    escaped : bool
        Whether the escapes of literals stay as they are, for which their lines must be trusted.
    begins, ends, codes, hashes : ndarrays, shape (m * width,)
        Receive where each term is, its kind and tail, and its hash.
    others : ndarray of int64, shape (m, 3)
        Receives where each other line begins and has ended, and the number of plain ones before.
    slots, starts, pool, counts : ndarrays
        Tails so far (`Tails`).

    Returns
    -------
    plain, others : int
        Numbers of both sorts of lines.
    """
    at, end, plain, strange = 0, len(data), 0, 0
    while at < end:
        # a line that isn't plain ends after what is overwritten of it
        line, past, column, good = at, at, 0, True
        at = _skip(data, at, end, _BLANKS)
        bare = at >= end or data[at] == _FEED or data[at] == _RETURN or data[at] == _HASH
        while good and column < width and not bare:
            if at >= end:
                good = False
                break
            c = data[at]
            t = plain * width + column
            tail = 0
            if c == _LESS:
                begin, kind = at + 1, IRI
                if trusted:
                    stop = _skip(data, begin, end, _INSIDE)
                    good = stop < end and data[stop] == _GREATER
                else:
                    stop = _iri(data, at, end)
                    good = stop >= 0
                at = stop + 1
            elif c == _UNDERSCORE and column != 1:
                begin, kind = at + 2, BLANK
                if trusted:
                    stop = _skip(data, begin, end, _INSIDE)
                else:
                    stop = _skip(data, begin, end, _LABEL)
                    good = begin < stop and data[at + 1] == _COLON and _FIRST[data[begin]]
                at = stop
            elif c == _QUOTE and column == 2:
                begin, kind = at + 1, LITERAL
                stop = begin
                while stop < end and data[stop] >= _SPACE and data[stop] != _QUOTE:
                    if data[stop] == _BACKSLASH:
                        if not escaped or not trusted:
                            break
                        stop += 1
                    stop += 1
                at = stop
                if stop < end and data[stop] == _BACKSLASH and not escaped:
                    stop, past = _unescape(data, stop, end)
                    at = past
                good = stop >= 0 and at < end and data[at] == _QUOTE
                at += 1
                if good and at < end and (data[at] == _AT or data[at] == _CARET):
                    if trusted:
                        # of a datatype the part before its "<", and then the rest
                        until = _skip(data, at, end, _INSIDE)
                        if until < end and data[until] == _LESS:
                            until = _skip(data, until + 1, end, _INSIDE) + 1
                    elif data[at] == _AT:
                        until = _language(data, at, end)
                    elif at + 2 < end and data[at + 1] == _CARET and data[at + 2] == _LESS:
                        until = _iri(data, at + 2, end) + 1
                    else:
                        until = -1
                    good = until > 0
                    if good:
                        tail = _tail(data, at, until, slots, starts, pool, counts)
                        good = tail > 0
                        at = until
            elif c == _DOT and column == 3:
                begin, stop, kind = at, at, NO_GRAPH
            else:
                good = False
                break
            if good:
                begins[t], ends[t] = begin, stop
                codes[t] = kind | tail << KIND_BITS
                hashes[t] = hash_of(data, begin, stop, codes[t])
                at = _skip(data, at, end, _BLANKS)
                column += 1
        if good:
            if not bare:
                good = at < end and data[at] == _DOT
                at = _skip(data, at + 1, end, _BLANKS)
            if good and at < end and data[at] == _HASH:
                at = _skip(data, at, end, _IN_COMMENT)
            if good and at < end and data[at] == _RETURN:
                at += 1
            good = good and (at >= end or data[at] == _FEED)
        if good:
            plain += not bare
            at += 1
        else:
            at = past
            while at < end and data[at] != _FEED:
                at += 1
            at = min(at + 1, end)
            others[strange, 0], others[strange, 1], others[strange, 2] = line, at, plain
            strange += 1
    return plain, strange


class Tails:
    """Datatypes and languages of literals, as they stand behind the text; the first is none."""

    def __init__(self) -> None:
        self.slots = np.zeros(4 * MOST_TAILS, np.int32)
        self.starts = np.zeros(MOST_TAILS + 2, np.int32)
        self.pool = np.empty((MOST_TAILS + 1) * LONGEST_TAIL, np.uint8)
        self.counts = np.array([1])

    def texts(self) -> list[str]:
        """List the tails so far, such as "@en"."""
        at = self.starts[: self.counts[0] + 1].tolist()
        text = self.pool[: at[-1]].tobytes()
        return [text[begin:end].decode() for begin, end in pairwise(at)]
