"""Numbers for the tokens of a text, by compiled code.

A token is a range of bytes and a *code*, such as its kind: two tokens are the same if their bytes
and their codes are. A hash table with open addressing holds 32 bits of each token's hash beside its
number, so that most tokens take one access to the table and one to their bytes. What costs is the
wait for memory, and so all tokens of a piece of text are looked up before they are compared: the
accesses don't wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from capacity.database.terms.columns import texts_of
from capacity.kept_code import kept

# an odd number near 2**64 / golden ratio (Knuth, The Art of Computer Programming, 6.4)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# tokens that are looked up before they are compared: their memory stays near
_AT_ONCE = 256
_LOW, _HALF, _MIX = np.uint64(2**32 - 1), np.uint64(32), np.uint64(29)


@kept
def hash_of(data, begin, end, code):  # type: ignore[no-untyped-def]
    """Hash some bytes of a text and a code, eight bytes at a time."""
    value = np.uint64(code) ^ (np.uint64(end - begin) << _HALF)
    at = begin
    while at + 8 <= end:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        value = (value ^ word) * _FACTOR
        value ^= value >> _MIX
        at += 8
    word = np.uint64(0)
    while at < end:
        word = word << np.uint64(8) | np.uint64(data[at])
        at += 1
    value = (value ^ word) * _FACTOR
    return value ^ (value >> _HALF)


@kept
def _same(data, begin, end, code, i, starts, codes, pool):  # type: ignore[no-untyped-def]
    """Return True if a token of the text is that of number i."""
    start = starts[i]
    if starts[i + 1] - start != end - begin or codes[i] != code:
        return False
    length, at = end - begin, 0
    # eight bytes at a time: without a branch between them they are compared at once
    while at + 8 <= length:
        apart = np.uint8(0)
        for j in range(8):
            apart |= pool[start + at + j] ^ data[begin + at + j]
        if apart != 0:
            return False
        at += 8
    for j in range(at, length):  # noqa: SIM110 - compiled
        if pool[start + j] != data[begin + j]:
            return False
    return True


@kept
def _number(  # type: ignore[no-untyped-def]
    data, begins, ends, given, hashes, slots, starts, codes, known, pool, n, numbers
):
    """Number tokens, some at a time: look all up, compare those that are found, add the others."""
    mask = np.uint64(len(slots) - 1)
    read = np.uint8(0)
    for first in range(0, len(begins), _AT_ONCE):
        end_of = min(first + _AT_ONCE, len(begins))
        for t in range(first, end_of):
            at, tag = hashes[t] & mask, hashes[t] >> _HALF
            slot = slots[at]
            while slot != 0 and slot >> _HALF != tag:
                at = (at + np.uint64(1)) & mask
                slot = slots[at]
            numbers[t] = np.int64(slot & _LOW) - 1
        # a comparison ends where bytes differ, and what follows waits for that: so the memory that
        # it needs is read before
        for t in range(first, end_of):
            i = numbers[t]
            if i >= 0 and starts[i + 1] > starts[i]:
                read ^= pool[starts[i]] ^ pool[starts[i + 1] - 1] ^ np.uint8(codes[i])
        for t in range(first, end_of):
            i = numbers[t]
            if i >= 0 and not _same(data, begins[t], ends[t], given[t], i, starts, codes, pool):
                numbers[t] = -1
        for t in range(first, end_of):
            if numbers[t] >= 0:
                continue
            begin, end, code = begins[t], ends[t], given[t]
            at, tag = hashes[t] & mask, hashes[t] >> _HALF
            while True:
                slot = slots[at]
                if slot == 0:
                    slots[at] = tag << _HALF | np.uint64(n + 1)
                    start = starts[n]
                    for j in range(end - begin):
                        pool[start + j] = data[begin + j]
                    starts[n + 1], codes[n], known[n] = start + end - begin, code, hashes[t]
                    numbers[t] = n
                    n += 1
                    break
                if slot >> _HALF == tag:
                    i = np.int64(slot & _LOW) - 1
                    if _same(data, begin, end, code, i, starts, codes, pool):
                        numbers[t] = i
                        break
                at = (at + np.uint64(1)) & mask
    # what is read must be of use, or the compiler omits it
    return n, read


@kept
def _slots(known, n, size):  # type: ignore[no-untyped-def]
    """Make a table of another size for the tokens that have numbers."""
    slots = np.zeros(size, np.uint64)
    mask = np.uint64(size - 1)
    for i in range(n):
        at = known[i] & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = known[i] >> _HALF << _HALF | np.uint64(i + 1)
    return slots


class Numbering:
    """Tokens and their numbers, which grow from piece to piece of a text.

    Attributes
    ----------
    n : int
        The number of tokens so far; their numbers are 0, 1, ... in order of first use.
    """

    def __init__(self) -> None:
        self.n = 0
        self._slots = np.zeros(2**12, np.uint64)
        self._known = np.empty(0, np.uint64)
        self._codes = np.empty(0, np.int32)
        self._starts = np.zeros(1, np.int64)
        self._pool = np.empty(0, np.uint8)

    @property
    def codes(self) -> NDArray[np.int32]:
        """Code of each token."""
        return self._codes[: self.n]

    def texts(self) -> pa.LargeStringArray:
        """Text of each token, in the memory of this numbering."""
        return texts_of(self._starts[: self.n + 1], self._pool[: self._starts[self.n]])

    def number(
        self,
        data: NDArray[np.uint8],
        begins: NDArray[np.int32],
        ends: NDArray[np.int32],
        codes: NDArray[np.int32],
        hashes: NDArray[np.uint64],
    ) -> NDArray[np.int32]:
        """Number the tokens of a piece of text.

        Parameters
        ----------
        data : ndarray of uint8
            The piece.
        begins, ends : ndarray of int32, shape (m,)
            Where each token begins, and where it has ended.
        codes : ndarray of int32, shape (m,)
            Code of each token.
        hashes : ndarray of uint64, shape (m,)
            Their hashes (`hash_of`).

        Returns
        -------
        ndarray of int32, shape (m,)
            Number of each token.
        """
        self._grow(len(begins), len(data))
        numbers = np.empty(len(begins), np.int32)
        self.n, _ = _number(data, begins, ends, codes, hashes, self._slots, self._starts,
                            self._codes, self._known, self._pool, self.n, numbers)  # fmt: skip
        return numbers

    def _grow(self, tokens: int, text: int) -> None:
        """Make room for as many tokens, and as much text, as a piece may add."""
        most = self.n + tokens
        if most > len(self._codes):
            # what isn't touched takes no memory
            size = max(most, len(self._codes) * 3 // 2)
            self._known = _longer(self._known, self.n, size)
            self._codes = _longer(self._codes, self.n, size)
            self._starts = _longer(self._starts, self.n + 1, size + 1)
        if 3 * most > 2 * len(self._slots):
            size = len(self._slots)
            while 3 * most > 2 * size:
                size *= 2
            self._slots = _slots(self._known, self.n, size)
        used = int(self._starts[self.n])
        if used + text > len(self._pool):
            self._pool = _longer(self._pool, used, max(used + text, len(self._pool) * 3 // 2))


def _longer(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    longer = np.empty(size, array.dtype)
    longer[:used] = array[:used]
    return longer
