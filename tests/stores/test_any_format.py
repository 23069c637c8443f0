"""Files of any format that `load` reads are counted: the same facts, options and errors."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyoxigraph as ox
import pytest

from capacity import Database, load
from capacity.database import (
    Format,
    Reading,
    Text,
    register_format,
    unregister_format,
    write,
)
from capacity.database.io.files.formats import FORMATS
from capacity.database.io.rdf.quads import SYNTAXES
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    InvalidTypeError,
    MemoryBudgetError,
    SkippedLinesWarning,
)
from capacity.stores import StoreCounts, count_duckdb
from tests.stores.recount import facts_of, recount

# a class, a literal with a tag, and an anonymous node that is named twice
TURTLE = """
@prefix x: <x:> .
x:a a x:T ; x:p [ x:q 'one'@en , 2 ] , x:b .
x:b x:p x:a .
"""
DATASET = "@prefix x: <x:> . x:a x:p x:b . x:g { x:a x:p x:c , x:d } _:h { x:a x:p x:e }"


def expected(db: Database) -> StoreCounts:
    return recount("", facts_of(db))


def counted(path: Path, **options: Any) -> StoreCounts:
    return replace(count_duckdb(path, **options), source="", notes=())


def test_records_are_loaded_and_said_not_to_be_counted(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text('{"subject": "a", "predicate": "p", "object": "b"}\n' * 2)
    assert load(path).n_facts == 1
    said = r"not counted out of core\. Load it by capacity\.load.*capacity\.database\.write"
    with pytest.raises(DatabaseFormatError, match=said):
        count_duckdb(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"skip_errors": 1}, r"facts\.tsv.*`skip_errors`.*capacity\.load"),
        ({"split": ","}, r"split=','.*capacity\.load\(path, split=\.\.\.\)"),
    ],
)
def test_what_needs_the_rows_in_memory_is_refused_with_what_reads_them(
    options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tp\tb\nbroken\n" if "skip_errors" in options else "a\tp\tb,c\n")
    with pytest.raises(CapacityError, match=said):
        count_duckdb(path, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedLinesWarning)
        assert load(path, multi="keep", **options).n_facts >= 1


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "records"])
def test_a_file_of_each_format_is_counted(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts.{format}"
    if format in SYNTAXES:
        dataset = ox.Store()
        dataset.load(TURTLE.encode(), ox.RdfFormat.TURTLE)
        syntax = SYNTAXES[format]
        graph = None if syntax.supports_datasets else ox.DefaultGraph()
        path.write_bytes(dataset.dump(format=syntax, from_graph=graph) or b"")
    else:
        write(load_text(TURTLE, tmp_path), path)
    counts = counted(path)
    assert counts == expected(load(path, multi="keep"))
    # a type, two objects of x:p, one of x:b, and two of the anonymous node
    assert (counts.facts, counts.predicates) == (6, 3)


def load_text(text: str, folder: Path) -> Database:
    (folder / "text.ttl").write_text(text)
    return load(folder / "text.ttl", multi="keep")


@pytest.mark.parametrize("suffix", ["trig", "nq"])
@pytest.mark.parametrize(("graph", "n"), [("x:g", 2), ("default", 1), ("union", 4), (None, 4)])
def test_a_graph_is_counted_alone(suffix: str, graph: str | None, n: int, tmp_path: Path) -> None:
    (tmp_path / "a.trig").write_text(DATASET)
    path = tmp_path / f"a.{suffix}"
    quads = ox.parse(DATASET.encode(), format=ox.RdfFormat.TRIG)
    if suffix == "nq":
        path.write_bytes(ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b"")
    counts = counted(path, graph=graph)
    assert counts.facts == n
    assert counts == expected(load(path, graph=graph, multi="keep"))
    with pytest.raises(DatabaseFormatError, match=r"no triples were found in the graph <x:none>"):
        count_duckdb(path, graph="x:none")


def test_a_relative_iri_is_resolved_against_the_base(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text("<a> <p> <b> .")
    (row,) = counted(path, base="http://e/").predicates_rows
    assert row.predicate.text == "http://e/p"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("columns", [None, ["name", "city"]])
def test_a_wide_table_is_counted(suffix: str, columns: list[str] | None, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {"name": ["Bob", "Ann"], "born": ["1980", None], "city": ["Rome", "Oslo"]}, dtype="str"
    )
    path = tmp_path / f"people.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    counts = counted(path, table="wide", columns=columns)
    # Ann has no year
    assert counts.facts == (3 if columns is None else 2)
    assert counts == expected(load(path, table="wide", columns=columns))


@pytest.fixture
def said() -> Iterator[None]:
    def split(text: Text, _: Reading) -> Iterator[tuple[int, tuple[str, ...]]]:
        for number, line in enumerate(text.lines(), start=1):
            yield number, tuple(line.rstrip(".\n").split())

    register_format(Format("said", ("said",), split))
    yield
    unregister_format("said")


@pytest.mark.usefixtures("said")
def test_a_format_from_outside_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.said"
    path.write_text("Ann knows Bob.\nAnn knows Carl.\n")
    assert counted(path) == expected(load(path, multi="keep"))
    for options in ({"max_rows": 1}, {"graph": "x:g"}, {"table": "long"}):
        with pytest.raises(CapacityError) as loading:
            load(path, multi="keep", **options)  # type: ignore[arg-type]
        with pytest.raises(CapacityError) as counting:
            count_duckdb(path, **options)  # type: ignore[arg-type]
        assert str(counting.value) == str(loading.value)
    path.write_text("Ann knows Bob.\nAnn knows.\n")
    with pytest.raises(DatabaseFormatError, match=r"a\.said, line 2"):
        count_duckdb(path)


def test_options_of_another_kind_are_refused_as_by_load(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(TURTLE)
    (tmp_path / "a.tsv").write_text("a\tp\tb\n")
    for name, options in (("a.ttl", {"table": "long"}), ("a.tsv", {"graph": "x:g"}),
                          ("a.ttl", {"columns": [0, 1, 2]}), ("a.ttl", {"graph": "no graph"}),
                          ("a.ttl", {"base": "relative"}), ("a.tsv", {"base": "x:b"})):  # fmt: skip
        with pytest.raises(CapacityError) as loading:
            load(tmp_path / name, multi="keep", **options)  # type: ignore[arg-type]
        with pytest.raises(CapacityError) as counting:
            count_duckdb(tmp_path / name, **options)  # type: ignore[arg-type]
        assert str(counting.value) == str(loading.value)


def test_what_breaks_a_text_is_said_as_by_load(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    for text in ("<x:a> <x:p> .", "@prefix x: <x:> . x:a x:p y:b .", "# nothing\n"):
        path.write_text(text)
        with pytest.raises(DatabaseFormatError) as loading:
            load(path)
        with pytest.raises(DatabaseFormatError) as counting:
            count_duckdb(path)
        assert counting.value.reason == loading.value.reason
        assert counting.value.line == loading.value.line


def test_a_text_that_is_held_must_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ttl"
    path.write_text(TURTLE)
    # of a gigabyte less than a byte
    monkeypatch.setattr("capacity.stores.lines.sources._SHARE", 2**40)
    with pytest.raises(MemoryBudgetError, match=r"a\.ttl: turtle is read as a whole.*N-Triples"):
        count_duckdb(path, memory_limit="1GB")


def test_a_text_is_measured_decompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ttl.gz"
    path.write_bytes(gzip.compress(TURTLE.encode() + b"# said\n" * 10_000))
    # of 700 MB 70 kB, which the text has, and the file hasn't
    monkeypatch.setattr("capacity.stores.lines.sources._SHARE", 10_000)
    assert path.stat().st_size < 70_000
    with pytest.raises(MemoryBudgetError, match=r"a\.ttl\.gz: turtle is read as a whole"):
        count_duckdb(path, memory_limit="700MB")


def test_a_graph_without_a_name_is_counted_by_the_one_that_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.trig"
    path.write_text("@prefix x: <x:> . [] { x:a x:p x:b , x:c } x:g { x:a x:p x:d }")
    assert counted(path, graph="_:anonymous1").facts == 2
    assert load(path, graph="_:anonymous1", multi="keep").n_facts == 2
    assert count_duckdb(path, graph="x:g").notes == ("2 triples in other graphs are omitted.",)


@pytest.mark.parametrize("name", ["a.csv", "a.ttl"])
def test_a_beginning_of_blank_lines_is_not_all(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    text = "a,p,b\n" if name == "a.csv" else "<x:a> <x:p> <x:b> ."
    path.write_text("\n" * 70_000 + text)
    assert count_duckdb(path).facts == load(path).n_facts == 1


def test_comments_that_are_no_utf_8_are_refused_with_their_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.stores.tables.files.LARGE", 0)
    path = tmp_path / "a.tsv"
    path.write_bytes(b"# one\n# caf\xe9\n" + b"a\tp\tb\n" * 9)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 2.*byte 0xe9 isn't UTF-8"):
            read(path)


def test_options_of_files_are_refused_for_databases(tmp_path: Path) -> None:
    path = tmp_path / "k.duckdb"
    with duckdb.connect(path) as con:
        con.execute("create table t (subject text, predicate text, object text)")
        con.execute("insert into t values ('a', 'p', 'b')")
    assert count_duckdb(path).facts == 1
    for options in ({"graph": "x:g"}, {"base": "x:b"}, {"contexts": {}}, {"comment": "#"}):
        with pytest.raises(DatabaseFormatError, match=rf"k\.duckdb.*`{next(iter(options))}`"):
            count_duckdb(path, **options)  # type: ignore[arg-type]


ODD: dict[str, Any] = {
    "no term": [(1, ("a", "p", 3))], "half a character": [(1, ("a", "p", "\ud800"))],
    "a long term": [(1, ("a", "p", "x" * 99))], "a number": ["no number"],
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_what_a_format_from_outside_does_wrong_is_said_with_the_file(
    case: str, tmp_path: Path
) -> None:
    def split(_: Text, __: Reading) -> Iterator[Any]:
        for row in ODD[case]:
            yield (int(row), ()) if isinstance(row, str) else row

    (tmp_path / "a.odd").write_text("text")
    register_format(Format("odd", ("odd",), split))
    try:
        said = []
        for read in (load, count_duckdb):
            with pytest.raises(DatabaseFormatError, match=r"a\.odd") as refusal:
                read(tmp_path / "a.odd", max_term_bytes=50)
            said.append(str(refusal.value))
        assert said[0] == said[1]
    finally:
        unregister_format("odd")


def test_a_text_can_be_read_twice(tmp_path: Path) -> None:
    def split(text: Text, _: Reading) -> Iterator[tuple[int, tuple[str, ...]]]:
        n = sum(1 for _ in text.lines()) + len(text.data) + len(text.data)
        for line in text.lines():
            yield n, tuple(line.split())

    (tmp_path / "a.twice").write_text("a p b\nc p d\n")
    register_format(Format("twice", ("twice",), split))
    try:
        assert load(tmp_path / "a.twice").n_facts == count_duckdb(tmp_path / "a.twice").facts == 2
    finally:
        unregister_format("twice")


def test_a_format_is_named_by_a_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="`format` must be a str"):
        load(tmp_path / "a", format=5)  # type: ignore[arg-type]


def test_an_unknown_option_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tp\tb\n")
    for function, name in ((load, "load"), (count_duckdb, "count_duckdb")):
        with pytest.raises(CapacityError, match=rf"`{name}` has no option `colums`.*`columns`\?"):
            function(tmp_path / "a.tsv", colums=[0, 1, 2])  # type: ignore[call-arg]
