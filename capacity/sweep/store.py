"""The folder of a sweep: atomic parquet shards, a manifest, and the table they make.

::

    DIR/manifest.json              what the sweep is; written once
    DIR/shards/00000-<key>.parquet rows of one shard; that the file is valid records that it is done
    DIR/runs.parquet               all rows, written when the last shard is done

Every file is written under a temporary name, synced, and renamed: a kill at any moment leaves whole
files only, and the same command goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from capacity.errors import SweepError
from capacity.sweep.plan import Plan, shard_key

if TYPE_CHECKING:
    import pandas as pd

_text, _int, _real = pa.string(), pa.int64(), pa.float64()
RUNS_SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for kind, names in [
            (_text, "run_key database_id layer_id"),
            (_int, "seed n_subjects n_predicates n_objects n_tokens n_triples database_rank_bound "
                   "database_rank_lower database_rank_upper d_model n_heads d_head_qk d_head_vo "
                   "n_parameters n_embedding_parameters layer_rank_bound layer_rank_upper"),
            (_text, "recipe engine dtype"),
            (_int, "epochs"),
            (_real, "loss"),
            (_text, "status"),
            (_real, "tied accuracy_argmax accuracy_argmax_paper accuracy_0.50 accuracy_0.75 "
                    "accuracy_0.95 accuracy_0.99"),
        ]
        for name in names.split()
    ]
)  # fmt: skip
Row = Mapping[str, Any]


class Store:
    """The folder of one sweep.

    Parameters
    ----------
    folder : path
        Made if it isn't there.
    plan : Plan

    Raises
    ------
    SweepError
        If the folder holds another sweep.
    """

    def __init__(self, folder: str | os.PathLike[str], plan: Plan) -> None:
        self.folder = Path(folder)
        self.plan = plan
        try:
            (self.folder / "shards").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SweepError(f"{self.folder} can't be a folder of shards ({error}).") from None
        manifest = self.folder / "manifest.json"
        if manifest.exists():
            held = _read_manifest(manifest)
            then, now = held.get("versions"), _manifest(plan)["versions"]
            if held.get("plan_key") == plan.key and then != now:
                raise SweepError(
                    f"{self.folder} was begun with other versions, {then}; here are {now}. Rows "
                    "of both would be mixed: give another folder with --out, or those versions."
                )
            if held.get("plan_key") != plan.key:
                raise SweepError(
                    f"{self.folder} holds another sweep: its plan has the key "
                    f"{str(held.get('plan_key'))[:12]}, this one {plan.key[:12]}. Give another "
                    "folder with --out, or the configuration that it was begun with."
                )
        else:
            _write(manifest, json.dumps(_manifest(plan), indent=2).encode() + b"\n")

    def path(self, number: int) -> Path:
        """File of a shard."""
        key = shard_key(self.plan.shards[number])
        return self.folder / "shards" / f"{number:05d}-{key[:16]}.parquet"

    def is_done(self, number: int) -> bool:
        """Whether a shard's file is there, whole, and holds the runs that it should."""
        try:
            table = _read_shard(self.path(number))
        except (OSError, pa.ArrowException):
            return False
        if table.schema.remove_metadata() != RUNS_SCHEMA:
            return False
        return table["run_key"].to_pylist() == sorted(run.key for run in self.plan.shards[number])

    def write(self, number: int, rows: Sequence[Row]) -> None:
        """Store the rows of a shard."""
        write_table(self.path(number), rows)

    def finish(self) -> Path | None:
        """Write ``runs.parquet`` if every shard is done; give its path."""
        numbers = range(len(self.plan.shards))
        if not all(self.is_done(i) for i in numbers):
            return None
        table = pa.concat_tables([_read_shard(self.path(i)) for i in numbers])
        target = self.folder / "runs.parquet"
        _write_arrow(target, table)
        return target


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Write rows of the runs table, sorted by key, complete or not at all."""
    _write_arrow(path, pa.Table.from_pylist(rows, schema=RUNS_SCHEMA))


def _write_arrow(path: Path, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table.sort_by("run_key"), sink, compression="zstd", write_page_checksum=True)
    _write(path, sink.getvalue().to_pybytes())


def _read_shard(path: Path) -> pa.Table:
    """Read every column, and check the sums that were written with them."""
    return pq.read_table(path, page_checksum_verification=True)


def load(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the runs table of a sweep's folder, also while it grows.

    Returns
    -------
    DataFrame
        One row a run that is done, sorted by ``run_key``.

    Raises
    ------
    SweepError
        If the folder holds no sweep, or no run is done yet.
    """
    path = Path(folder)
    if not (path / "manifest.json").is_file():
        raise SweepError(
            f"{path} must be the folder of a sweep; it has no manifest.json. Make one with "
            "`capacity sweep CONFIG.toml --out DIR`."
        )
    whole = path / "runs.parquet"
    files = [whole] if whole.exists() else sorted((path / "shards").glob("*.parquet"))
    if not files:
        raise SweepError(f"{path} has no finished shard yet; go on with `capacity sweep`.")
    try:
        table = pa.concat_tables([_read_shard(file) for file in files])
    except (OSError, pa.ArrowException) as error:
        raise SweepError(
            f"{path} has a damaged file ({error}). Delete it and go on with `capacity sweep`."
        ) from None
    return table.sort_by("run_key").to_pandas()


def _manifest(plan: Plan) -> dict[str, Any]:
    packages = ("knowledge-capacity", "numpy", "pyarrow", "torch")
    return {
        "plan_key": plan.key,
        "n_runs": len(plan.runs),
        "n_shards": len(plan.shards),
        "config": plan.config,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "machine": platform.machine(),
    }


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SweepError(f"{path} is damaged ({error}); give another folder with --out.") from None
    if not isinstance(data, dict):
        raise SweepError(f"{path} is damaged; give another folder with --out.")
    return data


def _write(path: Path, data: bytes) -> None:
    """Temporary name, sync, rename, sync the folder: whole or absent, also after a kill."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise SweepError(
            f"{path} can't be written ({error.strerror}); what was done is kept. Free some space "
            "or give another folder with --out."
        ) from None
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
