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

import numpy as np

from capacity.database.io.files.numbering import hash_of
from capacity.database.io.rdf.lines.plain_terms import (
    AT,
    BACKSLASH,
    BLANKS,
    CARET,
    COLON,
    DOT,
    FEED,
    FIRST,
    GREATER,
    HASH,
    IN_COMMENT,
    INSIDE,
    LABEL,
    LESS,
    QUOTE,
    RETURN,
    SPACE,
    UNDERSCORE,
    plain_iri,
    plain_language,
    skip,
    unescape,
)
from capacity.database.terms.columns import CODES, NO_GRAPH
from capacity.kept_code import kept

BLANK, IRI, LITERAL = CODES["blank"], CODES["iri"], CODES["literal"]
# bits of a code that hold the kind of a term; the others hold its tail's number
KIND_BITS = 3
# most tails, the datatypes and languages of literals, and the bytes of one
MOST_TAILS, LONGEST_TAIL = 2**15, 2**8


@kept
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


@kept
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
        at = skip(data, at, end, BLANKS)
        bare = at >= end or data[at] == FEED or data[at] == RETURN or data[at] == HASH
        while good and column < width and not bare:
            if at >= end:
                good = False
                break
            c = data[at]
            t = plain * width + column
            tail = 0
            if c == LESS:
                begin, kind = at + 1, IRI
                if trusted:
                    stop = skip(data, begin, end, INSIDE)
                    good = stop < end and data[stop] == GREATER
                else:
                    stop = plain_iri(data, at, end)
                    good = stop >= 0
                at = stop + 1
            elif c == UNDERSCORE and column != 1:
                begin, kind = at + 2, BLANK
                if trusted:
                    stop = skip(data, begin, end, INSIDE)
                else:
                    stop = skip(data, begin, end, LABEL)
                    good = begin < stop and data[at + 1] == COLON and FIRST[data[begin]]
                at = stop
            elif c == QUOTE and column == 2:
                begin, kind = at + 1, LITERAL
                stop = begin
                while stop < end and data[stop] >= SPACE and data[stop] != QUOTE:
                    if data[stop] == BACKSLASH:
                        if not escaped or not trusted:
                            break
                        stop += 1
                    stop += 1
                at = stop
                if stop < end and data[stop] == BACKSLASH and not escaped:
                    stop, past = unescape(data, stop, end)
                    at = past
                good = stop >= 0 and at < end and data[at] == QUOTE
                at += 1
                if good and at < end and (data[at] == AT or data[at] == CARET):
                    if trusted:
                        # of a datatype the part before its "<", and then the rest
                        until = skip(data, at, end, INSIDE)
                        if until < end and data[until] == LESS:
                            until = skip(data, until + 1, end, INSIDE) + 1
                    elif data[at] == AT:
                        until = plain_language(data, at, end)
                    elif at + 2 < end and data[at + 1] == CARET and data[at + 2] == LESS:
                        until = plain_iri(data, at + 2, end) + 1
                    else:
                        until = -1
                    good = until > 0
                    if good:
                        tail = _tail(data, at, until, slots, starts, pool, counts)
                        good = tail > 0
                        at = until
            elif c == DOT and column == 3:
                begin, stop, kind = at, at, NO_GRAPH
            else:
                good = False
                break
            if good:
                begins[t], ends[t] = begin, stop
                codes[t] = kind | tail << KIND_BITS
                hashes[t] = hash_of(data, begin, stop, codes[t])
                at = skip(data, at, end, BLANKS)
                column += 1
        if good:
            if not bare:
                good = at < end and data[at] == DOT
                at = skip(data, at + 1, end, BLANKS)
            if good and at < end and data[at] == HASH:
                at = skip(data, at, end, IN_COMMENT)
            if good and at < end and data[at] == RETURN:
                at += 1
            good = good and (at >= end or data[at] == FEED)
        if good:
            plain += not bare
            at += 1
        else:
            at = past
            while at < end and data[at] != FEED:
                at += 1
            at = min(at + 1, end)
            others[strange, 0], others[strange, 1], others[strange, 2] = line, at, plain
            strange += 1
    return plain, strange


class Tails:
    """Datatypes and languages of literals, as they follow the text; the first is none."""

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
