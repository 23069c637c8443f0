"""Tensors as numpy's files of one array (``.npy``), without pickles.

The header is compared with the limits before an array is made, and the array with the header, so
that neither a header that promises too much nor a truncated file is read.
"""

from __future__ import annotations

import io
import math
import warnings
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from capacity.checks import in_a_line
from capacity.errors import InvalidArgumentError, TensorFormatError
from capacity.reading_limits import Limits
from capacity.tensor.coordinates import LARGEST_ORDER, checked_shape
from capacity.tensor.dense import from_dense
from capacity.tensor.sparse import SparseTensor

_DEFAULT = Limits()
MAGIC = b"\x93NUMPY"


def parse_npy(
    name: str,
    stream: BinaryIO,
    limits: Limits = _DEFAULT,
    *,
    max_order: int = LARGEST_ORDER,
) -> SparseTensor:
    """Read a ``.npy`` file.

    Parameters
    ----------
    name : str
        Path of the file, for messages.
    stream : binary file
        The whole file, decompressed.
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
        If the header is broken, promises another size than the file has or more than the limits
        allow, or an array of anything else than bools, integers and floats; if an entry isn't an
        integer of at most 63 bits.

    Examples
    --------
    >>> parse_npy("I.npy", io.BytesIO(npy_bytes(np.eye(2))))
    SparseTensor(2 x 2, 2 entries from 1 to 1)
    """
    try:
        # a hostile header can make Python's parser warn
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = npy_format.read_magic(stream)
            read = {
                (1, 0): npy_format.read_array_header_1_0,
                (2, 0): npy_format.read_array_header_2_0,
            }[version]
            shape, by_columns, dtype = read(stream)
    # numpy raises many kinds for a broken header
    except Exception as error:
        raise TensorFormatError(
            name, f"its header is broken ({in_a_line(error)})", format="npy",
            advice="Write it with numpy.save.",
        ) from None  # fmt: skip
    if dtype.kind not in "biuf":
        raise TensorFormatError(
            name, f"it must hold bools, integers or floats; it holds {dtype!s:.60}",
            format="npy", advice="Pickled objects are not read.",
        )  # fmt: skip
    try:
        sides = checked_shape(shape)
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format="npy") from None
    refuse_order(name, "npy", len(sides), max_order)
    n = math.prod(sides)
    size = n * dtype.itemsize
    if excess := limits.excess(grown=size):
        # a truncated file promises more than it has, too
        promise = f"its header promises {size:,} bytes of entries, and {limits.stored:,} are stored"
        _refuse(name, (f"{promise}: {excess[0]}", excess[1]))
    _refuse(name, limits.excess(cells=n))
    # one byte more shows that there is more
    data = stream.read(size + 1)
    if len(data) != size:
        there = f"{len(data):,}" if len(data) < size else "more"
        raise TensorFormatError(
            name, f"its header promises {size:,} bytes of entries, and {there} follow",
            format="npy", advice="It may be truncated: fetch or write it again.",
        )  # fmt: skip
    entries = np.frombuffer(data, dtype)
    # an array has no more entries than places, which are few enough
    if limits.max_rows is not None:
        _refuse(name, limits.excess(rows=int(np.count_nonzero(entries))))
    try:
        return from_dense(entries.reshape(sides, order="F" if by_columns else "C"))
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format="npy") from None


def refuse_order(name: str, format: str, order: int, most: int) -> None:
    """Refuse a tensor of more modes than are asked for.

    Raises
    ------
    TensorFormatError
        With the number of modes.
    """
    if order > most:
        raise TensorFormatError(
            name, f"it has {order} modes, more than {most}", format=format,
            advice="If that is meant, raise `max_order`.",
        )  # fmt: skip


def _refuse(name: str, excess: tuple[str, str] | None) -> None:
    if excess is not None:
        raise TensorFormatError(name, excess[0], format="npy", advice=excess[1])


def npy_bytes(array: np.ndarray) -> bytes:
    """Write an array as the bytes of a ``.npy`` file."""
    stream = io.BytesIO()
    npy_format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()
