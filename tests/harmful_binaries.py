"""Harmful arrays of numpy, Parquet files and DuckDB files, by format and kind.

`tests.harmful_files` has those of texts, and the commands that meet them.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MEGA = 10**6


# of each format that isn't text, its kinds of files
MADE: dict[str, dict[str, Callable[[Path], None]]] = {"npy": {}, "parquet": {}, "duckdb": {}}


def packed(path: Path, pieces: Iterable[bytes]) -> None:
    """Write pieces through gzip, without holding them; one that comes again is packed once."""
    before, data = None, b""
    with path.open("wb") as file:
        for piece in pieces:
            if piece is not before:
                before, data = piece, gzip.compress(piece, 9, mtime=0)
            file.write(data)


def made(format: str, kind: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    def named(make: Callable[[Path], None]) -> Callable[[Path], None]:
        MADE[format][kind] = make
        return make

    return named


def array(shape: str, dtype: str = "<i8") -> bytes:
    """The header of an array of numpy."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}"
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\1\0" + len(line).to_bytes(2, "little") + line


@made("npy", "blanks")
def zeros(path: Path) -> None:
    """3.8 GB of zeros in 3.6 MB, as zeros4g.npy.gz was."""
    pieces = chain([array("(8000, 8000, 7)")], repeat(bytes(MEGA), 3584))
    packed(path, pieces)


@made("npy", "rows")
def ones(path: Path) -> None:
    packed(path, chain([array("(60, 1000, 1000)", "|i1")], repeat(b"\1" * MEGA, 60)))


@made("npy", "as many rows as may be")
def fewer_ones(path: Path) -> None:
    packed(path, chain([array("(49, 100, 100)", "|i1")], repeat(b"\1" * 10_000, 49)))


@made("npy", "a term")
def promise(path: Path) -> None:
    """A header that promises more than follows."""
    packed(path, iter([array("(2000000000, 2000000000)")]))


@made("npy", "order")
def order(path: Path) -> None:
    """An entry of order 32."""
    np.save(path.with_suffix(".npy"), np.ones((1,) * 32, np.int64))
    path.with_suffix(".npy").rename(path)


def table(path: Path, columns: list[pa.Array]) -> None:
    names = ["subject", "predicate", "object"]
    with path.open("wb") as file:
        pq.write_table(pa.table(columns, names), file, compression="zstd")


@made("parquet", "blanks")
@made("parquet", "a term")
def long_cell(path: Path) -> None:
    """A cell of 400 MB, as long.parquet was."""
    table(path, [pa.array(["a"]), pa.array(["p"]), pa.array(["x" * (400 * MEGA)])])


def varint(n: int, width: int = 1) -> bytes:
    """A positive integer as Thrift's compact protocol has it, padded to some bytes."""
    n, digits = 2 * n, []
    while n or len(digits) < width:
        digits.append(n & 127)
        n >>= 7
    return bytes([digit | 128 for digit in digits[:-1]] + digits[-1:])


def understated(data: bytes) -> bytes:
    """A Parquet file whose metadata say of all sizes, decompressed, that they are 1."""
    meta = pq.read_metadata(pa.BufferReader(data))
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    end = data[at:]
    for size in {group.total_byte_size for group in groups} | {
        column.total_uncompressed_size for column in columns
    }:
        end = end.replace(varint(size), varint(1, len(varint(size))))
    return data[:at] + end


@made("parquet", "a term, and metadata that understate it")
def understated_cell(path: Path) -> None:
    """A cell of 1 GB in 31 kB."""
    table(path, [pa.array(["a"]), pa.array(["p"]), pa.array(["x" * (1000 * MEGA)])])
    path.write_bytes(understated(path.read_bytes()))


@made("parquet", "long terms")
def one_text(path: Path) -> None:
    """A text of a megabyte in each of a million rows, as dict.parquet was."""
    at = pa.array(np.zeros(MEGA, np.int32))
    long = pa.DictionaryArray.from_arrays(at, pa.array(["x" * MEGA]))
    short = pa.DictionaryArray.from_arrays(at, pa.array(["p"]))
    table(path, [long, short, long])


@made("parquet", "fewer long terms")
def one_text_less_often(path: Path) -> None:
    at = pa.array(np.zeros(400_000, np.int32))
    long = pa.DictionaryArray.from_arrays(at, pa.array(["x" * MEGA]))
    short = pa.DictionaryArray.from_arrays(at, pa.array(["p"]))
    table(path, [long, short, long])


@made("parquet", "long terms in differences")
def one_text_in_differences(path: Path) -> None:
    """A text of a megabyte in each of 3,000 rows, which takes a few bits where it is repeated."""
    long, short = pa.array(["x" * MEGA] * 100), pa.array(["p"] * 100)
    batch = pa.RecordBatch.from_arrays([long, short, short], ["subject", "predicate", "object"])
    deltas = dict.fromkeys(batch.schema.names, "DELTA_BYTE_ARRAY")
    with (
        path.open("wb") as file,
        pq.ParquetWriter(file, batch.schema, compression="zstd", use_dictionary=False,
                         column_encoding=deltas) as writer,
    ):  # fmt: skip
        for _ in range(30):
            writer.write_batch(batch)


@made("parquet", "rows")
def equal_rows(path: Path) -> None:
    """10^8 equal rows, as rows.parquet was."""
    schema = pa.schema([(name, pa.string()) for name in ("subject", "predicate", "object")])
    one = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10 * MEGA, np.int32)), pa.array(["a"]))
    column = one.cast(pa.string())
    with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(pa.table([column] * 3, schema=schema))


@made("parquet", "as many rows as may be")
def fewer_rows(path: Path) -> None:
    one = pa.array(["a"] * 245_000)
    table(path, [one, one, one])


def stored(path: Path, *statements: str) -> None:
    with duckdb.connect(path) as con:
        for statement in statements:
            con.execute(statement)


@made("duckdb", "a view of rows")
def generated(path: Path) -> None:
    """gen.duckdb."""
    rows = "select range::varchar s, 'p' p, 'x' o from range(10000000000)"
    stored(path, f"create view v as {rows}")


@made("duckdb", "a view of a term")
def repeated(path: Path) -> None:
    """big.duckdb."""
    stored(path, "create view v as select 'a' s, 'p' p, repeat('x', 1000000000) o")


@made("duckdb", "a view of time")
def endless(path: Path) -> None:
    """One expression of hours, which DuckDB doesn't interrupt."""
    texts = "repeat('x', 1000000 + range), repeat('y', 1000000)"
    rows = f"select 'a' s, 'p' p, levenshtein({texts})::varchar o from range(1)"
    stored(path, f"create view v as {rows}")


@made("duckdb", "blanks")
@made("duckdb", "a term")
def large_value(path: Path) -> None:
    stored(path, "create table t (s varchar, p varchar, o varchar)",
           "insert into t values ('a', 'p', repeat('x', 400000000))")  # fmt: skip


@made("duckdb", "long terms")
def large_values(path: Path) -> None:
    stored(path, "create table t (s varchar, p varchar, o varchar)",
           "insert into t select 'a', 'p', repeat('x', 10000000) from range(60)")  # fmt: skip


@made("duckdb", "rows")
def many_rows(path: Path) -> None:
    rows = "select 'a' s, 'p' p, 'x' o from range(20000000)"
    stored(path, f"create table t as {rows}")


@made("duckdb", "as many rows as may be")
def as_many_rows(path: Path) -> None:
    stored(path, "create table t as select 'a' s, 'p' p, 'x' o from range(245000)")
