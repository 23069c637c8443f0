"""Lines that can't be read, omitted up to a number that the user sets (`skip_errors`).

A format of lines, N-Triples, N-Quads, TSV or CSV, has a fact in each line, so that a broken one
doesn't affect the others. *Broken* is a line that isn't UTF-8; in N-Triples and N-Quads, one that
the parser refuses by itself; in tables, a row with another number of cells, and a cell that isn't
the term that it must be. Everything else is refused as ever: limits, a table that can be read in
two ways, and quotes of CSV that don't end, since nobody knows where their row does.

A text is read as it is first, so that one without errors is read as fast as ever. If it is refused,
its broken lines are looked for, and it is read again with these empty, so that all others keep
their numbers. Of one that has more of them than may be, the first error is raised.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeAlias

import pyoxigraph as ox

from capacity.errors import DatabaseFormatError, SkippedLinesWarning, warn_caller

# number of a line, and what is wrong
Broken: TypeAlias = tuple[int, str]
# a line of RDF 1.2 N-Triples and N-Quads; no literal of theirs has several lines
VERSION = re.compile(
    rb"^[ \t]*VERSION[ \t]*(?:\"[^\"\\\r\n]*\"|'[^'\\\r\n]*')[ \t]*(?=#|\r|$)", re.MULTILINE
)
LINES = {"ntriples": ox.RdfFormat.N_TRIPLES, "nquads": ox.RdfFormat.N_QUADS}
FORMATS = (*LINES, "tsv", "csv")
# bytes that are parsed at once, for lines alone take ten times as long
_PIECE = 2**18
# lines that a message names
_TOLD = 3


def broken_in(lines: bytes, format: str, before: int = 0) -> Iterator[Broken]:
    r"""Find the lines of N-Triples or N-Quads that the parser refuses by themselves.

    Parameters
    ----------
    lines : bytes
        Whole lines.
    format : {'ntriples', 'nquads'}
        Their format.
    before : int
        Number of lines before them.

    Yields
    ------
    int, str
        Number of the line, and the parser's words.

    Examples
    --------
    >>> text = b"<x:a> <x:p> <x:b> .\n<x:a> <x:p>\n<x:c> <x:p> <x:d> .\n"
    >>> [number for number, _ in broken_in(text, "ntriples")]
    [2]
    """
    start = 0
    while start < len(lines):
        end = lines.find(b"\n", start + _PIECE) + 1 or len(lines)
        piece = lines[start:end]
        if b"VERSION" in piece:
            piece = VERSION.sub(b"", piece)
        if _refused(piece, format) is not None:
            for number, line in enumerate(piece.split(b"\n"), start=before + 1):
                if (reason := _refused(line, format)) is not None:
                    yield number, reason
        before += piece.count(b"\n")
        start = end


def _refused(text: bytes, format: str) -> str | None:
    try:
        for _ in ox.parse(text, format=LINES[format]):
            pass
    except (SyntaxError, ValueError) as error:
        reason = str(error.msg) if isinstance(error, SyntaxError) else str(error)
        return reason.partition(": ")[2] or reason
    return None


def without(data: bytes, numbers: Iterable[int]) -> bytes:
    r"""Empty some lines of a text.

    Parameters
    ----------
    data : bytes
        The text.
    numbers : iterable of int
        Numbers of lines, from 1.

    Examples
    --------
    >>> without(b"a\nb\r\nc", [2])
    b'a\n\nc'
    """
    parts: list[bytes] = []
    start, at = 0, 1
    for number in sorted(set(numbers)):
        begin = start
        for _ in range(number - at):
            begin = data.index(b"\n", begin) + 1
        end = data.find(b"\n", begin)
        parts.append(data[start:begin])
        start, at = (len(data) if end < 0 else end), number
    return b"".join([*parts, data[start:]])


def found_by(error: DatabaseFormatError, data: bytes, format: str, most: int) -> list[Broken]:
    """Find the broken lines of a text that was refused; none if it isn't for a line.

    Parameters
    ----------
    error : DatabaseFormatError
        Why it was.
    data : bytes
        The text.
    format : str
        Its format.
    most : int
        Number of lines of RDF after which the search ends.
    """
    if format in LINES:
        return list(islice(broken_in(data, format), most + 1))
    if not error.of_row or error.line is None:
        return []
    lines = data.split(b"\n")
    line = lines[error.line - 1]
    if format == "csv":
        return [(error.line, error.reason)] if _is_record(line) else []
    if not error.of_width:
        return [(error.line, error.reason)]
    # those of as many cells are as wrong, and needn't be read for one after the other
    cells = line.count(b"\t")
    return [
        (number, error.reason)
        for number, other in enumerate(lines, start=1)
        if number >= error.line and other.strip(b"\r") and other.count(b"\t") == cells
    ]


def _is_record(line: bytes) -> bool:
    """Return whether a line of CSV is a row by itself, and no part of one over several lines."""
    try:
        return len(list(csv.reader([line.decode()], strict=True))) == 1
    except (csv.Error, UnicodeDecodeError):
        return False


def tell(name: str, broken: Iterable[Broken]) -> None:
    """Warn of the lines that are omitted, with the first ones."""
    warn_caller(SkippedLinesWarning(in_words(name, sorted(broken))))


def in_words(name: str, broken: list[Broken]) -> str:
    """State the number of lines that are omitted, and what is wrong with the first ones."""
    n = len(broken)
    first = "; ".join(f"line {line}: {reason:.120}" for line, reason in broken[:_TOLD])
    more = f"; and {n - _TOLD:,} others" if n > _TOLD else ""
    verb = "lines are" if n > 1 else "line is"
    return f"{n:,} broken {verb} omitted from {name}: {first}{more}."
