"""Number the terms of plain lines of N-Triples and N-Quads, by compiled code."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.io.files.numbering import Numbering
from capacity.database.io.rdf.lines.scanning import KIND_BITS, Tails, scan


class CompiledLines:
    """Terms and facts of plain lines.

    Parameters
    ----------
    width : int
        3 for triples, 4 for quads.
    """

    def __init__(self, width: int) -> None:
        self._width, self._numbering, self._tails = width, Numbering(), Tails()

    def scanned(
        self, lines: bytes | memoryview, *, trusted: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Number the terms of plain lines, and find the others.

        Parameters
        ----------
        lines : bytes or memoryview
            Whole lines in UTF-8.
        trusted : bool
            Whether the parser has written them.

        Returns
        -------
        rows : ndarray of int32, shape (n, width)
            Facts of the plain lines, as numbers of terms.
        others : ndarray of int64, shape (m, 3)
            The other lines, as `capacity.database.io.rdf.lines.scanning.scan` has them.
        """
        # escapes are overwritten
        data = np.array(np.frombuffer(lines, np.uint8))
        most = int(np.count_nonzero(data == ord("\n"))) + 1
        size = most * self._width
        begins, ends, codes = (np.empty(size, np.int32) for _ in range(3))
        hashes, others = np.empty(size, np.uint64), np.empty((most, 3), np.int64)
        tails = self._tails
        plain, strange = scan(data, self._width, trusted, False, begins, ends, codes, hashes,
                              others, tails.slots, tails.starts, tails.pool,
                              tails.counts)  # fmt: skip
        n = plain * self._width
        # as tables are numbered, so that the same compiled code does both
        data.setflags(write=False)
        rows = self._numbering.number(data, begins[:n], ends[:n], codes[:n], hashes[:n])
        return rows.reshape(-1, self._width), others[:strange]

    def terms(
        self,
    ) -> tuple[NDArray[np.uint8], pa.LargeStringArray, NDArray[np.int32], list[str]]:
        """Return the terms in order of their numbers; several may be the same.

        Returns
        -------
        kinds : ndarray of uint8, shape (n,)
            Codes of their kinds, or `NO_GRAPH` for what is no term.
        texts : pyarrow.LargeStringArray
            Their texts.
        tails : ndarray of int32, shape (n,)
            Numbers of what follows them.
        tail : list of str
            What follows literals, such as "@en"; the first is nothing.
        """
        codes = self._numbering.codes
        kinds = (codes & 2**KIND_BITS - 1).astype(np.uint8)
        return kinds, self._numbering.texts(), codes >> KIND_BITS, self._tails.texts()
