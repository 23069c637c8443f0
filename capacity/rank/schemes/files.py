"""Files of schemes, read in any registered format and written."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from capacity.checks import shown
from capacity.errors import (
    DecompositionFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    StorageError,
)
from capacity.rank.coefficients import AlgebraicNumber
from capacity.rank.factors import Factors
from capacity.rank.schemes import formats as formats
from capacity.rank.schemes.format import (
    FORMATS,
    SchemeFile,
    SchemeFormat,
    as_stored,
    format_named,
    format_of,
    settled,
)
from capacity.rank.schemes.numbers import NotRationalError
from capacity.reading_limits import Growing, Limits
from capacity.safe_files import read_file, write_whole
from capacity.tensor.sparse import SparseTensor


def write_decomposition(
    factors: Factors, path: str | os.PathLike[str], *, format: str | None = None
) -> tuple[Path, ...]:
    """Write a decomposition to a file that `read_decomposition` reads.

    Parameters
    ----------
    factors : Factors
        The decomposition.
    path : path
        ``.json`` (``u``, ``v`` and ``w``; a list ``matrices`` for another number of modes; also
        complex numbers, as pairs),
        ``.npz`` (an array of integers for each mode, with denominators if there are any), or
        ``.sms``: three files, whose names end in ``_L.sms``, ``_R.sms`` and ``_P.sms``. Compressed
        by gzip if the name ends in ``.gz``.
    format : str, optional
        Name of the format; by default that of the end of the file's name.

    Returns
    -------
    tuple of Path
        The files. Each is whole or as it was before.

    Raises
    ------
    InvalidTypeError
        If `factors` aren't a `Factors`.
    InvalidArgumentError
        If the format is unknown or only read, or can't hold the decomposition.
    StorageError
        If a file can't be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from capacity.rank import read_decomposition
    >>> A, C = np.array([[1, 0, 1], [0, 1, 1]]), np.array([[1, -1, 0], [-1, -1, 1]])
    >>> gauss = Factors((A, A, C))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (written,) = write_decomposition(gauss, os.path.join(folder, "gauss.json"))
    ...     read_decomposition(written).rank
    3
    """
    if not isinstance(factors, Factors):
        raise InvalidTypeError(f"`factors` must be a Factors; got {shown(factors)}.")
    name = os.fspath(path)
    chosen = format_named(format) if format else format_of(name)
    if chosen is None or chosen.write is None:
        names = ", ".join(one.name for one in FORMATS.values() if one.write is not None)
        got = shown(chosen.name if chosen else name)
        raise InvalidArgumentError(
            f"A decomposition is written in one of the formats {names}, which the end of the name "
            f"shows, or `format`; got {got}."
        )
    if any(isinstance(x, AlgebraicNumber) for of in factors.matrices for x in of.ravel().tolist()):
        raise InvalidArgumentError(
            "The numbers of `factors` must be rational; they lie in a number field. A certificate "
            "(`capacity rank --certificate`) holds them."
        )
    if factors.is_complex and not chosen.is_complex:
        names = ", ".join(one.name for one in FORMATS.values() if one.write and one.is_complex)
        raise InvalidArgumentError(
            f"A decomposition with complex numbers is written in one of the formats {names}; got "
            f"{chosen.name}."
        )
    try:
        files = chosen.write(factors.matrices)
    except NotRationalError as error:
        raise InvalidArgumentError(
            f"The format {chosen.name} can't hold this decomposition: {error}. Write `.json`."
        ) from None
    packed = ".gz" if name.endswith(".gz") else ""
    stem = name.removesuffix(packed)
    for end in sorted((*chosen.parts, *chosen.suffixes), key=len, reverse=True):
        if chosen.parts and stem.endswith(end):
            stem = stem.removesuffix(end)
            break
    paths = [Path(stem + end + packed) for end in chosen.parts] or [Path(name)]
    for one, data in zip(paths, files, strict=True):
        write_whole(one, gzip.compress(data, mtime=0) if packed else data)
    return tuple(paths)


# a scheme of 10,000 terms has some megabytes
MOST_BYTES = 2**28


def read_decomposition(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    of: SparseTensor | None = None,
    *,
    format: str | None = None,
    max_bytes: int = MOST_BYTES,
    max_cells: int | None = None,
) -> Factors:
    """Read a decomposition from a file in which schemes are published.

    Parameters
    ----------
    path : path, or sequence of paths
        JSON (``u``, ``v`` and ``w``, or ``multiplications`` and ``elements``), three files
        ``_L.sms``, ``_R.sms`` and ``_P.sms`` (or one, beside the others), products a line
        (``.exp``), Mathematica (``.m``), Maple (``.mpl``), or arrays (``.npy``, ``.npz``); also
        compressed by gzip. Complex numbers, in JSON and arrays, make a decomposition over C.
        `register_scheme_format` adds others.
    of : SparseTensor, optional
        The tensor that it is to add up to; by default the product of matrices of these sizes.
    format : str, optional
        Name of the format; by default that of the end of the file's name.
    max_bytes : int
        Maximum size, also when decompressed.
    max_cells : int, optional
        Maximum of the numbers of a matrix; by default five million, or one for each stored byte.

    Returns
    -------
    Factors
        In the convention of `matrix_multiplication`: where the file numbers the entries of C by
        columns, as most do, its rows are sorted. Nothing is proved: `verify_decomposition` does
        that.

    Raises
    ------
    DecompositionFormatError
        If the file can't be read, is larger than the limits, or isn't a decomposition with
        rational numbers, or complex ones with rational parts; with the line, where there is one.
    InvalidArgumentError
        If the format is unknown, or can't be derived from the name.
    InvalidTypeError
        If `path` is neither a path nor a sequence of them, or `of` isn't a tensor.

    Examples
    --------
    >>> import json, tempfile
    >>> A, C = [[1, 0, 1], [0, 1, 1]], [[1, -1, 0], [-1, -1, 1]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "gauss.json")
    ...     with open(path, "w") as file:
    ...         json.dump({"u": A, "v": A, "w": C}, file)
    ...     read_decomposition(path).rank
    3
    """
    return read_scheme(path, of, format=format, max_bytes=max_bytes, max_cells=max_cells)[0]


def read_scheme(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    of: SparseTensor | None = None,
    *,
    format: str | None = None,
    max_bytes: int = MOST_BYTES,
    max_cells: int | None = None,
) -> tuple[Factors, bool]:
    """Read a decomposition as `read_decomposition` does, and return whether C was transposed."""
    paths = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(paths, Sequence) or not paths:
        raise InvalidTypeError(f"A scheme must be named by a path, or several; got {shown(path)}.")
    if of is not None and not isinstance(of, SparseTensor):
        raise InvalidTypeError(f"`of` must be a SparseTensor; got {shown(of)}.")
    names = [os.fspath(one) for one in paths]
    one = format_named(format) if format else format_of(names[0])
    if one is None:
        ends = sorted({suffix for some in FORMATS.values() for suffix in some.suffixes})
        raise InvalidArgumentError(
            f"The name of a scheme's file must end in {', '.join(ends)}, or its `format` be given; "
            f"got {shown(names[0])}."
        )
    limits = Limits(max_bytes, max_cells=max_cells)
    files = [_file(name, one, of, limits) for name in _parts(names, one)]
    readings = list(one.read(replace(files[0], others=tuple(files[1:]))))
    if not readings:
        raise files[0].error("its matrices must have the same number of terms")
    if of is not None:
        # an error about the sum says more than one about sizes
        readings.sort(key=lambda matrices: tuple(map(len, matrices)) != of.shape)
    matrices, turned = settled(readings, of)
    return Factors(tuple(as_stored(matrix) for matrix in matrices)), turned


def _parts(names: list[str], format: SchemeFormat) -> list[str]:
    """Return the names of all files of a scheme, in the order of its parts."""
    if len(names) == 1:
        path = Path(names[0])
        packed = ".gz" if path.name.endswith(".gz") else ""
        for end in format.parts:
            if path.name.endswith(end + packed):
                stem = path.name.removesuffix(end + packed)
                return [str(path.with_name(stem + part + packed)) for part in format.parts]
        return names
    if len(names) != len(format.parts):
        raise InvalidArgumentError(
            f"A scheme of the format {format.name} is {len(format.parts) or 1} file(s); got "
            f"{len(names)}."
        )
    # files of other names keep their order
    order = [next((i for i, end in enumerate(format.parts) if end in n), -1) for n in names]
    if sorted(order) != list(range(len(names))):
        return names
    return [name for _, name in sorted(zip(order, names, strict=True))]


def _file(name: str, format: SchemeFormat, of: SparseTensor | None, limits: Limits) -> SchemeFile:
    try:
        data = read_file(name, max_bytes=limits.max_bytes)
        limits = limits.of(len(data))
        if data.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = io.BufferedReader(Growing(name, unpacked, limits)).read()
    except StorageError as error:
        raise DecompositionFormatError(error.path, error.reason, advice=error.advice) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DecompositionFormatError(
            name, f"the gzip stream is broken ({error})", advice="Fetch or compress it again."
        ) from None
    return SchemeFile(name, data, format.name, limits, None if of is None else of.shape)
