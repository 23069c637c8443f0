"""The pages of a Parquet file by their own headers: sizes, decompressed, and encodings.

The metadata at a file's end may contain any sizes, but pyarrow takes those in the header of a page
before it looks at the page. So the headers are read first, of a few bytes each: structs in
Thrift's compact protocol. They are read here, for pyarrow ends the process if it is asked for a
column whose metadata are damaged.

References
----------
Apache Parquet, *File Format*, "Data Pages" and ``parquet.thrift``, and *Encodings*; Apache Thrift,
*Compact Protocol*.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from capacity.errors import InvalidArgumentError

# bytes of a header that are read at once, and at most: statistics in it may be long
_AT_ONCE, _MOST = 2**12, 2**24
# numbers of fields: groups of rows in the file, their columns, and what these say of themselves
_GROUPS, _COLUMNS, _META = 4, 1, 3
_STORED_COLUMN, _FIRST_PAGE, _DICTIONARY = 7, 9, 11
# of a page's header: sizes, decompressed and as it is stored; and where pages of data, of both
# versions, name their encoding
_SIZE, _STORED = 2, 3
_ENCODING = {5: 2, 8: 4}
# encodings of texts: one after the other; all lengths first; and what differs from the text before
PLAIN, DELTA_LENGTHS, DELTAS = 0, 6, 7
# types of the protocol; the bytes of those of one size
_INTEGERS, _BYTES, _LISTS, _STRUCT = (4, 5, 6), 8, (9, 10), 12
_FIXED = {3: 1, 7: 8, 13: 16}
_BOOLEANS = (1, 2)
_DEEPEST = 16


@dataclass(frozen=True)
class Page:
    """A page, as its header has it.

    Attributes
    ----------
    group, column : int
        Numbers of its group of rows, and of its column in that.
    size : int
        Bytes, decompressed.
    encodings : tuple of int
        Encodings of its data, of which an honest header names one; none of a page of a dictionary.
    """

    group: int
    column: int
    size: int
    encodings: tuple[int, ...]


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
    return (page.size for page in pages_of(file))


def pages_of(file: IO[bytes], group: int | None = None) -> Iterator[Page]:
    """Yield the pages of all groups of rows, or of one, without reading a page.

    Errors are those of `sizes_of_pages`.
    """
    file.seek(-8, os.SEEK_END)
    end = file.tell()
    n_bytes = int.from_bytes(file.read(4), "little")
    file.seek(max(0, end - n_bytes))
    try:
        for at_group, column, begin, stored in _columns(_Reader(file.read(n_bytes))):
            at = begin
            while group in (None, at_group) and at < min(begin + stored, end):
                size, length, encodings = _page(file, at)
                yield Page(at_group, column, size, encodings)
                at += length
    except IndexError:
        raise InvalidArgumentError("its metadata are cut") from None


def _columns(reader: _Reader) -> Iterator[tuple[int, int, int, int]]:
    """Yield the group and number of each column, where it begins, and its stored bytes."""
    for group, _ in enumerate(reader.lists(_GROUPS)):
        for column, _ in enumerate(reader.lists(_COLUMNS)):
            for number, kind in reader.fields():
                if (number, kind) != (_META, _STRUCT):
                    reader.skip(kind)
                    continue
                found = reader.integers((_STORED_COLUMN, _FIRST_PAGE, _DICTIONARY))
                at, first = found.get(_FIRST_PAGE, 0), found.get(_DICTIONARY, 0)
                # as pyarrow decides where it begins; a column without values has no page but a
                # dictionary's, and no page stands where a file begins
                begin = first if first > 0 and (at == 0 or first < at) else at
                yield group, column, max(0, begin), found.get(_STORED_COLUMN, 0)


def _page(file: IO[bytes], at: int) -> tuple[int, int, tuple[int, ...]]:
    """Return a page's size, its stored bytes with those of its header, and its encodings."""
    n_bytes = _AT_ONCE
    while True:
        file.seek(at)
        reader = _Reader(file.read(n_bytes))
        try:
            found, encodings = _header(reader)
        except IndexError:
            n_bytes *= 16
            if n_bytes > _MOST:
                raise InvalidArgumentError("the header of a page is cut") from None
            continue
        size, stored = found.get(_SIZE, -1), found.get(_STORED, -1)
        if size < 0 or stored < 0:
            raise InvalidArgumentError("the header of a page has no size")
        return size, reader.at + stored, encodings


def _header(reader: _Reader) -> tuple[dict[int, int], tuple[int, ...]]:
    """Read the header of a page: its sizes by their numbers, and its encodings."""
    sizes: dict[int, int] = {}
    encodings: list[int] = []
    for number, kind in reader.fields():
        if number in (_SIZE, _STORED) and kind in _INTEGERS:
            sizes[number] = reader.integer()
        elif number in _ENCODING and kind == _STRUCT:
            encodings += reader.integers((_ENCODING[number],)).values()
        else:
            reader.skip(kind)
    return sizes, tuple(encodings)


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
