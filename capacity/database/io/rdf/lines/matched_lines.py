"""Find and number the terms of plain lines of N-Triples and N-Quads by regular expressions.

What is plain, `capacity.database.io.rdf.lines.scanning` defines. A pattern takes twice as long as
compiled code, but there is nothing to compile, and no numba to import.

Time is linear in the text: sets of characters never backtrack (``*+``), and a group that repeats
begins otherwise than what follows it. Each repetition of a group takes memory, and so a line with
very many isn't plain.

References
----------
RDF 1.1 N-Triples, section 7; RFC 3986, appendix A; RFC 3987, section 2.2; RFC 5646, section 2.1.
"""

from __future__ import annotations

import re
from array import array
from functools import cache
from itertools import chain, islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.terms.columns import CODES, NO_GRAPH, joined
from capacity.database.terms.term import Ids

# of sets of bytes: \w and \d are those of ASCII
_MANY = "{0,99999}"
_BLANKS, _END = r"[ \t]*+", r"(?:\n|\Z)"
_BARE = r"[ \t]*+(?:#[^\n\r]*+|)\r?"
_HEX = r"[\dA-Fa-f]"
# four digits of a character that isn't half of another
_FOUR = rf"(?:[\dA-CEFa-cef]{_HEX}{{3}}|[dD][0-7]{_HEX}{{2}})"
_ESCAPE = (
    rf"\\(?:[tbnrf\"'\\]|u{_FOUR}|U(?:0000{_FOUR}|00(?:0[1-9A-Fa-f]|10){_HEX}{{4}}))"
)  # fmt: skip
# to try a group that repeats, or may be omitted (``?``), takes as long as many characters do: it is
# tried where it begins, or is one of two
_RUN = r"[^\x00-\x1f\"\\]*+"
_TEXT = rf'"{_RUN}(?:"|(?=\\)(?:{_ESCAPE}{_RUN}){_MANY}")'
_HOST = r"//[\w.~\-]*+(?::\d*+|)(?=[/>])"
# the bytes of U+00C0 to U+D7FF, which the paths of IRIs may all hold
_PATH = r"[\w\-.~!$&'()*+,;=:@/?\x80-\xbf\xc3-\xed]*+"
_CODED = rf"(?:%{_HEX}{{2}}{_PATH}){_MANY}"
_IRI_REF = (
    rf"<[A-Za-z][A-Za-z\d+.\-]*+:(?:{_HOST}|(?!//)){_PATH}"
    rf"(?:>|(?=[%\#]){_CODED}(?:\#{_PATH}{_CODED})?>)"
)
_LANGUAGE = (
    r"@[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|\d{3}))?(?:-[A-Za-z\d]{5,8})?"
    r"(?![A-Za-z\d\-])"
)
# what no term of the parser's holds but at its end
_INSIDE = r'[^\x00- <>"]*+'
# an IRI, a blank node, and what stands behind a literal, as anyone and as the parser writes them
_FORMS = {
    False: (_IRI_REF, r"_:\w[\w\-]*+", rf"(?:{_LANGUAGE}|\^\^{_IRI_REF}|)"),
    True: (rf"<{_INSIDE}>", rf"_:{_INSIDE}", rf"(?:[@^]{_INSIDE}(?:<{_INSIDE}>|)|)"),
}


def match_lines(lines: bytes | memoryview, width: int, *, trusted: bool) -> list[tuple[bytes, ...]]:
    r"""Find the terms of plain lines.

    Parameters
    ----------
    lines : bytes or memoryview
        Whole lines in UTF-8, the last of which may lack its line feed.
    width : int
        3 for triples; 4 for quads, where the fourth term is the name of the graph.
    trusted : bool
        Whether the parser has written the lines.

    Returns
    -------
    list of tuple of bytes
        The terms of each plain line as they are written, with "" for the default graph, and a tuple
        of "" for each other line and for the end of the text. Lines without facts are omitted.

    Examples
    --------
    >>> match_lines(b"_:a <x:p> 'b' .\n # c\n_:a <x:p> _:b .\n", 3, trusted=False)
    [(b'', b'', b''), (b'_:a', b'<x:p>', b'_:b'), (b'', b'', b'')]
    """
    return _pattern(width, trusted, False).findall(lines)


def other_lines(lines: bytes | memoryview, width: int, *, trusted: bool) -> NDArray[np.int64]:
    """Find the lines that aren't plain.

    Parameters
    ----------
    lines, width, trusted
        As `match_lines` has them.

    Returns
    -------
    ndarray of int64, shape (m, 3)
        Where each begins and has ended, and the number of plain ones before. A line without facts
        that ends the text may be among them.
    """
    found: list[tuple[int, int, int]] = []
    plain, other = 0, width + 1
    for match in _pattern(width, trusted, True).finditer(lines):
        if match.lastindex != other:
            plain += 1
        elif match[other]:
            found.append((*match.span(other), plain))
    return np.array(found, np.int64).reshape(-1, 3)


@cache
def _pattern(width: int, trusted: bool, others: bool) -> re.Pattern[bytes]:
    """Make the pattern of a line and the lines without facts before it.

    Its groups are the terms, which are empty if the line isn't plain, and then, if `others`, the
    line.
    """
    iri, blank, tail = _FORMS[trusted]
    terms = [f"({iri}|{blank})", f"({iri})", f"({iri}|{blank}|{_TEXT}{tail})"]
    if width == 4:
        terms.append(rf"({iri}|{blank}|(?=\.))")
    plain = _BLANKS.join([*terms, rf"\.{_BARE}{_END}"])
    other = rf"([^\n]*+{_END})" if others else rf"[^\n]*+{_END}"
    bare = rf"(?:(?=[ \t\r\n\#])(?:{_BARE}\n){_MANY}|)"
    return re.compile(rf"{bare}(?:{_BLANKS}{plain}|{other})".encode("ascii"))


_ESCAPED = re.compile(r"\\(?:u(.{4})|U(.{8})|(.))")
_LESS, _QUOTE = b'<"'
_BLANK, _IRI, _LITERAL = CODES["blank"], CODES["iri"], CODES["literal"]
_SHORT = dict(zip("tbnrf\"'\\", "\t\b\n\r\f\"'\\", strict=True))


class MatchedLines:
    """Terms and facts of plain lines, as `lines.compiled_lines` finds them.

    Parameters
    ----------
    width : int
        3 for triples, 4 for quads.
    """

    def __init__(self, width: int) -> None:
        self._width, self._ids = width, Ids()
        # where there is no term: in a line that isn't plain, and for the default graph
        self._none = self._ids[b""]

    def scanned(
        self, lines: bytes | memoryview, *, trusted: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Number the terms of plain lines, and find the others (`CompiledLines.scanned`)."""
        found = match_lines(lines, self._width, trusted=trusted)
        numbers = map(self._ids.__getitem__, chain.from_iterable(found))
        rows = np.fromiter(numbers, np.int32, len(found) * self._width).reshape(-1, self._width)
        plain = rows[:, 0] != self._none
        # the end of the text is matched as well
        if len(found) - np.count_nonzero(plain) == 1:
            return rows[plain], np.empty((0, 3), np.int64)
        return rows[plain], other_lines(lines, self._width, trusted=trusted)

    def terms(
        self,
    ) -> tuple[NDArray[np.uint8], pa.LargeStringArray, NDArray[np.int32], list[str]]:
        """Return the terms (`CompiledLines.terms`), which are forgotten here to free memory."""
        # the first is no term
        kinds, tails, texts = bytearray([NO_GRAPH]), array("i", [0]), [b""]
        names = Ids({b"": 0})
        for token in islice(self._ids, 1, None):
            first, tail = token[0], b""
            if first == _LESS:
                kinds.append(_IRI)
                texts.append(token[1:-1])
            elif first == _QUOTE:
                end = token.rindex(b'"')
                kinds.append(_LITERAL)
                text, tail = token[1:end], token[end + 1 :]
                if b"\\" in text:
                    text = _ESCAPED.sub(_character, text.decode()).encode()
                texts.append(text)
            else:
                kinds.append(_BLANK)
                texts.append(token[2:])
            tails.append(names[tail])
        self._ids = Ids()
        of_kinds, of_tails = np.frombuffer(kinds, np.uint8), np.frombuffer(tails, np.int32)
        return of_kinds, joined(texts), of_tails, [name.decode() for name in names]


def _character(escape: re.Match[str]) -> str:
    """Return the character that an escape denotes."""
    return _SHORT[escape[3]] if escape[3] else chr(int(escape[1] or escape[2], 16))
