"""Locks by which a process shows that a file of its own is in use; they end with it, even killed.

They are the system's (``flock``): of an open file, not of a number of a process, which another may
have by now. Windows has none of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None


def claim(descriptor: int, *, wait: bool = False) -> bool | None:
    """Lock an open file until it is closed.

    Parameters
    ----------
    descriptor : int
        The file, open for writing.
    wait : bool
        Whether to wait until no other process has it locked.

    Returns
    -------
    bool or None
        Whether no other process had locked it; None if the system, or the disk, has no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def abandoned(path: Path) -> Generator[bytes | None, None, None]:
    """Open a file if it is of this user and no process has claimed it, and keep it claimed.

    Yields
    ------
    bytes or None
        How the file begins; None if it is in use, of somebody else, a link, or can't be told.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, AttributeError):
        # Windows lacks such flags
        yield None
        return
    try:
        info = os.fstat(descriptor)
        own = stat.S_ISREG(info.st_mode) and info.st_uid == os.getuid()
        yield os.read(descriptor, 2**10) if own and claim(descriptor) else None
    finally:
        os.close(descriptor)
