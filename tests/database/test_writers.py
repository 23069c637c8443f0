"""Every file that is written is read as the same facts, or the writer refuses in words."""

import re
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import (
    Database,
    Term,
    from_pandas,
    label,
    load,
    parse_rdf,
    to_pandas,
    write,
    write_tsv,
)
from capacity.errors import (
    DatabaseFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    StorageError,
)
from tests.database.test_round_trips import TERMS, TEXT, databases
from tests.formats import written
from tests.oracles import EXAMPLES
from tests.tiers import examples

RDF, TABLES = written("rdf"), written("table")
# formats of other kinds hold what they can
OTHERS = [format for format in written() if format not in RDF + TABLES]
PACKED = ["", ".gz", ".bz2", ".xz"]
# labels of which a table could make something else: headers, terms, numbers, quotes, empty cells
TRAPS = st.sampled_from(
    ["", " ", "subject", "predicate", "object", "head", "relation", "tail", "?s", "?p", "?o",
     "key_1", "name", "1", "2.5", "true", '"a"', '"a"@en', "_:b", "<http://e/a>", "<<( a b c )>>",
     "<a>", "#", "# a", ".", "PAR1", "NA", "\ufeff", "\r", "a\tb", "a,b", '"']
)  # fmt: skip
LABELS = st.one_of(TRAPS, TEXT).map(label)


def label_databases(arity: int = 3) -> st.SearchStrategy[Database]:
    rows = st.lists(st.tuples(*[LABELS] * arity), min_size=1, max_size=5)
    return rows.map(lambda rows: Database.from_tuples(rows, multi="keep"))


# a triple term may be an annotation of a fact; it is kept as it stands
@pytest.mark.filterwarnings("ignore::capacity.errors.AnnotationWarning")
@given(db=databases(TERMS), suffix=st.sampled_from(written()), packed=st.sampled_from(PACKED))
@settings(max_examples=examples(400))
def test_any_terms_come_back_from_every_file_that_is_written(
    db: Database, suffix: str, packed: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("facts") / f"facts.{suffix}{packed}"
    said = refusal(lambda: write(db, path))
    assert not said or suffix in OTHERS
    # kinds, languages, datatypes and the names of blank nodes, too
    assert said or load(path, multi="keep") == db


def refusal(ask: Callable[[], object]) -> str:
    """Message of a refusal; empty if there is none."""
    try:
        ask()
    except InvalidArgumentError as error:
        return str(error)
    return ""


def test_what_reads_as_terms_can_be_written_and_read_as_labels(tmp_path: Path) -> None:
    for suffix in TABLES:
        path = tmp_path / f"facts.{suffix}"
        write(ODD, path, terms="label")
        assert load(path, table="long") == ODD


def has_empty_row(db: Database) -> bool:
    return any(not any(db.tokens[i].text for i in row) for row in db.token_tuples.tolist())


def test_facts_that_would_be_refused_are_not_written(tmp_path: Path) -> None:
    empty = Database.from_triples([(label(""), label(""), label(""))])
    quoted = Database.from_triples([(label("a"), label("p"), label('"the ""b"""'))])
    opened = Database.from_triples([(label("a"), label('"p'), label('b"'))])
    for db, suffixes in ((empty, ("csv", "tsv")), (quoted, ("tsv",)), (opened, ("tsv",))):
        for suffix in suffixes:
            path = tmp_path / f"facts.{suffix}"
            with pytest.raises(InvalidArgumentError, match=r"would be refused.*terms='label'"):
                write(db, path)
            assert not path.exists()
            write(db, path, terms="label")
            with pytest.raises(DatabaseFormatError, match='table="long"'):
                load(path)
            assert load(path, table="long") == db
            path.unlink()
    for db in (quoted, opened):
        write(db, tmp_path / "facts.csv")
        assert load(tmp_path / "facts.csv") == db


@given(db=label_databases(), suffix=st.sampled_from(TABLES + OTHERS))
@settings(max_examples=examples(600))
def test_any_labels_come_back_from_a_table_or_are_refused(
    db: Database, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("labels") / f"facts.{suffix}"
    texts = [token.text for token in db.tokens]
    said = refusal(lambda: write(db, path))
    if not said:
        assert load(path, multi="keep") == db
    elif suffix in OTHERS:
        return
    elif "would be read as a term" in said:
        assert any(text.startswith(("<", '"', "_:")) for text in texts)
        # the advice works, unless the form can't hold them
        if not refusal(lambda: write(db, path, terms="label")):
            assert load(path, table="long", multi="keep") == db
    elif "would be refused" in said:
        assert has_empty_row(db) or (suffix == "tsv" and '"' in "".join(texts))
        if not refusal(lambda: write(db, path, terms="label")):
            assert load(path, table="long", multi="keep") == db
    elif "TSV has no quoting" in said:
        assert suffix == "tsv"
        assert set("".join(texts)) & set("\t\n\r")
    else:
        assert "full of NUL" in said
        assert "\0" in "".join(texts)
    assert not said or suffix != "parquet"


@given(db=st.integers(2, 5).flatmap(label_databases), suffix=st.sampled_from(TABLES))
@settings(max_examples=examples(200))
def test_facts_of_any_arity_come_back(
    db: Database, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("facts") / f"facts.{suffix}"
    said = refusal(lambda: write(db, path))
    if said:
        why = "full of NUL|would be read as a term|empty labels alone|TSV has no quoting|be refused"
        assert re.search(why, said)
    else:
        assert load(path, arity=db.arity, multi="keep") == db


@given(db=label_databases())
@settings(max_examples=examples(200))
def test_any_labels_come_back_from_a_frame_or_are_refused(db: Database) -> None:
    said = refusal(lambda: to_pandas(db))
    if said:
        assert "would be read as a term" in said
        assert from_pandas(to_pandas(db, terms="label"), table="long", multi="keep") == db
    else:
        assert from_pandas(to_pandas(db), multi="keep") == db


NO_SETS = "No file holds sets.* under multi=.keep., and pass multi=.set. when reading"
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no name of a format": (
        lambda folder: write(SMALL, folder / "facts.txt"),
        f"must be one of {', '.join(written())}; got 'facts.txt'",
    ),
    "a format that is only read": (
        lambda folder: write(RDF_FACTS, folder / "facts.rdf"), f"must be one of {written()[0]}",
    ),
    "an unknown format": (
        lambda folder: write(SMALL, folder / "facts.tsv", format="hdt"), "got 'hdt'",
    ),
    "labels as RDF": (
        lambda folder: write(SMALL, folder / "facts.nt"),
        "RDF has no form for the label 'Astrid'. Write a table",
    ),
    "a set as RDF": (lambda folder: write(SETS, folder / "facts.ttl"), NO_SETS),
    "a set in a table": (lambda folder: write(SETS, folder / "facts.csv"), NO_SETS),
    "a set as a label": (lambda folder: write(SETS, folder / "s.csv", terms="label"), NO_SETS),
    "a set as a term": (lambda folder: write(SETS, folder / "s.csv", terms="n3"), NO_SETS),
    "a set alone": (lambda _: SETS.objects[0].n3(), NO_SETS),
    "four columns as RDF": (
        lambda folder: write(Database.from_tuples([("a", "b", "c", "d")]), folder / "facts.nt"),
        "Writing ntriples needs facts of three columns",
    ),
    "a literal as a subject": (
        lambda folder: write(LITERAL_SUBJECT, folder / "facts.ttl"),
        "must be an IRI or a blank node.* A table, .tsv, .csv or .parquet, holds any terms",
    ),
    "labels and terms": (
        lambda folder: write(MIXED, folder / "facts.tsv"), "no form for the label",
    ),
    "terms as labels": (
        lambda folder: write(RDF_FACTS, folder / "facts.tsv", terms="label"), "would lose its kind",
    ),
    "cells of RDF": (
        lambda folder: write(RDF_FACTS, folder / "facts.nt", terms="n3"), "`terms` is the form",
    ),
    "zstandard": (
        lambda folder: write(SMALL, folder / "facts.csv.zst"),
        ".gz, .bz2 or .xz; got .zst",
    ),
    "NUL alone": (
        lambda folder: write(Database.from_triples([("\0" * 200, "p", "x")]), folder / "facts.csv"),
        "full of NUL characters",
    ),
}  # fmt: skip
SMALL = Database.from_triples([("Astrid", "born_in", "Singapore")])
# labels that look like terms
ODD = Database.from_triples([("<x:a>", "<x:p>", '"b"')])
SETS = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="set")
RDF_FACTS = parse_rdf("<x:a> <x:p> 'b'@en .", "turtle")
P = Term("iri", "x:p")
LITERAL_SUBJECT = Database.from_triples([(Term("literal", "a"), P, P)])
MIXED = Database.from_triples([("Astrid", P, P)])


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_written(
    case: str, tmp_path: Path
) -> None:
    asked, message = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=message):
        asked(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_table_holds_what_triples_of_rdf_cannot(tmp_path: Path) -> None:
    for suffix in TABLES:
        write(LITERAL_SUBJECT, tmp_path / f"facts.{suffix}")
        assert load(tmp_path / f"facts.{suffix}") == LITERAL_SUBJECT


def test_an_empty_database_comes_back_from_every_file(tmp_path: Path) -> None:
    empty = parse_rdf("", "turtle", allow_empty=True)
    for suffix in RDF + TABLES:
        write(empty, tmp_path / f"facts.{suffix}")
        again = load(tmp_path / f"facts.{suffix}", allow_empty=True)
        assert again.n_facts == 0, suffix
        assert again.shape == (0, 0, 0)


def test_the_same_facts_give_the_same_bytes(tmp_path: Path) -> None:
    db = load(EXAMPLES / "figure-1.ttl")
    for suffix in map("".join, zip(RDF + TABLES, cycle(PACKED), strict=False)):
        write(db, tmp_path / f"a.{suffix}")
        write(load(tmp_path / f"a.{suffix}"), tmp_path / f"b.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_turtle_has_the_prefixes_of_the_facts(tmp_path: Path) -> None:
    text = "@prefix e: <http://e/> . @prefix unused: <http://u/> . e:a e:p 'b' ."
    write(parse_rdf(text, "turtle"), tmp_path / "facts.ttl")
    written = (tmp_path / "facts.ttl").read_text()
    assert written == '@prefix e: <http://e/> .\ne:a e:p "b" .\n'


def test_a_name_or_the_format_says_what_is_written(tmp_path: Path) -> None:
    for name, format in (("facts.bin", "nt"), ("facts", "application/n-triples")):
        write(RDF_FACTS, tmp_path / name, format=format)
        # <x:a>, <x:p>, "b"@en and a full stop
        assert (tmp_path / name).read_text() == '<x:a> <x:p> "b"@en .\n'
    write_tsv(RDF_FACTS, tmp_path / "facts.of-mine")
    lines = (tmp_path / "facts.of-mine").read_text().splitlines()
    assert lines == ["?subject\t?predicate\t?object", '<x:a>\t<x:p>\t"b"@en']
    assert load(tmp_path / "facts.of-mine", format="tsv") == RDF_FACTS


def test_parquet_says_in_the_file_what_its_cells_are(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    write(ODD, path)
    assert load(path) == ODD
    table = pq.read_table(path)
    assert table.column_names == ["subject", "predicate", "object"]
    # another program keeps the columns, and may drop the note: they read as what they look like
    pq.write_table(table.replace_schema_metadata(None), path)
    assert [token.kind for token in load(path).tokens] == ["iri", "iri", "literal"]
    assert load(path, table="long") == ODD


def test_what_stood_there_stays_if_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    write(RDF_FACTS, path)
    with pytest.raises(InvalidArgumentError):
        write(SMALL, path)
    assert load(path) == RDF_FACTS
    with pytest.raises(StorageError, match="folder"):
        write(RDF_FACTS, tmp_path, format="nt")
    with pytest.raises(InvalidTypeError, match=r"write\(db, path\)"):
        write(7, path)
