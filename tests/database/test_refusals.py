"""What a user can mend is one exception; what is written is whole, and written to a file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
import rdflib

from capacity.database import (
    Database,
    from_networkx,
    from_pandas,
    from_rdflib,
    parse_rdf,
    random_database,
    read_table,
    to_pandas,
    to_rdflib,
    write_tsv,
)
from capacity.database.terms.nodes import parse_n3, term_from_rdflib
from capacity.database.terms.term import Term
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    InvalidArgumentError,
    StorageError,
    UnknownTokenError,
)
from tests.odd_places import KINDS, put

SMALL = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
LONG = "x" * 10_000
UNDIRECTED: Any = nx.Graph([("a", "b")])

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no such token": (lambda: SMALL("Zoe", "p"), "no subject is called 'Zoe'"),
    "a long token": (lambda: SMALL(LONG, "p"), "no subject is called 'xxx"),
    "outside the domain": (
        lambda: Database.from_triples([("a", "p", "x"), ("b", "q", "x")])("a", "q"),
        r"\(a, q\) lies outside the domain",
    ),
    "a row that is a number": (lambda: Database.from_triples([7]), "row 0 is 7"),  # type: ignore
    "a long row": (lambda: Database.from_triples([(LONG, LONG)]), "row 0 is"),
    "a number for a term": (lambda: Database.from_triples([("a", "p", 0.5)]), "got 0.5 of type"),
    "no label in N-Triples": (lambda: Term("label", LONG).n3(), "N-Triples has no form"),
    "no term": (lambda: parse_n3([LONG]), "one N-Triples term"),
    "two terms": (lambda: parse_n3(["<x:a> <x:b>"]), "one N-Triples term"),
    "a broken term": (lambda: parse_n3(["<:>"]), "one N-Triples term"),
    "no rdflib node": (lambda: term_from_rdflib(3), "A term must be"),
    "no graph": (lambda: from_rdflib(3), "must be an rdflib Graph"),  # type: ignore
    "a graph of a graph": (
        lambda: from_rdflib(rdflib.Graph(), graph="x:g"),
        "a Graph has none",
    ),
    "no IRI of a graph": (
        lambda: parse_rdf("<x:a> <x:p> <x:b> .", "nt", graph="no IRI"),
        "`graph` must be the IRI",
    ),
    "no frame": (lambda: from_pandas(3), "a pandas DataFrame; got int"),  # type: ignore
    "two columns": (
        lambda: from_pandas(pd.DataFrame({"a": ["x"], "b": ["y"]})),
        "must have the columns",
    ),
    "lists in a frame": (
        lambda: from_pandas(pd.DataFrame({"s": ["x"], "p": [["y"]], "o": ["y"]})),
        "Each cell must be text",
    ),
    "other terms": (lambda: read_table("f.tsv", terms=LONG), "`terms` must be"),  # type: ignore
    "no direction": (lambda: from_networkx(UNDIRECTED), "a fact has a direction"),
    "no edge": (lambda: from_networkx(nx.DiGraph()), "the graph has no edges"),
    "no predicate": (lambda: from_networkx(nx.DiGraph([("a", "b")])), "the attribute"),
    "labels in RDF": (lambda: to_rdflib(SMALL), "Make IRIs of labels"),
    "labels as they are": (
        lambda: to_pandas(parse_rdf("<x:a> <x:p> <x:b> .", "nt"), terms="label"),
        "would lose its kind",
    ),
    "another policy": (lambda: SMALL.with_policy(LONG), "`multi` must be one of"),  # type: ignore
    "sizes that exclude each other": (lambda: random_database(0, triples=(9, 8)), "overlap"),
    "sizes that are never met": (
        lambda: random_database(
            0, tables=(1, 1), subjects=(2, 2), predicates=(1, 3), triples=(5, 5)
        ),
        "None of 10,000 draws",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_user_can_mend_is_a_capacity_error_in_one_line(case: str) -> None:
    asked, message = REFUSED[case]
    with pytest.raises(CapacityError, match=f"(?i){message}") as refusal:
        asked()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("turtle", f"<x:a> <x:p> {LONG} ."),
        ("turtle", f"{LONG}:a {LONG}:b {LONG}:c ."),
        (
            "rdfxml",
            f'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><{LONG}:a/></r:RDF>',
        ),
        ("nt", "<x:a> <x:p> <\x1b[31m> ."),
        ("jsonld", f'{{"@context": "{LONG}"}}'),
    ],
    ids=["object", "prefix", "element", "escape", "context"],
)
def test_what_parsers_repeat_is_short_and_printable(format: str, text: str) -> None:
    with pytest.raises(DatabaseFormatError) as refusal:
        parse_rdf(text, format)
    assert len(str(refusal.value)) < 500
    assert str(refusal.value).isprintable()


def test_an_unknown_token_is_a_key_error_without_quotes() -> None:
    with pytest.raises(KeyError) as refusal:
        SMALL("Zoe", "p")
    assert isinstance(refusal.value, UnknownTokenError)
    assert str(refusal.value).startswith("No subject is called")


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_written_to_a_file_or_not_at_all(kind: str, tmp_path: Path) -> None:
    path = put(kind, tmp_path / "facts.tsv")
    with pytest.raises(StorageError, match=rf"facts\.tsv: can't be written, for it is {kind}"):
        write_tsv(SMALL, path)
    assert [p.name for p in tmp_path.iterdir()] == ["facts.tsv"]


def test_a_full_disk_leaves_the_table_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts.tsv"
    write_tsv(SMALL, path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"facts\.tsv: can't be written \(No space left"):
        write_tsv(Database.from_triples([("c", "p", "x")]), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["facts.tsv"]


def test_a_label_without_a_form_in_utf_8_empties_no_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("mine")
    with pytest.raises(InvalidArgumentError, match="must have a form in UTF-8"):
        write_tsv(Database.from_triples([("a", "p", "\ud800")]), path)
    assert path.read_text() == "mine"
