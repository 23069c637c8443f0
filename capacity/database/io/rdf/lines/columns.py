"""Facts of N-Triples and N-Quads as columns: plain lines by compiled code, or by a pattern.

The parser rewrites the others, some at a time, as lines that the same code takes: without a node of
Python for each term it takes a sixth of the time.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from capacity.database.io.files.pieces import UnsuitedError
from capacity.database.io.rdf.guards.texts import refuse_hostile_turtle
from capacity.database.io.rdf.lines.matched_lines import MatchedLines
from capacity.database.terms.columns import UnsortedTerms
from capacity.database.terms.grammar import XSD_STRING

if TYPE_CHECKING:
    from capacity.database.io.rdf.lines.compiled_lines import CompiledLines

_LANGUAGES = re.compile(r"rdf-syntax-ns#(langString|dirLangString)>")


@dataclass(frozen=True)
class Found:
    """Terms in order of first use, which may repeat, and facts as their numbers.

    Attributes
    ----------
    terms : UnsortedTerms
        The terms, and of kind `NO_GRAPH` the name of the default graph.
    rows : list of ndarray of int32, shapes (n_i, 3)
        Subject, predicate and object of each triple, in the order of the file.
    graphs : list of ndarray of int32, shapes (n_i,)
        Graph of each triple, which is of kind `NO_GRAPH` for the default graph; empty for triples.
    """

    terms: UnsortedTerms
    rows: list[NDArray[np.int32]]
    graphs: list[NDArray[np.int32]]


class LineReader:
    """Reader of lines, to which a text is fed in pieces.

    Parameters
    ----------
    width : int
        3 for N-Triples, 4 for N-Quads.
    trusted : bool
        Whether the parser has written the text.
    compiled : bool
        Whether compiled code reads plain lines, which must be loaded or compiled first. The terms
        may have other numbers.

    Attributes
    ----------
    n_rows : int
        Number of facts so far.
    """

    def __init__(self, width: int, *, trusted: bool = False, compiled: bool) -> None:
        self._width, self._trusted = width, trusted
        self._plain = _compiled(width) if compiled else MatchedLines(width)
        self._rows: list[NDArray[np.int32]] = []
        self.n_rows = 0
        # for lines between those: a line of the parser's must not go on in one of these
        self._between = f"<x:{uuid.uuid4().hex}>"

    def feed(self, lines: bytes | memoryview) -> None:
        """Read whole lines.

        Raises
        ------
        UnsuitedError
            If a line isn't of the format, or the parser must see the text as a whole.
        """
        rows, others = self._plain.scanned(lines, trusted=self._trusted)
        if len(others):
            at, more = self._rewritten(lines, others)
            rows = np.insert(rows, at, more, axis=0)
        self._rows.append(rows)
        self.n_rows += len(rows)

    def _rewritten(
        self, lines: bytes | memoryview, others: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Read lines that aren't plain; return how many plain ones are before each fact of them.

        Raises
        ------
        UnsuitedError
            If the parser refuses one, or there is what the parser must see as a whole.
        """
        if self._trusted:
            raise UnsuitedError
        rows, left = self._plain.scanned(
            rewritten(lines, others, _FORMATS[self._width], self._between), trusted=True
        )
        if len(left):
            raise UnsuitedError
        # the last line is one of those between, and no other has its subject
        between = rows[:, 0] == rows[-1, 0]
        which = np.cumsum(between)[~between]
        return others[which, 2], rows[~between]

    def found(self) -> Found:
        """Return all terms and facts.

        Raises
        ------
        UnsuitedError
            If a literal's datatype is that of literals with a language.
        """
        kinds, texts, of_terms, tails = self._plain.terms()
        if any(map(_LANGUAGES.search, tails)):
            raise UnsuitedError
        return Found(
            UnsortedTerms(kinds, texts, of_terms, [_pair(tail) for tail in tails]),
            [rows[:, :3] for rows in self._rows],
            [rows[:, 3] for rows in self._rows] if self._width == 4 else [],
        )


def _compiled(width: int) -> CompiledLines:
    # numba takes longer to import than a short text to read
    from capacity.database.io.rdf.lines.compiled_lines import CompiledLines

    return CompiledLines(width)


def rewritten(
    lines: bytes | memoryview, others: NDArray[np.int64], format: ox.RdfFormat, between: str
) -> bytes:
    """Have the parser write some lines again, each by itself and followed by a line between.

    Parameters
    ----------
    lines : bytes or memoryview
        Whole lines.
    others : ndarray of int64, shape (m, 3)
        Where each of the lines to write begins and has ended, as `scan` has them.
    format : pyoxigraph.RdfFormat
        Their format, and that in which they are written.
    between : str
        IRI, in brackets, of which the lines between are made.

    Raises
    ------
    UnsuitedError
        If the parser refuses one.
    """
    fence = f"{between} {between} {between} .\n".encode()
    parts: list[bytes] = []
    for begin, end, _ in others.tolist():
        line = bytes(lines[begin:end])
        parts += [line, b"" if line.endswith(b"\n") else b"\n", fence]
    text = b"".join(parts)
    try:
        refuse_hostile_turtle("", text)
        found = ox.serialize(ox.parse(text, format=format), format=format)
    except (SyntaxError, ValueError, MemoryError) as error:
        raise UnsuitedError from error
    # a statement that goes on in the line between would take it for its own
    if found is None or found.count(fence) != len(others):
        raise UnsuitedError
    return found


_FORMATS = {3: ox.RdfFormat.N_TRIPLES, 4: ox.RdfFormat.N_QUADS}


def _pair(tail: str) -> tuple[str, str]:
    """Return the datatype and the language that follow a literal."""
    if tail.startswith("@"):
        return "", tail[1:].lower()
    datatype = tail[3:-1]
    return ("" if datatype == XSD_STRING else datatype), ""
