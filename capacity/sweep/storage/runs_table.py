"""The runs table: its files, and a sweep's folder read as one table, also while it grows.

Every table that a sweep writes carries two entries in the metadata of its file: its origin
(``of``, such as the name of its shard), and a SHA-256 of the origin and the rows (``rows_sha256``):
names and types of the columns, and all values bit by bit, in order. The digest is checked whenever
rows are read back, here and by the sweep, and so are the checksums of the pages. A file that was
damaged, edited by hand or renamed is refused, and becomes part of no table.

Digests detect damage. They aren't signatures: rows that were replaced together with their digest,
or trained in another way in the first place, are accepted. Other readers of the parquet files check
at most the pages.

Tables are written in the current schema (`capacity.sweep.storage.row_schema`). Those of schemas 2
and 3 are read and converted to it.
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
from capacity.sweep.storage.row_schema import (
    RUNS_SCHEMA,
    SCHEMA_2,
    Row,
    from_schema_2,
    from_schema_3,
    schema_3,
    schema_like,
    unfinished_schema,
)

if TYPE_CHECKING:
    import pandas as pd

# size of a file; a million rows take about a tenth of it
MAX_BYTES = 2**30


def table_of_rows(rows: Iterable[Row], schema: pa.Schema = RUNS_SCHEMA) -> pa.Table:
    """Table of rows, sorted by key; every NaN has the same bits, as files don't distinguish them.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of the runs table.
    schema : Schema, optional
        Result of `runs_schema`, if the rows have scores at more thresholds.

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
    """Write rows of the runs table completely or not at all, with their origin and digest.

    The same rows yield the same bytes.

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
    """SHA-256 of a table's origin and of its columns' names, types and values, in order."""
    sha = hashlib.sha256(f"{of}\0{table.num_rows}".encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        sha.update(f"\0{name}\0{column.type}\0".encode())
        for values in _values(column):
            sha.update(values)
    return sha.hexdigest()


def _values(column: Any) -> Iterator[Any]:
    """Bytes of a column, the same for any division into chunks."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if column.null_count:
        # first the mask of the values, then the values with 0 for null
        yield from (chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in chunks)
        chunks = [chunk.fill_null(0) for chunk in chunks]
    if column.type != pa.string():
        yield from (chunk.to_numpy(zero_copy_only=False) for chunk in chunks)
        return
    texts = [_lengths_and_characters(chunk) for chunk in chunks]
    # lengths as well, because "ab", "c" aren't "a", "bc"
    yield from (lengths for lengths, _ in texts)
    yield from (characters for _, characters in texts)


def _lengths_and_characters(texts: Any) -> tuple[Any, memoryview]:
    """Lengths of texts in bytes, and their concatenation in UTF-8."""
    _, offsets, characters = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(ends), memoryview(characters or b"")[ends[0] : ends[-1]]


def read_rows(
    path: Path, *, most: int, of: str | None = None, unfinished: bool = False
) -> pa.Table:
    """Read rows that `write_table` wrote, and check their columns, origin and digest.

    Parameters
    ----------
    path : Path
        File to read.
    most : int
        Largest number of rows that the file may have.
    of : str, optional
        Origin that the file must state; any if omitted.
    unfinished : bool
        True if ranks of databases may be null.

    Returns
    -------
    Table
        Rows in the current columns, with the metadata of the file.

    Raises
    ------
    DamagedFileError
        If the file doesn't exist, or its rows aren't those that were written.
    """
    data = read(path, max_bytes=MAX_BYTES)
    try:
        # takes a third of the time of read_table for a small file
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
            schema = file.schema_arrow.remove_metadata()
            known = [SCHEMA_2, schema_3(schema.names), schema_like(schema.names)]
            if unfinished:
                known.append(unfinished_schema(known[-1]))
            if schema not in known:
                raise DamagedFileError(path, "has other columns than the runs table")
            if file.metadata.num_rows > most:
                raise DamagedFileError(path, f"is damaged (it has more than {most} rows)")
            table = file.read(use_threads=False)
        _require_stamp(path, table, of)
        if schema in known[:2]:
            current = from_schema_2 if schema == SCHEMA_2 else from_schema_3
            table = current(table).replace_schema_metadata(table.schema.metadata)
    except DamagedFileError:
        raise
    # errors that reading a damaged file can raise
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

    The shards stay: they are the record of the runs that are done. The same rows yield the same
    bytes.

    Parameters
    ----------
    folder : path
        Folder of the sweep.

    Returns
    -------
    Path
        Path of ``runs.parquet``.

    Raises
    ------
    SweepError
        If the folder holds no sweep, no shard is done yet, a file is damaged, or the table can't
        be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.sweep import make_plan, run_sweep
    >>> layers = {"d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [2]}
    >>> databases = {"synthetic": {"count": 1, "max_triples": 6}}
    >>> plan = make_plan({"databases": databases, "layers": layers, "recipe": {"epochs": 5}})
    >>> with TemporaryDirectory() as folder:
    ...     table = run_sweep(plan, folder).read_bytes()
    ...     compact(folder).read_bytes() == table
    True
    """
    held = manifests(Path(folder))
    path = Path(folder) / TABLE
    write_table(path, _from_shards(Path(folder), held), of=plan_keys(held))
    return path


def load(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the runs table of a sweep's folder, also while it grows.

    Parameters
    ----------
    folder : path
        Folder of the sweep.

    Returns
    -------
    DataFrame
        One row per run whose shard is done, sorted by ``run_key``, with the current columns
        (`runs_schema`). Where ``layer_rank_upper`` is null, it is NaN.

    Raises
    ------
    SweepError
        If the folder holds no sweep, no shard is done yet, or a file is damaged; the message names
        it, and `capacity sweep` makes it again.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.sweep import make_plan, run_sweep
    >>> layers = {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [2]}
    >>> databases = {"synthetic": {"count": 1, "max_triples": 6}}
    >>> plan = make_plan({"databases": databases, "layers": layers, "recipe": {"epochs": 5}})
    >>> with TemporaryDirectory() as folder:
    ...     _ = run_sweep(plan, folder)
    ...     sorted(load(folder)["n_heads"])
    [1, 2]
    """
    path = Path(folder)
    held = manifests(path)
    whole = read_whole(path, held)
    return (_from_shards(path, held) if whole is None else whole).to_pandas()


def read_whole(folder: Path, held: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """Read ``runs.parquet`` if it exists and holds all runs of the manifests; else return None.

    Raises
    ------
    DamagedFileError
        If it is damaged.
    """
    path, n_runs = folder / TABLE, sum(one["n_runs"] for one in held)
    if not path.exists():
        return None
    table = read_rows(path, most=n_runs)
    # written for another plan, or for fewer shards
    behind = table.num_rows < n_runs or table.schema.metadata[b"of"] != plan_keys(held).encode()
    return None if behind else table.replace_schema_metadata()


def n_planned(folder: Path) -> int:
    """Number of runs that a folder holds in the end."""
    return sum(held["n_runs"] for held in manifests(folder))


def plan_keys(held: Iterable[Mapping[str, Any]]) -> str:
    """Keys of all plans of a folder, the origin of its ``runs.parquet``."""
    return " ".join(sorted(one["plan_key"] for one in held))


def _from_shards(folder: Path, held: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of all shards, sorted by key."""
    # those that a grown plan has replaced hold its rows until they are removed
    names = (name for one in held for name in (*one["shards"], *one.get("replaced", ())))
    require_own_shards(folder, set(names))
    files = sorted((folder / SHARDS).glob("[!.]*"))
    if not files:
        raise SweepError(f"{folder} has no finished shard yet; continue with `capacity sweep`.")
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
            f"{most}. Choose another folder with --out."
        )
    return table
