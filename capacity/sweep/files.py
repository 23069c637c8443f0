"""Files that are whole or absent, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from capacity.errors import SweepError

# the end of a name while a file is being written
PART = ".part"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under a temporary name, sync it, rename it, and sync its folder.

    Raises
    ------
    SweepError
        If it can't be written; what was there before is there still.
    """
    # process ids are equal on two machines that share the folder
    part = path.with_name(f".{path.name}.{uuid4().hex}{PART}")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise SweepError(
            f"{path} can't be written ({error.strerror}); what was done is kept. Free some space, "
            "see to the folder's permissions, or give another folder with --out."
        ) from None


def remove_parts(folder: Path, of: Callable[[str], bool] = lambda _name: True) -> None:
    """Remove what interrupted writers left of the files whose names are chosen; of all."""
    for part in folder.glob(f".*{PART}"):
        if of(part.name[1:]):
            with contextlib.suppress(OSError):
                part.unlink()


def _sync(folder: Path) -> None:
    """Make a rename last, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
