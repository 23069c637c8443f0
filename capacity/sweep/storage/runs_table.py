"""The runs table: its files, and a sweep's folder read as one table, also while it grows.

Every table that a sweep writes carries two things in the metadata of its file: what it is a table
of (``of``: the name of its shard, say), and a SHA-256 of that and of its rows (``rows_sha256``):
names and types of the columns, and all values to the last bit, in order. It is checked whenever
rows are read back, here and by the sweep, beside the sums of the pages. So a file that was damaged,
edited by hand or put under another's name is refused, and is no part of any table.

Digests find damage. They aren't signatures: whoever rewrites the rows and the digest, or trains
something else in the first place, is believed. Other readers of the parquet files check the pages
at most.

Tables are written in the schema of today (`capacity.sweep.storage.row_schema`). Those of schema 2
are read, and have the columns of today then.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from capacity.errors import SweepError
from capacity.sweep.storage.layout import SHARDS, TABLE, require_own_shards
from capacity.sweep.storage.manifest import manifests
from capacity.sweep.storage.records import DamagedFileError, read, write
from capacity.sweep.storage.row_schema import RUNS_SCHEMA, Row, schema_like
from capacity.sweep.storage.schema_2 import SCHEMA_2, from_schema_2

if TYPE_CHECKING:
    import pandas as pd

# of a file; a million rows take about a tenth of it
MAX_BYTES = 2**30


def table_of_rows(rows: Iterable[Row], schema: pa.Schema = RUNS_SCHEMA) -> pa.Table:
    """Rows as a table, sorted by key; every NaN is the same one, since files don't tell them apart.

    Parameters
    ----------
    rows : iterable of mapping
    schema : Schema, optional
        If they have scores at more thresholds (`runs_schema`).

    Raises
    ------
    SweepError
        For a value that its column can't hold.
    """
    try:
        table = pa.Table.from_pylist(list(rows), schema=schema).sort_by("run_key")
    except (pa.ArrowException, OverflowError) as error:
        raise SweepError(f"A run has a value that its table can't hold ({error}).") from None
    for i, field in enumerate(schema):
        if field.type == pa.float64():
            values = table[field.name].to_numpy()
            canonical = pa.array(np.where(np.isnan(values), np.nan, values), field.type)
            table = table.set_column(i, field, canonical)
    return table


def write_table(path: Path, table: pa.Table, *, of: str) -> None:
    """Write rows of the runs table complete or not at all, with what they are and their digest.

    The same rows give the same bytes.

    Raises
    ------
    SweepError
        If they can't be written.
    """
    sink = pa.BufferOutputStream()
    stamp = {"of": of, "rows_sha256": rows_sha256(table, of=of)}
    pq.write_table(
        table.replace_schema_metadata(stamp), sink, compression="zstd", write_page_checksum=True
    )
    write(path, sink.getvalue().to_pybytes())


def rows_sha256(table: pa.Table, *, of: str) -> str:
    """SHA-256 of what a table is of, and of its columns' names, types and values, in order."""
    sha = hashlib.sha256(f"{of}\0{table.num_rows}".encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        sha.update(f"\0{name}\0{column.type}\0".encode())
        for values in _values(column):
            sha.update(values)
    return sha.hexdigest()


def _values(column: Any) -> Iterator[Any]:
    """The bytes of a column, however it is cut into chunks."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if column.null_count:
        # where there is a value, and then 0 where there is none
        yield from (chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in chunks)
        chunks = [chunk.fill_null(0) for chunk in chunks]
    if column.type != pa.string():
        yield from (chunk.to_numpy(zero_copy_only=False) for chunk in chunks)
        return
    texts = [_lengths_and_characters(chunk) for chunk in chunks]
    # where they end as well, for "ab", "c" aren't "a", "bc"
    yield from (lengths for lengths, _ in texts)
    yield from (characters for _, characters in texts)


def _lengths_and_characters(texts: Any) -> tuple[Any, memoryview]:
    """The lengths of texts in bytes, and their UTF-8, one after the other."""
    _, offsets, characters = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(ends), memoryview(characters or b"")[ends[0] : ends[-1]]


def read_rows(path: Path, *, most: int, of: str | None = None) -> pa.Table:
    """Read rows that `write_table` wrote, and check all that was written with them.

    Parameters
    ----------
    path : Path
    most : int
        How many rows there may be.
    of : str, optional
        What they must be of; if left out, what the file says.

    Returns
    -------
    Table
        With the columns of today; its metadata are the file's.

    Raises
    ------
    DamagedFileError
        If it isn't there, or its rows aren't those that were written.
    """
    data = read(path, max_bytes=MAX_BYTES)
    try:
        # a third of the time that read_table takes for a small file
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
            schema = file.schema_arrow.remove_metadata()
            if schema not in (SCHEMA_2, schema_like(schema.names)):
                raise DamagedFileError(path, "has other columns than the runs table")
            if file.metadata.num_rows > most:
                raise DamagedFileError(path, f"is damaged (it has more than {most} rows)")
            table = file.read(use_threads=False)
        _require_stamp(path, table, of)
        if schema == SCHEMA_2:
            table = from_schema_2(table).replace_schema_metadata(table.schema.metadata)
    except DamagedFileError:
        raise
    # what reading a damaged file can end in
    except (OSError, TypeError, ValueError, MemoryError, pa.ArrowException) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DamagedFileError(path, f"is damaged ({reason:.120})") from None
    return table


def _require_stamp(path: Path, table: pa.Table, of: str | None) -> None:
    metadata = table.schema.metadata or {}
    theirs, sha256 = (metadata.get(key, b"").decode("utf-8", "replace")
                      for key in (b"of", b"rows_sha256"))  # fmt: skip
    if not sha256:
        raise DamagedFileError(path, "is damaged (it has no digest of its rows)")
    if of is not None and theirs != of:
        raise DamagedFileError(path, f"is damaged (it holds the rows of {theirs!r:.60})")
    if sha256 != rows_sha256(table, of=theirs):
        raise DamagedFileError(path, "is damaged (its rows aren't those of its digest)")
    lower, upper = (table[f"database_rank_{end}"].to_numpy() for end in ("lower", "upper"))
    if ((lower < 0) | (lower > upper)).any():
        raise DamagedFileError(path, "is damaged (a lower bound of a rank is above the upper one)")


def compact(folder: str | os.PathLike[str]) -> Path:
    """Write the rows of all shards that are done as one file, ``runs.parquet``.

    The shards stay: they are the record of what is done. The same rows give the same bytes.

    Returns
    -------
    Path

    Raises
    ------
    SweepError
        As `load` does; or if it can't be written.
    """
    held = manifests(Path(folder))
    path = Path(folder) / TABLE
    write_table(path, _from_shards(Path(folder), held), of=plan_keys(held))
    return path


def load(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the runs table of a sweep's folder, also while it grows.

    Returns
    -------
    DataFrame
        One row a run whose shard is done, sorted by ``run_key``, with the columns of today
        (`capacity.sweep.storage.row_schema`). Where ``layer_rank_upper`` is null, it is NaN.

    Raises
    ------
    SweepError
        If the folder holds no sweep, no shard is done yet, or a file is damaged: it is named, and
        `capacity sweep` does again what it held.
    """
    path = Path(folder)
    held = manifests(path)
    whole = read_whole(path, held)
    return (_from_shards(path, held) if whole is None else whole).to_pandas()


def read_whole(folder: Path, held: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """Read ``runs.parquet``, if it is there and holds all that the manifests name.

    Raises
    ------
    DamagedFileError
        If it is damaged.
    """
    path, n_runs = folder / TABLE, sum(one["n_runs"] for one in held)
    if not path.exists():
        return None
    table = read_rows(path, most=n_runs)
    # another plan's, or from when there were fewer shards
    behind = table.num_rows < n_runs or table.schema.metadata[b"of"] != plan_keys(held).encode()
    return None if behind else table.replace_schema_metadata()


def n_planned(folder: Path) -> int:
    """How many runs a folder will hold in the end."""
    return sum(held["n_runs"] for held in manifests(folder))


def plan_keys(held: Iterable[Mapping[str, Any]]) -> str:
    """All plans of a folder; what its ``runs.parquet`` is of."""
    return " ".join(sorted(one["plan_key"] for one in held))


def _from_shards(folder: Path, held: Sequence[Mapping[str, Any]]) -> pa.Table:
    """All rows of all shards, sorted by key."""
    require_own_shards(folder, {name for one in held for name in one["shards"]})
    files = sorted((folder / SHARDS).glob("[!.]*"))
    if not files:
        raise SweepError(f"{folder} has no finished shard yet; go on with `capacity sweep`.")
    most = sum(one["n_runs"] for one in held)

    def rows(file: Path) -> pa.Table:
        return read_rows(file, most=most, of=file.name).replace_schema_metadata()

    with ThreadPoolExecutor() as pool:
        tables = list(pool.map(rows, files))
    for file, table in zip(files, tables, strict=True):
        if table.schema != tables[0].schema:
            raise DamagedFileError(file, f"has other columns than {files[0].name}")
    table = pa.concat_tables(tables).sort_by("run_key")
    if table.num_rows > most:
        raise SweepError(
            f"{folder} is damaged: its shards hold {table.num_rows} runs, and its manifests name "
            f"{most}. Give another folder with --out."
        )
    return table
