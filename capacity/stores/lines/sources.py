"""Files of RDF as quads of the parser: lines in a stream, and other texts that are held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyoxigraph as ox

from capacity.checks import megabytes
from capacity.database.io.files.content import Content, check
from capacity.database.io.files.formats import Format
from capacity.database.io.rdf.graphs import graph_names
from capacity.database.io.rdf.guards.texts import refuse_hostile_turtle
from capacity.database.io.rdf.quads import SYNTAXES, VERSION, broken, checked_text, parser_of
from capacity.database.io.reading import Reading
from capacity.database.io.skipping import Broken, broken_in, in_words, without
from capacity.errors import DatabaseFormatError, MemoryBudgetError
from capacity.reading_limits import Limits
from capacity.stores.scratch.streams import opened

if TYPE_CHECKING:
    from capacity.stores.scratch.streams import Stream

LINES = ("ntriples", "nquads")
# what is read, how much of it, and of how much
Told: TypeAlias = Callable[[], tuple[str, int, int]]
# a text that is held may take this part of the memory
_SHARE = 4


class Omission:
    """The broken lines of a file that are omitted, up to a number.

    Attributes
    ----------
    format : str
        Name of the format.
    most : int
        Their number.
    found : list of (int, str)
        Those of the last reading: their numbers, and what is wrong with them.
    """

    def __init__(self, format: str, most: int) -> None:
        self.format, self.most = format, most
        self.found: list[Broken] = []

    def of(self, name: str, lines: bytes, before: int) -> bytes:
        """Empty the broken ones of some lines.

        Raises
        ------
        DatabaseFormatError
            For the first one, if there are more than may be.
        """
        fresh = list(islice(broken_in(lines, self.format, before), self.most + 1))
        self.found += fresh
        if len(self.found) > self.most:
            line, reason = self.found[0]
            raise DatabaseFormatError(
                name, reason, format=self.format, line=line,
                advice=f"Fix the file from that line on; over {self.most:,} lines are broken.",
            )  # fmt: skip
        return without(lines, [line - before for line, _ in fresh])

    def notes(self, name: str) -> tuple[str, ...]:
        """State what was omitted, if anything was."""
        return (in_words(name, self.found),) if self.found else ()


class CheckedLines:
    """Reader of whole lines, without directives and nests that the parser doesn't take."""

    def __init__(self, stream: Stream, omission: Omission | None = None) -> None:
        self.stream, self.rest, self.lines = stream, b"", 0
        self.omission = omission
        if omission is not None:
            omission.found = []
        self.ready, self.given = b"", 0

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes, for the parser has room for no more."""
        if self.given == len(self.ready):
            self.ready, self.given = self._checked(self._whole_lines()), 0
        piece = self.ready[self.given : self.given + size] if size >= 0 else self.ready
        self.given += len(piece)
        return piece

    def chunks(self) -> Iterator[bytes]:
        """Yield all lines, some at a time."""
        while lines := self._checked(self._whole_lines()):
            yield lines

    def _whole_lines(self) -> bytes:
        while piece := self.stream.read():
            whole = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
            if whole:
                lines, self.rest = self.rest + piece[:whole], piece[whole:]
                return lines
            self.rest += piece
        lines, self.rest = self.rest, b""
        return lines

    def _checked(self, lines: bytes) -> bytes:
        if b"<<" in lines:
            try:
                refuse_hostile_turtle(self.stream.name, lines)
            except DatabaseFormatError as error:
                line = None if error.line is None else error.line + self.lines
                raise DatabaseFormatError(
                    error.source, error.reason, line=line, advice=error.advice
                ) from None
        if self.omission is not None:
            lines = self.omission.of(self.stream.name, lines, self.lines)
        self.lines += lines.count(b"\n")
        return VERSION.sub(b"", lines) if b"VERSION" in lines else lines


class Source(Protocol):
    """A file of RDF that can be parsed as often as it is needed.

    Attributes
    ----------
    name, format, limits
        Path, format and limits of the file.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def format(self) -> Format: ...  # noqa: D102
    @property
    def limits(self) -> Limits: ...  # noqa: D102

    def opened(self) -> AbstractContextManager[tuple[Iterator[ox.Quad], Told]]:
        """Parse it; with a function that reports what is read, how much of it, and of how much."""
        ...

    def error(self, error: Exception) -> DatabaseFormatError:
        """Make the error for what the parser refuses."""
        ...

    def names_of(self, graphs: Sequence[object]) -> list[str]:
        """Name the graphs of some nodes."""
        ...


@dataclass(frozen=True)
class Lines:
    """A file of whole lines, of which few are held."""

    name: str
    format: Format
    limits: Limits
    omission: Omission | None = None

    @contextmanager
    def opened(self) -> Iterator[tuple[Iterator[ox.Quad], Told]]:
        """Parse it."""
        with opened(self.name, self.limits) as stream:
            lines = CheckedLines(stream, self.omission)
            quads = ox.parse(lines, format=SYNTAXES[self.format.name])  # type: ignore[arg-type]
            yield quads, lambda: (f"bytes of {self.name}", stream.done, stream.size)

    def error(self, error: Exception) -> DatabaseFormatError:
        """Make the error for what the parser refuses in a stream."""
        if isinstance(error, SyntaxError):
            reason, line, advice = str(error.msg), error.lineno, "Fix the file from that line on."
        elif isinstance(error, MemoryError):
            reason, line = "a term is longer than 16 MiB, the most that the parser reads", None
            advice = "Shorten it, or store it elsewhere and refer to it by its IRI."
        else:
            reason, line, advice = str(error), None, "Fix the file."
        return DatabaseFormatError(
            self.name, f"{reason:.400}", format=self.format.name, line=line, advice=advice
        )

    def names_of(self, graphs: Sequence[object]) -> list[str]:
        """Name graphs, of which each blank node has a label in a file of lines."""
        return graph_names(graphs, " ".join(map(str, graphs)).encode())


@dataclass(frozen=True)
class WholeText:
    """A text that is held, checked as `load` checks it."""

    content: Content
    format: Format
    base: str
    data: bytes

    @classmethod
    def read(
        cls, where: str, format: Format, reading: Reading, base: str, memory: int
    ) -> WholeText:
        """Read and check a text that fits into some bytes of memory.

        Raises
        ------
        DatabaseFormatError
            If it would harm the parser, or as `read` does.
        MemoryBudgetError
            If it takes too much of the memory.
        """
        content = read_within(where, format.name, reading.limits, memory)
        return cls(content, format, *checked_text(content, format, base, reading.contexts))

    @property
    def name(self) -> str:
        """Path of the file."""
        return self.content.name

    @property
    def limits(self) -> Limits:
        """Limits of the file."""
        return self.content.limits

    @contextmanager
    def opened(self) -> Iterator[tuple[Iterator[ox.Quad], Told]]:
        """Parse it."""
        syntax = SYNTAXES[self.format.name]
        quads = parser_of(self.content, syntax, self.base, self.data)
        # the parser doesn't tell how far it is
        yield quads, lambda: (f"bytes of {self.name}", 0, len(self.data))

    def error(self, error: Exception) -> DatabaseFormatError:
        """Make the error for what the parser refuses in the text."""
        return broken(self.content, self.format.name, error)

    def names_of(self, graphs: Sequence[object]) -> list[str]:
        """Name graphs by the labels in the text."""
        return graph_names(graphs, self.data)


def read_within(where: str, format: str, limits: Limits, memory: int) -> Content:
    """Read a text as a whole, which takes a quarter of the memory at most.

    Raises
    ------
    DatabaseFormatError
        As `read` does.
    MemoryBudgetError
        If the text, decompressed, takes more, with the format that is read in a stream.
    """
    pieces: list[bytes] = []
    with opened(where, limits) as stream:
        while piece := stream.read():
            pieces.append(piece)
            if stream.passed > memory // _SHARE:
                raise MemoryBudgetError(
                    f"{where}: {format} is read as a whole, and takes over a quarter of the memory "
                    f"for counting, {megabytes(memory)}. Allow more, or write it as N-Triples, "
                    "which is read in a stream: riot --output=ntriples FILE."
                )
        content = check(where, b"".join(pieces))
        # those of the file as it is stored
        content.limits = stream.limits
    return content
