"""Schemes as arrays of numpy: three in an archive (``.npz``), or a stack of them (``.npy``).

An archive has an array for each mode, named u, v and w, or in the order of the file; with
``u_den``, ``v_den`` and ``w_den`` they are numerators. A stack has the shape (3, size, rank) or
(3, rank, size). Pickled arrays aren't read.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.rank.schemes.format import (
    Matrices,
    SchemeFile,
    SchemeFormat,
    by_columns,
    by_rows,
    register_scheme_format,
)
from capacity.rank.schemes.numbers import NotRationalError, fractions_of, number_array

_BROKEN = (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError,
           RuntimeError, KeyError, TypeError, SyntaxError, OverflowError)  # fmt: skip
_LARGEST_ARCHIVE = 16


def read_npy(file: SchemeFile) -> list[Matrices]:
    """Read a stack of matrices."""
    stack = _array(file, file.data)
    if stack.ndim != 3:
        raise file.error(f"an array must be a stack of matrices; got the shape {stack.shape}")
    return _readings(file, list(stack))


def read_npz(file: SchemeFile) -> list[Matrices]:
    """Read an archive of matrices, or of one stack of them."""
    with _broken(file, "an archive of arrays"):
        archive = zipfile.ZipFile(io.BytesIO(file.data))
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if len(members) > _LARGEST_ARCHIVE or size > 16 * file.limits.cells:
        raise file.error(
            f"an archive must have at most {_LARGEST_ARCHIVE} arrays, of at most "
            f"{16 * file.limits.cells:,} bytes"
        )
    with _broken(file, "an archive of arrays"):
        raw = {member.filename.removesuffix(".npy"): archive.read(member) for member in members}
    arrays = {name: _array(file, data) for name, data in raw.items()}
    if len(arrays) == 1 and next(iter(arrays.values())).ndim == 3:
        return _readings(file, list(next(iter(arrays.values()))))
    tops = {name: of for name, of in arrays.items() if not name.endswith("_den")}
    bottoms = [arrays.get(f"{name}_den") for name in tops]
    if len(tops) + sum(of is not None for of in bottoms) != len(arrays):
        raise file.error("each array of denominators must have one of numerators")
    return _readings(file, list(tops.values()), bottoms)


def _array(file: SchemeFile, data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    with _broken(file, "an array of numbers"):
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(stream)
    n_cells = int(np.prod(shape, dtype=object))
    file.require_cells(n_cells)
    if dtype.kind not in "biufc":
        raise file.error(f"it isn't an array of numbers; its type is {dtype}")
    if len(data) - stream.tell() != dtype.itemsize * n_cells:
        raise file.error("the size of an array isn't that of its shape")
    stream.seek(0)
    with _broken(file, "an array of numbers"):
        return np.lib.format.read_array(stream, allow_pickle=False)


@contextmanager
def _broken(file: SchemeFile, what: str) -> Iterator[None]:
    """Name the file in errors of the libraries that read it."""
    try:
        yield
    except _BROKEN as error:
        raise file.error(f"it isn't {what} ({error})") from None


def _readings(
    file: SchemeFile,
    arrays: list[NDArray[Any]],
    bottoms: list[NDArray[Any] | None] | None = None,
) -> list[Matrices]:
    if len(arrays) < 2 or any(of.ndim != 2 for of in arrays):
        shapes = [of.shape for of in arrays]
        raise file.error(f"there must be a matrix for each mode; got the shapes {shapes}")
    try:
        matrices = [
            number_array(of.ravel().tolist(), of.shape)
            if below is None
            else fractions_of(of, below)
            for of, below in zip(arrays, bottoms or [None] * len(arrays), strict=True)
        ]
    except NotRationalError as error:
        raise file.error(error) from None
    return [*by_columns(matrices), *by_rows(matrices)]


register_scheme_format(SchemeFormat("npy", (".npy",), read_npy))


def write_npz(matrices: Matrices) -> list[bytes]:
    """Write an array of 64-bit integers for each mode, and one of denominators if there are any."""
    names = "uvw" if len(matrices) == 3 else [f"factor_{mode}" for mode in range(len(matrices))]
    arrays: dict[str, Any] = {}
    fractions = any(x.denominator > 1 for of in matrices for x in of.ravel().tolist())
    for name, of in zip(names, matrices, strict=True):
        arrays[name] = _integers([x.numerator for x in of.ravel().tolist()], of.shape)
        if fractions:
            bottoms = [x.denominator for x in of.ravel().tolist()]
            arrays[f"{name}_den"] = _integers(bottoms, of.shape)
    stream = io.BytesIO()
    # numpy 2.0 has no option against pickles, which arrays of integers don't need
    np.savez_compressed(stream, **arrays)
    return [stream.getvalue()]


def _integers(numbers: list[int], shape: tuple[int, ...]) -> NDArray[np.int64]:
    if any(abs(x) >= 2**63 for x in numbers):
        raise NotRationalError("its numerators and denominators are integers of 64 bits")
    return np.array(numbers, np.int64).reshape(shape)


register_scheme_format(SchemeFormat("npz", (".npz",), read_npz, write=write_npz))
