"""A plan that grows in its folder: its rows are kept, and divided into the shards of the new plan.

A growth is three steps, under the folder's lock and while no process does a part of the sweep:

1. The rows that are there are written to DIR/unfinished, under the names of the new shards.
2. The manifest is replaced by that of the new plan, which lists the shards that it ``replaced``.
3. These are removed, and then that list.

So a kill loses no row. Before the second step the folder holds the old plan, and what the first
one wrote is overwritten or removed later. After it the folder holds the new plan: the old shards,
whose rows are of this plan, are read like its own until the next process removes them. Shards that
the two plans share stay as they are. Rows that wait for others of their new shard are in no table
until it is complete. The driver stores shards that lack nothing but the ranks of
their databases, which are kept beside them; so in the end a folder is what it were, byte for byte,
if the new plan had been done in it from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from capacity.errors import SweepError, warn_caller
from capacity.sweep.plan import Plan
from capacity.sweep.storage.layout import SHARDS, UNFINISHED, divisions, shard_files
from capacity.sweep.storage.manifest import begin, manifests, shard_names, without_replaced
from capacity.sweep.storage.records import DamagedFileError
from capacity.sweep.storage.row_schema import RANK_COLUMNS, runs_schema, unfinished_schema
from capacity.sweep.storage.runs_table import read_rows, write_table


def grow(path: Path, held: Mapping[str, Any], plan: Plan, computed_by: dict[str, Any]) -> None:
    """Let the plan of a manifest grow to one that has all its runs.

    Parameters
    ----------
    path : Path
        The manifest, in the folder of the sweep.
    held : mapping
        What it holds.
    plan : Plan
        The new plan.
    computed_by : dict
        Engine, dtype and environment of the new plan.

    Raises
    ------
    SweepError
        If a process is doing a part of the sweep, or a file can't be written.
    """
    folder, names = path.parent, shard_names(plan)
    if any(divisions(folder)):
        raise SweepError(
            f"{folder} holds a sweep of {held['n_runs']:,} runs, which this plan of "
            f"{len(plan.runs):,} continues, and another process is doing a part of it. Wait for "
            "it, and run the same command again."
        )
    rows = _kept_rows(folder, held, plan)
    places = {key: place for place, key in enumerate(rows["run_key"].to_pylist())}
    for name, shard in zip(names, plan.shards, strict=True):
        # the same name has the same runs
        mine = [] if name in held["shards"] else [r.key for r in shard if r.key in places]
        if mine:
            table = rows.take(sorted(places[key] for key in mine)).sort_by("run_key")
            (folder / UNFINISHED).mkdir(exist_ok=True)
            write_table(folder / UNFINISHED / name, table, of=f"{UNFINISHED}/{name}")
    replaced = sorted(set(held["shards"]).difference(names))
    begin(path, plan, computed_by, replaced=replaced)
    end_growth(folder)


def end_growth(folder: Path) -> None:
    """Remove the shards that grown plans have replaced, if a growth wasn't ended before.

    The caller must hold the folder's lock, and no process that doesn't may write shards.
    """
    if not (folder / "manifest.json").exists():
        return
    held = manifests(folder)
    if not any("replaced" in one for one in held):
        return
    current = {name for one in held for name in one["shards"]}
    for one in held:
        for name in set(one.get("replaced", ())).difference(current):
            for within in (SHARDS, UNFINISHED):
                with suppress(FileNotFoundError):
                    (folder / within / name).unlink()
    for path in (folder / "manifest.json", *sorted(folder.glob("manifest-*.json"))):
        without_replaced(path)


def kept_keys(folder: Path, held: Mapping[str, Any]) -> set[str]:
    """Keys of the runs of a manifest whose rows are in the folder, in whatever shard."""
    return {key for _, table in _tables(folder, held) for key in table["run_key"].to_pylist()}


def _kept_rows(folder: Path, held: Mapping[str, Any], plan: Plan) -> pa.Table:
    """Rows that a folder holds of a plan, each once, as rows that aren't complete yet.

    Their ranks are null, as they are in all such rows.
    """
    schema = unfinished_schema(runs_schema(plan.taus, plan.kind_of_layers))
    seen: set[str] = set()
    parts = [schema.empty_table()]
    for path, table in _tables(folder, held):
        if table.schema.names != schema.names:
            _tell(DamagedFileError(path, "has other columns than the plan"))
            continue
        new = [key not in seen for key in table["run_key"].to_pylist()]
        for name in RANK_COLUMNS:
            place = schema.get_field_index(name)
            null = pa.nulls(table.num_rows, schema.field(name).type)
            table = table.set_column(place, schema.field(name), null)
        parts.append(table.filter(pa.array(new, pa.bool_())).cast(schema))
        seen.update(table["run_key"].to_pylist())
    return pa.concat_tables(parts)


def _tables(folder: Path, held: Mapping[str, Any]) -> Iterator[tuple[Path, pa.Table]]:
    """Rows of each shard of a manifest that is there, done or not; of a damaged one, none."""
    for name in [*held["shards"], *held.get("replaced", ())]:
        for path, of in shard_files(folder, name):
            unfinished = of != name
            try:
                table = read_rows(path, most=held["n_runs"], of=of, unfinished=unfinished)
            except DamagedFileError as error:
                _tell(error)
                continue
            yield path, table.replace_schema_metadata()


def _tell(error: DamagedFileError) -> None:
    warn_caller(UserWarning(f"{error.path} {error.reason}; it is done again."))
