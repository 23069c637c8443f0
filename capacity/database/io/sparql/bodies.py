"""The body of an answer as a stream that a parser reads: unpacked, counted, and held to limits."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Protocol

from capacity.database.io.rdf.guards.texts import first_deeper
from capacity.database.terms.grammar import MAX_TRIPLE_DEPTH
from capacity.errors import DatabaseFormatError, EndpointError

AT_ONCE = 2**16
# of what is read, for messages about what it isn't
_KEPT = 2**12
# a triple term takes two levels of JSON
MAX_DEPTH = 2 * MAX_TRIPLE_DEPTH
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TO_THE_END = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)


class Raw(Protocol):
    """Source of bytes as they come, such as a response of urllib3."""

    def __call__(self, n: int, /) -> bytes:
        """Return at most n bytes as they come; none at the end."""
        ...


class Body:
    """A file of binary reading over an answer.

    Parameters
    ----------
    name : str
        Name of the endpoint, for messages.
    raw : callable
        Source of the bytes as they come over the network.
    gzipped : bool
        Whether these are packed by gzip.
    max_bytes : int
        Maximum of the bytes, unpacked.
    look : callable
        Function that sees all bytes before the parser does, and may refuse them.

    Attributes
    ----------
    beginning : bytes
        The first bytes.
    """

    def __init__(
        self,
        name: str,
        raw: Raw,
        *,
        gzipped: bool,
        max_bytes: int,
        look: Callable[[bytes], object],
    ) -> None:
        self.beginning = b""
        self._name = name
        self._raw = raw
        self._unpack = zlib.decompressobj(wbits=31) if gzipped else None
        self._n_bytes, self._max_bytes = 0, max_bytes
        self._look = look

    def read(self, n: int = -1) -> bytes:
        """Read at most n bytes; none at the end.

        Raises
        ------
        EndpointError
            If there are more than `max_bytes`, or gzip is broken or cut off.
        """
        most = AT_ONCE if n < 0 else min(n, AT_ONCE)
        data = self._raw(most) if self._unpack is None else self._unpacked(most, self._unpack)
        self._n_bytes += len(data)
        if self._n_bytes > self._max_bytes:
            raise EndpointError(
                self._name,
                f"its answer holds more than {self._max_bytes:,} bytes",
                "Ask for fewer facts, or raise `max_bytes`.",
            )
        if len(self.beginning) < _KEPT:
            self.beginning += data[: _KEPT - len(self.beginning)]
        self._look(data)
        return data

    def text(self) -> str:
        """Beginning of the whole body, in one line, for a message."""
        while len(self.beginning) < _KEPT and self.read():
            pass
        return " ".join(self.beginning.decode("utf-8", "replace").split())

    def _unpacked(self, most: int, unpack: zlib._Decompress) -> bytes:
        # one that expands without end is stopped by the limit, a piece at a time
        while not unpack.eof:
            packed = unpack.unconsumed_tail or self._raw(AT_ONCE)
            try:
                data = unpack.decompress(packed, most)
            except zlib.error:
                raise self._broken("isn't gzip, against its header") from None
            if data:
                return data
            if not packed:
                raise self._broken("is cut off: its gzip has no end")
        if unpack.unused_data or self._raw(1):
            raise self._broken("continues after the end of its gzip")
        return b""

    def _broken(self, what: str) -> EndpointError:
        return EndpointError(self._name, f"its answer {what}", "Ask again.")


class Nesting:
    """A look at JSON as it comes, that refuses it before a parser recurs too deeply.

    The parser of results recurs into triple terms, and 100,000 of them end the process.

    Parameters
    ----------
    name : str
        Name of the endpoint, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._depth = 0
        self._in_string = self._escaped = False

    def __call__(self, data: bytes) -> None:
        """Look at the next bytes.

        Raises
        ------
        DatabaseFormatError
            If brackets nest too deeply.
        """
        bare = self._outside(data)
        # brackets below the depth of now can't be: the sums begin with it
        opened = b"[" * self._depth
        if first_deeper(MAX_DEPTH, opened + bare, b"[{", b"]}") is not None:
            raise DatabaseFormatError(
                self._name,
                f"its JSON nests over {MAX_DEPTH} deep",
                format="sparql",
                advice="Ask for terms that aren't triple terms.",
            )
        opens, closes = (sum(map(bare.count, both)) for both in ((b"[", b"{"), (b"]", b"}")))
        self._depth = max(0, self._depth + opens - closes)

    def _outside(self, data: bytes) -> bytes:
        """Bytes that are outside of strings, one of which may continue from the last piece."""
        if self._escaped and data:
            data, self._escaped = data[1:], False
        if self._in_string:
            data = self._after_string(data)
        bare = _STRINGS.sub(b"", data)
        bare, quote, rest = bare.partition(b'"')
        if quote:
            self._in_string = True
            self._after_string(rest)
        return bare

    def _after_string(self, data: bytes) -> bytes:
        found = _TO_THE_END.match(data)
        end = 0 if found is None else found.end()
        if end == len(data):
            return b""
        if data[end : end + 1] == b"\\":
            self._escaped = True
            return b""
        self._in_string = False
        return data[end + 1 :]
