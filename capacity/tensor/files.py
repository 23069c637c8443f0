"""Tensors from files and to files: ``.npy`` and ``.tns``, and those that are only read."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from contextlib import suppress
from typing import Any, cast

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError, StorageError, TensorFormatError
from capacity.reading_limits import MAX_BYTES, MAX_GROWTH, Growing, Limits
from capacity.safe_files import read_file, write_whole
from capacity.tensor.coordinates import BUDGET, LARGEST_ORDER
from capacity.tensor.formats.archives import MATRIX_MARKET, ZIP, parse_archive, parse_mtx
from capacity.tensor.formats.npy import MAGIC, npy_bytes, parse_npy
from capacity.tensor.formats.pt import old_or_pickle
from capacity.tensor.formats.tns import parse_tns, tns_text
from capacity.tensor.formats.tns_header import n_fields, says_shape
from capacity.tensor.sparse import SparseTensor

_DEFAULT = Limits()
_MATLAB = (
    "Read it with scipy, and save an array of it: np.save('T.npy', scipy.io.loadmat(FILE)[NAME])."
)
# which stores an array with its axes in the opposite order
_HDF5 = (
    "It is HDF5, as of MATLAB 7.3: read it with h5py, and save an array of it: np.save('T.npy', "
    "h5py.File(FILE)[NAME][()].T)."
)
SUFFIXES = (".npy", ".tns", ".npy.gz", ".tns.gz")
# those of files that are only read
READ = (*SUFFIXES, ".npz", ".mtx", ".mtx.gz", ".pt", ".pth", ".pt.gz", ".pth.gz")


def read_tensor(
    path: str | os.PathLike[str],
    *,
    max_bytes: int = MAX_BYTES,
    max_growth: int = MAX_GROWTH,
    max_rows: int | None = None,
    max_cells: int | None = None,
    max_order: int = LARGEST_ORDER,
) -> SparseTensor:
    """Read a tensor of integers from a file.

    Parameters
    ----------
    path : path
        An array of numpy (``.npy``, of bools, integers, or floats with integer values), or the text
        of FROSTT (``.tns``: a line ``i j k value`` for each entry, indices from 1, comments with
        ``#``; values at one place are added up), either also compressed by gzip; an archive of one
        array, or of a sparse one as scipy and sparse write it (``.npz``); a tensor that torch has
        saved (``.pt``), which needs torch, and of which no pickled object is read; or a matrix of
        MatrixMarket (``.mtx``). The format is recognised by the first bytes, and ``-`` is standard
        input.
    max_bytes : int
        Maximum size, also when decompressed.
    max_growth : int
        How many times its size a file may decompress to; any may decompress to 64 MiB.
    max_rows : int, optional
        Maximum of the entries that aren't zero, and of the lines of a text, also of empty ones; by
        default 250,000, or one for each byte that is stored, if that is more; of an array any.
    max_cells : int, optional
        Maximum of the places of an array, and of all numbers of a text; by default five million, or
        one for each byte that is stored.
    max_order : int
        Maximum of the modes, at most 32.

    Returns
    -------
    SparseTensor
        Its shape is that of the array; of a text, that of a comment such as ``# shape: 4 4 5``,
        or else the largest index of each mode.

    Raises
    ------
    TensorFormatError
        If the file is missing, not regular, empty, larger than the limits allow, truncated, of
        another format, or an entry isn't an integer from -2^63 + 1 to 2^63 - 1. The message names
        the file and, for text, the line.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        If a limit isn't a positive integer.
    MissingExtraError
        For a tensor of torch, if torch isn't installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "W.tns")
    ...     W = SparseTensor([[0, 0, 1], [0, 1, 0], [1, 0, 0]], [1, 1, 1], (2, 2, 3))
    ...     write_tensor(W, path)
    ...     read_tensor(path) == W
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidTypeError(
            f"A file must be named by a str or a path; got {type(path).__name__}. `from_dense` "
            "takes arrays."
        )
    limits = Limits(max_bytes, max_growth, max_rows, max_cells)
    require_integer("max_order", max_order, most=LARGEST_ORDER)
    try:
        raw = read_file(path, max_bytes=max_bytes)
    except StorageError as error:
        raise TensorFormatError(error.path, error.reason, advice=error.advice) from None
    return parse_tensor(os.fspath(path), raw, limits, max_order=max_order)


def parse_tensor(
    name: str, raw: bytes, limits: Limits = _DEFAULT, *, max_order: int = LARGEST_ORDER
) -> SparseTensor:
    r"""Read a tensor from the bytes of a file, which `read_tensor` describes.

    Parameters
    ----------
    name : str
        Path of the file, for messages.
    raw : bytes
        The whole file.
    limits : Limits
        Limits of reading it.
    max_order : int
        Maximum of the modes.

    Raises
    ------
    TensorFormatError
        If they aren't a tensor of integers within the limits.

    Examples
    --------
    >>> parse_tensor("W.tns", b"1 1 2 1\n1 2 1 1\n2 1 1 1")
    SparseTensor(2 x 2 x 2, 3 entries from 1 to 1)
    """
    limits = limits.of(len(raw))
    stream: io.BufferedReader[Any] = io.BufferedReader(cast(Any, io.BytesIO(raw)), 2**16)
    if raw.startswith(b"\x1f\x8b"):
        unpacked = gzip.GzipFile(fileobj=io.BytesIO(raw))
        stream = io.BufferedReader(Growing(name, unpacked, limits), 2**16)
    try:
        return _parsed(name, stream, limits, max_order)
    except StorageError as error:
        raise TensorFormatError(error.path, error.reason, advice=error.advice) from None
    except (OSError, EOFError, zlib.error) as error:
        raise TensorFormatError(
            name, f"the gzip stream is broken ({error})", advice="Fetch or compress it again."
        ) from None


def _parsed(
    name: str, stream: io.BufferedReader[Any], limits: Limits, max_order: int
) -> SparseTensor:
    """Read a tensor from a stream, of which no more is held than its entries."""
    beginning = stream.peek(2**12)[: 2**12]
    if beginning.startswith(ZIP):
        whole = io.BytesIO(stream.read(limits.max_bytes + 1))
        return parse_archive(name, whole, limits, max_order=max_order)
    if beginning.startswith(MATRIX_MARKET):
        return parse_mtx(name, stream, limits, max_order=max_order)
    if beginning.startswith(MAGIC):
        return parse_npy(name, stream, limits, max_order=max_order)
    if wrong := old_or_pickle(beginning):
        raise TensorFormatError(name, wrong[0], advice=wrong[1])
    # blanks that go on behind the beginning are lines, of which there may be too many
    blank = not beginning.strip() and len(beginning) < 2**12
    if blank or b"\0" in beginning:
        advice = "A tensor must be an array of numpy (.npy) or lines `i j k value` (.tns)."
        if beginning.startswith((b"MATLAB 7.3", b"\x89HDF")):
            advice = _HDF5
        elif beginning.startswith(b"MATLAB") or name.lower().endswith(".mat"):
            advice = _MATLAB
        what = "empty" if blank else "binary"
        raise TensorFormatError(name, f"the file is {what}", advice=advice)
    return parse_tns(name, stream, limits, max_order=max_order)


def begins_as_tensor(beginning: bytes) -> bool:
    r"""Return whether a file is a tensor, by its first bytes.

    A text is one if its first entry has four numbers or more, divided by blanks, or if a comment
    contains its shape: three integers may also be a fact.

    Parameters
    ----------
    beginning : bytes
        At least the first 4,096 bytes, or all.

    Examples
    --------
    >>> begins_as_tensor(b"1 1 2 1\n1 2 1 1\n"), begins_as_tensor(b"1 2 3\n")
    (True, False)
    """
    start = _unpacked(beginning)
    if start.startswith(ZIP):
        return any(name in start for name in (b".npy", b"/data.pkl"))
    if start.startswith((MAGIC, MATRIX_MARKET)) or start.strip().lower().startswith(b"sptensor"):
        return True
    return says_shape(start) or n_fields(start) >= 4


def begins_as_matrix_or_facts(beginning: bytes) -> bool:
    """Return whether a file begins with three integers, divided by blanks, without a shape."""
    start = _unpacked(beginning)
    return n_fields(start) == 3 and not says_shape(start)


def _unpacked(beginning: bytes) -> bytes:
    if beginning.startswith(b"\x1f\x8b"):
        with suppress(zlib.error):
            return zlib.decompressobj(31).decompress(beginning, 2**12)
    return beginning[: 2**12]


def write_tensor(
    tensor: SparseTensor, path: str | os.PathLike[str], *, max_bytes: int = BUDGET
) -> None:
    """Write a tensor to a file, whole or not at all.

    Parameters
    ----------
    tensor : SparseTensor
        What to write.
    path : path
        Its end determines the format: ``.npy`` (dense, int64) or ``.tns`` (text, with the shape in
        a comment), and ``.npy.gz`` or ``.tns.gz``.
    max_bytes : int
        Largest size of a dense array.

    Raises
    ------
    InvalidArgumentError
        If the path ends otherwise.
    MemoryBudgetError
        If the dense array would take more than `max_bytes` bytes.
    StorageError
        If the file can't be written; an earlier one is then unchanged.

    Examples
    --------
    >>> write_tensor(SparseTensor([[0]], [1], (1,)), "W.mat")
    Traceback (most recent call last):
        ...
    capacity.errors.InvalidArgumentError: The name of a tensor's file must end in .npy, .tns,
    .npy.gz, .tns.gz; got 'W.mat'.
    """
    name = os.fspath(path)
    if not name.endswith(SUFFIXES):
        raise InvalidArgumentError(
            f"The name of a tensor's file must end in {', '.join(SUFFIXES)}; got {shown(name)}."
        )
    if ".npy" in name[-7:]:
        data = npy_bytes(tensor.to_numpy(max_bytes=max_bytes))
    else:
        data = tns_text(tensor)
    # without the time, so that the same tensor gives the same file
    write_whole(path, gzip.compress(data, 6, mtime=0) if name.endswith(".gz") else data)
