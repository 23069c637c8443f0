"""A temporary folder that goes at the end, and, if its process is killed, at the next start.

Such a folder holds a file that its process has claimed (`capacity.safe_files`) and that names the
machine. Where no process claims it any more, the folder is what a killed one has left.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import IO

from capacity.checks import megabytes
from capacity.errors import LeftoverWarning, StorageError, warn_caller
from capacity.safe_files import abandoned, claim

PREFIX = "capacity-"
_CLAIM = "in-use"
ELSEWHERE = (
    "Free some space, or name a folder on a larger disk: `temp_folder`, or the variable TMPDIR."
)


@contextmanager
def temporary_folder(parent: str) -> Iterator[str]:
    """Make a folder, and remove it and what is in it at the end.

    Parameters
    ----------
    parent : str
        Folder to make it in. What killed processes have left there goes, with a `LeftoverWarning`.

    Raises
    ------
    StorageError
        If none can be made there.
    """
    _remove_leftovers(Path(parent))
    try:
        folder, file = _claimed(parent)
    except OSError as error:
        raise StorageError(
            parent, f"no temporary folder can be made there ({error.strerror})", ELSEWHERE
        ) from None
    try:
        with file:
            try:
                yield os.fspath(folder)
            finally:
                _remove(folder)
    finally:
        # Windows removes no open file
        if folder.exists():
            _remove(folder)


def _claimed(parent: str) -> tuple[Path, IO[bytes]]:
    """Make a folder that this process claims."""
    while True:
        folder = Path(mkdtemp(prefix=PREFIX, dir=parent))
        try:
            file = (folder / _CLAIM).open("xb")
            file.write(_machine())
            file.flush()
        except OSError:
            _remove(folder)
            raise
        # another process may have taken it for abandoned before it was claimed
        if claim(file.fileno()) is not False and (folder / _CLAIM).exists():
            return folder, file
        file.close()
        _remove(folder)


def _machine() -> bytes:
    # claims of another machine may be invisible on a disk that both share
    return platform.node().encode(errors="replace")


def _remove_leftovers(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # a link, and a folder of another user or of a process that is just making it, has no claim
        with suppress(OSError):
            if not stat.S_ISDIR(folder.lstat().st_mode):
                continue
            with abandoned(folder / _CLAIM) as machine:
                if machine != _machine():
                    continue
                size = sum(file.lstat().st_size for file in folder.rglob("*"))
                _remove(folder)
            warn_caller(
                LeftoverWarning(
                    f"{folder}: a process that was killed had left {megabytes(size)} there, which "
                    "were removed."
                )
            )


def _remove(folder: Path) -> None:
    """Remove the claim last, so that what can't be removed now is found again."""
    with suppress(OSError):
        for one in folder.iterdir():
            if one.is_dir() and not one.is_symlink():
                shutil.rmtree(one, ignore_errors=True)
            elif one.name != _CLAIM:
                one.unlink()
        (folder / _CLAIM).unlink(missing_ok=True)
        folder.rmdir()
