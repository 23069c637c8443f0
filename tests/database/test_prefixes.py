"""Well-known prefixes are known by name, and contexts of JSON-LD can be registered once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capacity.database import Database, load, parse_rdf
from capacity.database.terms.prefixes import WELL_KNOWN, shown_prefixes
from capacity.errors import DatabaseFormatError, InvalidTypeError, UnknownTokenError
from capacity.rank import describe
from tests.commands import run

# without prefixes, as dumps are
DUMP = """
<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P31> <http://www.wikidata.org/entity/Q515> .
<http://www.wikidata.org/entity/Q1> <https://schema.org/name> "Alphaville" .
<http://www.wikidata.org/entity/Q1> <http://xmlns.com/foaf/0.1/page> <http://e.example/> .
<http://www.wikidata.org/entity/Q1> <http://www.opengis.net/ont/geosparql#asWKT> "POINT(0 0)" .
<http://www.wikidata.org/entity/Q1> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://dbpedia.org/ontology/City> .
"""  # noqa: E501


def dump() -> Database:
    return parse_rdf(DUMP, "ntriples")


@pytest.mark.parametrize(
    ("criteria", "n"),
    [
        ({"predicates": "wdt:P31"}, 1),
        ({"exclude": ["wdt:P31", "foaf:page"]}, 3),
        ({"namespaces": "wdt"}, 1),
        ({"namespaces": ["wdt:", "foaf"]}, 2),
        # of http and of https
        ({"predicates": "schema:name"}, 1),
        ({"namespaces": "schema"}, 1),
        # of both vocabularies of that prefix
        ({"predicates": "geo:asWKT"}, 1),
        ({"types": "dbo:City"}, 5),
    ],
)
def test_names_are_known_by_prefixes_that_the_file_does_not_declare(
    criteria: dict[str, Any], n: int
) -> None:
    assert dump().select(**criteria).n_facts == n


def test_a_token_is_asked_for_by_such_a_name() -> None:
    assert str(dump()("wd:Q1", "wdt:P31")) == "<http://www.wikidata.org/entity/Q515>"


def test_a_prefix_of_the_file_wins() -> None:
    text = """@prefix wdt: <http://mine.example/> . @prefix mine: <http://xmlns.com/foaf/0.1/> .
        <x:a> wdt:p <x:b> ; <http://www.wikidata.org/prop/direct/p> <x:c> ; mine:page <x:d> ."""
    db = parse_rdf(text, "turtle", multi="keep")
    for criteria in ({"predicates": "wdt:p"}, {"namespaces": "wdt"}):
        part = db.select(**criteria)  # type: ignore[arg-type]
        assert [str(term) for term in part.predicates] == ["<http://mine.example/p>"]
    # another name of a namespace is no obstacle, and isn't shown
    assert db.select(predicates="foaf:page") == db.select(predicates="mine:page")
    names = {row.name for row in describe(db).predicates}
    assert names == {"wdt:p", "mine:page", "<http://www.wikidata.org/prop/direct/p>"}


def test_predicates_are_shown_by_the_names_that_can_be_typed() -> None:
    found = describe(dump())
    names = {row.name for row in found.predicates}
    assert names == {"wdt:P31", "schema:name", "foaf:page", "geo:asWKT", "rdf:type"}
    for name in names:
        assert dump().select(predicates=name).n_facts == 1


@pytest.mark.parametrize(
    ("criteria", "words"),
    [
        ({"predicates": "wtd:P31"}, r"The prefix wtd: is unknown\. Did you mean `wdt`\?"),
        ({"predicates": "wdt:P32"}, r"No predicate is called 'wdt:P32'.* Did you mean `wdt:P31`"),
        ({"namespaces": "foav"}, r"The prefix foav: is unknown\. Did you mean `foaf`\?"),
        ({"namespaces": "skos"}, r"'skos' holds none\. Theirs are [^`]*$"),
        ({"types": "dboo:City"}, r"The prefix dboo: is unknown\. Did you mean `dbo`\?"),
    ],
)
def test_an_unknown_prefix_is_told_with_the_nearest(criteria: dict[str, Any], words: str) -> None:
    with pytest.raises(UnknownTokenError, match=words):
        dump().select(**criteria)


def test_graphs_and_annotations_are_named_by_them_too() -> None:
    text = "<x:a> <x:p> <x:b> <http://www.wikidata.org/entity/Q1> .\n<x:a> <x:p> <x:c> <x:g> ."
    assert parse_rdf(text, "nquads", graph="wd:Q1").n_facts == 1
    said = "@prefix : <x:> . :a :p :b {| <http://www.wikidata.org/prop/qualifier/P580> 1990 |} ."
    assert parse_rdf(said, "turtle", annotations_of_facts="pq:P580").arity == 4


def test_the_command_line_knows_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "dump.nt"
    path.write_text(DUMP)
    code, _, err = run(capsys, "rank", path, "--namespace", "wdt")
    assert code == 0
    assert "1 of 5 facts are selected; omitted by namespaces 4" in err


def test_no_two_prefixes_are_shown_for_one_namespace() -> None:
    shown = shown_prefixes({})
    assert len(set(shown.values())) == len(shown)
    assert all(iri.endswith(("/", "#", ":", "_")) for iris in WELL_KNOWN.values() for iri in iris)


PERSON = '{"@context": "%s", "@id": "x:Ada", "name": "Ada"}'
CONTEXT = '{"@context": {"name": "http://schema.org/name"}}'


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    (tmp_path / "schema.jsonld").write_text(CONTEXT)
    path = tmp_path / "contexts.json"
    path.write_text(json.dumps({"https://schema.org/": "schema.jsonld"}))
    return path


@pytest.mark.parametrize(
    "iri", ["https://schema.org", "https://schema.org/", "http://schema.org", "http://schema.org/"]
)
def test_the_context_of_schema_org_has_four_names_and_an_address(iri: str, contexts: Path) -> None:
    with pytest.raises(DatabaseFormatError, match=r"from https://schema\.org/docs/json"):
        parse_rdf(PERSON % iri, "jsonld")
    given = {"https://schema.org/": contexts.parent / "schema.jsonld"}
    assert parse_rdf(PERSON % iri, "jsonld", contexts=given).n_facts == 1
    # another context isn't the same with another end
    with pytest.raises(DatabaseFormatError, match="is elsewhere"):
        parse_rdf(PERSON % "http://c.example", "jsonld", contexts={"http://c.example/": {}})


def test_a_file_of_contexts_is_given_or_registered(
    contexts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = contexts.parent / "person.jsonld"
    path.write_text(PERSON % "https://schema.org")
    assert load(path, contexts=contexts).n_facts == 1
    assert run(capsys, "rank", path, "--context", contexts)[0] == 0
    code, _, err = run(capsys, "rank", path)
    assert code == 2
    assert "--context https://schema.org=context.jsonld" in err
    assert "CAPACITY_CONTEXTS" in err
    monkeypatch.setenv("CAPACITY_CONTEXTS", str(contexts))
    assert load(path).n_facts == 1
    assert run(capsys, "rank", path)[0] == 0
    # what is given comes first
    other = {"https://schema.org": {"@context": {"name": "x:name"}}}
    assert [str(q) for q in load(path, contexts=other).predicates] == ["<x:name>"]
    # and a document without contexts is read as ever
    assert parse_rdf('{"@id": "x:a", "x:p": 1}', "jsonld").n_facts == 1


def test_a_wrong_file_of_contexts_is_refused(contexts: Path) -> None:
    context = contexts.parent / "schema.jsonld"
    with pytest.raises(DatabaseFormatError, match="must be a JSON object of IRIs and names of"):
        parse_rdf(PERSON % "https://schema.org", "jsonld", contexts=context)
    with pytest.raises(DatabaseFormatError, match="no such file"):
        parse_rdf(PERSON % "https://schema.org", "jsonld", contexts="nowhere.json")
    with pytest.raises(InvalidTypeError, match="must map"):
        parse_rdf(PERSON % "https://schema.org", "jsonld", contexts=3)  # type: ignore[arg-type]
