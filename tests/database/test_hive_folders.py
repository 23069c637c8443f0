"""Folders of a table that is divided by a column, as Hive, Spark, Dask and pandas write them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity import Database, load
from capacity.cli import main
from capacity.database import Term, parse_rdf
from capacity.database.io.tables.folders import columns_of_folders
from capacity.errors import DatabaseFormatError, SkippedLinesWarning
from capacity.stores import count_duckdb
from tests.database.ways import WAYS, read_by

ROWS = [("Ann", "knows", "Bob"), ("Bob", "knows", "Cid"), ("Ann", "born in", "Rome"),
        ("Bob", "b=c% d", "Oslo")]  # fmt: skip
EXPECTED = Database.from_triples(ROWS)
FRAME = pd.DataFrame(ROWS, columns=["head", "relation", "tail"])


def pandas_writes(folder: Path) -> None:
    FRAME.to_parquet(folder, partition_cols=["relation"], index=False)


def duckdb_writes(folder: Path) -> None:
    with duckdb.connect() as con:
        con.register("t", FRAME)
        con.execute(f"copy (from t) to '{folder}' (format parquet, partition_by (relation))")


def dask_writes(folder: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    dd.from_pandas(FRAME, npartitions=1).to_parquet(
        folder, partition_on=["relation"], write_index=False, write_metadata_file=True
    )


@pytest.mark.parametrize("write", [pandas_writes, duckdb_writes, dask_writes])
def test_the_predicate_is_that_of_the_folder(write: object, tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    write(folder)  # type: ignore[operator]
    # each writes special characters of a value in its own way: the facts are those of the frame
    found = load(folder)
    assert found == EXPECTED
    assert load(str(folder / "**" / "*.parquet")) == EXPECTED
    counts = count_duckdb(folder)
    assert (counts.facts, counts.predicates) == (4, 3)
    # one file of them, by its own name
    (one,) = (folder / "relation=knows").glob("*.parquet")
    assert load(one) == Database.from_triples(ROWS[:2])


def test_folders_nest_and_may_hold_keys(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    frame = pd.DataFrame({"object": ["x", "y"], "subject": ["a", "b"], "predicate": ["p", "q"]})
    frame.to_parquet(folder, partition_cols=["subject", "predicate"])
    assert load(folder) == Database.from_triples([("a", "p", "x"), ("b", "q", "y")])


def test_another_column_of_folders_adds_nothing_to_facts(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    FRAME.assign(day=["1", "1", "2", "2"]).to_parquet(folder, partition_cols=["day"])
    assert load(folder) == EXPECTED
    # but where it is asked for
    found = load(folder, columns=["head", "day", "tail"], multi="keep")
    assert {found.tokens[i].text for i in found.token_tuples[:, 1]} == {"1", "2"}


def test_columns_that_no_name_tells_are_asked_about(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    frame = FRAME.rename(columns={"head": "first", "relation": "way", "tail": "last"})
    frame.to_parquet(folder, partition_cols=["way"], index=False)
    with pytest.raises(DatabaseFormatError, match=r"it has \['first', 'last', 'way'\].*`columns`"):
        load(folder)
    assert load(folder, columns=["first", "way", "last"]) == EXPECTED
    # of three columns of text and a fourth
    FRAME.assign(note="n").to_parquet(tmp_path / "more", partition_cols=["relation"], index=False)
    with pytest.raises(DatabaseFormatError, match=r"Pass columns=\['head', 'relation', 'tail'\]"):
        load(tmp_path / "more")


def test_a_part_without_a_value_has_a_missing_cell(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    FRAME.assign(relation=pd.Series(["knows", None, "p", "q"], dtype=object)).to_parquet(
        folder, partition_cols=["relation"], index=False
    )
    with pytest.raises(DatabaseFormatError, match="a cell is missing"):
        load(folder)
    with pytest.raises(DatabaseFormatError, match="a cell is missing"):
        count_duckdb(folder)


def test_a_column_of_the_file_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "relation=no" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pandas(FRAME), path)
    assert load(path) == EXPECTED
    assert columns_of_folders("a=1/b/c=2/x.parquet") == {"c": "2"}
    assert columns_of_folders("=1/x.parquet") == {}


def test_a_link_that_leads_back_is_not_followed(tmp_path: Path) -> None:
    pandas_writes(tmp_path / "facts")
    (tmp_path / "facts" / "relation=again").symlink_to(tmp_path / "facts")
    assert load(tmp_path / "facts") == EXPECTED


# of each table of text: its files by their names, and its facts
TEXTS: dict[str, tuple[dict[str, str], list[tuple[str, str, str]]]] = {
    "headers in several orders": (
        {"relation=knows/a.csv": "head,tail\nAnn,Bob\n",
         "relation=born%20in/b.csv": "tail,head\nRome,Ann\n"},
        [("Ann", "knows", "Bob"), ("Ann", "born in", "Rome")],
    ),
    "no header, as Spark writes": (
        {"relation=knows/part-0.csv": "Ann,Bob\nBob,Cid\n", "relation=likes/part-0.csv": "Ann,Cid"},
        [("Ann", "knows", "Bob"), ("Bob", "knows", "Cid"), ("Ann", "likes", "Cid")],
    ),
    "tabs": (
        {"relation=a%3Db%25/x.tsv": "source\ttarget\nAnn\tsays \"hi\"\n"},
        [("Ann", "a=b%", 'says "hi"')],
    ),
    "letters": ({"relation=knows/x.csv": "s,o\nAnn,Bob\n", "predicate=in/x.csv": "o,s\nRome,Bob\n"},
                [("Ann", "knows", "Bob"), ("Bob", "in", "Rome")]),
    "other letters": ({"rel=knows/x.tsv": "t\th\nBob\tAnn\n"}, [("Ann", "knows", "Bob")]),
    "a letter and keys of two roles": (
        {"head=Ann/relation=in/x.csv": "t\nRome\n"}, [("Ann", "in", "Rome")],
    ),
    "keys of two roles": (
        {"subject=Ann/predicate=in/x.csv": "object\nRome\n",
         "subject=Bob/predicate=in/x.csv": "Oslo"},
        [("Ann", "in", "Rome"), ("Bob", "in", "Oslo")],
    ),
    "keys of a subject and an object": (
        {"head=Ann/tail=Rome/x.csv": "relation\nborn in\n"}, [("Ann", "born in", "Rome")],
    ),
    "quotes, commas and line breaks": (
        {"relation=said/x.csv": 'head,tail\r\n"Ann, ""A""","one\ntwo"\r\n'},
        [('Ann, "A"', "said", "one\ntwo")],
    ),
    "type between words": ({"type=knows/x.csv": "source,target\nAnn,Bob\n"},
                           [("Ann", "knows", "Bob")]),
    "a column of its own": ({"relation=no/x.csv": "head,relation,tail\nAnn,knows,Bob\n"},
                            [("Ann", "knows", "Bob")]),
    "facts of its own, of its relation": ({"relation=knows/x.csv": "Ann,knows,Bob\n"},
                                          [("Ann", "knows", "Bob")]),
    "a date above whole facts": ({"day=2024-01-01/x.csv": "head,relation,tail\nAnn,knows,Bob\n"},
                                 [("Ann", "knows", "Bob")]),
    "a value that is in a cell, too": ({"relation=tail/x.csv": "head,tail\nAnn,Bob\n"},
                                       [("Ann", "tail", "Bob")]),
}  # fmt: skip


def _filled(folder: Path, files: dict[str, str], packed: bool = False) -> Path:
    for name, text in files.items():
        path = folder / (name + ".gz" * packed)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return folder


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", TEXTS)
def test_folders_add_columns_to_tables_of_text(case: str, packed: bool, tmp_path: Path) -> None:
    files, facts = TEXTS[case]
    folder = _filled(tmp_path / "facts", files, packed)
    expected = Database.from_triples(facts, multi="keep")
    for way in WAYS:
        with read_by(way):
            assert load(folder, multi="keep") == expected
            assert load(str(folder / "**" / "*.[ct]sv*"), multi="keep") == expected
    counts = count_duckdb(folder)
    assert (counts.facts, counts.subjects, counts.predicates, counts.objects) == (
        expected.n_triples,
        *expected.shape,
    )


def test_terms_of_rdf_are_read_in_folders(tmp_path: Path) -> None:
    files = {
        "p=%3Cx:p%3E/a.tsv": '?s\t?o\n<x:a>\t"b"@en\n<x:a>\t4\n',
        "p=%3Cx:q%3E/a.tsv": "?s\t?o\n_:b\t<x:a>\n",
    }
    with pytest.raises(DatabaseFormatError, match="one N-Triples term"):
        load(_filled(tmp_path / "numbers", files))
    files = {name: text.replace("\t4", '\t"4"') for name, text in files.items()}
    db = load(_filled(tmp_path / "facts", files), multi="keep")
    a = Term("iri", "x:a")
    assert db == Database.from_triples(
        [(a, Term("iri", "x:p"), Term("literal", "b", language="en")),
         (a, Term("iri", "x:p"), Term("literal", "4")),
         (Term("blank", "b"), Term("iri", "x:q"), a)],
        multi="keep",
    )  # fmt: skip


@pytest.mark.parametrize("key", ["p", "predicate", "relation"])
@pytest.mark.parametrize("names", [("?s", "?o"), ("?o", "?s"), ("?film", "?maker")])
def test_variables_are_a_header_in_folders(
    key: str, names: tuple[str, str], tmp_path: Path
) -> None:
    cells = ["<x:o>", "<x:s>"] if names[0] == "?o" else ["<x:s>", "<x:o>"]
    text = "".join("\t".join(row) + "\n" for row in (names, cells))
    folder = _filled(tmp_path, {f"{key}=%3Cx:p%3E/a.tsv": text})
    if (key, names[0]) == ("p", "?film"):
        with pytest.raises(DatabaseFormatError, match="no names show"):
            load(folder)
        return
    assert load(folder) == parse_rdf("<x:s> <x:p> <x:o> .", "turtle")
    assert count_duckdb(folder).facts == 1


def test_letters_name_the_columns_of_parquet_in_folders(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    FRAME.rename(columns={"head": "s", "tail": "o"}).to_parquet(
        folder, partition_cols=["relation"], index=False
    )
    assert load(folder) == EXPECTED
    assert count_duckdb(folder).facts == 4


def test_records_have_the_columns_of_their_folders(tmp_path: Path) -> None:
    rows = '{"head": "Ann", "tail": "Bob"}\n{"head": "B", "tail": "C"}\n'
    assert load(_filled(tmp_path, {"relation=knows/a.jsonl": rows})) == Database.from_triples(
        [("Ann", "knows", "Bob"), ("B", "knows", "C")]
    )


# of each table that may be read in several ways: its file, and what is asked
ASKED: dict[str, tuple[str, str, str]] = {
    "another word": ("relation=a/x.csv", "head,weight\nAnn,3\n",
                     r"x.csv, line 1 .*head weight, may be a header.*=\['head', 'relation', "),
    "numbers below a name": ("relation=age/x.csv", "person,years\nAnn,3\nBob,4\n",
                             "may be a header.*numbers below years"),
    "the words of a header again": ("relation=is/x.csv", "head,tail\nAnn,Bob\nhead,foot\n",
                                    "may be a header.*in another row"),
    "a folder that no word tells": ("way=a/x.csv", "head,tail\nAnn,Bob\n",
                                    r"no names show.*=\['head', 'way', 'tail'\].*=\[0, 2, 1"),
    "two folders, of which one is a date": (
        "year=1990/relation=a/x.csv", "head,tail\nAnn,Bob\n",
        r"Pass columns=\['head', 'relation', 'tail'\]",
    ),
    "two folders without a header": ("year=1990/relation=a/x.csv", "Ann,Bob\n",
                                     r"no names show.*columns=\[0, 3, 1\]"),
    "a third column": ("relation=a/x.csv", "head,tail,weight\nAnn,Bob,3\n",
                       r"Pass columns=\['head', 'relation', 'tail'\]"),
    "facts of another relation": ("relation=a/x.csv", "Ann,a,Bob\nAnn,b,Bob\n",
                                  'x.csv, line 2 .*its folders name .*Pass table="long"'),
    "no value": ("relation=__HIVE_DEFAULT_PARTITION__/x.csv", "head,tail\nAnn,Bob\n",
                 "line 2 .*a cell is missing"),
    "a short row": ("relation=a/x.csv", "head,tail\nAnn,Bob\nAnn\n",
                    "line 3 .*must hold 2 cells.*has 1"),
    "an empty row": ("relation=a/x.csv", "head,tail\nAnn,Bob\n,\n", "line 3 .*cells .*are empty"),
    "an empty column": ("relation=/x.csv", "Ann,Bob,\n", "its folders name"),
    "no text": ("relation=%FF/x.csv", "head,tail\nAnn,Bob\n", "must hold subject, predicate"),
    "quoted as CSV": ("relation=a/x.tsv", 'Ann\t"the ""A"""\n', "TSV has no quoting"),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_what_may_be_read_in_two_ways_is_asked_with_the_file(case: str, tmp_path: Path) -> None:
    name, text, said = ASKED[case]
    other = "x" if name.startswith(("year", "way")) else "relation=other"
    good = {f"{other}/facts.csv": "head,relation,tail\nAnn,other,Bob\n"}
    folder = _filled(tmp_path, {name: text, **good})
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=said):
            read(folder)


def test_the_answers_to_what_is_asked_are_taken(tmp_path: Path) -> None:
    bare = _filled(tmp_path / "bare", {"year=1990/way=knows/x.csv": "Ann,Bob\n"})
    named = _filled(tmp_path / "named", {"year=1990/way=knows/x.csv": "first,last\nAnn,Bob\n"})
    knows = Database.from_triples([("Ann", "knows", "Bob")])
    for columns in ([0, 3, 1], [0, "way", 1]):
        assert load(bare, columns=columns) == knows
        assert count_duckdb(bare, columns=columns).facts == 1
    assert load(named, columns=["first", "way", "last"]) == knows
    assert load(named, columns=["year", "way", "last"]) == Database.from_triples(
        [("1990", "knows", "Bob")]
    )
    # positions are of facts
    assert load(named, columns=[0, 3, 1]).n_triples == 2
    assert load(named, columns=["first", "year", "way", "last"]).arity == 4
    wide = _filled(tmp_path / "wide", {"relation=no/x.csv": "name,age\nAnn,3\n"})
    assert load(wide, table="wide") == Database.from_triples([("Ann", "age", "3")])
    other = _filled(tmp_path / "other", {"relation=no/x.csv": "Ann,knows,Bob\n"})
    assert load(other, table="long") == knows
    assert count_duckdb(other, table="long").facts == 1
    words = _filled(tmp_path / "words", {"relation=knows/x.csv": "head,weight\nAnn,Bob\n"})
    assert load(words, table="long") == Database.from_triples(
        [("head", "knows", "weight"), ("Ann", "knows", "Bob")]
    )


def test_a_row_of_another_length_in_a_folder_is_skipped_if_that_is_asked(tmp_path: Path) -> None:
    folder = _filled(tmp_path, {"relation=knows/x.csv": "head,tail\nAnn,Bob\nAnn\nBob,Cid\n"})
    with pytest.warns(SkippedLinesWarning, match="must hold 2 cells"):
        db = load(folder, skip_errors=1)
    assert db == Database.from_triples([("Ann", "knows", "Bob"), ("Bob", "knows", "Cid")])


def test_the_command_reads_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _filled(tmp_path, TEXTS["headers in several orders"][0])
    with pytest.raises(SystemExit) as ended:
        main(["rank", str(folder), "--json"])
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out)["triples"] == 2
