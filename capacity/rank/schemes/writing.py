"""`write_decomposition`: decompositions as files in which schemes are published."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.rank.coefficients import AlgebraicNumber
from capacity.rank.factors import Factors
from capacity.rank.schemes import formats as formats
from capacity.rank.schemes.format import FORMATS, format_named, format_of
from capacity.rank.schemes.numbers import NotRationalError
from capacity.safe_files import write_whole


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
