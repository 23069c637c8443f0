"""Compressed files: gzip, bzip2, xz and zstandard, which are recognised by their magic bytes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from capacity.errors import DatabaseFormatError

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
# what a broken stream raises when it is read
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error)


def compression(beginning: bytes) -> str | None:
    """Recognise how a file is compressed by its first ten bytes; None if it isn't."""
    kind = next((k for magic, k in _MAGIC.items() if beginning.startswith(magic)), None)
    # a text may begin with "BZh", but not with the block size and the first block's mark as well
    return None if kind == "bzip2" and not _BZIP2.match(beginning) else kind


def broken_stream(name: str, kind: str, error: Exception) -> DatabaseFormatError:
    """Make the error for a compressed stream that can't be read."""
    return DatabaseFormatError(
        name, f"the {kind} stream is broken ({error})", advice="Fetch or compress it again."
    )


def decompressing(kind: str, stream: BinaryIO) -> Any:
    """Make a reader of what a file decompresses to, which raises one of `BROKEN` if it is broken.

    To be read by `Growing`, for it may have no end.
    """
    if kind == "gzip":
        return gzip.open(stream)
    if kind in ("bzip2", "xz"):
        made = bz2.BZ2Decompressor if kind == "bzip2" else lzma.LZMADecompressor
        return _Streams(made, stream)
    import pyarrow

    return pyarrow.CompressedInputStream(stream, "zstd")


class _Streams:
    """Reader of concatenated bzip2 or xz streams; the standard one silently drops a broken one."""

    def __init__(self, make: Callable[[], Any], stream: BinaryIO) -> None:
        self.make, self.stream, self.current = make, stream, make()

    def read(self, size: int) -> bytes:
        while True:
            more = b""
            if self.current.eof:
                more = self._next_stream()
                if not more:
                    return b""
                self.current = self.make()
            elif self.current.needs_input:
                more = self.stream.read(2**20)
                if not more:
                    raise EOFError("it ends too early")
            if piece := self.current.decompress(more, size):
                return piece

    def _next_stream(self) -> bytes:
        """Return the beginning of the next stream, after the zeros that may be between two."""
        more = self.current.unused_data.lstrip(b"\0")
        while not more and (piece := self.stream.read(2**20)):
            more = piece.lstrip(b"\0")
        return more
