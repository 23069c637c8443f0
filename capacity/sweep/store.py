"""The folder of a sweep: atomic parquet shards, and what else it takes to go on.

::

    DIR/manifest.json              what the sweep is (`capacity.sweep.manifest`)
    DIR/shards/00000-<key>.parquet rows of one shard; that the file is valid records that it is done
    DIR/ranks/<facts>.json         bounds of a database's rank, computed once
    DIR/log-<i>-of-<n>.jsonl       when each shard was done, and how long it took; in no table
    DIR/runs.parquet               all rows, written when the last shard is done

Every file but the logs is written under a temporary name, synced, and renamed: a kill at any moment
leaves whole files only, and the same command goes on where it stopped. Readers never see a
temporary name, so that the folder can be read while it grows, by `load` or by any other reader of
``DIR/shards/*.parquet``.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock, Timeout

from capacity.errors import SweepError
from capacity.sweep.files import remove_parts, write_whole
from capacity.sweep.manifest import admitted, shard_names
from capacity.sweep.plan import Plan
from capacity.sweep.table import DAMAGED, RUNS_SCHEMA, Row, compact, read_shard, write_table


class Store:
    """The folder of one sweep.

    Parameters
    ----------
    folder : path
        Made if it isn't there.
    plan : Plan
    here : dict
        What computes it (`capacity.sweep.manifest.environment`).
    allow_other_engine : bool
        Whether the same runs may be there already, computed by something else.

    Attributes
    ----------
    plan : Plan
        As it is done here: under other keys if the folder was begun with something else.

    Raises
    ------
    SweepError
        If the folder holds another sweep, or can't be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        plan: Plan,
        here: dict[str, Any],
        *,
        allow_other_engine: bool = False,
    ) -> None:
        self.folder, self._here = Path(folder), here
        try:
            for name in ("shards", "ranks"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SweepError(f"{self.folder} can't be a folder of shards ({error}).") from None
        with self._locked():
            self.plan = admitted(self.folder, plan, here, allow_other_engine=allow_other_engine)
        self.names = shard_names(self.plan)

    @contextmanager
    def mine(self, part: int, parts: int) -> Iterator[range]:
        """The numbers of one part's shards, which no other process may do in the meantime.

        Neighbours are in one part: they tend to be about the same database.

        Raises
        ------
        SweepError
            If another process does.
        """
        n, key = len(self.names), self.plan.key[:8]
        numbers = range(-(-n * part // parts), -(-n * (part + 1) // parts))
        lock = self._lock(f".{part}-of-{parts}-{key}.lock")
        with self._locked():
            others = [p for p in self.folder.glob(f".*-of-*-{key}.lock") if _is_held(p)]
            theirs = {p.name.split("-of-")[1] for p in others} - {f"{parts}-{key}.lock"}
            if theirs or not _acquired(lock):
                raise SweepError(
                    f"Another process does {'another division' if theirs else 'this part'} of "
                    f"{self.folder} at this moment. Wait for it, or give each its own part i of "
                    "the same N with --shard i/N."
                )
        try:
            names = {self.names[number] for number in numbers}
            remove_parts(self.folder / "shards", lambda name: name.rsplit(".", 2)[0] in names)
            yield numbers
        finally:
            lock.release()

    def path(self, number: int) -> Path:
        """File of a shard."""
        return self.folder / "shards" / self.names[number]

    def is_done(self, number: int) -> bool:
        """Whether a shard's file is there, whole, and holds the runs that it should."""
        return self._rows(number) is not None

    def write(self, number: int, rows: Sequence[Row]) -> None:
        """Store the rows of a shard."""
        write_table(self.path(number), pa.Table.from_pylist(list(rows), schema=RUNS_SCHEMA))

    def log(self, part: str, **what: Any) -> None:
        """Add a line to the log of a part."""
        line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "host": platform.node()}
        path = self.folder / f"log-{part}.jsonl"
        try:
            with path.open("a", encoding="utf-8") as file:
                # a line that a kill cut off stays alone
                file.write("\n" + json.dumps({**line, **what}))
        except OSError as error:
            raise SweepError(f"{path} can't be written ({error.strerror}).") from None

    def ranks(self, facts_sha256: str) -> dict[str, int] | None:
        """The bounds of a database's rank, if they are known."""
        try:
            data = json.loads(self._ranks(facts_sha256).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        names = ("database_rank_lower", "database_rank_upper", "database_rank_bound")
        known = isinstance(data, dict) and data.get("facts_sha256") == facts_sha256
        if not known or data.get("computed_by") != self._here:
            return None
        whole = all(isinstance(data.get(name), int) for name in names)
        return {name: data[name] for name in names} if whole else None

    def keep_ranks(self, facts_sha256: str, ranks: Mapping[str, int]) -> None:
        """Keep the bounds of a database's rank."""
        stamped = {"facts_sha256": facts_sha256, "computed_by": self._here, **ranks}
        data = json.dumps(stamped) + "\n"
        write_whole(self._ranks(facts_sha256), data.encode())

    def finish(self) -> Path | None:
        """Write ``runs.parquet`` if every shard is done; give its path."""
        if not all(self.is_done(number) for number in range(len(self.names))):
            return None
        # another part may have ended at the same moment
        with self._locked():
            if not any(map(_is_held, self.folder.glob(".*-of-*.lock"))):
                for folder in (self.folder, self.folder / "shards", self.folder / "ranks"):
                    remove_parts(folder)
            return compact(self.folder)

    def _rows(self, number: int) -> pa.Table | None:
        try:
            table = read_shard(self.path(number))
        except DAMAGED:
            return None
        keys = sorted(run.key for run in self.plan.shards[number])
        whole = table.schema.remove_metadata() == RUNS_SCHEMA
        return table if whole and table["run_key"].to_pylist() == keys else None

    def _lock(self, name: str) -> FileLock:
        return FileLock(self.folder / name)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """What only one process may do at a time, for moments."""
        lock = self._lock(".folder.lock")
        try:
            lock.acquire()
        except OSError as error:
            raise SweepError(
                f"{self.folder} can't be written ({error.strerror}); what was done is kept."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _ranks(self, facts_sha256: str) -> Path:
        return self.folder / "ranks" / f"{facts_sha256[:16]}.json"


def _acquired(lock: FileLock) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def _is_held(path: Path) -> bool:
    """Whether some process holds a lock."""
    lock = FileLock(path)
    if not _acquired(lock):
        return True
    lock.release()
    return False
