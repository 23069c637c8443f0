"""Counts out of core are those of the facts that `load` reads, whatever the format."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import Database, load
from capacity.database import write
from capacity.database.terms.nodes import parse_n3
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.errors import CapacityError
from capacity.stores import StoreCounts, count_duckdb
from capacity.stores.scratch import keys
from capacity.testing import databases, labels, rdf_databases, rdf_terms
from tests.stores.recount import facts_of, recount
from tests.tiers import examples

TYPE = Term("iri", RDF_TYPE)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda raw: pa.compress(raw, "zstd", asbytes=True),
}


def graphs() -> st.SearchStrategy[Database]:
    """Graphs with classes, labels, blank nodes, triple terms, and literals that look alike."""
    nodes = [Term("iri", f"x:{c}") for c in "abc"] + [Term("blank", "d"), Term("blank", "e")]
    predicates = [Term("iri", f"x:{c}") for c in "apq"] + [TYPE]
    objects = [*nodes, Term("literal", "x:a"), Term("literal", "x:a", "", "en"),
               Term("literal", "x:a", "http://www.w3.org/2001/XMLSchema#token"),
               Term("literal", 'a"\\\n\té'), Term("triple", '<<( <x:a> <x:p> "c" )>>')]  # fmt: skip
    fact = st.tuples(*(st.sampled_from(terms) for terms in (nodes, predicates, objects)))
    every = st.one_of(fact, st.tuples(rdf_terms("subject"), rdf_terms("predicate"), rdf_terms()))
    return st.lists(every, min_size=1, max_size=30).map(
        lambda rows: Database.from_triples(rows, multi="keep")
    )


def label_graphs() -> st.SearchStrategy[Database]:
    rows = st.lists(st.tuples(labels(), labels(), labels()), min_size=1, max_size=12)
    made = rows.map(lambda rows: Database.from_triples(rows, multi="keep"))
    return st.one_of(made, databases())


def counted(path: Path, **options: Any) -> StoreCounts:
    return replace(count_duckdb(path, **options), source="", notes=())


def of_facts(path: Path, **options: Any) -> StoreCounts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recount("", facts_of(load(path, multi="keep", **options)))


def agree(path: Path, **options: Any) -> None:
    """Both read a file alike, or both refuse it."""
    try:
        expected = of_facts(path, **options)
    except CapacityError:
        with pytest.raises(CapacityError):
            counted(path, **options)
        return
    assert counted(path, **options) == expected


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(graphs(), st.sampled_from(["nt", "nq"]), st.sampled_from([*COMPRESS]),
       st.sampled_from([0, 2**22]))  # fmt: skip
def test_statements_are_counted_as_loaded(
    db: Database, suffix: str, packed: str, large: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        # from this size on, compiled code reads plain lines
        patched.setattr("capacity.stores.lines.rdf_lines.LARGE", large)
        patched.setattr("capacity.stores.lines.rdf_lines.pays", lambda *_, **__: True)
        path = Path(folder, f"facts.{suffix}")
        write(db, path)
        path = path.rename(f"{path}{packed}")
        path.write_bytes(COMPRESS[packed](path.read_bytes()))
        agree(path)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.one_of(graphs(), label_graphs()), st.sampled_from(["tsv", "csv", "parquet", "csv.gz"]),
       st.sampled_from([0, 2**22]))  # fmt: skip
def test_tables_are_counted_as_loaded(db: Database, suffix: str, large: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        # from this size on, numpy reads plain tables
        patched.setattr("capacity.stores.tables.files.LARGE", large)
        path = Path(folder, f"facts.{suffix}")
        try:
            write(db, Path(folder, f"facts.{suffix.removesuffix('.gz')}"))
        except CapacityError:
            return
        if suffix.endswith(".gz"):
            path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
        agree(path)


CELLS = st.sampled_from(["a", "b", "head", "relation", "tail", "subject", "object", "1", "2.5", "",
                         "?s", "?p", "?o", "<x:a>", "<x:b>", '"a"', '"a"^^<x:d>', "_:b", "label",
                         '"""a"', "0", '"', "http://x/", "<a>"])  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=6),
       st.sampled_from(["tsv", "csv"]), st.sampled_from([None, "long", "n3", "wide"]),
       st.sampled_from([None, [2, 0, 1], ["head", "relation", "tail"]]),
       st.sampled_from([2, 100]), st.sampled_from([0, 2**22]))  # fmt: skip
def test_doubtful_tables_are_read_alike_or_refused(
    rows: list[list[str]], suffix: str, table: Any, columns: Any, held: int, large: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        # beyond these rows, the database tells whether subjects differ
        patched.setattr("capacity.database.io.tables.layout._HELD", held)
        patched.setattr("capacity.stores.tables.files.LARGE", large)
        path = Path(folder, f"facts.{suffix}")
        between = "\t" if suffix == "tsv" else ","
        path.write_text("".join(between.join(row) + "\n" for row in rows), encoding="utf-8")
        agree(path, table=table, columns=columns)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(graphs(), graphs())
def test_blank_nodes_of_two_files_are_two(one: Database, other: Database) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr("capacity.stores.lines.rdf_lines.LARGE", 0)
        patched.setattr("capacity.stores.lines.rdf_lines.pays", lambda *_, **__: True)
        write(one, Path(folder, "a.nt"))
        write(other, Path(folder, "b.nt.tsv").with_suffix(".tsv"), terms="n3")
        expected, found = of_facts(Path(folder)), counted(Path(folder))
        # a blank node that is a class has another name, in another order
        assert replace(found, classes=()) == replace(expected, classes=())
        assert sorted(n for _, n in found.classes) == sorted(n for _, n in expected.classes)


def make_table(path: Path, name: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
    with duckdb.connect(path) as con:
        con.execute(f"create table {name} ({columns})")
        marks = ", ".join("?" for _ in columns.split(","))
        for row in rows:
            con.execute(f"insert into {name} values ({marks})", list(row))


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.one_of(label_graphs(), rdf_databases()))
def test_a_table_of_a_database_is_counted_as_its_rows_in_parquet(db: Database) -> None:
    with TemporaryDirectory() as folder:
        path, stored = Path(folder, "facts.parquet"), Path(folder, "facts.duckdb")
        n3 = db.tokens[0].kind != "label"
        rows = [tuple(t.n3() if n3 else t.text for t in fact) for fact in facts_of(db)]
        names = ("s", "p", "o")
        table = pa.table({n: list(c) for n, c in zip(names, zip(*rows, strict=True), strict=True)})
        pq.write_table(table, path)
        make_table(stored, "facts", "s varchar, p varchar, o varchar", rows)
        try:
            expected = of_facts(path)
        except CapacityError:
            with pytest.raises(CapacityError):
                counted(stored)
            return
        assert counted(stored) == expected == counted(path)


@settings(max_examples=examples(200), deadline=None)
@given(st.from_regex(keys._PLAIN, fullmatch=True))
def test_a_plain_cell_is_its_own_key(cell: str) -> None:
    assert keys.key_of(parse_n3([cell])[cell]) == cell
    assert keys.term_of(cell) == parse_n3([cell])[cell]


@pytest.mark.parametrize("db", [Database.from_triples([("a", "p", "x"), ("b", "p", "y")])])
def test_terms_that_share_a_hash_are_told_apart(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # all keys have two characters, so that one hash is shared by all
    forms = ("hash(strlen({key}))", *keys._ATTEMPTS[1:])
    monkeypatch.setattr(keys, "_ATTEMPTS", forms)
    write(db, tmp_path / "a.tsv")
    agree(tmp_path / "a.tsv")
    monkeypatch.setattr(keys, "_ATTEMPTS", forms[:1])
    with pytest.raises(RuntimeError, match="collide"):
        counted(tmp_path / "a.tsv")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["nt", "tsv", "csv.gz", "parquet", "duckdb"])
def test_many_rows_are_read_in_pieces(suffix: str, tmp_path: Path) -> None:
    # of n subjects each has one object of its own by the first predicate, and the same by the other
    n, path = 70_000, tmp_path / f"facts.{suffix}"
    facts = [(f"x:a{i}", "x:p", f"x:b{i}") for i in range(n)]
    facts += [(f"x:a{i}", "x:q", "x:c") for i in range(n)]
    if suffix == "nt":
        path.write_text("".join("<{}> <{}> <{}> .\n".format(*fact) for fact in facts))
    elif suffix in ("parquet", "duckdb"):
        table = pa.table(
            dict(zip(("s", "p", "o"), map(list, zip(*facts, strict=True)), strict=True))
        )
        if suffix == "parquet":
            pq.write_table(table, path, row_group_size=9_999)
        else:
            with duckdb.connect(path) as con:
                con.register("given", table)
                con.execute("create table facts as select * from given")
    else:
        text = "".join(("," if "csv" in suffix else "\t").join(fact) + "\n" for fact in facts)
        path.write_bytes(gzip.compress(text.encode()) if "gz" in suffix else text.encode())
    told: list[tuple[str, int, int]] = []
    found = count_duckdb(path, memory_limit="700MB", progress=lambda *done: told.append(done[:3]))
    assert (found.facts, found.subjects, found.predicates, found.objects) == (2 * n, n, 2, n + 1)
    # a predicate's slice has at most n rows and n columns, and the other one row of objects
    assert found.slice_sums == (2 * n, n + 1, n + 1)
    # an object x:b has a subject of its own, and (x:q, x:c) all of them
    assert found.private == (n, 2, n + 1)
    assert (found.lower, found.upper) == (n + 1, n + 1)
    whats = {what.partition(" ")[0] for what, _, _ in told}
    assert whats == {"rows" if suffix in ("parquet", "duckdb") else "bytes", "steps"}
    assert all(0 <= done <= total for _, done, total in told)
    assert told[-1][1] == told[-1][2]


def test_a_large_plain_table_is_not_read_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.stores.tables.files.LARGE", 0)
    rows = [(f"s{i % 70}", f"p{i % 3}", f'o"{i} é') for i in range(5000)]
    named = [("subject", "predicate", "object"), *rows]
    counts = recount(
        "", {(Term("label", k), Term("label", q), Term("label", v)) for k, q, v in rows}
    )
    monkeypatch.setattr("capacity.stores.staging.text_table", None)
    for suffix, separator, end in (("tsv", "\t", "\n"), ("tsv", "\t", "\r\n"), ("csv", ",", "\n")):
        path = tmp_path / f"a.{suffix}"
        text = end.join(separator.join(row) for row in named)
        if suffix == "csv":
            # as RFC 4180 quotes it
            text = re.sub(r'o"\d+ é', lambda cell: '"' + cell[0].replace('"', '""') + '"', text)
        path.write_bytes(text.encode())
        assert counted(path) == counts
    # rows with quotes are held, and so some thousand at most
    monkeypatch.setattr("capacity.database.io.tables.plain._MOST_QUOTED", 4999)
    with pytest.raises(TypeError):
        counted(tmp_path / "a.tsv")


def test_folders_patterns_and_lists_are_united(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"part-{i}.nt").write_text(f"<x:a> <x:p> <x:b{i}> .\n<x:a> <x:p> <x:b0> .\n")
    (tmp_path / "notes.md").write_text("no facts")
    whole = count_duckdb(tmp_path)
    assert whole.facts == 3
    assert whole.source == f"{tmp_path.name} (3 files)"
    assert "notes.md" in whole.notes[0]
    some = count_duckdb(tmp_path / "part-[01].nt")
    assert (some.facts, some.notes) == (2, ())
    assert count_duckdb([tmp_path / "part-0.nt", tmp_path / "part-1.nt"]).facts == 2


def test_classes_are_those_with_most_subjects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.stores.duckdb.MOST_CLASSES", 2)
    types = [("a", "C"), ("b", "C"), ("a", "D0"), ("a", "D"), ("a", "E")]
    path = tmp_path / "a.nt"
    path.write_text("".join(f"<x:{k}> <{RDF_TYPE}> <x:{v}> .\n" for k, v in types))
    # of those with one subject x:D is the first, though its key, <x:D>, follows <x:D0>
    assert count_duckdb(path).classes == ((Term("iri", "x:C"), 2), (Term("iri", "x:D"), 1))


LINES = {
    "escapes": '<x:a> <x:p> "a\x7f" .\n<x:a> <x:p> "a\\u007F" .\n<x:a> <x:p> "b\ufffe" .\n',
    "forms": '<x:a> <x:p> "a"@EN-US .\n<x:a> <x:p> "a"@en-us .\n<x:\\u0061> <x:p> "a" .\n'
    '<x:a> <x:p> "a"^^<http://www.w3.org/2001/XMLSchema#string> .\n',
    "rewritten": '<x:\\u0061> <x:p> "\\u00e9\\n" .\n#\n<x:a> <x:p> "é\\u000A" .\n'
    '<x:é> <x:p> "a"^^<x:é> .\n<x:a> <x:p> <<( <x:a> <x:p> "é\\n" )>> .\n'
    '<x:\\u00E9> <x:p> "a"^^<x:\\u00e9> .\n<x:a> <x:p> "a"@x-y .\n',
    "two lines": "<x:a> <x:p>\n<x:b> .\n<x:a> <x:p> <x:c> .\n",
    "between": "<x:a> <x:p>\n<x:a> <x:p> <x:c> .\n<x:b> .\n",
    "marks": "\ufeff# facts\r\n\r\n<x:a> <x:p> <x:b> .\r\n<x:a>\t<x:p>\t_:b.# b\n\n",
    "returns": "<x:a> <x:p> <x:b> .\r<x:a> <x:p> <x:c> .\r",
    "graphs": "<x:a> <x:p> <x:b> <x:g> .\n<x:a> <x:p> <x:b> _:g .\n<x:a> <x:p> <x:b> .\n",
    "many": '<x:a> <x:p> "é\\n" .\n' * 5000 + "_:a <x:p> _:b .\n" * 5000,
    "kinds": '<x:a> <x:p> "x:b" .\n<x:a> <x:p> <x:b> .\n<x:a> <x:p> _:b .\n_:b <x:p> "_:b" .\n',
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
@pytest.mark.parametrize("large", [0, 2**22])
@pytest.mark.parametrize("suffix", ["nt", "nq"])
def test_lines_of_any_form_are_counted_as_loaded(
    text: str, large: int, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.stores.lines.rdf_lines.LARGE", large)
    monkeypatch.setattr("capacity.stores.lines.rdf_lines.pays", lambda *_, **__: True)
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(text.encode())
    agree(path, format=suffix)
    # after a file that is read by either, what is left of a failed reading goes
    (tmp_path / "b.nt").write_text("<x:a> <x:p> <x:d> .\n" * 10)
    agree(tmp_path)


def test_lines_are_counted_without_a_compiler_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, int]] = []

    def ask(size: int, source: Path, function: str, **least: int) -> bool:
        # a function of that name is kept under that source
        assert f"\ndef {function}(" in source.read_text("utf-8")
        assert size == path.stat().st_size
        asked.append(least)
        return False

    monkeypatch.setattr("capacity.stores.lines.rdf_lines.LARGE", 0)
    monkeypatch.setattr("capacity.stores.lines.rdf_lines.pays", ask)
    monkeypatch.setitem(sys.modules, "capacity.stores.lines.plain_lines", None)
    path = tmp_path / "a.nt"
    path.write_text("<x:a> <x:p> <x:b> .\n")
    assert counted(path) == recount(
        "", {(Term("iri", "x:a"), Term("iri", "x:p"), Term("iri", "x:b"))}
    )
    assert [least["kept"] < least["unkept"] for least in asked] == [True]
