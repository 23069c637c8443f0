"""Files as streams: decompressed in passing, without their order mark, with progress by bytes."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from capacity.database.io.files.compression import (
    BROKEN,
    broken_stream,
    compression,
    decompressing,
)
from capacity.database.io.files.content import Content, check, of_storage
from capacity.database.io.files.foreign import foreign_bytes
from capacity.database.io.files.xml_encodings import xml_as_utf_8
from capacity.errors import DatabaseFormatError, StorageError
from capacity.reading_limits import Growing, Limits
from capacity.safe_files import require_regular

# bytes of a file that its format is guessed from, and some more that tell whether it ends there
_HEAD = 65536 + 8
_MARK = b"\xef\xbb\xbf"
# the longest line that is held
MAX_LINE = 2**26
_DEFAULT = Limits()


class Stream(io.RawIOBase):
    """The bytes of a file, decompressed, to be read once from the beginning.

    Attributes
    ----------
    name : str
        Path of the file, for messages.
    limits : Limits
        What it is held to.
    size : int
        Size of the file as it is stored.
    done, passed : int
        Numbers of bytes that were read, as they are stored and decompressed.
    """

    def __init__(self, where: str, raw: BinaryIO, limits: Limits) -> None:
        super().__init__()
        self.name, self.size = where, os.fstat(raw.fileno()).st_size
        self.limits = limits.of(self.size)
        self._raw, self._kind = raw, compression(raw.read(10))
        raw.seek(0)
        body: Any = raw
        if self._kind is not None:
            # facts of any number are counted, and how far a file grows is limited all the same
            grown = replace(self.limits, max_bytes=sys.maxsize)
            body = Growing(where, decompressing(self._kind, raw), grown)
        self._body, self._since_line, self.done, self.passed = body, 0, 0, 0
        self._held = self._piece(len(_MARK)).removeprefix(_MARK)

    @property
    def compressed(self) -> bool:
        """True if the file is compressed."""
        return self._kind is not None

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read some bytes, at least one unless the file ends.

        Raises
        ------
        DatabaseFormatError
            For a broken stream, a decompressed one that has grown too much, and a line that is too
            long to be held.
        """
        piece, self._held = self._held, b""
        piece = piece or self._piece(size if 0 < size < 2**20 else 2**20)
        self.done, self.passed = self._raw.tell(), self.passed + len(piece)
        last = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._since_line = len(piece) - 1 - last if last >= 0 else self._since_line + len(piece)
        if self._since_line > MAX_LINE:
            raise DatabaseFormatError(
                self.name, f"a line is longer than {MAX_LINE:,} bytes",
                advice="Check that it is a file of facts.",
            )  # fmt: skip
        return piece

    @property
    def data(self) -> bytes:
        """All that is left of the text."""
        return b"".join(iter(self.read, b""))

    def lines(self, newline: str = "\n") -> Iterator[str]:
        """Yield the lines with their ends, as `Text` has it.

        Raises
        ------
        DatabaseFormatError
            For a byte that isn't UTF-8, with its line.
        """
        text = io.TextIOWrapper(io.BufferedReader(self, 2**20), encoding="utf-8", newline=newline)
        try:
            yield from text
        except UnicodeDecodeError:
            raise not_utf_8(self.name, self.limits) from None

    def readinto(self, buffer: Any, /) -> int:
        """Read some bytes into a buffer, as `read` does."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def _piece(self, size: int) -> bytes:
        if self._kind is None:
            return self._body.read(size)
        try:
            return self._body.read(size)
        except StorageError as error:
            raise of_storage(error) from None
        except BROKEN as error:
            raise broken_stream(self.name, self._kind, error) from None


class FileText:
    """The text of a file, which is read again each time it is asked for; a `Text`.

    Attributes
    ----------
    name : str
        Path of the file, for messages.
    limits : Limits
        What it is held to.
    """

    def __init__(self, where: str, limits: Limits) -> None:
        with opened(where, limits) as stream:
            self.name, self.limits, self._stream = where, stream.limits, stream

    @property
    def done(self) -> int:
        """Bytes that were read in the last pass, as they are stored."""
        return self._stream.done

    @property
    def size(self) -> int:
        """Bytes of the whole file, as it is stored."""
        return self._stream.size

    @property
    def data(self) -> bytes:
        """All of the text."""
        with opened(self.name, self.limits) as self._stream:
            return self._stream.data

    def lines(self, newline: str = "\n") -> Iterator[str]:
        """Yield the lines with their ends, as `Text` has it."""
        with opened(self.name, self.limits) as self._stream:
            yield from self._stream.lines(newline)


@contextmanager
def opened(where: str, limits: Limits = _DEFAULT) -> Iterator[Stream]:
    """Open a regular file as a stream, which grows no more than the limits allow.

    Raises
    ------
    DatabaseFormatError
        If it is missing, not regular, or unreadable.
    """
    with open_regular(where) as raw:
        yield Stream(where, raw, limits)


def open_regular(where: str) -> BinaryIO:
    """Open a regular file, as it is stored.

    Raises
    ------
    DatabaseFormatError
        If it is missing, not regular, or unreadable.
    """
    try:
        require_regular(where)
    except StorageError as error:
        raise of_storage(error) from None
    return Path(where).open("rb")


def ends_of(where: str) -> tuple[bytes, bytes]:
    """Read the first twelve and the last four bytes of a file, by which some formats are known.

    Raises
    ------
    DatabaseFormatError
        If it is missing, not regular, or unreadable.
    """
    with open_regular(where) as raw:
        beginning = raw.read(12)
        raw.seek(-min(4, len(beginning)), os.SEEK_END)
        return beginning, raw.read()


def head_of(where: str, limits: Limits = _DEFAULT, skip_errors: int = 0) -> Content:
    """Read the beginning of a file, decompressed, and check that it is text in UTF-8.

    Up to `skip_errors` lines needn't be.

    Raises
    ------
    DatabaseFormatError
        If it is empty, or none.
    """
    with opened(where, limits) as stream:
        head = b""
        while len(head) < _HEAD and (piece := stream.read(_HEAD - len(head))):
            head += piece
        # blank lines tell nothing, however many there are
        is_blank = len(head) >= _HEAD and head.isspace()
        while is_blank and (piece := stream.read()):
            is_blank = piece.isspace()
        compressed = stream.compressed
    if compressed and head.startswith(b"PAR1") and 0 in head:
        raise DatabaseFormatError(
            where, "it is a Parquet file that was compressed once more",
            advice="Decompress it first.",
        )  # fmt: skip
    if foreign := foreign_bytes(head):
        raise DatabaseFormatError(where, f"it is {foreign.what}", advice=foreign.advice)
    head = xml_as_utf_8(head, whole=len(head) < _HEAD)
    # a character may be cut at the end of the beginning; of wrong ones the check tells the line
    with suppress(UnicodeDecodeError):
        head = head[: codecs.utf_8_decode(head, "strict", len(head) < _HEAD)[1]]
    # a beginning of blank lines isn't all
    allow_empty = len(head) >= _HEAD - 8 and not is_blank
    return check(where, head, allow_empty=allow_empty, skip_errors=skip_errors)


def whole_lines(stream: Stream) -> Iterator[bytes]:
    """Yield all lines, which end as those of TSV do, about a mebibyte at a time."""
    held: list[bytes] = []
    while piece := stream.read():
        if end := piece.rfind(b"\n") + 1:
            yield b"".join([*held, piece[:end]])
            held = [piece[end:]]
        else:
            held.append(piece)
    if rest := b"".join(held):
        yield rest


def not_utf_8(where: str, limits: Limits = _DEFAULT) -> DatabaseFormatError:
    """Make the error for a file that isn't UTF-8, with the line of the first wrong byte."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    wrong, line = "it", None
    with opened(where, limits) as stream:
        n_lines = 0
        try:
            while piece := stream.read():
                decoder.decode(piece)
                n_lines += piece.count(b"\n")
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            wrong, line = (
                f"byte 0x{error.object[error.start]:02x}",
                n_lines + before.count(b"\n") + 1,
            )
    return DatabaseFormatError(
        where, f"{wrong} isn't UTF-8", line=line,
        advice="If it is text in Latin-1, convert it: iconv -f LATIN1 -t UTF-8.",
    )  # fmt: skip
