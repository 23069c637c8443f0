"""Read and write files by name, without hanging and without losing data.

The library opens all files by name through this module. A file to read must be regular, or standard
input: opening a named pipe without a writer blocks endlessly, and a device may have no end. A file
is written whole or not at all: under a unique temporary name, synced to the disk, and then renamed
in one step. What a killed process has left under such a name goes when the file is next written.

A lock shows that a file of this process is in use, and ends with it, even killed. It is the
system's (``flock``): of an open file, not of a number of a process, which another may have by now.
Windows has none of them.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from capacity.errors import LeftoverWarning, StorageError, warn_caller

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
        How the file begins; None if it is in use, of somebody else, a link, or can't be checked.
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


# names of standard input
STANDARD_INPUT = ("-", "/dev/stdin")
# the temporary name of NAME is .NAME.<32 hexadecimal digits>.part
# as each system has them: the file isn't inherited, a pipe isn't waited for, bytes stay as they are
_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY"))
_PART = re.compile(r"\.(.+)\.[0-9a-f]{32}\.part")
# what to do about an error of writing; about any other, only to write elsewhere
_REMEDIES = {
    errno.ENOSPC: "Free some space, or choose",
    errno.EACCES: "Check the folder's permissions, or choose",
    errno.EPERM: "Check the folder's permissions, or choose",
}
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read_file(path: str | os.PathLike[str], *, max_bytes: int) -> bytes:
    """Read a regular file, or standard input, whole.

    Parameters
    ----------
    path : path
        ``-`` is standard input.
    max_bytes : int
        Maximum size; a larger file is refused before it is read.

    Raises
    ------
    StorageError
        If the file is missing, not regular, unreadable, or larger than `max_bytes`.
    """
    where = os.fspath(path)
    try:
        if where in STANDARD_INPUT:
            if sys.stdin is None:
                raise StorageError(where, "standard input is closed", "Pass the path of a file.")
            return read_pieces(where, sys.stdin.buffer, max_bytes=max_bytes)
        with _opened(where) as file:
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise _too_large(where, max_bytes)
            return read_pieces(where, file, max_bytes=max_bytes, expected=size)
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise StorageError(where, reason, advice_on_name(where)) from None


def advice_on_name(name: str, advice: str = "Pass the path of a readable file.") -> str:
    """Explain what to do about a name that no file has; a URL and ``~`` have reasons of their own.

    Examples
    --------
    >>> advice_on_name("https://example.org/a.ttl")
    'Nothing is fetched: save it, and pass the path of the copy.'
    >>> advice_on_name("~/a.ttl")
    "~ isn't expanded here: write the whole path."
    >>> advice_on_name("a.ttl")
    'Pass the path of a readable file.'
    """
    # a path object has one slash where the URL had two
    if re.match("https?:/", name, re.IGNORECASE):
        return "Nothing is fetched: save it, and pass the path of the copy."
    return "~ isn't expanded here: write the whole path." if name.startswith("~") else advice


def read_pieces(where: str, stream: Any, *, max_bytes: int, expected: int = 0) -> bytes:
    """Read a stream to its end, in pieces, because one read of `max_bytes` would allocate them.

    As many bytes as are expected, at most `max_bytes`, are read at once, and most files end there.

    Raises
    ------
    StorageError
        If it holds more than `max_bytes`.
    """
    first = stream.read(expected) if expected else b""
    piece = stream.read(2**20)
    if not piece:
        return first
    # its value is no copy, where joined pieces would take the memory twice
    whole = io.BytesIO()
    whole.write(first)
    while piece:
        whole.write(piece)
        if whole.tell() > max_bytes:
            raise _too_large(where, max_bytes)
        piece = stream.read(2**20)
    return whole.getvalue()


def require_regular(path: str | os.PathLike[str]) -> None:
    """Refuse a path that isn't a regular file, before another library opens it by name.

    Raises
    ------
    StorageError
        If the file is missing, not regular, or unreadable.
    """
    where = os.fspath(path)
    try:
        _opened(where).close()
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise StorageError(where, reason, advice_on_name(where)) from None


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all, and make missing folders.

    The file is written under a temporary name, synced, and renamed; then its folder is synced. A
    symbolic link of that name is replaced, and its target is unchanged.

    Parameters
    ----------
    path : path
        File to write or to replace.
    data : bytes
        All that the file is to hold.

    Raises
    ------
    StorageError
        If the path is a folder, a pipe or a device, or the file can't be written, for example for
        a full disk. An earlier file is then unchanged, and no temporary file is left.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "new", "facts.tsv")
    ...     write_whole(path, b"Astrid")
    ...     path.read_bytes()
    b'Astrid'
    """
    path = Path(path)
    part = None
    try:
        require_replaceable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        done = False
        while not done:
            # process ids are equal on two machines that share the folder
            part = path.with_name(f".{path.name}.{uuid4().hex}.part") if path.name else path
            done = _replaced(path, part, data)
        _sync(path.parent)
        if n_left := remove_parts(path.parent, path.name.__eq__, claimed=True):
            tell_leftovers(path.parent, n_left)
    except BaseException as error:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink()
        if isinstance(error, StorageError) or not isinstance(error, OSError | ValueError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            os.fspath(path),
            f"can't be written ({reason})",
            f"{_REMEDIES.get(getattr(error, 'errno', None) or 0, 'Choose')} another path.",
        ) from None


def _replaced(path: Path, part: Path, data: bytes) -> bool:
    """Write and rename a part; False if it was taken for abandoned before it was claimed."""
    with part.open("xb") as file:
        claimed = claim(file.fileno())
        if claimed is False or (claimed and not part.exists()):
            part.unlink(missing_ok=True)
            return False
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if claimed:
            # before the claim goes with the file; Windows renames no open file
            part.replace(path)
    if not claimed:
        part.replace(path)
    return True


def require_replaceable(path: Path) -> None:
    """Refuse a path that can't be replaced by a file.

    Parameters
    ----------
    path : pathlib.Path
        File to write or to replace.

    Raises
    ------
    StorageError
        If it is a folder, a pipe or a device.

    Examples
    --------
    >>> require_replaceable(Path("."))
    Traceback (most recent call last):
        ...
    capacity.errors.StorageError: .: can't be written, for it is a folder. Pass the name of a file.
    """
    if path.name and not path.exists():
        return
    kind = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    if kind is not None:
        raise StorageError(
            os.fspath(path), f"can't be written, for it is {kind}", "Pass the name of a file."
        )


def remove_parts(folder: Path, of: Callable[[str], bool], *, claimed: bool = False) -> int:
    """Remove the temporary files of interrupted writers of files whose names `of` accepts.

    Nothing is removed through a symbolic link, and only files that `write_whole` named.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    of : callable
        Returns, by the name of a file, whether its temporary files are to be removed.
    claimed : bool
        True if other processes may be writing such files now, whose claims distinguish them.

    Returns
    -------
    int
        Number of files that were removed.
    """
    if folder.is_symlink():
        return 0
    n_removed = 0
    for part in folder.glob(".*.part"):
        named = _PART.fullmatch(part.name)
        if named and of(named[1]):
            with contextlib.suppress(OSError), abandoned(part) as begins:
                if begins is not None or (not claimed and stat.S_ISREG(part.lstat().st_mode)):
                    part.unlink()
                    n_removed += 1
    return n_removed


def tell_leftovers(folder: Path, n_files: int) -> None:
    """Warn that temporary files of killed processes were removed from a folder."""
    files = "a temporary file" if n_files == 1 else f"{n_files:,} temporary files"
    warn_caller(LeftoverWarning(f"{folder}: {files} of a process that was killed went."))


def _opened(where: str) -> IO[bytes]:
    """Open a regular file, without waiting if it is a pipe."""
    descriptor = os.open(where, os.O_RDONLY | _FLAGS)
    kind = _KINDS.get(stat.S_IFMT(os.fstat(descriptor).st_mode))
    if kind is not None:
        os.close(descriptor)
        raise StorageError(
            where,
            f"it is {kind}",
            "Pass the path of a regular file, or - for standard input.",
        )
    return os.fdopen(descriptor, "rb")


def _too_large(where: str, max_bytes: int) -> StorageError:
    return StorageError(
        where, f"it holds more than {max_bytes:,} bytes", "Split it, or use a part of it."
    )


def _sync(folder: Path) -> None:
    """Sync a folder, where the system can, so that a rename survives a crash."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
