"""Names in a sweep's folder: its own, and what is refused before anything is trained.

::

    DIR/manifest.json              the sweep that the folder was begun with; written once
    DIR/manifest-<variant>.json    the same runs, computed by something else, under other keys
    DIR/shards/00000-<key>.parquet rows of one shard; that the file is valid records that it is done
    DIR/unfinished/<shard>         rows of a shard that isn't whole yet
    DIR/unfinished/<run key>.npz   snapshot of a run that is under way
    DIR/ranks/<facts>.json         bounds of a database's rank, computed once
    DIR/log-<i>-of-<n>.jsonl       when each shard was done, and how long it took; in no table
    DIR/runs.parquet               all rows, written when the last shard is done

Other files may lie in DIR beside them; they are neither read nor touched. In DIR/shards nothing
else may lie: readers take all of its tables for the sweep's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path

from capacity.errors import SweepError
from capacity.safe_files import remove_parts

SHARDS, UNFINISHED, RANKS, TABLE = "shards", "unfinished", "ranks", "runs.parquet"
MANIFEST = re.compile(r"manifest(-[0-9a-f]{12})?\.json")
SHARD = re.compile(r"[0-9]{5,9}-[0-9a-f]{16}\.parquet")
_LOG = re.compile(r"log-[0-9]+-of-[0-9]+\.jsonl")


def ranks_name(facts_sha256: str) -> str:
    """Name of the file in DIR/ranks for a database."""
    return f"{facts_sha256[:16]}.json"


def snapshot_name(run_key: str) -> str:
    """Name of the file in DIR/unfinished from which a run goes on."""
    return f"{run_key}.npz"


def make_folders(folder: Path) -> None:
    """Make the folder of a sweep and those in it, and refuse what can't be one.

    Raises
    ------
    SweepError
        If they can't be made; or one of them is there already and is a link, or no folder; or one
        of the sweep's own names in DIR belongs to something that is no regular file.
    """
    try:
        for name in (SHARDS, UNFINISHED, RANKS):
            path = folder / name
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                raise SweepError(
                    f"{path} must be a folder, and no link to one. Take it away, or give another "
                    "folder with --out."
                )
        for name in (SHARDS, RANKS):
            (folder / name).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, SweepError):
            raise
        raise SweepError(f"{folder} can't be a folder of shards ({error}).") from None
    require_files(folder, _is_own)


def require_files(folder: Path, own: Callable[[str], bool]) -> None:
    """Refuse a folder, a pipe or a device under one of the sweep's own names.

    A link to a file is replaced when its name is written; what it points to stays as it is.

    Raises
    ------
    SweepError
    """
    for entry in _entries(folder):
        broken_link = entry.is_symlink() and not Path(entry).exists()
        if own(entry.name) and not (entry.is_file() or broken_link):
            raise SweepError(
                f"{entry.path} must be a regular file, for the sweep writes one of that name. Take "
                "it away, or give another folder with --out."
            )


def require_own_shards(folder: Path, names: Collection[str]) -> None:
    """Refuse what else is in DIR/shards; hidden files apart, which no reader takes for tables.

    Raises
    ------
    SweepError
    """
    shards = folder / SHARDS
    foreign = sorted(entry.name for entry in _entries(shards) if entry.name not in names)
    if foreign:
        raise SweepError(
            f"{shards} holds what isn't this sweep's, such as {foreign[0]}. Take it out."
        )
    require_files(shards, lambda _name: True)


def require_new(folder: Path) -> None:
    """Refuse a folder without a manifest that holds rows.

    Raises
    ------
    SweepError
    """
    what = "shards" if any(_entries(folder / SHARDS)) else TABLE
    if what == TABLE and not (folder / TABLE).exists():
        return
    raise SweepError(
        f"{folder} has {what} and no manifest.json, so that nobody knows what they are. Give "
        f"another folder with --out, or take {what} out."
    )


def remove_own_parts(
    folder: Path,
    shards: Collection[str],
    snapshots: Collection[str],
    ranks: Collection[str] | None = None,
) -> None:
    """Remove what interrupted writers left of some shards and runs; and of all else.

    Parameters
    ----------
    folder : Path
    shards : collection of str
        Names of their files.
    snapshots : collection of str
        Names of those of runs.
    ranks : collection of str, optional
        Names of the files of ranks that nobody writes now; nor the manifests and the table.
    """
    remove_parts(folder / SHARDS, shards.__contains__)
    remove_parts(folder / UNFINISHED, lambda name: name in shards or name in snapshots)
    if ranks is not None:
        remove_parts(folder / RANKS, ranks.__contains__)
        remove_parts(folder, _is_own)


def _is_own(name: str) -> bool:
    """Whether a name in DIR itself is the sweep's."""
    return name == TABLE or bool(MANIFEST.fullmatch(name) or _LOG.fullmatch(name))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """All in a folder that isn't hidden."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if not entry.name.startswith(".")]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise SweepError(f"{folder} can't be read ({error}).") from None
