"""Number the terms of plain lines of N-Triples and N-Quads, in Python."""

from __future__ import annotations

import re
from array import array
from itertools import chain, islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.io.rdf.lines.line_patterns import match_lines, other_lines
from capacity.database.terms.arrow import joined
from capacity.database.terms.columns import CODES, NO_GRAPH
from capacity.database.terms.term import Ids

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
