"""Layout of a sweep's folder, and checks of other files in it before anything is trained.

::

    DIR/manifest.json              the sweep that the folder was begun with, or has grown to
    DIR/manifest-<variant>.json    the same runs by another engine or version, under other keys
    DIR/shards/00000-<key>.parquet rows of one shard; a shard is done if its file is valid
    DIR/unfinished/<shard>         rows of a shard that isn't complete yet, without ranks
    DIR/unfinished/<run key>.npz   snapshot of a run that is under way
    DIR/unfinished/<run key>.json  outcome of its starts so far
    DIR/ranks/<facts>.json         bounds of a database's rank, computed once
    DIR/log-<i>-of-<n>.jsonl       time and duration of each shard, which no table holds
    DIR/runs.parquet               all rows, written when the last shard is done

DIR may hold other files, which are neither read nor changed. DIR/shards may not: readers take all
of its tables for the sweep's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from capacity.errors import SweepError
from capacity.safe_files import remove_parts

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


SHARDS, UNFINISHED, RANKS, TABLE = "shards", "unfinished", "ranks", "runs.parquet"
MANIFEST = re.compile(r"manifest(-[0-9a-f]{12})?\.json")
SHARD = re.compile(r"[0-9]{5,9}-[0-9a-f]{16}\.parquet")
_LOG = re.compile(r"log-[0-9]+-of-[0-9]+\.jsonl")


def ranks_name(facts_sha256: str) -> str:
    """Name of the file in DIR/ranks for a database."""
    return f"{facts_sha256[:16]}.json"


def snapshot_name(run_key: str) -> str:
    """Name of the file in DIR/unfinished from which a start of a run continues."""
    return f"{run_key}.npz"


def starts_name(run_key: str) -> str:
    """Name of the file in DIR/unfinished with the outcome of the starts of a run so far."""
    return f"{run_key}.json"


def names_of_run(run_key: str) -> set[str]:
    """Names of all files in DIR/unfinished from which a run continues."""
    return {snapshot_name(run_key), starts_name(run_key)}


def shard_files(folder: Path, name: str) -> list[tuple[Path, str]]:
    """Files with rows of a shard that are there, done first, each with the origin that it states.

    Parameters
    ----------
    folder : Path
        Folder of the sweep.
    name : str
        Name of the shard's file.
    """
    files = [(folder / SHARDS / name, name), (folder / UNFINISHED / name, f"{UNFINISHED}/{name}")]
    return [(path, of) for path, of in files if path.exists()]


def remove_strays(folder: Path, shards: Collection[str]) -> None:
    """Remove unfinished shards of no manifest, which a plan left that was killed as it grew."""
    for entry in _entries(folder / UNFINISHED):
        if SHARD.fullmatch(entry.name) and entry.name not in shards and entry.is_file():
            Path(entry).unlink(missing_ok=True)


def make_folders(folder: Path) -> None:
    """Make the folder of a sweep and its subfolders, and refuse one that can't be used.

    Raises
    ------
    SweepError
        If they can't be made; if one of them exists and is a link, or not a folder; or if one of
        the sweep's own names in DIR belongs to something other than a regular file.
    """
    try:
        for name in (SHARDS, UNFINISHED, RANKS):
            path = folder / name
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                raise SweepError(
                    f"{path} must be a folder, not a link to one. Move it elsewhere, or choose "
                    "another folder with --out."
                )
        for name in (SHARDS, RANKS):
            (folder / name).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, SweepError):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        raise SweepError(
            f"{folder} can't be the folder of a sweep ({reason}). Choose another one with --out."
        ) from None
    require_files(folder, _is_own)


def require_files(folder: Path, own: Callable[[str], bool]) -> None:
    """Refuse a folder, a pipe or a device under one of the sweep's own names.

    A link to a file is replaced when its name is written; its target stays as it is.

    Raises
    ------
    SweepError
        If there is one; the message names it.
    """
    for entry in _entries(folder):
        broken_link = entry.is_symlink() and not Path(entry).exists()
        if own(entry.name) and not (entry.is_file() or broken_link):
            raise SweepError(
                f"{entry.path} must be a regular file, because the sweep writes one of that name. "
                "Move it elsewhere, or choose another folder with --out."
            )


def require_own_shards(folder: Path, names: Collection[str]) -> None:
    """Refuse other files in DIR/shards, except hidden ones, which no reader takes for tables.

    Raises
    ------
    SweepError
        If there are any; the message names one.
    """
    shards = folder / SHARDS
    foreign = sorted(entry.name for entry in _entries(shards) if entry.name not in names)
    if foreign:
        raise SweepError(
            f"{shards} must hold only this sweep's files; it holds others, such as {foreign[0]}. "
            "Move them elsewhere."
        )
    require_files(shards, lambda _name: True)


def require_new(folder: Path) -> None:
    """Refuse a folder that holds rows but no manifest.

    Raises
    ------
    SweepError
        If it has shards or a table.
    """
    what = "shards" if any(_entries(folder / SHARDS)) else TABLE
    if what == TABLE and not (folder / TABLE).exists():
        return
    raise SweepError(
        f"{folder} has {what} and no manifest.json, so that their sweep is unknown. Choose another "
        f"folder with --out, or move {what} elsewhere."
    )


def remove_own_parts(
    folder: Path,
    shards: Collection[str],
    snapshots: Collection[str],
    ranks: Collection[str] | None = None,
) -> int:
    """Remove temporary files of interrupted writers, and return their number.

    Parameters
    ----------
    folder : Path
        Folder of the sweep.
    shards : collection of str
        Names of files of shards that no process writes now.
    snapshots : collection of str
        Names of snapshots of their runs.
    ranks : collection of str, optional
        Names of files of ranks; given if no process writes them, a manifest, a log or the table.
    """
    n_removed = remove_parts(folder / SHARDS, shards.__contains__)
    n_removed += remove_parts(folder / UNFINISHED, lambda name: name in shards or name in snapshots)
    if ranks is not None:
        n_removed += remove_parts(folder / RANKS, ranks.__contains__)
        n_removed += remove_parts(folder, _is_own)
    return n_removed


def _is_own(name: str) -> bool:
    """Return True if a name in DIR itself is one of the sweep's."""
    return name == TABLE or bool(MANIFEST.fullmatch(name) or _LOG.fullmatch(name))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Entries of a folder that aren't hidden; none if it doesn't exist."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise SweepError(f"{folder} can't be read ({error}).") from None
