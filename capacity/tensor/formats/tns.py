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

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from capacity.errors import (
    CountedFromZeroWarning,
    InvalidArgumentError,
    TensorFormatError,
    warn_caller,
)
from capacity.reading_limits import Limits
from capacity.tensor.coordinates import LARGEST_ENTRY, LARGEST_ORDER, LARGEST_SIDE
from capacity.tensor.dense import from_coo
from capacity.tensor.formats.npy import refuse_order
from capacity.tensor.formats.tns_header import (
    INDEX,
    SHAPE,
    VALUE,
    Header,
    error_at,
    said_shape,
    text_of,
)
from capacity.tensor.sparse import SparseTensor

_DEFAULT = Limits()
# lines that are parsed together, and the longest line in bytes
BLOCK = 2**16
LONGEST = 2**16


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
    head = Header()
    for start, lines in _blocks(name, stream):
        rows: list[list[bytes]] = []
        of: list[int] = []
        for number, line in enumerate(lines, start=start):
            if line.lstrip().startswith(b"#"):
                said = SHAPE.match(line.strip())
                shape = said_shape(name, number, said[1]) if said else shape
            elif width == 0 and head.takes(name, number, line):
                shape = head.shape or shape
            elif fields := line.split():
                width = width or _checked_width(name, number, len(fields), max_order)
                if len(fields) != width:
                    raise error_at(
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
        raise error_at(
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
                raise error_at(name, number, f"a line of over {LONGEST:,} bytes")
        yield start, block
        start += len(block)


def _checked_width(name: str, number: int, width: int, max_order: int) -> int:
    if not 2 <= width <= LARGEST_ORDER + 1:
        raise error_at(
            name, number, f"a line must hold 1 to {LARGEST_ORDER} indices and a value, divided by "
            f"blanks; the number of its fields is {width}",
        )  # fmt: skip
    refuse_order(name, "tns", width - 1, max_order)
    return width


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
    if not INDEX.fullmatch(field) or int(field) > LARGEST_SIDE:
        raise error_at(
            name,
            number,
            f"an index must be an integer from 1 to 2^31 - 1, or from 0; got {text_of(field)}",
        )
    return int(field)


def _value(name: str, number: int, field: bytes) -> int:
    if not VALUE.fullmatch(field):
        raise error_at(name, number, f"a value must be an integer; got {text_of(field)}")
    # a decimal, unlike a fraction, doesn't write the zeros of 1e999999999
    value = Decimal(field.decode())
    if value and (value.adjusted() > 19 or abs(value) > LARGEST_ENTRY):
        raise error_at(name, number, f"a value must have at most 63 bits; got {text_of(field)}")
    if value != value.to_integral_value():
        raise TensorFormatError(
            name, f"a value must be an integer; got {text_of(field)}", format="tns", line=number,
            advice="Multiply all values by a common denominator, which doesn't change the rank.",
        )  # fmt: skip
    return int(value)
