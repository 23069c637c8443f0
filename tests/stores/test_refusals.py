"""What can't be counted is refused in words, and nothing is left on the disk."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity.errors import (
    CapacityError,
    InvalidArgumentError,
    InvalidTypeError,
    MemoryBudgetError,
    StorageError,
)
from capacity.stores import count_duckdb
from capacity.stores.scratch.scratch import Scratch, bytes_of
from capacity.stores.tables import databases as database_tables
from tests.oracles import ROOT

LINE = "<x:a> <x:p> <x:b> .\n"
FACTS = "(s varchar, p varchar, o varchar)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return tmp_path


def refusal(path: object, folder: Path, **options: Any) -> str:
    """The message, once nothing is left of the temporary database."""
    with pytest.raises(CapacityError) as caught:
        count_duckdb(path, temp_folder=folder / "temporary", **options)  # type: ignore[arg-type]
    assert not list((folder / "temporary").iterdir())
    return str(caught.value)


def stored(folder: Path, *statements: str) -> Path:
    path = folder / "facts.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as con:
        for statement in statements:
            con.execute(statement)
    return path


# files


def packed(raw: bytes) -> bytes:
    # the present time in it would make names of tests that differ from process to process
    return gzip.compress(raw, mtime=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [("a.nt", b"", "the file is empty"),
     ("a.nt", b"# nothing\n", "no triples were found"),
     ("a.tsv", b"subject\tpredicate\tobject\n", "the table has no rows"),
     ("a.nt", LINE.encode() * 3 + b"<x:a> <x:p> ", "line 4"),
     ("a.nt", LINE.encode() * 9000 + b'<x:a> <x:p> "\xff" .\n', "line 9001"),
     ("a.csv", b"a,p,b\n" * 20000 + b"a,p,\xff\n", "line 20001: byte 0xff isn't UTF-8"),
     ("a.tsv", b"a\tp\tb\n" * 3 + b"a\tp\n", "line 4 (read as tsv): a row must hold subject"),
     ("a.csv", b'a,p,"b\n', "line 1 (read as csv)"),
     ("a.nt.gz", packed(LINE.encode() * 99)[:-20], "the gzip stream is broken"),
     ("a.nt.gz", packed(LINE.encode()) + b"more", "the gzip stream is broken"),
     ("a.nt.gz", packed(b"# nothing\n" * 10**7), "over 250 times its size"),
     ("a.nt.zst", pa.compress(LINE.encode() * 99, "zstd", asbytes=True)[:-9], "zstd"),
     ("a.nt", LINE.encode("utf-16"), "UTF-16"),
     ("a.nt", b"<!DOCTYPE html><html></html>", "HTML"),
     ("a.xyz", b"some words", "neither its content nor its name"),
     ("a.nt", LINE.encode() + b"<x:a> <x:p> " + b"<<( <x:a> <x:p> " * 200 + b"<x:a>"
      + b" )>>" * 200 + b" .\n", "line 2: triple terms nest over 128 deep"),
     ("a.nt", LINE.encode() + b'<x:a> <x:p> "' + b"a" * (2**24 + 1) + b'" .', "longer than 16 MiB"),
     ("a.tsv", b"a\tp\t" + b"b" * (2**24 + 1) + b"\n", "a cell is longer than 16,777,216 bytes"),
     ("a.parquet", b"PAR1 and so on PAR1", "it can't be read as Parquet"),
     ("a.nt", b"a" * 2**27, "line")],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_line(
    name: str, content: bytes, words: str, folder: Path
) -> None:
    (folder / name).write_bytes(content)
    said = refusal(folder / name, folder)
    assert words in said
    assert str(folder / name) in said


def test_a_named_pipe_a_folder_and_a_missing_file_are_refused(folder: Path) -> None:
    assert "no such file" in refusal(folder / "none.nt", folder)
    assert "a folder without a file" in refusal(folder / "temporary", folder)
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.nt")
        assert "it is a named pipe" in refusal(folder / "pipe.nt", folder)


def test_standard_input_and_open_files_are_refused(folder: Path) -> None:
    assert "Save standard input" in refusal("-", folder)
    with pytest.raises(InvalidTypeError, match="named by paths"):
        count_duckdb([io.BytesIO(b"")])  # type: ignore[list-item]


def test_directives_of_rdf_1_2_are_no_facts(folder: Path) -> None:
    path = folder / "a.nt"
    path.write_text(f'VERSION "1.2"\n{LINE}VERSION "1.2" # again\n{LINE}')
    assert count_duckdb(path).facts == 1


def test_options_of_tables_are_for_tables(folder: Path) -> None:
    (folder / "a.nt").write_text(LINE)
    assert "option of tables" in refusal(folder / "a.nt", folder, table="long")
    (folder / "a.csv").write_text("name,born,city\nBob,1980,Rome\nAnn,1990,Oslo\n")
    assert "3 columns" in refusal(folder / "a.csv", folder, columns=[0, 1])
    assert "must be one of" in refusal(folder / "a.csv", folder, table="facts")


# parquet


def parquet(folder: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "a.parquet")
    return folder / "a.parquet"


def test_columns_of_parquet_may_have_a_dictionary_and_stand_among_others(folder: Path) -> None:
    few = pa.array(["p", "q", "p"]).dictionary_encode()
    path = parquet(folder, weight=[1, 2, 3], predicate=few, object=["x", "y", "x"],
                   subject=pa.array(["a", "a", "a"], pa.large_string()))  # fmt: skip
    found = count_duckdb(path)
    # a p x stands there twice
    assert (found.facts, found.subjects, found.predicates, found.objects) == (2, 1, 2, 2)


def test_columns_of_lists_and_missing_cells_are_refused(folder: Path) -> None:
    path = parquet(folder, subject=["a", "b"], predicate=["p", "p"], object=[[1], [2]])
    assert "'object' is of type list<" in refusal(path, folder)
    path = parquet(folder, subject=["a", "b"], predicate=["p", None], object=["x", "y"])
    assert "line 2 (read as parquet): a cell is missing" in refusal(path, folder)
    path = parquet(folder, a=["a"], b=["p"])
    assert "it must have the columns subject, predicate, object" in refusal(path, folder)


def test_a_compressed_parquet_file_is_named(folder: Path) -> None:
    path = parquet(folder, subject=["a" * 99], predicate=["p"], object=["x"])
    packed = folder / "a.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert "Parquet file that was compressed once more" in refusal(packed, folder)


# databases


@pytest.mark.slow
def test_a_table_may_have_any_name(folder: Path) -> None:
    name = "we \"ird'.na me; drop table x"
    quoted = '"' + name.replace('"', '""') + '"'
    path = stored(
        folder,
        f'create table {quoted} ("the ""s""" varchar, p varchar, o varchar)',
        f"insert into {quoted} values ('a', 'p', 'x'), ('a', 'p', 'y'), ('a', 'p', 'y')",
        "create schema other",
        f"create table other.x {FACTS}",
        "insert into other.x values ('a', 'p', 'x')",
    )
    found = count_duckdb(path, table=name, columns=['the "s"', "p", "o"])
    assert (found.facts, found.multi_valued_pairs) == (2, 1)
    assert count_duckdb(path, table="other.x").facts == count_duckdb(path, table="x").facts == 1
    before = path.read_bytes()
    assert "the table that holds the facts must be named" in refusal(path, folder)
    assert "no table is called 'y'. Name it with `table`. It has main.we" in refusal(
        path, folder, table="y"
    )
    # it is opened for reading alone
    assert path.read_bytes() == before
    assert sorted(one.name for one in folder.iterdir()) == ["facts.duckdb", "temporary"]


@pytest.mark.parametrize(
    ("statements", "words"),
    [((), "It has no table"),
     ((f"create table t {FACTS}",), "the table has no rows"),
     ((f"create table t {FACTS}", "insert into t values ('a', 'p', 'x'), ('b', null, 'x')"),
      "line 2 (read as duckdb): a cell is missing"),
     (("create table t (s varchar, p varchar, o integer)",), "'o' is of type INTEGER"),
     (("create table t (s varchar, p varchar)",), "it must have the columns"),
     (("create table t (name varchar, born varchar, city varchar)",
       "insert into t values ('Bob', '1980', 'Rome'), ('Ann', '1990', 'Oslo')"),
      "may have one column per property")],
)  # fmt: skip
def test_tables_that_hold_no_facts_are_refused(
    statements: tuple[str, ...], words: str, folder: Path
) -> None:
    assert words in refusal(stored(folder, *statements), folder)


@pytest.mark.slow
def test_a_view_and_an_enumeration_are_read_but_no_other_file(folder: Path) -> None:
    secret = folder / "secret.csv"
    secret.write_text("s,p,o\na,p,x\n")
    path = stored(
        folder,
        "create type place as enum ('x', 'y')",
        "create table t (s varchar, p varchar, o place)",
        "insert into t values ('a', 'p', 'x')",
        "create view v as select * from t",
        f"create view w as select * from read_csv('{secret}')",
    )
    assert count_duckdb(path, table="v", views=True).facts == 1
    assert count_duckdb(path, table="t").facts == 1
    assert "if a view reads other files" in refusal(path, folder, table="w", views=True)


@pytest.mark.slow
def test_a_view_is_not_read_unless_it_is_asked_for(folder: Path) -> None:
    path = stored(folder, "create view v as select 'a' s, 'p' p, 'x' o")
    for table in (None, "v"):
        said = refusal(path, folder, table=table)
        assert "It has no table. Views aren't read, 1 of them, but with `views`" in said
    assert count_duckdb(path, views=True).facts == 1
    # a base table beside it is the only one, unless views are asked for
    path = stored(folder, "create table t as select 'a' s, 'p' p, 'x' o",
                  "create view v as select * from t")  # fmt: skip
    assert count_duckdb(path).facts == count_duckdb(path, table="t").facts == 1
    assert "It has main.t, main.v" in refusal(path, folder, views=True)


@pytest.mark.slow
def test_a_view_has_limits_of_rows_and_of_time(folder: Path) -> None:
    rows = "select range::varchar s, 'p' p, 'x' o from range({})"
    path = stored(folder, f"create view v as {rows.format(10**10)}")
    # as many as the file has bytes
    assert re.search(r"it has more than 2\d\d,\d{3} rows", refusal(path, folder, views=True))
    assert "it has more than 7 rows" in refusal(path, folder, views=True, max_rows=7)
    # a single row, of a sum that takes hours
    slow = "select sum(range)::varchar s, 'p' p, 'x' o from range(1000000000000)"
    path = stored(folder, f"create view v as {slow}")
    said = refusal(path, folder, views=True, timeout=0.3)
    assert "the view isn't read to its end in time" in said
    # what it would sort doesn't go to the disk
    big = "select repeat(range::varchar, 100) s, 'p' p, 'x' o from range(9000000) order by 1 desc"
    path = stored(folder, f"create view v as {big}")
    assert "128 MB for what it sorts" in refusal(path, folder, views=True, max_rows=10**8)
    assert [one.name for one in path.parent.iterdir() if one.name.endswith(".tmp")] == []
    for wrong in (0, -1, "1", float("nan")):
        with pytest.raises(InvalidArgumentError, match="`timeout` must be a positive number"):
            count_duckdb(path, views=True, timeout=wrong)  # type: ignore[arg-type]


LARGEST_CHILD = """
import resource, sys
from capacity.errors import CapacityError
from capacity.stores import count_duckdb
try:
    count_duckdb(sys.argv[1], views=True)
except CapacityError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process")
@pytest.mark.parametrize("value", ["{}", "length({})::varchar"])
def test_a_value_of_a_view_has_a_limit_of_memory(value: str, folder: Path) -> None:
    long = "repeat('x', 1000000000 + range)"
    path = stored(
        folder,
        f"create view v as select 'a' s, 'p' p, {value.format(long)} o from range(1)",
    )
    # by a process that has started no other: it asks for the largest of those
    done = subprocess.run(
        [sys.executable, "-c", LARGEST_CHILD, path], capture_output=True, text=True, timeout=100
    )
    said, kib = done.stdout.splitlines()
    assert "a value of it, takes more memory than it may (537 MB" in said
    assert int(kib) < 900_000


@pytest.mark.slow
def test_an_expression_of_a_view_ends_in_time(folder: Path) -> None:
    # hours, within which DuckDB doesn't look whether it is to end
    texts = "repeat('x', 1000000 + range), repeat('y', 1000000)"
    path = stored(folder, f"create view v as select 'a' s, 'p' p, "
                  f"levenshtein({texts})::varchar o from range(1)")  # fmt: skip
    said = refusal(path, folder, views=True, timeout=1)
    assert "the view isn't read to its end in time" in said


def test_a_cell_of_a_view_that_is_too_long_is_refused_where_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(folder, "create view v as select 'a' s, 'p' p, repeat(chr(228), range) o "
                  "from range(51)")  # fmt: skip
    assert count_duckdb(path, views=True, max_term_bytes=100).facts == 51
    monkeypatch.setattr(database_tables, "within", lambda _where, _format, rows, _limits: rows)
    said = refusal(path, folder, views=True, max_term_bytes=99)
    assert "a cell is longer than 99 bytes" in said


@pytest.mark.slow
def test_a_value_that_is_too_long_is_refused_before_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(folder, "create table t (s varchar, p varchar, o varchar)",
                  "insert into t values ('a', 'p', repeat('x', 20000000))")  # fmt: skip
    monkeypatch.setattr(database_tables, "within", None)
    assert "a cell is longer than 16,777,216 bytes" in refusal(path, folder)
    path = stored(folder, "create table t (s varchar, p varchar, o varchar)",
                  "insert into t select 'a', 'p', repeat('x', 9000000) from range(40)")  # fmt: skip
    assert "its cells, written out, take over 268,435,456 bytes" in refusal(path, folder)


@pytest.mark.slow
def test_a_table_of_a_database_has_a_limit_of_rows(folder: Path) -> None:
    path = stored(folder, "create table t as select 'a' s, 'p' p, 'x' o from range(2000000)")
    assert path.stat().st_size < 2 * 10**6
    assert "it has more than" in refusal(path, folder)
    assert count_duckdb(path, max_rows=2_000_000).facts == 1


def test_a_file_of_a_newer_version_is_refused(folder: Path) -> None:
    path = stored(folder, f"create table t {FACTS}")
    raw = bytearray(path.read_bytes())
    # the number of the storage's version follows the mark DUCK
    raw[12:20] = (9999).to_bytes(8, "little")
    path.write_bytes(raw)
    assert "If a newer version wrote it, install that" in refusal(path, folder)
    path.write_bytes(bytes(raw[:5000]))
    assert "can't read it" in refusal(path, folder)


# memory and disk


@pytest.mark.parametrize("limit", ["", "1", "GB", "1 apple", "-1GB", 0, -1, "100MB", 10**6, True])
def test_a_wrong_limit_of_memory_is_refused(limit: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`memory_limit` must be"):
        bytes_of(limit)


def test_a_wrong_number_of_threads_is_refused(folder: Path) -> None:
    (folder / "a.nt").write_text(LINE)
    assert "`threads` must be an integer" in refusal(folder / "a.nt", folder, threads=0)


def test_a_folder_that_isnt_there_is_refused(folder: Path) -> None:
    (folder / "a.nt").write_text(LINE)
    with pytest.raises(StorageError, match="no temporary folder can be made"):
        count_duckdb(folder / "a.nt", temp_folder=folder / "none")


@pytest.mark.parametrize(
    ("error", "free", "kind", "words"),
    [(duckdb.IOException("Could not write: No space left on device"), 0, StorageError,
      "the disk is full: counting a.nt has written"),
     (duckdb.OutOfMemoryException("failed to offload: max_temp_directory_size"), 10**9,
      StorageError, "or the variable TMPDIR"),
     (duckdb.OutOfMemoryException("could not allocate"), 10**12, MemoryBudgetError,
      "700 MB of memory are too little for these facts. Raise `memory_limit`")],
)  # fmt: skip
def test_a_full_disk_and_too_little_memory_are_told(
    error: Exception, free: int, kind: type[Exception], words: str, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    run = Scratch.run

    def fail(self: Scratch, sql: str, values: Any = ()) -> Any:
        if "create table facts" in sql:
            raise error
        return run(self, sql, values)

    monkeypatch.setattr(Scratch, "run", fail)
    usage = namedtuple("usage", "total used free")(10**12, 0, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    (folder / "a.nt").write_text(LINE)
    with pytest.raises(kind) as caught:
        count_duckdb(folder / "a.nt", temp_folder=folder / "temporary", memory_limit="700MB")
    assert words in str(caught.value)
    assert not list((folder / "temporary").iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("moment", ["bytes of", "steps of counting"])
def test_interrupted_counting_leaves_nothing(moment: str, folder: Path) -> None:
    (folder / "a.nt").write_text("".join(f"<x:a{i}> <x:p> <x:b{i}> .\n" for i in range(400_000)))
    code = f"""
import os, signal
from capacity.stores import count_duckdb
from capacity.stores.tables import databases as database_tables
def tell(what, done, total, left):
    if what.startswith({moment!r}) and done:
        print("now", flush=True)
count_duckdb({os.fspath(folder / "a.nt")!r}, temp_folder={os.fspath(folder / "temporary")!r},
             progress=tell)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert not list((folder / "temporary").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interruption_while_rows_are_registered_stays_one() -> None:
    class Connection:
        # as DuckDB does, whose calls to Python take a signal for an error of theirs
        def register(self, name: str, rows: object) -> None:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
            except KeyboardInterrupt as error:
                raise duckdb.InvalidInputException("reading the schema") from error

        def execute(self, sql: str) -> None: ...
        def unregister(self, name: str) -> None: ...
        def interrupt(self) -> None: ...
        def close(self) -> None: ...

    db = Scratch(Connection(), "", 10**9, None)  # type: ignore[arg-type]
    # processes in the background may ignore it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            db.append("facts", iter([pa.record_batch({"s": [1]})]), lambda _: None)
    finally:
        signal.signal(signal.SIGINT, before)
    db.close()


def test_errors_of_this_program_arent_hidden(folder: Path) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    (folder / "a.nt").write_text(LINE)
    with pytest.raises(ZeroDivisionError):
        count_duckdb(folder / "a.nt", temp_folder=folder / "temporary", progress=fail)
    assert not list((folder / "temporary").iterdir())
