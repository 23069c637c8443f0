"""Workbooks of Excel, which pandas reads: a table whose first row names the columns."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path

from capacity.database.facts import Database
from capacity.database.io.files.content import of_storage, refuse_excess
from capacity.database.io.reading import Reading
from capacity.database.policy import MultiPolicy
from capacity.database.source import Source
from capacity.errors import DatabaseFormatError, StorageError
from capacity.optional import require_packages
from capacity.safe_files import read_file

SUFFIX = ".xlsx"
_NEEDED = ("pandas", "openpyxl")
# bytes that any workbook may take, as any other file
_FREE = 64 * 2**20


def is_workbook(path: object) -> bool:
    """Return whether a file is a workbook, by its name.

    Examples
    --------
    >>> is_workbook("facts.xlsx"), is_workbook("facts.csv")
    (True, False)
    """
    return isinstance(path, str | os.PathLike) and os.fspath(path).lower().endswith(SUFFIX)


def read_workbook(
    path: str | os.PathLike[str], reading: Reading, *, multi: MultiPolicy | None = None
) -> Database:
    """Read the first sheet of a workbook, as `from_pandas` reads a frame.

    Parameters
    ----------
    path : path
        The workbook.
    reading : Reading
        Options of tables, and limits.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs.

    Raises
    ------
    DatabaseFormatError
        If the file is missing, broken or too large.
    MissingExtraError
        Without pandas and openpyxl, which the extra ``excel`` installs.
    CapacityError
        As `from_pandas`.
    """
    name = os.fspath(path)
    reading.require_kind(name, "excel", "table")
    require_packages("A workbook of Excel", _NEEDED, "excel")
    try:
        raw = read_file(path, max_bytes=reading.limits.max_bytes)
    except StorageError as error:
        raise of_storage(error) from None
    _require_room(name, raw, reading)
    import pandas as pd

    from capacity.database.io.libraries.pandas import from_pandas

    try:
        frame = pd.read_excel(io.BytesIO(raw), engine="openpyxl", dtype=object)
    # openpyxl raises what it happens to meet
    except Exception as error:
        reason = f"it can't be read as a workbook ({type(error).__name__}: {error!s:.100})"
        raise DatabaseFormatError(name, reason, advice="Save it again, or as CSV.") from None
    excess = reading.limits.of(len(raw)).excess(rows=len(frame), cells=frame.size)
    refuse_excess(name, "excel", excess)
    db = from_pandas(
        frame, table=reading.table, terms=reading.terms, arity=reading.arity,
        columns=reading.columns, split=reading.split, multi=multi,
    )  # fmt: skip
    return replace(db, source=Source(Path(name).name, hashlib.sha256(raw).hexdigest(), "excel"))


def _require_room(name: str, raw: bytes, reading: Reading) -> None:
    """Refuse a workbook that promises more than the limits allow, before a sheet is read."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            size = sum(one.file_size for one in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError):
        raise DatabaseFormatError(
            name, "it is no workbook of Excel", advice="Save it again, or as CSV."
        ) from None
    # sheets take some thirty times their text
    if size > max(_FREE, min(len(raw) * reading.max_growth, reading.max_bytes // 30)):
        raise DatabaseFormatError(
            name,
            f"it would decompress to {size:,} bytes",
            advice="Raise `max_growth`, or save it as CSV.",
        )
