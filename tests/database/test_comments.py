"""Lines of comments in tables are no rows: those before the first row, or that the user marks."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database, label, load, read_table
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    InvalidArgumentError,
    SkippedLinesWarning,
)
from capacity.stores import count_duckdb
from tests.commands import run
from tests.database.ways import in_each_way

# as oborel/obo-relations has them
SSSOM = """#curie_map:
#  BFO: "http://purl.obolibrary.org/obo/BFO_"
#mapping_set_id: https://example.org/ro.sssom.tsv
subject_id\tsubject_label\tpredicate_id\tobject_id\tmapping_justification
BFO:0000050\tpart of\tskos:exactMatch\twikidata:P361\tsemapv:ManualMappingCuration
BFO:0000051\thas part\tskos:exactMatch\twikidata:P527\tsemapv:ManualMappingCuration
"""
# as snap.stanford.edu has them
SNAP = """# Directed graph (each unordered pair of nodes is saved once): p2p.txt
# Nodes: 3 Edges: 2
# FromNodeId\tToNodeId
0\t1
0\t2
"""
GAF = (
    "!gaf-version: 2.2\n!date-generated: 2024-01-17\n"
    "UniProtKB\tA0A024RBG1\tNUDT4B\tenables\tGO:0003723\tGO_REF:0000043\tIEA\tUniProtKB-KW:KW-0694"
    "\tF\tDiphospho\tNUDT4B\tprotein\ttaxon:9606\t20231112\tUniProt\t\t\n"
)


def test_mappings_of_sssom_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "ro.sssom.tsv"
    path.write_text(SSSOM)
    db = load(path)
    assert db("BFO:0000050", "skos:exactMatch") == label("wikidata:P361")
    assert db.n_facts == count_duckdb(path).facts == 2
    assert db.source is not None
    assert db.source.notes == ("The first 3 lines are comments, and no row.",)


DENIED = """#curie_map:
#  A: "x:"
subject_id\tpredicate_modifier\tpredicate_id\tobject_id\tmapping_justification
A:1\t\tskos:exactMatch\tB:1\tsemapv:ManualMappingCuration
A:2\tNot\tskos:exactMatch\tB:2\tsemapv:ManualMappingCuration
"""


def test_a_mapping_that_is_denied_is_no_fact(tmp_path: Path) -> None:
    # SSSOM, predicate_modifier: "A modifier for negating the predicate"
    path, kept = tmp_path / "a.sssom.tsv", tmp_path / "b.sssom.tsv"
    path.write_text(DENIED)
    kept.write_text("".join(DENIED.splitlines(keepends=True)[:-1]))
    columns = ["subject_id", "predicate_id", "object_id"]
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 5.*denied: .*'Not'.*Delete such rows"):
            read(path)
        read(path, columns=columns)
    assert load(kept).n_facts == count_duckdb(kept).facts == 1
    with pytest.warns(SkippedLinesWarning, match="denied"):
        assert load(path, skip_errors=1) == load(kept)
    frame = pd.read_csv(kept, sep="\t", comment="#", dtype=str, keep_default_na=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"denied.*columns=\['subject_id', 'predi"):
            read(tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet", columns=columns) == load(kept)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("goa.gaf", GAF, r"\(GAF\)"),
        ("roadNet.txt", SNAP, "`arity=2`"),
        ("a.sssom", DENIED, "denied"),
        ("goa.gpad", "!gpa-version: 1.1\nUniProtKB\tA0\tenables\tGO:1\n", "has 4 cells"),
    ],
)
def test_the_formats_are_recognised_under_their_own_names(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=said):
            read(tmp_path / f"{name}.gz")


def test_an_edge_list_of_snap_has_facts_of_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "p2p.tsv"
    path.write_text(SNAP)
    assert load(path, arity=2, multi="keep").shape == (1, 2)
    with pytest.raises(DatabaseFormatError, match=r"line 4.*this one has 2 cells.*`arity=2`"):
        load(path)


def test_gene_annotations_are_named_with_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "goa.tsv"
    path.write_text(GAF)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 3.*\(GAF\).*columns=\[1, 3, 4\]"):
            read(path)
    assert load(path, columns=[1, 3, 4])("A0A024RBG1", "enables") == label("GO:0003723")


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_a_mark_that_is_given_makes_comments_anywhere(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"facts.{suffix}"
    between = "\t" if suffix == "tsv" else ","
    rows = [["%%a", "p", "b"], ["a", "p", "b"], ["%% said", "by", "nobody"], ["b", "p", "%%c"]]
    path.write_text("".join(between.join(row) + "\n" for row in rows))
    assert load(path, comment="%%", multi="keep").n_facts == 2
    assert count_duckdb(path, comment="%%").facts == 2
    assert load(path, multi="keep").n_facts == 4


def test_a_line_within_quotes_is_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text('a,p,"one\n# two"\n# three "quotes"" here\nb,p,c\n'.replace('""', ""))
    db = load(path, comment="#", multi="keep")
    assert [term.text for term in db.objects] == ["c", "one\n# two"]


@pytest.mark.parametrize(
    ("text", "n"),
    [("#a\tp\tb\nc\tp\td\n", 2), ("!a\tp\tb\n#c\tp\td\ne\tp\tf\n", 3), ("#a\tp\tb\n", 1)],
)
def test_marked_lines_that_may_be_facts_are_facts(text: str, n: int, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(text)
    assert load(path, multi="keep").n_facts == count_duckdb(path).facts == n


@pytest.mark.parametrize(
    ("text", "n"),
    [
        # as many cells as in the other rows, one of them in quotes
        ('#metoo,mentions,"Weinstein, Harvey"\nAnn,knows,Bob\n', 2),
        ('!important,is a,CSS keyword\n!x,is a,"a, b"\nfoo,is a,bar\n', 3),
        ('#a,p,b\nc,p,"d, e"\n', 2),
    ],
)
def test_a_comma_in_quotes_makes_no_cells(text: str, n: int, tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(text)
    assert load(path, multi="keep").n_facts == count_duckdb(path).facts == n


def test_the_names_of_properties_are_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('#name,born in,"city, town"\nBob,1980,Rome\n')
    assert load(path, table="wide")("Bob", "city, town") == label("Rome")


@pytest.mark.parametrize(
    "text",
    ["#metoo\tmentions\tHarvey\n#x\ty\nAnn\tknows\tBob\n",
     "#subject\tpredicate\tobject\n# note\na\tp\tb\n"],
)  # fmt: skip
def test_marked_lines_of_which_one_may_be_a_row_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(text)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 2.*a row must hold"):
            read(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_among_comments_are_no_rows(end: str, tmp_path: Path) -> None:
    for suffix, between in (("tsv", "\t"), ("csv", ",")):
        path = tmp_path / f"facts.{suffix}"
        lines = ["", "# one", "", "# two", "", "", between.join("apb"), "", between.join("cpd"), ""]
        path.write_bytes(end.join(lines).encode())
        expected = Database.from_triples([tuple("apb"), tuple("cpd")])
        assert in_each_way(lambda path=path: load(path)) == [expected] * 3
        assert count_duckdb(path).facts == 2


@pytest.mark.parametrize("mark", ["#", "%", "%%", "//", "--", ";", "!"])
def test_a_line_that_may_be_a_comment_is_asked_with_its_mark(mark: str, tmp_path: Path) -> None:
    for suffix, between in (("tsv", "\t"), ("csv", ",")):
        path = tmp_path / f"facts.{suffix}"
        path.write_text(f"{between.join('apb')}\n{mark} said by nobody\n")
        for read in (load, count_duckdb):
            with pytest.raises(
                DatabaseFormatError, match=rf"line 2 .*1 cell, {mark} said.*pass comment='{mark}'\."
            ):
                read(path)
            read(path, comment=mark)


@pytest.mark.parametrize("mark", ["#", "%", "--"])
def test_the_command_asks_with_its_option(
    mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(f"a\tp\tb\n{mark} said by nobody\n")
    code, _, err = run(capsys, "rank", str(path))
    said = {"#": "--comment '#'", "%": "--comment %", "--": "--comment=--"}[mark]
    assert code == 2
    assert f"pass {said}. If" in err
    code, _, _ = run(capsys, "rank", str(path), *shlex.split(said))
    assert code == 0


def test_a_quote_in_tsv_hides_no_comment(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text('Ann\thas\t5" disk\n#Bob\tknows\tAnn\n# a comment\nCid\tknows\tAnn\n')
    assert load(path, comment="#").n_facts == count_duckdb(path, comment="#").facts == 2


def test_what_is_no_row_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ro.sssom.tsv"
    path.write_text(SSSOM)
    note = "The first 3 lines are comments, and no row."
    assert count_duckdb(path).notes == (note,)
    for more in ([], ["--out-of-core"]):
        _, _, err = run(capsys, "describe", str(path), *more)
        assert note in err


def test_an_empty_fact_among_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ro.sssom.tsv"
    path.write_text(SSSOM + "\t\t\t\tsemapv:x\n")
    chosen = {"columns": ["subject_id", "predicate_id", "object_id"]}
    for options in ({}, chosen):
        for read in (load, count_duckdb):
            with pytest.raises(DatabaseFormatError, match=r"line 7.*all cells of the row"):
                read(path, **options)  # type: ignore[operator]


def test_a_line_of_another_length_is_wrong_where_all_rows_are_facts(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("# by hand\na\tp\tb\n")
    assert load(path).n_facts == 1
    with pytest.raises(DatabaseFormatError, match=r"line 1.*this one has 1 cell"):
        load(path, table="long")


def test_the_lines_of_errors_count_comments(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("# one\n# two\na,p,b\nc,p\n")
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 4.*this one has 2 cells"):
            read(path)


LINES = st.lists(
    st.sampled_from(["# one", "#a\tp\tb", "! x", "a\tp\tb", "b\tp\tc", "a\tp", "", "# a\tb"]),
    max_size=6,
)


@given(LINES, st.sampled_from([None, "long"]), st.sampled_from(["\n", "\r\n"]))
def test_large_tables_have_the_same_comments(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], table: str | None, end: str
) -> None:
    path = tmp_path_factory.mktemp("comments") / "facts.tsv"
    path.write_bytes("".join(line + end for line in lines).encode())

    def facts_and_notes() -> object:
        db = read_table(path, table=table, multi="keep")  # type: ignore[arg-type]
        return db.facts_sha256, db.source.notes if db.source else None

    first, *others = in_each_way(facts_and_notes)
    assert all(other == first for other in others)
    # and out of core
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity.stores.tables.files.LARGE", 0)
        try:
            n_facts = count_duckdb(path, table=table).facts
        except CapacityError:
            # which `in_each_way` has for an error
            assert isinstance(first, tuple)
            assert isinstance(first[0], type)
        else:
            assert n_facts == read_table(path, table=table, multi="keep").n_facts  # type: ignore[arg-type]


@pytest.mark.parametrize("comment", ["", 5])
def test_a_mark_is_some_text(comment: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="`comment` must be what lines"):
        load(tmp_path / "a.tsv", comment=comment)  # type: ignore[arg-type]


def test_comments_are_of_tables(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<x:a> <x:p> <x:b> .\n")
    with pytest.raises(DatabaseFormatError, match="`comment` is an option of tables"):
        load(tmp_path / "a.nt", comment="#")


def test_the_command_has_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.tsv").write_text("a\tp\tb\n// p\tq\nc\tp\td\n")
    for more in ([], ["--out-of-core"]):
        code, out, _ = run(capsys, "rank", str(tmp_path / "a.tsv"), "--comment", "//", *more)
        assert code == 0
        assert "2" in out
