"""Texts as columns of Arrow, and their order, by Arrow or by compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

# bytes of texts from which compiled code pays to sort them if it is kept, and if it isn't: Arrow
# takes 30 ns a byte longer, and the compilation three seconds
KEPT, UNKEPT = 2**24, 2**27


def compute() -> Any:
    """Return ``pyarrow.compute``, whose functions no checker of types knows.

    They are made when it is imported, which takes longer than most small files do.
    """
    import pyarrow.compute

    return pyarrow.compute


def texts_of(starts: NDArray[np.int64], data: NDArray[np.uint8]) -> pa.LargeStringArray:
    """Make texts of their bytes and where each starts, without a copy.

    Parameters
    ----------
    starts : ndarray of int64, shape (n + 1,)
        Start of each text in `data`, and the end of the last one.
    data : ndarray of uint8
        Bytes of all texts in UTF-8, one after the other.
    """
    import pyarrow as pa

    buffers = pa.py_buffer(starts), pa.py_buffer(data)
    return pa.LargeStringArray.from_buffers(len(starts) - 1, *buffers)


def joined(texts: Sequence[bytes]) -> pa.LargeStringArray:
    """Make an array of texts in UTF-8, in a fifth of the time that Arrow's own function takes."""
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    return texts_of(starts, np.frombuffer(b"".join(texts), np.uint8))


def order_of(texts: pa.LargeStringArray, ties: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the order of texts by their bytes, and of equal ones by a number.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray, shape (n,)
        The texts.
    ties : ndarray of int32, shape (n,)
        Numbers from 0.

    Returns
    -------
    ndarray of int64, shape (n,)
        Indices of the texts, ascending by (text, number).

    Examples
    --------
    >>> import pyarrow as pa
    >>> texts = pa.array(["bc", "a", "bc"], pa.large_string())
    >>> order_of(texts, np.array([1, 0, 0], np.int32)).tolist()
    [1, 2, 0]
    """
    source = Path(__file__).with_name("text_order.py")
    # which nothing else here needs
    from capacity import kept_code

    if kept_code.pays(texts.nbytes, source, "_sort", kept=KEPT, unkept=UNKEPT):
        # numba takes longer to import than a few texts to sort
        from capacity.database.terms.text_order import sorted_order

        return sorted_order(*_bytes_of(texts), ties)
    pc = compute()
    order = np.asarray(pc.sort_indices(texts)).astype(np.int64)
    if len(order) and ties.any():
        ordered = texts.take(order)
        new = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
        places = np.concatenate([[0], np.cumsum(new)]) * (int(ties.max()) + 1) + ties[order]
        order = order[np.argsort(places, kind="stable")]
    return order


def _bytes_of(texts: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Starts of texts, with the end of the last one, and their bytes."""
    _, starts, data = texts.buffers()
    at = slice(texts.offset, texts.offset + len(texts) + 1)
    # there is no buffer for texts without bytes
    return np.frombuffer(starts, np.int64)[at], np.frombuffer(data or b"", np.uint8)
