"""Limits of what is read from a file: the same options for every reader.

A file of a few kilobytes can expand to gigabytes: compression, the dictionaries of Parquet, and
prefixes write much in few bytes. So what a file may become is limited by what is stored of it, and
a file that passes a limit is refused before it takes the memory. docs/trust.md has the limits of
each reader in one table.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, replace
from typing import Any

from capacity.checks import require_integer
from capacity.errors import StorageError

# bytes of a file as it is stored, and of what it decompresses to
MAX_BYTES = 4 * 2**30
# a file of facts shrinks by 5 to 50 when it is compressed, one that is made to harm by 1,000; any
# may decompress to the first number of bytes, and all cells of any may, written out, take the other
MAX_GROWTH, FREE_BYTES, FREE_TEXT = 250, 2**26, 2**28
# the most that the parser of RDF reads in most formats; the same for all of them
MAX_TERM_BYTES = 2**24
# a row takes a byte where it is stored, at least, but for Parquet, where 10^6 triples of 50,000
# subjects and 20 predicates take 466 kB: any file may have this many rows, and cells
FREE_ROWS, FREE_CELLS, CELLS_A_ROW, ROWS_A_BYTE = 250_000, 5 * 10**6, 10, 4


@dataclass(frozen=True)
class Limits:
    """Limits of reading a file.

    Attributes
    ----------
    max_bytes : int
        Most bytes of the file as it is stored, and of what it decompresses to.
    max_growth : int
        How many times its stored size a file may take, decompressed or written out; but for
        `FREE_BYTES` and `FREE_TEXT`, which any may take.
    max_rows, max_cells : int or None
        Most rows (of a table, triples, or entries) and cells (rows times columns; places of a dense
        array); by default one for each stored byte, and at least `FREE_ROWS` and `FREE_CELLS`; if
        `max_rows` is given, ten cells for each of them at least.
    max_term_bytes : int
        Most bytes of a term.
    stored : int
        Bytes of the file as it is stored, on which the others depend.
    packed : bool
        True for Parquet, whose rows may take less than a byte: it may have four for each, and ten
        cells for each of them.

    Raises
    ------
    InvalidArgumentError
        If one isn't a positive integer.

    Examples
    --------
    >>> Limits().of(2 * 10**6).rows, Limits(max_rows=5).of(2 * 10**6).rows
    (2000000, 5)
    """

    max_bytes: int = MAX_BYTES
    max_growth: int = MAX_GROWTH
    max_rows: int | None = None
    max_cells: int | None = None
    max_term_bytes: int = MAX_TERM_BYTES
    stored: int = 0
    packed: bool = False

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_growth", "max_rows", "max_cells", "max_term_bytes"):
            if getattr(self, name) is not None:
                require_integer(name, getattr(self, name), most=sys.maxsize)

    def of(self, stored: int) -> Limits:
        """Return the limits of a file of that many bytes."""
        return replace(self, stored=stored)

    @property
    def rows(self) -> int:
        """Most rows."""
        if self.max_rows is not None:
            return self.max_rows
        return max(FREE_ROWS, self.stored * (ROWS_A_BYTE if self.packed else 1))

    @property
    def cells(self) -> int:
        """Most cells."""
        if self.max_cells is not None:
            return self.max_cells
        # a caller that asks for more rows means their cells, too
        wide = self.rows if self.packed else self.max_rows or 0
        return max(FREE_CELLS, self.stored, CELLS_A_ROW * wide)

    @property
    def grown(self) -> int:
        """Most bytes of what a compressed file decompresses to."""
        return max(FREE_BYTES, self.max_growth * self.stored)

    @property
    def text(self) -> int:
        """Most bytes of all cells, written out."""
        return max(FREE_TEXT, self.max_growth * self.stored)

    def excess(
        self, *, rows: int = 0, cells: int = 0, grown: int = 0, text: int = 0, term: int = 0
    ) -> tuple[str, str] | None:
        """Name the limit that a file passes, and what to do; None if it passes none.

        Parameters
        ----------
        rows, cells : int
            Its numbers of rows and cells, or as many as are known.
        grown, text : int
            Bytes that it decompresses to, and of its cells, written out.
        term : int
            Bytes of its longest term.

        Examples
        --------
        >>> Limits(max_rows=5).excess(rows=6)
        ('it has more than 5 rows', 'Use a part of it, or raise `max_rows`.')
        """
        if term > self.max_term_bytes:
            most = f"{self.max_term_bytes:,}"
            return f"a cell is longer than {most} bytes", "Shorten it, or raise `max_term_bytes`."
        if rows > self.rows:
            return f"it has more than {self.rows:,} rows", "Use a part of it, or raise `max_rows`."
        if cells > self.cells:
            most = f"{self.cells:,}"
            return f"it has more than {most} cells", "Use a part of it, or raise `max_cells`."
        if grown > self.grown:
            return (
                f"it decompresses to over {self.max_growth} times its size, as no file of facts "
                "does",
                "If you trust it, decompress it first, or raise `max_growth`.",
            )
        if grown > self.max_bytes:
            return (
                f"it holds more than {self.max_bytes:,} bytes, decompressed",
                "Split it, use a part of it, or raise `max_bytes`.",
            )
        if text > self.text:
            return (
                f"its cells, written out, take over {self.text:,} bytes, {self.max_growth} times "
                "its size",
                "If you trust it, raise `max_growth`.",
            )
        return None


class Growing(io.RawIOBase):
    """Reader of a decompressed stream, that ends where it has grown too much.

    Parameters
    ----------
    where : str
        Name of the file, for messages.
    stream : binary file
        What it decompresses to.
    limits : Limits
        Limits of the file.
    """

    def __init__(self, where: str, stream: Any, limits: Limits) -> None:
        super().__init__()
        self._where, self._stream, self._limits, self._size = where, stream, limits, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read at most some bytes, and by default a mebibyte; none at the end.

        Raises
        ------
        StorageError
            If there are more than the limits allow.
        """
        piece: bytes = self._stream.read(size if size >= 0 else 2**20)
        self._size += len(piece)
        if excess := self._limits.excess(grown=self._size):
            raise StorageError(self._where, *excess)
        return piece

    def readinto(self, buffer: Any, /) -> int:
        """Read some bytes into a buffer, as `read` does."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)
