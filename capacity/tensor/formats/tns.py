"""Tensors as text: the coordinate format of FROSTT, a line ``i j k value`` for each entry.

Indices count from 1, or from 0, as some programs write them, where one is 0. The format has no
place for the shape, which readers take from the largest indices; a comment ``# shape: 4 4 5``,
which other readers skip, keeps zero slices at the end. The header of the Tensor Toolbox has it,
too: lines ``sptensor``, the number of modes, the sizes, and the number of entries.

References
----------
S. Smith et al., FROSTT: The Formidable Repository of Open Sparse Tensors and Tools, 2017.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import (
    CountedFromZeroWarning,
    InvalidArgumentError,
    TensorFormatError,
    warn_caller,
)
from capacity.reading_limits import Limits
from capacity.tensor.coordinates import LARGEST_ENTRY, LARGEST_ORDER, LARGEST_SIDE, checked_shape
from capacity.tensor.dense import from_coo
from capacity.tensor.formats.npy import refuse_order
from capacity.tensor.sparse import SparseTensor

_DEFAULT = Limits()
# lines that are parsed together, and the longest line in bytes
BLOCK = 2**16
LONGEST = 2**16
_SHAPE = re.compile(rb"#\s*shape\s*:\s*(.*)", re.IGNORECASE | re.DOTALL)
_INDEX = re.compile(rb"\+?[0-9]{1,20}")
_VALUE = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def parse_tns(
    name: str,
    stream: BinaryIO,
    limits: Limits = _DEFAULT,
    *,
    max_order: int = LARGEST_ORDER,
) -> SparseTensor:
    r"""Read the text of a tensor.

    Parameters
    ----------
    name : str
        Path of the file, for messages.
    stream : binary file
        Lines of indices, counted from 1 (from 0 where one is 0), and a value; empty lines, and
        comments that begin with ``#``. Values at one place are added up. A header of the Tensor
        Toolbox may come first.
    limits : Limits
        Limits of reading it.
    max_order : int
        Maximum of the modes.

    Returns
    -------
    SparseTensor

    Raises
    ------
    TensorFormatError
        With the line, if it has another number of fields than the first, an index isn't an integer
        from 1 to 2^31 - 1 or lies outside of the shape in a comment, or a value isn't an integer of
        at most 63 bits; if there is neither an entry nor a shape, or more than the limits allow.

    Examples
    --------
    >>> import io
    >>> parse_tns("W.tns", io.BytesIO(b"1 1 2 1\n1 2 1 1\n2 1 1 1.0\n"))
    SparseTensor(2 x 2 x 2, 3 entries from 1 to 1)
    """
    blocks: list[NDArray[np.int64]] = []
    numbers: list[NDArray[np.int64]] = []
    shape: tuple[int, ...] | None = None
    width = 0
    head = _Header()
    for start, lines in _blocks(name, stream):
        rows: list[list[bytes]] = []
        of: list[int] = []
        for number, line in enumerate(lines, start=start):
            if line.lstrip().startswith(b"#"):
                said = _SHAPE.match(line.strip())
                shape = _said_shape(name, number, said[1]) if said else shape
            elif width == 0 and head.takes(name, number, line):
                shape = head.shape or shape
            elif fields := line.split():
                width = width or _checked_width(name, number, len(fields), max_order)
                if len(fields) != width:
                    raise _error(
                        name, number, f"{len(fields)} fields, where lines before have {width}"
                    )
                rows.append(fields)
                of.append(number)
        n_lines = start - 1 + len(lines)
        n_cells = width * (sum(map(len, numbers)) + len(of))
        if excess := limits.excess(rows=n_lines, cells=n_cells):
            raise TensorFormatError(name, excess[0], format="tns", advice=excess[1])
        blocks.append(_parsed(name, rows, of, width))
        numbers.append(np.array(of, np.int64))
    entries = np.concatenate([np.zeros((0, width), np.int64), *(b for b in blocks if b.size)])
    if not len(entries) and shape is None:
        raise TensorFormatError(
            name, "it holds no entries", format="tns",
            advice="A zero tensor has a line such as `# shape: 4 4 5`.",
        )  # fmt: skip
    if not len(entries):
        return from_coo(np.zeros((0, len(shape or ())), np.int64), [], shape)
    at, most = entries[:, :-1], np.array(shape or (LARGEST_SIDE,) * (width - 1))
    if len(most) != width - 1:
        raise TensorFormatError(
            name, f"its shape has {len(most)} sizes, and its lines {width - 1} indices",
            format="tns", advice="Fix the comment, or take it out.",
        )  # fmt: skip
    # no file that counts from 1 has a 0
    least = int(at.min() != 0)
    outside = ((at < 0) | (at >= most + least)).any(axis=1)
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        within = f"within the shape {shape}" if shape else "up to 2^31 - 1"
        why = "" if least else ", for one is 0"
        raise _error(
            name, int(np.concatenate(numbers)[first]),
            f"indices must count from {least}{why}, {within}; got {at[first].tolist()}",
        )  # fmt: skip
    head.require_entries(name, len(entries))
    if not least:
        warn_caller(
            CountedFromZeroWarning(f"{name}: indices are read as counting from 0, for one is 0.")
        )
    try:
        return from_coo(at - least, entries[:, -1], shape)
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format="tns") from None


@dataclass
class _Header:
    """The header of the Tensor Toolbox, a line after the other; None of it if there is none."""

    seen: int = 0
    shape: tuple[int, ...] | None = None
    order: int = 0
    n_entries: int | None = None

    def takes(self, name: str, number: int, line: bytes) -> bool:
        """Take a line that belongs to the header; return whether it does."""
        text = line.strip()
        if not text:
            return False
        if self.seen == 0 and text.lower() != b"sptensor":
            if text.lower() in (b"tensor", b"matrix", b"ktensor"):
                raise _error(name, number, f"a {text.decode()} of the Tensor Toolbox isn't sparse")
            self.seen = 4
        if self.seen == 4:
            return False
        if self.seen == 2:
            self.shape = _said_shape(name, number, text)
            if len(self.shape) != self.order:
                raise _error(name, number, f"{self.order} sizes must follow; got {_text(text)}")
        elif self.seen:
            if not _INDEX.fullmatch(text):
                raise _error(name, number, f"a header must have a number here; got {_text(text)}")
            if self.seen == 1:
                self.order = int(text)
            else:
                self.n_entries = int(text)
        self.seen += 1
        return True

    def require_entries(self, name: str, n_entries: int) -> None:
        """Refuse a file that has another number of entries than its header has."""
        if self.n_entries not in (None, n_entries):
            raise TensorFormatError(
                name, f"its header has {self.n_entries:,} entries, and it has {n_entries:,}",
                format="tns", advice="It may have been cut: fetch or write it again.",
            )  # fmt: skip


def n_fields(beginning: bytes) -> int:
    r"""Count the numbers of the first line of a text, which isn't one of comments.

    0 if they aren't divided by blanks, as those of a table by tabs aren't, or one but the last
    isn't an index.

    Examples
    --------
    >>> n_fields(b"# said\n\n1 2 0.5\n"), n_fields(b"1\t2\t3\n"), n_fields(b"a 1 1\n")
    (3, 0, 0)
    """
    lines = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    first = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    *indices, value = first.split() or [b""]
    plain = b"\t" not in first.strip() and all(map(_INDEX.fullmatch, indices))
    return len(indices) + 1 if plain and _VALUE.fullmatch(value) else 0


def says_shape(beginning: bytes) -> bool:
    r"""Return whether a text begins with a comment on the shape, and not with a line of facts.

    Examples
    --------
    >>> says_shape(b"# shape: 4 4\n1 1 5\n")
    True
    """
    lines = beginning.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    # the last may be cut
    is_text = all(
        not line.strip() or line.startswith(b"#") or n_fields(line) for line in lines[:-1]
    )
    return is_text and any(map(_SHAPE.match, lines))


def tns_text(tensor: SparseTensor) -> bytes:
    """Write a tensor as text, its shape in a comment.

    Examples
    --------
    >>> print(tns_text(SparseTensor([[0, 1]], [5], (2, 2))).decode())
    # shape: 2 2
    1 2 5
    <BLANKLINE>
    """
    rows = np.column_stack([tensor.indices + 1, tensor.values])
    pieces = [f"# shape: {' '.join(map(str, tensor.shape))}\n"]
    for start in range(0, len(rows), BLOCK):
        lines = rows[start : start + BLOCK].tolist()
        pieces.append("".join(" ".join(map(str, line)) + "\n" for line in lines))
    return "".join(pieces).encode()


def _blocks(name: str, stream: BinaryIO) -> Iterator[tuple[int, list[bytes]]]:
    """Lines in blocks, with the number of the first; a line that is too long is refused."""
    # a line is read to its end or its limit, so that none is split into millions of fields
    lines = iter(partial(stream.readline, LONGEST), b"")
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")
    lines = chain([first] if first else [], lines)
    start = 1
    while block := list(islice(lines, BLOCK)):
        for number, line in enumerate(block, start=start):
            if len(line) == LONGEST and not line.endswith(b"\n"):
                raise _error(name, number, f"a line of over {LONGEST:,} bytes")
        yield start, block
        start += len(block)


def _checked_width(name: str, number: int, width: int, max_order: int) -> int:
    if not 2 <= width <= LARGEST_ORDER + 1:
        raise _error(
            name, number, f"a line must hold 1 to {LARGEST_ORDER} indices and a value, divided by "
            f"blanks; the number of its fields is {width}",
        )  # fmt: skip
    refuse_order(name, "tns", width - 1, max_order)
    return width


def _said_shape(name: str, number: int, text: bytes) -> tuple[int, ...]:
    try:
        fields = [int(field) for field in text.split() if _INDEX.fullmatch(field)]
        if len(fields) == len(text.split()):
            return checked_shape(fields)
    except InvalidArgumentError:
        pass
    raise _error(
        name, number, "a shape must be 1 to 32 sizes from 1 to 2^31 - 1; got "
        f"{shown(text.decode('utf-8', 'replace'))}",
    )  # fmt: skip


def _parsed(
    name: str, rows: Sequence[Sequence[bytes]], of: Sequence[int], width: int
) -> NDArray[np.int64]:
    """Fields as integers, shape (n_rows, width)."""
    flat = list(chain.from_iterable(rows))
    values = _plain_integers(flat)
    if values is None:
        values = np.array(
            [
                one
                for number, fields in zip(of, rows, strict=True)
                for one in (*(_index(name, number, f) for f in fields[:-1]),
                            _value(name, number, fields[-1]))
            ],
            np.int64,
        )  # fmt: skip
    return values.reshape(len(rows), width)


def _plain_integers(fields: list[bytes]) -> NDArray[np.int64] | None:
    """Fields as integers, or None if one isn't an integer of at most 63 bits."""
    # Python reads 1_0 as 10
    if b"_" in b"".join(fields):
        return None
    try:
        values = np.array([int(field) for field in fields], np.int64)
    except (ValueError, OverflowError):
        return None
    return values if values.min(initial=0) >= -LARGEST_ENTRY else None


def _index(name: str, number: int, field: bytes) -> int:
    if not _INDEX.fullmatch(field) or int(field) > LARGEST_SIDE:
        raise _error(
            name,
            number,
            f"an index must be an integer from 1 to 2^31 - 1, or from 0; got {_text(field)}",
        )
    return int(field)


def _value(name: str, number: int, field: bytes) -> int:
    if not _VALUE.fullmatch(field):
        raise _error(name, number, f"a value must be an integer; got {_text(field)}")
    # a decimal, unlike a fraction, doesn't write the zeros of 1e999999999
    value = Decimal(field.decode())
    if value and (value.adjusted() > 19 or abs(value) > LARGEST_ENTRY):
        raise _error(name, number, f"a value must have at most 63 bits; got {_text(field)}")
    if value != value.to_integral_value():
        raise TensorFormatError(
            name, f"a value must be an integer; got {_text(field)}", format="tns", line=number,
            advice="Multiply all values by a common denominator, which doesn't change the rank.",
        )  # fmt: skip
    return int(value)


def _text(field: bytes) -> str:
    return shown(field.decode("utf-8", "replace"))


def _error(name: str, number: int, reason: str) -> TensorFormatError:
    return TensorFormatError(
        name, reason, format="tns", line=number,
        advice="A line is the indices of an entry, counted from 1, and its value.",
    )  # fmt: skip
