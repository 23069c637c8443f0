"""Locks of a sweep's folder: one on the folder, held briefly, and one on each part's shards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from capacity.errors import SweepError

_PART_LOCK = re.compile(r"\.[0-9]+-of-([0-9]+-[0-9a-f]{8})\.lock")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, for a short critical section.

    Raises
    ------
    SweepError
        If the folder can't be written.
    """
    lock = FileLock(folder / ".folder.lock")
    try:
        lock.acquire()
    except OSError as error:
        raise SweepError(
            f"{folder} can't be written ({error.strerror}); what was done is kept. Check the "
            "folder's permissions and its free space."
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def part_of(folder: Path, part: int, parts: int, key: str) -> Iterator[None]:
    """Hold the lock of one part of a sweep's shards.

    Raises
    ------
    SweepError
        If another process does this part, or a part of another division.
    """
    lock = FileLock(folder / f".{part}-of-{parts}-{key}.lock")
    with locked(folder):
        theirs = set(divisions(folder, key)) - {f"{parts}-{key}"}
        if theirs or not _acquired(lock):
            raise SweepError(
                f"Another process is doing {'another division' if theirs else 'this part'} of "
                f"{folder}. Wait for it, or assign each process its own part i of the same N with "
                "--shard i/N."
            )
    try:
        yield
    finally:
        lock.release()


def divisions(folder: Path, key: str = "*") -> Iterator[str]:
    """Divisions ``<n>-<key>`` of which a process is doing a part now."""
    for path in folder.glob(f".*-of-*-{key}.lock"):
        named = _PART_LOCK.fullmatch(path.name)
        if named and path.is_file() and _is_held(path):
            yield named[1]


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        raise SweepError(
            f"{lock.lock_file} can't be locked ({error.strerror}). Check the folder's permissions."
        ) from None
    return True


def _is_held(path: Path) -> bool:
    """Return True if a process holds the lock."""
    lock = FileLock(path)
    if not _acquired(lock):
        return True
    lock.release()
    return False
