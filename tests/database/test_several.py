"""Several files, folders, patterns and open files give the union of their facts."""

import gzip
import hashlib
import io
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, Term, load, parse_rdf, write
from capacity.database.terms.term import with_stable_names
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    MultiValuedError,
    UnknownTokenError,
)
from tests.database.test_round_trips import BLANKS, IRIS, canonical, databases, literals
from tests.tiers import examples

A = "<x:a> <x:p> <x:b> .\n"
B = "@prefix : <x:> . :a :p :c ; :q :b ."
BOTH = parse_rdf(A + "<x:a> <x:p> <x:c> . <x:a> <x:q> <x:b> .", "turtle", multi="keep")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    (made / "deeper").mkdir(parents=True)
    (made / "a.nt").write_text(A)
    (made / "b.ttl.gz").write_bytes(gzip.compress(B.encode()))
    (made / "deeper" / "c.nt").write_text("<x:c> <x:p> <x:d> .")
    (made / "notes.md").write_text("About these facts.")
    (made / ".hidden.nt").write_text("broken")
    return made


def test_a_list_is_the_union_of_its_files_each_in_its_own_format(folder: Path) -> None:
    files = [folder / "a.nt", str(folder / "b.ttl.gz")]
    for given_as in (files, tuple(files), iter(files), files[::-1], [*files, folder / "a.nt"]):
        assert load(given_as, multi="keep") == BOTH
    # of a list of one file, too
    assert load([folder / "a.nt"]) == load(folder / "a.nt")
    assert load(folder.glob("a*.nt")) == load(folder / "a.nt")


def test_a_folder_is_the_union_of_its_files_of_known_names(folder: Path) -> None:
    for name in (folder, str(folder), f"{folder}/"):
        db = load(name, multi="keep")
        assert db == BOTH
    assert db.source is not None
    assert db.source.name == "data (2 files)"
    # what isn't read is said; hidden files aren't meant
    (note,) = db.source.notes
    said = "Of 5 files and folders in data 3 aren't read. Folders: deeper. "
    assert note == said + "The name shows no format: notes.md. The name begins with a dot: 1."
    with pytest.raises(DatabaseFormatError, match=r"notes\.md|broken|line 1"):
        load(folder, format="nt")


def test_each_entry_of_a_folder_is_read_or_has_a_reason(folder: Path) -> None:
    # a name with an underscore is a name like others
    (folder / "_classes.nt").write_text("<x:C> <x:p> <x:D> .")
    (folder / "dead.nt").symlink_to(folder / "none.nt")
    os.mkfifo(folder / "pipe.nt")
    db = load(folder, multi="keep")
    assert db.n_facts == BOTH.n_facts + 1
    assert db.source is not None
    assert db.source.notes == (
        "Of 8 files and folders in data 5 aren't read. Folders: deeper. Not a regular file: "
        "dead.nt, pipe.nt. The name shows no format: notes.md. The name begins with a dot: 1.",
    )


@pytest.mark.parametrize("nothing", ["", [""], ["a.nt", ""]])
def test_an_empty_name_is_not_the_current_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, nothing: str | list[str]
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InvalidArgumentError, match="The path must not be empty"):
        load(nothing)
    assert load(".", multi="keep") == BOTH


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("https://example.org/a.ttl", "Nothing is fetched"),
        ("http://example.org/a.ttl?page=1", "Nothing is fetched"),
        ("~/none.ttl", "~ isn't expanded"),
        ("~none/*.ttl", "~ isn't expanded"),
    ],
)
def test_a_url_and_a_tilde_are_told(name: str, why: str) -> None:
    with pytest.raises(DatabaseFormatError, match=f"no such file.*{why}"):
        load(name)


def test_a_pattern_is_the_union_of_what_it_matches(folder: Path) -> None:
    assert load(f"{folder}/*.nt") == parse_rdf(A, "ntriples")
    assert load(folder / "[ab].*", multi="keep") == BOTH
    assert load(f"{folder}/**/*.nt").n_facts == 2
    # a file with the name of a pattern is that file
    (folder / "[ab].nt").write_text("<x:z> <x:p> <x:z> .")
    assert load(folder / "[ab].nt").n_facts == 1
    assert [t.text for t in load(folder / "[ab].nt").subjects] == ["x:z"]


def test_an_open_file_is_read_from_where_it_stands(folder: Path) -> None:
    with (folder / "a.nt").open("rb") as file:
        db = load(file)
    assert db == parse_rdf(A, "ntriples")
    assert db.source is not None
    assert (db.source.name, db.source.format) == ("a.nt", "ntriples")
    assert load(io.BytesIO(A.encode())) == db
    assert load(io.BytesIO(gzip.compress(A.encode())), format="nt") == db
    read = io.BytesIO(b"garbage" + A.encode())
    read.seek(7)
    assert load(read) == db
    assert load([io.BytesIO(A.encode()), folder / "b.ttl.gz"], multi="keep") == BOTH


def test_the_policy_is_for_the_union(folder: Path) -> None:
    files = [folder / "a.nt", folder / "b.ttl.gz"]
    # each file is functional, and (a, p) has two objects in both together
    assert all(load(file).is_functional for file in files)
    with pytest.warns(UserWarning, match="1 of 2"):
        load(files)
    with pytest.raises(MultiValuedError, match=r"a\.nt, b\.ttl\.gz \(2 files\): .*:a"):
        load(files, multi="error")
    assert load(files, multi="first") == BOTH.with_policy("first")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(files, multi="set") == BOTH.with_policy("set")


def test_a_selection_is_of_the_union(folder: Path) -> None:
    # x:q is a predicate of one of the files alone
    db = load(folder, predicates=["x:q"])
    assert [t.text for t in db.predicates] == ["x:q"]
    assert load(folder, exclude=["x:q"], multi="first").n_facts == 1
    with pytest.raises(UnknownTokenError, match="x:none"):
        load(folder, predicates=["x:none"])


def test_the_source_of_several_files_names_each_and_not_their_order(folder: Path) -> None:
    files = [folder / "a.nt", folder / "b.ttl.gz"]
    db, turned = load(files, multi="keep"), load(files[::-1], multi="keep")
    assert db.source is not None
    assert turned.source is not None
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert [(one.name, one.sha256, one.format) for one in db.source.parts] == [
        ("a.nt", hashes[0], "ntriples"), ("b.ttl.gz", hashes[1], "turtle"),
    ]  # fmt: skip
    lines = "".join(f"{digest}\n" for digest in sorted(hashes))
    assert db.source.sha256 == turned.source.sha256 == hashlib.sha256(lines.encode()).hexdigest()
    assert db.source.format == "ntriples, turtle"
    assert db.facts_sha256 == turned.facts_sha256


def test_one_bad_file_fails_all_and_is_named(folder: Path) -> None:
    (folder / "d.nt").write_text("broken\n")
    for given_as in (folder, folder / "*.nt", [folder / "a.nt", folder / "d.nt"]):
        with pytest.raises(DatabaseFormatError, match=r"d\.nt"):
            load(given_as)
    (folder / "d.nt").write_text("")
    with pytest.raises(DatabaseFormatError, match=r"d\.nt.*empty"):
        load(folder)
    assert load(folder, allow_empty=True, multi="keep") == BOTH
    (folder / "d.nt").unlink()
    (folder / "d.csv").write_text("a,b,c,d\n")
    with pytest.raises(DatabaseFormatError, match=r"d\.csv.*4 cells"):
        load(folder)


def test_files_are_read_with_the_same_options(folder: Path) -> None:
    for name in ("x.csv", "y.csv"):
        (folder / name).write_text(
            "name,born\nBob,1980\n" if name == "x.csv" else "name,in\nBob,Rome\n"
        )
    assert load(f"{folder}/*.csv", table="wide").n_facts == 2
    (folder / "z.tsv").write_text("a\tb\tc\td\n")
    four = load(f"{folder}/*.tsv", arity=4)
    assert four.arity == 4
    # an option of tables is refused for RDF among them
    with pytest.raises(DatabaseFormatError, match=r"a\.nt.*`table` is an option of tables"):
        load(folder, table="wide")


REFUSED: dict[str, tuple[object, type[CapacityError], str]] = {
    "an empty list": ([], DatabaseFormatError, "it is empty. Name a file"),
    "a number in a list": ([1], InvalidTypeError, "named by a str or a path, or be open; got int"),
    "rows": ([("a", "p", "x")], InvalidTypeError, "For rows use Database.from_triples"),
    "a pattern of nothing": (
        "none*.nt", DatabaseFormatError, r"none\*\.nt.*as a pattern it matches none",
    ),
    "a file of text": (io.StringIO(A), InvalidTypeError, r"must return bytes.*open\(path, 'rb'\)"),
    "a missing file of a list": (["none.nt"], DatabaseFormatError, "none.nt: no such file"),
    "a set": ({"a.nt"}, InvalidTypeError, "got set"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_names_no_files_is_refused(case: str) -> None:
    wrong, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        load(wrong)  # type: ignore[arg-type]


def test_a_folder_without_facts_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("-")
    said = r"a folder without a file.*The name shows no format: notes\.md"
    with pytest.raises(DatabaseFormatError, match=said):
        load(tmp_path)
    closed = (tmp_path / "notes.md").open("rb")
    closed.close()
    with pytest.raises(DatabaseFormatError, match="the open file can't be read"):
        load(closed)


def test_a_file_with_two_names_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.nt").write_text("_:b <x:p> <x:c> .")
    (tmp_path / "link.nt").symlink_to(tmp_path / "a.nt")
    monkeypatch.chdir(tmp_path)
    # read twice, the blank node would be two
    assert load(["a.nt", tmp_path / "a.nt", "./*.nt", "link.nt"]) == load("a.nt")


# blank nodes


def test_blank_nodes_of_two_files_are_two(tmp_path: Path) -> None:
    texts = ["_:b <x:p> <x:c> .\n_:a <x:p> _:b .", '_:b <x:p> <x:c> .\n<x:c> <x:q> "_:b" .']
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.nt").write_text(text)
    db = load(tmp_path, multi="keep")
    # b and a of the first file, b of the other
    assert {t.text for t in db.tokens if t.kind == "blank"} == {"b0", "b1", "b2"}
    assert db.n_facts == 4
    assert Term("literal", "_:b") in db.tokens
    # names that no two files share are kept
    (tmp_path / "1.nt").write_text("_:c <x:p> <x:c> .")
    kept = load(tmp_path, multi="keep")
    assert {t.text for t in kept.tokens if t.kind == "blank"} == {"a", "b", "c"}


@given(parts=st.lists(databases(st.one_of(IRIS, BLANKS, literals(st.text("ab_:<>")))),
                      min_size=1, max_size=3))  # fmt: skip
@settings(max_examples=examples(150))
def test_the_union_is_what_rdf_calls_a_merge(
    parts: list[Database], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    lines: list[str] = []
    for i, db in enumerate(parts):
        write(db, folder / f"{i}.nt")
        # blank nodes renamed apart by hand: RDF 1.1 Semantics, section 4.1
        apart = [f"_:f{i}.{t.text}" if t.kind == "blank" else t.n3() for t in db.tokens]
        lines += [" ".join(apart[j] for j in row) + " ." for row in db.token_triples.tolist()]
    merged = parse_rdf("\n".join(lines), "ntriples", multi="keep")
    assert canonical(load(folder, multi="keep")) == canonical(merged)


def test_labels_of_blank_nodes_are_kept_and_random_names_are_not() -> None:
    labelled = parse_rdf("_:z <x:p> _:y .", "ntriples")
    assert [t.text for t in labelled.tokens if t.kind == "blank"] == ["y", "z"]
    # the parser names [] by a random number, with or without leading zeros, in each format
    for text, format in (
        ("[] <x:p> _:y .", "turtle"),
        ('[{"x:p": [{"@id": "_:y"}]}]', "jsonld"),
        ('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="x:">'
         '<rdf:Description><x:p rdf:nodeID="y"/></rdf:Description></rdf:RDF>', "rdfxml"),
    ):  # fmt: skip
        for _ in range(100):
            db = parse_rdf(text, format)
            assert {t.text for t in db.tokens if t.kind == "blank"} == {"b0", "b1"}, format
    short = [Term("blank", "f" * n) for n in (15, 16, 32, 33)]
    assert with_stable_names(short[:1] + short[3:]) == short[:1] + short[3:]
    for one in short[1:3]:
        assert with_stable_names([one]) == [Term("blank", "b0")]
