"""Lines of comments in tables of text, which aren't rows.

The user names the mark that they begin with; or lines before the first row, which begin with ``#``
or ``!``, are recognised, as files of SSSOM, GAF and SNAP have them: one of them has another number
of cells than the row, and so is no row, and those with as many have a blank after the mark.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from capacity.database.io.files.content import Text
from capacity.database.io.reading import Reading
from capacity.database.io.tables.table import SEPARATORS
from capacity.reading_limits import Limits

_MARKS = ("#", "!")
# lines, and characters of them, that are looked at
_MOST, _MOST_TEXT = 10_000, 2**20


@dataclass
class Uncommented:
    """A text whose lines of comments are empty lines, which no table has as rows.

    Attributes
    ----------
    text : Text
        The text.
    separator : str or None
        What separates its cells; None if no lines are recognised as comments.
    mark : str or None
        What lines of comments begin with, wherever they are; None if it isn't specified.
    has_quotes : bool
        Whether a line may be within a cell in quotes, as in CSV.
    """

    text: Text
    separator: str | None
    mark: str | None
    has_quotes: bool
    _empty: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.text.name

    @property
    def limits(self) -> Limits:
        """Limits of the file."""
        return self.text.limits

    @property
    def data(self) -> bytes:
        """All of the text, with its comments."""
        return self.text.data

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about the lines that were recognised as comments in the last pass."""
        return notes_on(self._empty)

    def lines(self, newline: str = "\n") -> Iterator[str]:
        """Yield the lines with their ends, as `Text` has it."""
        lines = iter(self.text.lines(newline))
        self._empty = 0
        if self.mark is not None:
            yield from _without(lines, self.mark, has_quotes=self.has_quotes)
            return
        if self.separator is None:
            yield from lines
            return
        beginning = _beginning(lines)
        self._empty = n_comments(beginning, self.separator)
        yield from (_end_of(line) for line in beginning[: self._empty])
        yield from chain(beginning[self._empty :], lines)


def _beginning(lines: Iterator[str]) -> list[str]:
    """Take the lines that may be comments, empty ones among them, and the next."""
    taken: list[str] = []
    size = 0
    for line in lines:
        taken.append(line)
        size += len(line)
        may_precede = line.startswith(_MARKS) or not line.rstrip("\r\n")
        if not may_precede or len(taken) > _MOST or size > _MOST_TEXT:
            break
    return taken


def n_comments(lines: Sequence[str], separator: str) -> int:
    r"""Count the lines at the beginning that are certainly comments.

    Parameters
    ----------
    lines : sequence of str
        The lines up to the first that is neither marked nor empty.
    separator : str
        What separates cells.

    Examples
    --------
    >>> n_comments(["# Nodes: 3\n", "# From\tTo\n", "1\t2\n"], "\t")
    2
    >>> n_comments(["#a\tb\n", "1\t2\n"], "\t")
    0
    """
    *before, first = lines or [""]
    n_cells = _n_cells(first, separator)
    if first.startswith(_MARKS) or n_cells is None or n_cells == 1:
        return 0
    marked = [line for line in before if line.startswith(_MARKS)]
    alike = [line for line in marked if _n_cells(line, separator) == n_cells]
    are_comments = len(alike) < len(marked) and all(line[1:2].isspace() for line in alike)
    return len(before) if are_comments else 0


def _n_cells(line: str, separator: str) -> int | None:
    """Count the cells of a line; None if one in quotes continues in the next line."""
    if separator != "," or '"' not in line:
        return line.count(separator) + 1
    try:
        return len(next(csv.reader([line.rstrip("\r\n")], strict=True)))
    except csv.Error:
        return None


def notes_on(n_lines: int) -> tuple[str, ...]:
    """State that some lines at the beginning are comments; nothing if none are."""
    if not n_lines:
        return ()
    line = "line is a comment" if n_lines == 1 else f"{n_lines} lines are comments"
    return (f"The first {line}, and no row.",)


def _without(lines: Iterable[str], mark: str, *, has_quotes: bool) -> Iterator[str]:
    """Make lines that begin with a mark empty, but for those within a cell in quotes."""
    within_quotes = False
    for line in lines:
        if not within_quotes and line.startswith(mark):
            yield _end_of(line)
            continue
        within_quotes ^= has_quotes and bool(line.count('"') % 2)
        yield line


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def comments_before(format: str, reading: Reading) -> str | None:
    """Return the separator of cells where lines before the first row may be comments, or None.

    They may be in TSV and CSV, unless the caller specifies that all rows are facts.
    """
    return SEPARATORS.get(format) if reading.table != "long" else None


def after_comments(data: bytes, separator: str | None) -> int:
    r"""Return the byte at which the comments before the first row have ended; 0 if there are none.

    The data are UTF-8; without a separator no line is a comment.

    Examples
    --------
    >>> after_comments(b"# Nodes: 3\n1\tp\t2\n", "\t")
    11
    """
    if separator is None or not data.startswith(tuple(mark.encode() for mark in _MARKS)):
        return 0
    whole = data[:_MOST_TEXT].rpartition(b"\n")[0].decode("utf-8") + "\n"
    # str.splitlines would also cut labels at U+2028 and others
    beginning = _beginning(iter(io.StringIO(whole, newline="\n")))
    n = n_comments(beginning, separator)
    return len("".join(beginning[:n]).encode())
