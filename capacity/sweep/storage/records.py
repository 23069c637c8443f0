"""Files of a sweep's folder: written atomically, read with limits, and refused if damaged.

Stamped JSON carries the SHA-256 of its own content. A digest detects damage and changes by hand,
but no forgery: a forger can replace the digest as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from capacity import safe_files
from capacity.errors import StorageError, SweepError

# int64, as the columns of the runs table
LARGEST_INTEGER = 2**63 - 1


class DamagedFileError(SweepError):
    """A file of a sweep doesn't hold what the sweep wrote to it.

    Parameters
    ----------
    path : path
        Path of the file.
    reason : str
        What is wrong, as the end of a sentence that begins with the path.
    advice : str
        What to do next.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        reason: str,
        advice: str = "Delete it and continue with `capacity sweep`.",
    ) -> None:
        self.path, self.reason = os.fspath(path), reason
        super().__init__(f"{self.path} {reason}. {advice}")


def write(path: Path, data: bytes) -> None:
    """Write a file completely or not at all.

    Raises
    ------
    SweepError
        If it can't be written; an earlier file of that name is unchanged.
    """
    try:
        safe_files.write_whole(path, data)
    except StorageError as error:
        raise SweepError(
            f"{error.path} {error.reason}; what was done is kept. Free some space, check the "
            "folder's permissions, or choose another folder with --out."
        ) from None


def read(path: Path, *, max_bytes: int) -> bytes:
    """Read a regular file completely.

    Raises
    ------
    DamagedFileError
        If it doesn't exist, isn't regular, can't be read, or is too large to be the sweep's.
    """
    try:
        return safe_files.read_file(path, max_bytes=max_bytes)
    except StorageError as error:
        raise DamagedFileError(path, f"is damaged ({error.reason})") from None


def read_json(path: Path, *, max_bytes: int) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    DamagedFileError
        If the file can't be read, or isn't a JSON object in UTF-8.
    """
    data = read(path, max_bytes=max_bytes)
    try:
        held = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise DamagedFileError(path, "is damaged (it is nested too deep)") from None
    except ValueError as error:
        raise DamagedFileError(path, f"is damaged ({error!s:.120})") from None
    if not isinstance(held, dict):
        raise DamagedFileError(path, "is damaged (it is not a JSON object)")
    return held


def stamped(content: dict[str, Any]) -> bytes:
    """JSON of an object together with the SHA-256 of its content."""
    return json.dumps({**content, "sha256": _sha256(content)}).encode() + b"\n"


def read_stamped(path: Path, *, max_bytes: int) -> dict[str, Any]:
    """Read JSON that `stamped` made, without its stamp.

    Raises
    ------
    DamagedFileError
        If the file can't be read, isn't a JSON object in UTF-8, or its stamp is of other content.
    """
    content = read_json(path, max_bytes=max_bytes)
    stamp = content.pop("sha256", None)
    if stamp != _sha256(content):
        raise DamagedFileError(path, "is damaged (its sha256 is of another content)")
    return content


def is_integer(value: object, *, least: int = 0) -> bool:
    """Return True if a value is an integer, not a bool, that an int64 column can hold."""
    return type(value) is int and least <= value <= LARGEST_INTEGER


def _sha256(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
