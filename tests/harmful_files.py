"""Files of a few kilobytes that stand for gigabytes, or for work without an end, for each reader.

Each kind of them is made for each registered format, so that a reader without one is found out
(`tests/test_reading_limits.py`). They are written in a stream, and met by the commands.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.database.ways import read_by
from tests.formats import Text, texts
from tests.oracles import ROOT

MEGA = 10**6
Case = Callable[[Path, random.Random], list[Any]]
# of tensors, beside those of facts
TEXTS = {**texts(), "tns": Text("1 1 1 %s\n")}
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


# kinds of files of every text: what it grows to, how many rows it has, how long a term is
KINDS: dict[str, Callable[[Text, Path], None]] = {
    "blanks": lambda _, path: packed(path, repeat(b" " * MEGA, 400)),
    "empty lines": lambda _, path: packed(path, repeat(b"\n" * MEGA, 400)),
    "rows": lambda text, path: packed(path, text.rows(3 * MEGA)),
    "as many rows as may be": lambda text, path: packed(path, text.rows(245_000)),
    "a term": lambda text, path: packed(path, text.rows(1, "1" * (60 * MEGA))),
    "long terms": lambda text, path: packed(path, text.rows(40, "1" * (10 * MEGA))),
}


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


def kinds_of(format: str) -> dict[str, Callable[[Path], None]]:
    """The harmful files of a format, by their kind."""
    if format in MADE:
        return MADE[format]
    text = TEXTS[format]

    def of(make: Callable[[Text, Path], None]) -> Callable[[Path], None]:
        return lambda path: make(text, path)

    return {kind: of(make) for kind, make in KINDS.items()}


def path_of(folder: Path, format: str) -> Path:
    """Where a file of a format goes: its name tells the format."""
    packs = ".gz" if format in TEXTS or format == "npy" else ""
    return folder / f"harmful.{format}{packs}"


def commands(path: Path, format: str) -> list[list[str]]:
    """The commands that read it."""
    options = ["--format", format] if format in TEXTS else []
    options += ["--multi", "keep"] if format not in ("npy", "tns", "duckdb") else []
    found = [["rank", str(path), *options]]
    if format not in ("npy", "tns", "duckdb"):
        found.append([*found[0], "--out-of-core"])
    if format == "duckdb":
        found.append([*found[0], "--views"])
    return found


# files of no kind of their own, as the report has them: what makes each, and the command
OTHERS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "facts of order 16": (
        lambda folder: (folder / "a.tsv").write_text(
            "".join("\t".join(f"{row}{i}" for i in range(16)) + "\n" for row in "ab")
        ),
        ["rank", "a.tsv", "--arity", "16", "--effective"],
    ),
    "a line of order 32": (
        lambda folder: (folder / "a.tns").write_text("1 " * 33),
        ["rank", "a.tns", "--effective"],
    ),
    "lines of order 18": (
        lambda folder: (folder / "a.tns").write_text(
            "".join(" ".join(str(1 + (i * j) % 3) for i in range(18)) + " 1\n" for j in range(9))
        ),
        ["rank", "a.tns"],
    ),
    "an array of order 14": (
        lambda folder: np.save(folder / "a.npy", np.eye(2**7, dtype=np.int8).reshape((2,) * 14)),
        ["rank", "a.npy", "--effective"],
    ),
    "cells of one row": (
        lambda folder: packed(folder / "a.tsv.gz", repeat(b"\t" * MEGA, 60)),
        ["rank", "a.tsv.gz"],
    ),
    "cells of one row in a stream": (
        lambda folder: packed(folder / "a.tsv.gz", repeat(b"\t" * MEGA, 60)),
        ["rank", "a.tsv.gz", "--out-of-core"],
    ),
    "objects of one subject": (
        lambda folder: packed(
            folder / "a.ttl.gz", chain([b"<x:a><x:b> 1"], repeat(b",1" * (MEGA // 2), 60), [b"."])
        ),
        ["rank", "a.ttl.gz"],
    ),
    "values of JSON": (
        lambda folder: packed(
            folder / "a.jsonld.gz", chain([b"["], repeat(b"{}," * (MEGA // 3), 60), [b"{}]"])
        ),
        ["rank", "a.jsonld.gz"],
    ),
    "blanks by xz": (
        lambda folder: (folder / "a.nt.xz").write_bytes(lzma.compress(b" " * (300 * MEGA))),
        ["rank", "a.nt.xz"],
    ),
    "blanks by bzip2": (
        lambda folder: (folder / "a.nt.bz2").write_bytes(bz2.compress(b" " * (100 * MEGA))),
        ["rank", "a.nt.bz2"],
    ),
}


def cases(format: str, folder: Path, warm: Callable[[Any], object]) -> Case:
    """The harmful files of a format, or the others; before any limit small ones are read."""
    # made by another process, which keeps the memory that they take
    made = [sys.executable, "-m", "tests.harmful_files", format, str(folder)]
    subprocess.run(made, cwd=ROOT, check=True)
    for name in ("turtle", "tsv", "ntriples") if format == "others" else (format,):
        small = folder / name
        small.mkdir()
        # also what is compiled for longer files alone
        with read_by("compiled"):
            for command in commands(_small(small, name), name):
                warm(command)
    kinds = cycle(_held(format, folder))
    return lambda _at, _rng: next(kinds)


def _held(format: str, folder: Path) -> list[list[list[str]]]:
    """The commands for each file of a format, which is in a folder of its own."""
    if format == "others":
        return [
            [[command[0], str(folder / f"{number}" / command[1]), *command[2:]]]
            for number, (_, command) in enumerate(OTHERS.values())
        ]
    numbers = range(len(kinds_of(format)))
    return [commands(path_of(folder / f"{number}", format), format) for number in numbers]


def make_all(format: str, folder: Path) -> None:
    """Make all harmful files of a format, or the others, each in a folder of its own."""
    if format == "others":
        makes: list[Callable[[Path], object]] = [make for make, _ in OTHERS.values()]
    else:
        makes = list(kinds_of(format).values())
    for number, make in enumerate(makes):
        at = folder / f"{number}"
        at.mkdir()
        make(at if format == "others" else path_of(at, format))


def _small(folder: Path, format: str) -> Path:
    """A file without harm, so long that compiled code reads it where there is any."""
    path = path_of(folder, format)
    if format == "npy":
        packed(path, [array("(1, 1)"), b"\1" * 8])
    elif format in TEXTS:
        packed(path, TEXTS[format].rows(*((4, "1") if format == "tns" else (200_000, "1" * 64))))
    elif format == "parquet":
        table(path, [pa.array([c]) for c in "apx"])
    else:
        stored(path, "create table t as select 'a' s, 'p' p, 'x' o")
    return path


if __name__ == "__main__":
    make_all(sys.argv[1], Path(sys.argv[2]))
