"""Templates, and the names of terms in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from capacity import Database
from capacity.database import Term, parse_rdf
from capacity.errors import CapacityError, InvalidArgumentError, UnknownTokenError
from capacity.recall import Template, read_templates, recall
from capacity.recall.names import names_in_sentences
from capacity.recall.templates import templates_for
from tests.recall.tiny_language_models import gpt2

GRAPH = """
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
ex:DE ex:capitalCity ex:Berlin ; rdfs:label "Deutschland"@de, "Germany"@en, "Allemagne"@fr-CA .
ex:PL ex:capitalCity ex:Warsaw ; skos:prefLabel "Poland" ; ex:short "POL" .
ex:New_South%20Wales ex:capitalCity ex:Sydney .
ex:Warsaw rdfs:label "Warszawa"@pl .
"""
EX = "http://example.org/"


def graph() -> Database:
    return parse_rdf(GRAPH, format="turtle", multi="keep")


def unnamed(terms: Iterable[Term]) -> dict[Term, str]:
    """Names of no terms: templates that are passed need none."""
    assert not list(terms)
    return {}


def name(iri: str, **options: Any) -> str:
    term = Term("iri", EX + iri)
    given = {"language": None, "label_predicates": (), **options}
    return names_in_sentences([term], graph(), **given)[term]


@pytest.mark.parametrize(
    ("iri", "options", "expected"),
    [("DE", {}, "Germany"), ("DE", {"language": "de"}, "Deutschland"),
     ("DE", {"language": "fr"}, "Allemagne"), ("DE", {"language": "f"}, "Germany"),
     ("PL", {}, "Poland"), ("PL", {"language": "de"}, "Poland"),
     ("PL", {"label_predicates": ["ex:short"]}, "POL"),
     ("DE", {"label_predicates": ["ex:short"]}, "Germany"),
     ("New_South%20Wales", {}, "New South Wales"), ("Warsaw", {}, "Warszawa")],
)  # fmt: skip
def test_a_name_is_a_label_in_the_chosen_language_or_the_local_name(
    iri: str, options: dict[str, Any], expected: str
) -> None:
    assert name(iri, **options) == expected


def test_literals_and_labels_of_tables_are_their_own_names() -> None:
    terms = [Term("literal", "5", "http://www.w3.org/2001/XMLSchema#integer"), Term("label", "a b")]
    assert [*names_in_sentences(terms, graph(), None, ()).values()] == ["5", "a b"]


@pytest.mark.parametrize(
    "term", [Term("blank", "b0"), Term("iri", EX), Term("literal", " "), Term("iri", f"{EX}_")]
)
def test_a_term_without_a_name_is_refused(term: Term) -> None:
    with pytest.raises(InvalidArgumentError, match=r"has none\. Add a label"):
        names_in_sentences([term], graph(), None, ())


def test_labels_come_from_all_facts_where_some_are_selected() -> None:
    db = graph()
    model, tokenizer = gpt2()
    part = db.select(predicates="ex:capitalCity")
    template = {"ex:capitalCity": "The capital of {subject} is {object}."}
    table = recall(model, tokenizer, part, template, labels=db).table
    assert set(table["subject"]) == {"ex:DE", "ex:PL", "ex:New_South%20Wales"}
    assert set(table["answer"]) <= {"Berlin", "Warszawa", "Sydney"}
    # without the labels the names are local ones
    table = recall(model, tokenizer, part, template).table
    assert set(table["answer"]) <= {"Berlin", "Warsaw", "Sydney"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("The capital of {subject} is Oslo.", r"contain \{subject\}, and \{object\} once"),
     ("The capital is {object}.", "contains them 0 and 1 times"),
     ("{subject} {object} {object}", "contains them 1 and 2 times"),
     ("{subject} is {Object}.", r"names \{Object\}"), ("{subject} {} {object}", r"names \{\}"),
     ("{subject.__class__} {object}", "names {subject.__class__}"), ("", "contains them 0 and 0"),
     (5, "must be a text")],
)  # fmt: skip
def test_a_template_without_its_places_is_refused(text: Any, message: str) -> None:
    with pytest.raises(CapacityError, match=message) as caught:
        Template(text)
    assert "Write a sentence such as" in str(caught.value)


def test_braces_of_a_subject_are_no_places() -> None:
    assert Template("{subject}: {object}, {subject}").around("{object}") == (
        "{object}: ", ", {object}",
    )  # fmt: skip


FILES = {
    "no TOML": ("capital = ", "no file of templates in TOML"),
    "colon": ('ex:capital = "{subject} {object}"', "names with a colon in quotes"),
    "dot": ('a.b = "{subject} {object}"', "must be in quotes"),
    "number": ("capital = 5", "text or a list of texts; got 5"),
    "numbers": ("capital = [5]", r"got \[5\]"),
    "no template": ("capital = []", r"got \[\]"),
    "twice": ('capital = ["{subject} {object}", "{subject} {object}"]', "is there twice"),
    "two lines": ("capital = 1\ncapital = 2", "no file of templates"),
    "bytes": (b"\xff\xfe", "no file of templates"),
    "deep": ("a = " + "[" * 10000, "no file of templates"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_of_templates_is_refused_in_a_sentence(tmp_path: Path, case: str) -> None:
    content, message = FILES[case]
    path = tmp_path / "t.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CapacityError, match=message):
        read_templates(path)


def test_predicates_are_named_by_iri_prefixed_name_or_label(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(
        '"ex:capitalCity" = ["{object}, {subject}", "{subject}, {object}"]\n'
        '"http://example.org/short" = "{subject} is {object}"\n'
    )
    found, notes = templates_for(graph(), tmp_path / "t.toml", unnamed)
    assert {one.text.rpartition("/")[2]: [t.text for t in of] for one, of in found.items()} == {
        "capitalCity": ["{object}, {subject}", "{subject}, {object}"],
        "short": ["{subject} is {object}"],
    }
    # labels have no template, and weren't asked for
    assert len(notes) == 1
    assert "without a template" in notes[0]
    assert "rdfs:label" in notes[0]


def test_without_templates_each_predicate_but_labels_has_one_of_its_name() -> None:
    found, notes = templates_for(
        graph(), None, lambda terms: names_in_sentences(terms, graph(), None, ())
    )
    assert [of[0].text for of in found.values()] == [
        "{subject}, capital city: {object}.", "{subject}, short: {object}.",
    ]  # fmt: skip
    assert notes == [
        "Templates made from the names of predicates: ex:capitalCity: {subject}, capital city: "
        "{object}.; ex:short: {subject}, short: {object}."
    ]


def test_wrong_templates_of_a_call_are_refused() -> None:
    text = "{subject} {object}"
    for given, error, message in (
        ({"ex:capitol": text}, UnknownTokenError, "No predicate is called 'ex:capitol'"),
        ({"capitalCity": text, "ex:capitalCity": text}, InvalidArgumentError, "two, the second"),
        ({}, InvalidArgumentError, "it is empty"),
        (5, CapacityError, "path of a TOML file, or a mapping"),
        ({"ex:short": None}, CapacityError, "got None"),
    ):
        with pytest.raises(error, match=message):
            templates_for(graph(), given, unnamed)  # type: ignore[arg-type]


def test_facts_without_a_predicate_to_ask_for_are_refused() -> None:
    db = parse_rdf('<x:a> <http://www.w3.org/2000/01/rdf-schema#label> "a" .', format="ntriples")
    with pytest.raises(InvalidArgumentError, match="neither schema nor an annotation"):
        templates_for(db, None, unnamed)
