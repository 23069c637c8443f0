"""Keys of the terms of scanned lines, by compiled code.

They have a module of their own, because compiled code is kept as long as all that its module
imports is the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.io.rdf.lines.scanning import BLANK, KIND_BITS, LITERAL
from capacity.database.terms.columns import texts_of
from capacity.kept_code import kept

_QUOTE, _UNDERSCORE, _COLON, _LESS, _GREATER = (ord(c) for c in '"_:<>')


@kept
def _copied(  # type: ignore[no-untyped-def]
    data, begins, ends, codes, column, width, tails, tail_starts, prefix, starts, text
):
    """Copy the terms of a column as keys, one after the other, and return their length."""
    at, mask = 0, (1 << KIND_BITS) - 1
    for row in range(len(starts) - 1):
        t = row * width + column
        begin, end, kind = begins[t], ends[t], codes[t] & mask
        starts[row] = at
        if kind == BLANK:
            text[at], text[at + 1] = _UNDERSCORE, _COLON
            at += 2
            for i in range(len(prefix)):
                text[at + i] = prefix[i]
            at += len(prefix)
        else:
            text[at] = _QUOTE if kind == LITERAL else _LESS
            at += 1
        for i in range(begin, end):
            text[at] = data[i]
            at += 1
        if kind != BLANK:
            text[at] = _QUOTE if kind == LITERAL else _GREATER
            at += 1
        tail = codes[t] >> KIND_BITS
        for i in range(tail_starts[tail], tail_starts[tail + 1]):
            text[at] = tails[i]
            at += 1
    starts[len(starts) - 1] = at
    return at


def key_column(
    data: NDArray[np.uint8],
    begins: NDArray[np.int32],
    ends: NDArray[np.int32],
    codes: NDArray[np.int32],
    column: int,
    width: int,
    tails: NDArray[np.uint8],
    tail_starts: NDArray[np.int64],
    prefix: NDArray[np.uint8],
    n: int,
) -> pa.LargeStringArray:
    """Return the keys of a column.

    Parameters
    ----------
    data, begins, ends, codes : ndarrays
        Lines, and where each term is, its kind and tail (`scan`).
    column, width : int
        Number of the column, and of all columns.
    tails, tail_starts : ndarrays
        Bytes of all tails as keys have them, and where each begins.
    prefix : ndarray of uint8
        What precedes the name of a blank node.
    n : int
        Number of the lines.
    """
    own = slice(column, n * width, width)
    of_tails = np.diff(tail_starts)[codes[own] >> KIND_BITS]
    # a key has two more characters than its term at most, its tail and the prefix
    room = int((ends[own] - begins[own] + of_tails).sum()) + n * (2 + len(prefix))
    starts, text = np.empty(n + 1, np.int64), np.empty(room, np.uint8)
    size = _copied(
        data, begins, ends, codes, column, width, tails, tail_starts, prefix, starts, text
    )
    return texts_of(starts, text[:size])
