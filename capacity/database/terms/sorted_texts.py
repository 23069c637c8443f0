"""The order of texts, by Arrow or by compiled code, whichever takes less time with its start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.terms.arrow import compute
from capacity.kept_code import pays

# bytes of texts from which compiled code pays to sort them if it is kept, and if it isn't: Arrow
# takes 30 ns a byte longer, and the compilation three seconds
KEPT, UNKEPT = 2**24, 2**27


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
    >>> texts = pa.array(["bc", "a", "bc"], pa.large_string())
    >>> order_of(texts, np.array([1, 0, 0], np.int32)).tolist()
    [1, 2, 0]
    """
    source = Path(__file__).with_name("text_order.py")
    if pays(texts.nbytes, source, "_sort", kept=KEPT, unkept=UNKEPT):
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
