"""The runs table: its columns, and a sweep's folder read as one table, also while it grows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from capacity.errors import SweepError
from capacity.sweep.files import write_whole
from capacity.sweep.manifest import manifests

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
            (_text, "recipe engine variant dtype"),
            (_int, "epochs"),
            (_real, "loss"),
            (_text, "status"),
            (_real, "tied accuracy_argmax accuracy_argmax_paper accuracy_0.50 accuracy_0.75 "
                    "accuracy_0.95 accuracy_0.99 margin scale_0.75 scale_0.95 scale_0.99"),
        ]
        for name in names.split()
    ]
)  # fmt: skip
Row = Mapping[str, Any]
# what reading a damaged file can end in
DAMAGED = (OSError, ValueError, pa.ArrowException)


def write_table(path: Path, table: pa.Table) -> None:
    """Write rows of the runs table, sorted by key, complete or not at all."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.sort_by("run_key"), sink, compression="zstd", write_page_checksum=True)
    write_whole(path, sink.getvalue().to_pybytes())


def compact(folder: str | os.PathLike[str]) -> Path:
    """Write the rows of all shards that are done as one file, ``runs.parquet``.

    The shards stay: they are the record of what is done. The same rows give the same bytes.

    Returns
    -------
    Path

    Raises
    ------
    SweepError
        As `load` does.
    """
    path = Path(folder) / "runs.parquet"
    write_table(path, _from_shards(Path(folder)))
    return path


def load(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the runs table of a sweep's folder, also while it grows.

    Returns
    -------
    DataFrame
        One row a run that is done, sorted by ``run_key``.

    Raises
    ------
    SweepError
        If the folder holds no sweep, no run is done yet, or a file is damaged.
    """
    path = Path(folder)
    n_runs = n_planned(path)
    whole = path / "runs.parquet"
    if whole.exists():
        table = _read_all([whole])
        if table.num_rows == n_runs:
            return table.to_pandas()
    return _from_shards(path).to_pandas()


def n_planned(folder: Path) -> int:
    """How many runs a folder will hold in the end."""
    return sum(int(held["n_runs"]) for held in manifests(folder))


def _from_shards(folder: Path) -> pa.Table:
    """All rows of all shards, sorted by key."""
    names = {name for held in manifests(folder) for name in held["shards"]}
    files = sorted((folder / "shards").glob("[!.]*.parquet"))
    foreign = [file.name for file in files if file.name not in names]
    if foreign:
        raise SweepError(
            f"{folder / 'shards'} holds what isn't this sweep's, such as {foreign[0]}. Take it out."
        )
    if not files:
        raise SweepError(f"{folder} has no finished shard yet; go on with `capacity sweep`.")
    return _read_all(files).sort_by("run_key")


def _read_all(files: Sequence[Path]) -> pa.Table:
    with ThreadPoolExecutor() as pool:
        return pa.concat_tables(pool.map(_read_valid, files))


def _read_valid(file: Path) -> pa.Table:
    try:
        table = read_shard(file)
    except DAMAGED as error:
        raise SweepError(
            f"{file} is damaged ({error}). Delete it and go on with `capacity sweep`."
        ) from None
    if table.schema.remove_metadata() != RUNS_SCHEMA:
        raise SweepError(
            f"{file} has other columns than the runs table. Delete it and go on with "
            "`capacity sweep`."
        )
    return table


def read_shard(path: Path) -> pa.Table:
    """Read every column, and check the sums that were written with them."""
    # a third of the time that read_table takes for a small file
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return file.read(use_threads=False)
