"""Files as checked text; nothing is fetched over a network.

A file is read whole and checked before it is parsed, so that no part of a broken file is returned:
gzip, bzip2, xz and zstandard are recognised by their magic bytes and decompressed under a size
limit; a UTF-8 byte order mark is dropped; XML in the encoding that it declares, or in UTF-16, is
written in UTF-8; binary files and other encodings are refused. NUL is a character like others,
which literals and labels may hold.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from capacity.database.io.files.compression import (
    BROKEN,
    broken_stream,
    compression,
    decompressing,
)
from capacity.database.io.files.foreign import foreign_bytes, is_parquet
from capacity.database.io.files.xml_encodings import xml_as_utf_8
from capacity.database.io.skipping import without
from capacity.database.source import Source
from capacity.errors import (
    DatabaseFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    StorageError,
)
from capacity.reading_limits import Growing, Limits
from capacity.safe_files import read_file, read_pieces

_DEFAULT = Limits()


class Text(Protocol):
    """A text that a format splits: a file in memory, or one that is read in a stream.

    Attributes
    ----------
    name : str
        Path of the file, or a name for the text, for messages.
    limits : Limits
        What the file is held to.
    data : bytes
        All of the text, in UTF-8.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def limits(self) -> Limits: ...  # noqa: D102
    @property
    def data(self) -> bytes: ...  # noqa: D102

    def lines(self, newline: str = "\n") -> Iterable[str]:
        """Yield the lines with their ends, which are those of `open` with the same `newline`."""
        ...


@dataclass
class Content:
    """Decompressed bytes of a file, known to be UTF-8 or Parquet.

    Attributes
    ----------
    name : str
        Path of the file, or a name for the text, for messages.
    data : bytes
        The text.
    sha256 : str
        SHA-256 of the bytes before decompression.
    limits : Limits
        What a parser must hold it to.
    omitted : tuple of (int, str)
        Lines that are empty since they weren't UTF-8, and what was wrong.
    """

    name: str
    data: bytes
    sha256: str
    limits: Limits = _DEFAULT
    omitted: tuple[tuple[int, str], ...] = ()

    def lines(self, newline: str = "\n") -> Iterable[str]:
        """Yield the lines with their ends, as `Text` has it."""
        return io.StringIO(self.data.decode("utf-8"), newline=newline)

    def source(self, format: str, notes: tuple[str, ...] = (), in_other_graphs: int = 0) -> Source:
        """Name the file of this content, and the format that it is read as."""
        return Source(Path(self.name).name, self.sha256, format, notes, in_other_graphs)

    def drop_text(self) -> None:
        """Forget the text once it is parsed: facts are sorted in the memory that it takes."""
        self.data = b""


def read(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    limits: Limits = _DEFAULT,
    allow_empty: bool = False,
    skip_errors: int = 0,
) -> Content:
    """Read a file whole, undo its compression, and check that it is text in UTF-8 or Parquet.

    The file is named, or open in binary mode.

    Raises
    ------
    DatabaseFormatError
        If the file is missing, not regular, empty (unless `allow_empty`), larger than the limits
        allow, badly compressed, binary, or not UTF-8.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        For an empty path.
    """
    if hasattr(path, "read"):
        where = getattr(path, "name", None)
        name = where if isinstance(where, str) else "the open file"
        raw = _read_open(name, path, limits.max_bytes)
        return check(name, raw, limits=limits, allow_empty=allow_empty, skip_errors=skip_errors)
    if not isinstance(path, str | os.PathLike):
        raise InvalidTypeError(
            f"A file must be named by a str or a path; got {type(path).__name__}. For an rdflib "
            "graph use from_rdflib, for a DataFrame from_pandas, for rows Database.from_triples."
        )
    if not os.fspath(path):
        raise InvalidArgumentError("The path must not be empty. Name a file or a folder.")
    try:
        raw = read_file(path, max_bytes=limits.max_bytes)
    except StorageError as error:
        raise of_storage(error) from None
    return check(
        os.fspath(path), raw, limits=limits, allow_empty=allow_empty, skip_errors=skip_errors
    )


def of_storage(error: StorageError) -> DatabaseFormatError:
    """Make the error of a file of facts that can't be read, or is too large."""
    return DatabaseFormatError(error.path, error.reason, advice=error.advice)


def refuse_excess(name: str, format: str, excess: tuple[str, str] | None) -> None:
    """Refuse a file that passes a limit, as `Limits.excess` states.

    Raises
    ------
    DatabaseFormatError
        With the limit, unless there is no excess.
    """
    if excess is not None:
        raise DatabaseFormatError(name, excess[0], format=format, advice=excess[1])


def _read_open(name: str, file: Any, max_bytes: int) -> bytes:
    try:
        return read_pieces(name, file, max_bytes=max_bytes)
    except StorageError as error:
        raise of_storage(error) from None
    except (OSError, ValueError) as error:
        raise DatabaseFormatError(
            name, f"the open file can't be read ({error!s:.100})", advice="Open it again."
        ) from None
    except TypeError:
        raise InvalidTypeError(
            f"An open file must return bytes; {name:.60} returns text, whose line ends are "
            "changed. Open it with open(path, 'rb')."
        ) from None


def check(
    name: str,
    raw: bytes,
    *,
    limits: Limits = _DEFAULT,
    allow_empty: bool = False,
    skip_errors: int = 0,
) -> Content:
    """Turn raw bytes into checked `Content`, without up to `skip_errors` lines that aren't UTF-8.

    Raises
    ------
    DatabaseFormatError
        If they are empty (unless `allow_empty`), larger than the limits allow when decompressed,
        badly compressed, binary, or not UTF-8.
    """
    limits = limits.of(len(raw))
    data = xml_as_utf_8(_decompressed(name, raw, limits))
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DatabaseFormatError(
            name,
            "the text is encoded in UTF-16; it must be UTF-8",
            advice="Convert it: iconv -f UTF-16 -t UTF-8.",
        )
    if is_parquet(data):
        return Content(name, data, hashlib.sha256(raw).hexdigest(), limits)
    if foreign := foreign_bytes(data):
        raise DatabaseFormatError(name, f"it is {foreign.what}", advice=foreign.advice)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not allow_empty and (not data or data.isspace()):
        raise DatabaseFormatError(name, "the file is empty", advice="It must hold facts.")
    beginning = data[:65536]
    wrong = _not_utf_8(data)
    # text has a NUL here and there at most, and hardly one that isn't UTF-8 has any
    if beginning.count(0) > (0 if wrong is not None else len(beginning) // 4):
        raise DatabaseFormatError(
            name,
            "the file is binary, it holds NUL bytes",
            advice="Pass RDF text (Turtle, N-Triples, ...) or a table (TSV, CSV).",
        )
    omitted: list[tuple[int, str]] = []
    if wrong is not None:
        first = not_utf_8(name, data, wrong)
        omitted = list(islice(_lines_not_utf_8(data, wrong), skip_errors + 1))
        if len(omitted) > skip_errors:
            raise first
        data = without(data, [line for line, _ in omitted])
    return Content(name, data, hashlib.sha256(raw).hexdigest(), limits, tuple(omitted))


def _lines_not_utf_8(data: bytes, wrong: int | None) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a byte that isn't UTF-8, from the first such byte on."""
    line, counted = 1, 0
    while wrong is not None:
        line, counted = line + data.count(b"\n", counted, wrong), wrong
        yield line, f"byte 0x{data[wrong]:02x} isn't UTF-8"
        end = data.find(b"\n", wrong)
        wrong = None if end < 0 else _not_utf_8(data, end)


def not_utf_8(name: str, data: bytes, wrong: int) -> DatabaseFormatError:
    """Make the error for a byte that isn't UTF-8."""
    return DatabaseFormatError(
        name,
        f"byte 0x{data[wrong]:02x} isn't UTF-8",
        line=data.count(b"\n", 0, wrong) + 1,
        advice="If it is text in Latin-1, convert it: iconv -f LATIN1 -t UTF-8.",
    )


def _not_utf_8(data: bytes, start: int = 0) -> int | None:
    """Find the first byte that isn't UTF-8, in pieces, for the text takes more memory than it."""
    while start < len(data):
        piece = memoryview(data)[start : start + 2**20]
        try:
            start += codecs.utf_8_decode(piece, "strict", start + len(piece) == len(data))[1]
        except UnicodeDecodeError as error:
            return start + error.start
    return None


def _decompressed(name: str, raw: bytes, limits: Limits) -> bytes:
    kind = compression(raw)
    if kind is None:
        return raw
    try:
        stream = Growing(name, decompressing(kind, io.BytesIO(raw)), limits)
        return read_pieces(name, stream, max_bytes=limits.max_bytes)
    except StorageError as error:
        raise of_storage(error) from None
    except BROKEN as error:
        raise broken_stream(name, kind, error) from None
