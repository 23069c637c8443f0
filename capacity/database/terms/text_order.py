"""Sorting texts by their bytes, by compiled code: eight bytes at a time.

Terms of a graph share long prefixes, so that a comparison of two reads far into both, and each text
is in memory far from the next. Here eight bytes of every text are read at once and sorted as
integers; only texts that share them are looked at further (a radix sort from the most significant
digit, with digits of 64 bits; Bentley and Sedgewick 1997), the integers by their bytes. A small
group is sorted by comparisons.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capacity.kept_code import kept

# groups up to this size are sorted by insertion
_SMALL = 16
_WORD = 8
_BITS, _BYTE = np.uint64(8), np.uint64(255)


def sorted_order(
    starts: NDArray[np.int64], data: NDArray[np.uint8], ties: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the order of texts by their bytes, and of equal ones by a number.

    Parameters
    ----------
    starts : ndarray of int64, shape (n + 1,)
        Start of each text in `data`, and the end of the last one.
    data : ndarray of uint8
        Bytes of all texts.
    ties : ndarray of int32, shape (n,)
        Numbers from 0.

    Returns
    -------
    ndarray of int64, shape (n,)
        Indices of the texts, ascending by (text, number).

    Examples
    --------
    >>> starts, data = np.array([0, 2, 3, 5]), np.frombuffer(b"bcabc", np.uint8)
    >>> sorted_order(starts, data, np.array([1, 0, 0], np.int32)).tolist()
    [1, 2, 0]
    """
    order = np.arange(len(starts) - 1)
    _sort(starts, data, ties, order)
    return order


@kept
def _less(starts, data, ties, a, b, depth):  # type: ignore[no-untyped-def]
    """Return True if text a precedes text b, whose first bytes, up to `depth`, are equal."""
    i, j = starts[a] + depth, starts[b] + depth
    while i < starts[a + 1] and j < starts[b + 1]:
        if data[i] != data[j]:
            return data[i] < data[j]
        i += 1
        j += 1
    left, right = starts[a + 1] - starts[a], starts[b + 1] - starts[b]
    return left < right or (left == right and ties[a] < ties[b])


@kept
def _insert(starts, data, ties, order, low, high, depth):  # type: ignore[no-untyped-def]
    for i in range(low + 1, high):
        one, j = order[i], i
        while j > low and _less(starts, data, ties, one, order[j - 1], depth):
            order[j] = order[j - 1]
            j -= 1
        order[j] = one


@kept
def _read(starts, data, order, low, high, depth, keys):  # type: ignore[no-untyped-def]
    """Read eight bytes of each text, and 0 after its end; return True if some text has any."""
    more = False
    for i in range(low, high):
        at, end = starts[order[i]] + depth, starts[order[i] + 1]
        word = np.uint64(0)
        if at + _WORD <= end:
            for k in range(_WORD):
                word = word << np.uint64(8) | np.uint64(data[at + k])
        elif at < end:
            for k in range(at, end):
                word = word << np.uint64(8) | np.uint64(data[k])
            word <<= np.uint64(8 * (_WORD - (end - at)))
        keys[i] = word
        more = more or at < end
    return more


@kept
def _radix(keys, order, spare_keys, spare, low, high, counts):  # type: ignore[no-untyped-def]
    """Sort a part of `keys`, and `order` with it, by one byte after the other, the last one first.

    Bytes that all keys share, of which most have several, are omitted.
    """
    counts[:] = 0
    for i in range(low, high):
        key = keys[i]
        for k in range(_WORD):
            counts[k, key & _BYTE] += 1
            key >>= _BITS
    for k in range(_WORD):
        shift = np.uint64(8 * k)
        if counts[k, keys[low] >> shift & _BYTE] == high - low:
            continue
        at = low
        for c in range(256):
            n = counts[k, c]
            counts[k, c] = at
            at += n
        for i in range(low, high):
            c = keys[i] >> shift & _BYTE
            spare_keys[counts[k, c]], spare[counts[k, c]] = keys[i], order[i]
            counts[k, c] += 1
        for i in range(low, high):
            keys[i], order[i] = spare_keys[i], spare[i]


@kept
def _sort(starts, data, ties, order):  # type: ignore[no-untyped-def]
    n = len(order)
    keys, spare_keys, spare = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.int64)
    counts = np.empty((_WORD, 256), np.int64)
    # groups on the stack are disjoint, and each has more than _SMALL texts
    groups = np.empty((n // _SMALL + 2, 3), np.int64)
    groups[0, 0], groups[0, 1], groups[0, 2] = 0, n, 0
    top = 1
    while top:
        top -= 1
        low, high, depth = groups[top, 0], groups[top, 1], groups[top, 2]
        if high - low <= _SMALL:
            _insert(starts, data, ties, order, low, high, depth)
            continue
        if not _read(starts, data, order, low, high, depth, keys):
            # texts that are equal but for zeros at their ends
            for i in range(low, high):
                length = starts[order[i] + 1] - starts[order[i]]
                keys[i] = np.uint64(length) << np.uint64(32) | np.uint64(ties[order[i]])
            _radix(keys, order, spare_keys, spare, low, high, counts)
            continue
        shared = True
        for i in range(low + 1, high):
            shared = shared and keys[i] == keys[low]
        if not shared:
            _radix(keys, order, spare_keys, spare, low, high, counts)
        start = low
        for i in range(low + 1, high + 1):
            if i < high and keys[i] == keys[start]:
                continue
            if i - start > _SMALL:
                groups[top, 0], groups[top, 1], groups[top, 2] = start, i, depth + _WORD
                top += 1
            elif i - start > 1:
                _insert(starts, data, ties, order, start, i, depth + _WORD)
            start = i
