"""The folder of a sweep: atomic parquet shards, and the files that it needs to resume.

`capacity.sweep.storage.layout` lists the files. Their guarantees:

*Kills.* Every file but the logs is written under a temporary name, synced, and renamed: a kill at
any moment, a crash of the machine or a full disk leaves only complete files, and the same command
resumes, to the same ``runs.parquet`` byte for byte, with any number of workers. Rows of incomplete
shards are kept in DIR/unfinished every few seconds (`capacity.sweep.driver`), without the ranks of
their databases, which may not be bounded yet; so is a snapshot of each run that takes longer than
that (`capacity.layer.run.snapshots`). So a kill costs at most ten seconds of work; or one epoch,
ten times the duration of writing a snapshot, or bounding a database, where that is longer. On Dask,
whose workers may not see the folder, and for runs that their engine trains together, there are no
snapshots, and a kill costs the runs that are under way.
Readers never see a temporary name, so that the folder can be read while it grows, by `load` or by
any other reader of ``DIR/shards/*.parquet``.

*Damage.* Files that are read back are checked: tables by a digest of their rows
(`capacity.sweep.storage.runs_table`), ranks by one of their content, and both for lower <= upper. A
shard, an unfinished shard, a file of ranks or ``runs.parquet`` that fails is reported and made
again by the sweep; readers refuse it. A manifest that fails is refused by both. A digest detects
damage, but not a forger who replaces it too.

*Other files.* Folders that are links, other files in DIR/shards, and folders, pipes or devices
under the sweep's names are refused before anything is trained. Only the sweep's own unfinished
shards, snapshots and temporary files are ever removed, and nothing through a link.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from capacity.errors import SweepError
from capacity.safe_files import tell_leftovers
from capacity.sweep.plan import Plan
from capacity.sweep.storage.admission import admitted
from capacity.sweep.storage.growth import end_growth
from capacity.sweep.storage.layout import (
    RANKS,
    SHARDS,
    UNFINISHED,
    divisions,
    locked,
    make_folders,
    names_of_run,
    part_of,
    ranks_name,
    remove_own_parts,
    remove_strays,
    require_files,
    require_own_shards,
)
from capacity.sweep.storage.manifest import manifests, shard_names
from capacity.sweep.storage.records import (
    DamagedFileError,
    is_integer,
    read_stamped,
    stamped,
    write,
)
from capacity.sweep.storage.row_schema import RANK_COLUMNS, Row, runs_schema, unfinished_schema
from capacity.sweep.storage.runs_table import (
    compact,
    read_rows,
    read_whole,
    table_of_rows,
    write_table,
)

_RANKS_BYTES = 2**16


class Store:
    """The folder of one sweep.

    Parameters
    ----------
    folder : path
        Path of the folder, which is created if needed.
    plan : Plan
        Runs to store.
    here : dict
        Environment that computes them (`capacity.sweep.storage.manifest.environment`).
    allow_other_engine : bool
        Accept a folder that holds the same runs by another engine, dtype or version.

    Attributes
    ----------
    plan : Plan
        Plan as it is done here: under other keys if the folder was begun by another environment.

    Raises
    ------
    SweepError
        If the folder holds another sweep or foreign files, or can't be written; or if the plan
        repeats a run.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        plan: Plan,
        here: dict[str, Any],
        *,
        allow_other_engine: bool = False,
    ) -> None:
        n_runs = len(plan.runs)
        if (n_keys := len({run.key for run in plan.runs})) < n_runs:
            raise SweepError(
                f"The runs of a plan must differ, or their shards would never be complete; "
                f"{n_runs - n_keys} of {n_runs} are repeated. Pass each run once."
            )
        self.folder, self._here = Path(folder), here
        make_folders(self.folder)
        with locked(self.folder):
            end_growth(self.folder)
            self.plan = admitted(self.folder, plan, here, allow_other_engine=allow_other_engine)
            shards = {name for held in manifests(self.folder) for name in held["shards"]}
            require_own_shards(self.folder, shards)
        self.names = shard_names(self.plan)
        self._schema = runs_schema(self.plan.taus, self.plan.kind_of_layers)
        self._ranks_names = {ranks_name(facts) for facts in self.plan.databases}
        snapshots = self._snapshot_names(range(len(self.names)))
        require_files(self.folder / UNFINISHED, lambda name: name in shards or name in snapshots)
        require_files(self.folder / RANKS, self._ranks_names.__contains__)

    @contextmanager
    def mine(self, part: int, parts: int) -> Iterator[range]:
        """Lock one part's shards for this process, and yield their numbers.

        Neighbours are in one part, since they tend to share a database.

        Raises
        ------
        SweepError
            If another process does, or has let the plan grow.
        """
        n = len(self.names)
        numbers = range(-(-n * part // parts), -(-n * (part + 1) // parts))
        with part_of(self.folder, part, parts, self.plan.key[:8]):
            if not any(held["plan_key"] == self.plan.key for held in manifests(self.folder)):
                raise SweepError(
                    f"{self.folder} has grown to another plan since this process began. Run the "
                    "command with the new plan."
                )
            names = {self.names[number] for number in numbers}
            parts_of = self.folder, names, self._snapshot_names(numbers)
            self._tell(remove_own_parts(*parts_of))
            try:
                yield numbers
            finally:
                # workers that were ended while they wrote; that isn't worth a word
                remove_own_parts(*parts_of)

    def _tell(self, n_leftovers: int) -> None:
        if n_leftovers:
            tell_leftovers(self.folder, n_leftovers)

    def path(self, number: int) -> Path:
        """File of a shard."""
        return self.folder / SHARDS / self.names[number]

    def require_whole(self, number: int) -> bool:
        """Return True if a shard's file exists, and refuse one that doesn't hold its runs.

        Raises
        ------
        DamagedFileError
            If the file exists, and is damaged or holds other runs.
        """
        path, shard = self.path(number), self.plan.shards[number]
        if not path.exists():
            return False
        table = read_rows(path, most=len(shard), of=path.name)
        if table["run_key"].to_pylist() != sorted(run.key for run in shard):
            raise DamagedFileError(path, "is damaged (it holds other runs)")
        return True

    def is_done(self, number: int) -> bool:
        """Return True if a shard's file exists, is undamaged, and holds its runs."""
        with suppress(DamagedFileError):
            return self.require_whole(number)
        return False

    def write(self, number: int, rows: Iterable[Row]) -> None:
        """Store all rows of a shard, and remove its unfinished rows and snapshots."""
        path = self.path(number)
        write_table(path, table_of_rows(rows, self._schema), of=path.name)
        self.end_unfinished(number)

    def unfinished(self, number: int) -> list[dict[str, Any]]:
        """Rows that were kept of an incomplete shard; their ranks may be null.

        Raises
        ------
        DamagedFileError
            If the file exists, and doesn't hold runs of the shard.
        """
        path, shard = self._unfinished(number), self.plan.shards[number]
        if not path.exists():
            return []
        of = f"{UNFINISHED}/{path.name}"
        table = read_rows(path, most=len(shard), of=of, unfinished=True)
        keys = table["run_key"].to_pylist()
        if len(set(keys)) < len(keys) or not {run.key for run in shard}.issuperset(keys):
            raise DamagedFileError(path, "is damaged (it holds other runs)")
        return table.to_pylist()

    def keep_unfinished(self, number: int, rows: Iterable[Row]) -> None:
        """Keep the rows of an incomplete shard, and remove the snapshots of their runs.

        Their ranks may be null.
        """
        rows = list(rows)
        path = self._unfinished(number)
        table = table_of_rows(rows, unfinished_schema(self._schema))
        write_table(path, table, of=f"{UNFINISHED}/{path.name}")
        self._end_snapshots({name for row in rows for name in names_of_run(row["run_key"])})

    def end_unfinished(self, number: int) -> None:
        """Remove the rows and snapshots that were kept of a shard that is now complete."""
        with suppress(OSError):
            self._unfinished(number).unlink(missing_ok=True)
        self._end_snapshots(self._snapshot_names([number]))

    def require_whole_table(self) -> None:
        """Refuse a damaged ``runs.parquet``; it may be older than the shards, or not exist.

        Raises
        ------
        DamagedFileError
            If it is damaged.
        """
        read_whole(self.folder, manifests(self.folder))

    def log(self, part: str, **what: Any) -> None:
        """Add a line to the log of a part."""
        line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "host": platform.node()}
        path = self.folder / f"log-{part}.jsonl"
        try:
            with path.open("a", encoding="utf-8") as file:
                # a line that a kill cut off stays alone
                file.write("\n" + json.dumps({**line, **what}))
        except OSError as error:
            raise SweepError(
                f"{path} can't be written ({error.strerror}); what was done is kept. Check the "
                "folder's permissions and its free space."
            ) from None

    def ranks(self, facts_sha256: str) -> dict[str, int] | None:
        """Bounds of a database's rank; None if this environment hasn't computed them.

        Raises
        ------
        DamagedFileError
            If their file is damaged.
        """
        path = self._ranks(facts_sha256)
        if not path.exists():
            return None
        held = read_stamped(path, max_bytes=_RANKS_BYTES)
        ranks: dict[str, Any] = {name: held.get(name) for name in RANK_COLUMNS}
        if not all(map(is_integer, ranks.values())):
            raise DamagedFileError(path, "is damaged (a rank in it is not a natural number)")
        if ranks["database_rank_lower"] > ranks["database_rank_upper"]:
            raise DamagedFileError(path, "is damaged (its lower bound is above the upper one)")
        if held.get("facts_sha256") != facts_sha256:
            raise DamagedFileError(path, "is damaged (it is about other facts)")
        # bounds by another version are no damage
        return ranks if held.get("computed_by") == self._here else None

    def keep_ranks(self, facts_sha256: str, ranks: Mapping[str, int]) -> None:
        """Keep the bounds of a database's rank."""
        content = {"facts_sha256": facts_sha256, "computed_by": self._here, **ranks}
        write(self._ranks(facts_sha256), stamped(content))

    def finish(self) -> Path | None:
        """Write ``runs.parquet`` if every shard is done, and return its path."""
        if not all(self.is_done(number) for number in range(len(self.names))):
            return None
        # another part may have ended at the same moment
        with locked(self.folder):
            if not any(divisions(self.folder)):
                snapshots = self._snapshot_names(range(len(self.names)))
                shards = set(self.names)
                self._tell(remove_own_parts(self.folder, shards, snapshots, self._ranks_names))
                held = manifests(self.folder)
                remove_strays(self.folder, {name for one in held for name in one["shards"]})
                with suppress(OSError):
                    # fails if files of another engine are there
                    (self.folder / UNFINISHED).rmdir()
            return compact(self.folder)

    @property
    def snapshots(self) -> Path:
        """Folder of the snapshots of runs that are under way."""
        return self.folder / UNFINISHED

    def _snapshot_names(self, numbers: Iterable[int]) -> set[str]:
        runs = (run for n in numbers for run in self.plan.shards[n])
        return {name for run in runs for name in names_of_run(run.key)}

    def _end_snapshots(self, names: Collection[str]) -> None:
        """Remove the snapshots of these names; most runs are too short to have one."""
        with suppress(OSError), os.scandir(self.snapshots) as entries:
            for entry in entries:
                if entry.name in names:
                    Path(entry).unlink(missing_ok=True)

    def _unfinished(self, number: int) -> Path:
        return self.folder / UNFINISHED / self.names[number]

    def _ranks(self, facts_sha256: str) -> Path:
        return self.folder / RANKS / ranks_name(facts_sha256)
