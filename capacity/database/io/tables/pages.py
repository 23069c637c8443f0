"""Sizes of the pages of a Parquet file, decompressed, by their own headers.

The metadata at a file's end may say anything of sizes, but pyarrow takes what the header of a page
says before it looks at the page. So the headers are read first, of a few bytes each: structs in
Thrift's compact protocol. They are read here, for pyarrow ends the process if it is asked for a
column whose metadata are damaged.

References
----------
Apache Parquet, *File Format*, "Data Pages" and ``parquet.thrift``; Apache Thrift, *Compact
Protocol*.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

from capacity.errors import InvalidArgumentError

# bytes of a header that are read at once, and at most: statistics in it may be long
_AT_ONCE, _MOST = 2**12, 2**24
# numbers of fields: groups of rows in the file, their columns, and what these say of themselves
_GROUPS, _COLUMNS, _META = 4, 1, 3
_STORED_COLUMN, _FIRST_PAGE, _DICTIONARY = 7, 9, 11
# of a page's header: sizes, decompressed and as it is stored
_SIZE, _STORED = 2, 3
# types of the protocol; the bytes of those of one size
_INTEGERS, _BYTES, _LISTS, _STRUCT = (4, 5, 6), 8, (9, 10), 12
_FIXED = {3: 1, 7: 8, 13: 16}
_BOOLEANS = (1, 2)
_DEEPEST = 16


def sizes_of_pages(file: IO[bytes]) -> Iterator[int]:
    """Yield the bytes of each page, decompressed, without reading a page.

    Parameters
    ----------
    file : binary file
        A Parquet file, which ends as one does.

    Raises
    ------
    InvalidArgumentError
        If the metadata are broken, or a page has no header where it should.
    """
    file.seek(-8, os.SEEK_END)
    end = file.tell()
    n_bytes = int.from_bytes(file.read(4), "little")
    file.seek(max(0, end - n_bytes))
    try:
        for begin, stored in _columns(_Reader(file.read(n_bytes))):
            at = begin
            while at < min(begin + stored, end):
                size, length = _page(file, at)
                yield size
                at += length
    except IndexError:
        raise InvalidArgumentError("its metadata are cut") from None


def _columns(reader: _Reader) -> Iterator[tuple[int, int]]:
    """Yield where each column of each group of rows begins, and its stored bytes."""
    for _ in reader.lists(_GROUPS):
        for _ in reader.lists(_COLUMNS):
            for number, kind in reader.fields():
                if (number, kind) != (_META, _STRUCT):
                    reader.skip(kind)
                    continue
                found = reader.integers((_STORED_COLUMN, _FIRST_PAGE, _DICTIONARY))
                at, first = found.get(_FIRST_PAGE, 0), found.get(_DICTIONARY, 0)
                # as pyarrow decides where it begins; a column without values has no page but a
                # dictionary's, and no page stands where a file begins
                begin = first if first > 0 and (at == 0 or first < at) else at
                yield max(0, begin), found.get(_STORED_COLUMN, 0)


def _page(file: IO[bytes], at: int) -> tuple[int, int]:
    """Return a page's size, and its stored bytes with those of its header."""
    n_bytes = _AT_ONCE
    while True:
        file.seek(at)
        reader = _Reader(file.read(n_bytes))
        try:
            found = reader.integers((_SIZE, _STORED))
        except IndexError:
            n_bytes *= 16
            if n_bytes > _MOST:
                raise InvalidArgumentError("the header of a page is cut") from None
            continue
        size, stored = found.get(_SIZE, -1), found.get(_STORED, -1)
        if size < 0 or stored < 0:
            raise InvalidArgumentError("the header of a page has no size")
        return size, reader.at + stored


class _Reader:
    """A reader of structs, which keeps the integers that it is asked for; IndexError at the end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct, whose value is to be read then."""
        number = 0
        while byte := self.byte():
            # the difference to the last field's number; or zero, and the number follows
            number = number + (byte >> 4) if byte >> 4 else self.integer()
            yield number, byte & 15

    def integers(self, wanted: tuple[int, ...]) -> dict[int, int]:
        """Read a struct, and return some of its integers by their numbers."""
        found: dict[int, int] = {}
        for number, kind in self.fields():
            if number in wanted and kind in _INTEGERS:
                found[number] = self.integer()
            else:
                self.skip(kind)
        return found

    def lists(self, wanted: int) -> Iterator[None]:
        """Read a struct; yield before each struct in a list that is one of its fields."""
        for number, kind in self.fields():
            if number != wanted or kind not in _LISTS:
                self.skip(kind)
                continue
            of, n = self.head_of_list()
            if of != _STRUCT:
                raise InvalidArgumentError("a list of its metadata isn't one of structs")
            for _ in range(n):
                yield

    def head_of_list(self) -> tuple[int, int]:
        """Read the type of a list's values, and their number."""
        byte = self.byte()
        return byte & 15, byte >> 4 if byte >> 4 < 15 else self.varint()

    def skip(self, kind: int, depth: int = 0) -> None:
        """Read a value of any type; one of truth is in the type of its field."""
        if depth > _DEEPEST:
            raise InvalidArgumentError("its metadata nest too deep")
        if kind in _INTEGERS:
            self.varint()
        elif kind == _STRUCT:
            for _, of in self.fields():
                self.skip(of, depth + 1)
        elif kind in _LISTS:
            of, n = self.head_of_list()
            for _ in range(n):
                # each takes a byte at least, so that the bytes limit their number
                self.byte() if of in _BOOLEANS else self.skip(of, depth + 1)
        elif kind == _BYTES or kind in _FIXED:
            n_bytes = _FIXED[kind] if kind in _FIXED else self.varint()
            self.at += n_bytes
            if self.at > len(self.data):
                # past the end
                self.byte()
        elif kind not in _BOOLEANS:
            raise InvalidArgumentError("its metadata have an unknown type")

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        found = shift = 0
        while (byte := self.byte()) > 127:
            found |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise InvalidArgumentError("a number of its metadata is too long")
        return found | byte << shift

    def integer(self) -> int:
        found = self.varint()
        return (found >> 1) ^ -(found & 1)
