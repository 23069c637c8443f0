"""Tensors as numpy's files of one array (``.npy``), without pickles.

The header is held against the size of the file before an array is made, so that neither a header
that promises too much nor a truncated file is read.
"""

from __future__ import annotations

import io
import math
import warnings

import numpy as np
from numpy.lib import format as npy_format

from capacity.errors import InvalidArgumentError, TensorFormatError
from capacity.limits import in_a_line
from capacity.tensor.coordinates import checked_shape
from capacity.tensor.dense import from_dense
from capacity.tensor.sparse import SparseTensor

MAGIC = b"\x93NUMPY"


def parse_npy(name: str, data: bytes) -> SparseTensor:
    """Read the bytes of a ``.npy`` file.

    Parameters
    ----------
    name : str
        Path of the file, for messages.
    data : bytes
        The whole file.

    Returns
    -------
    SparseTensor

    Raises
    ------
    TensorFormatError
        If the header is broken, promises another size than the file has, or an array of anything
        else than bools, integers and floats; if an entry isn't an integer of at most 63 bits.

    Examples
    --------
    >>> parse_npy("I.npy", npy_bytes(np.eye(2)))
    SparseTensor(2 x 2, 2 entries from 1 to 1)
    """
    stream = io.BytesIO(data)
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
        size, there = math.prod(sides) * dtype.itemsize, len(data) - stream.tell()
        if size != there:
            raise TensorFormatError(
                name, f"its header promises {size:,} bytes of entries, and {there:,} follow",
                format="npy", advice="It may be truncated: fetch or write it again.",
            )  # fmt: skip
        entries = np.frombuffer(data, dtype, offset=stream.tell())
        return from_dense(entries.reshape(sides, order="F" if by_columns else "C"))
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format="npy") from None


def npy_bytes(array: np.ndarray) -> bytes:
    """Write an array as the bytes of a ``.npy`` file."""
    stream = io.BytesIO()
    npy_format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()
