"""A database is asked by the names that its tokens have for people."""

from __future__ import annotations

import pytest

from capacity.database import Database, parse_rdf
from capacity.errors import MultiValuedError, UnknownTokenError
from tests.oracles import figure_1

# countries whose IRIs are codes; two languages, and a label that two have
COUNTRIES = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:MY rdfs:label "Malaysia" ; :p36 :KL ; :p421 "UTC+8" .
:SG rdfs:label "Singapore"@en ; :p36 :City .
:BR skos:prefLabel "Brasil"@pt ; :p36 :Brasilia .
:KL rdfs:label "Kuala Lumpur" .
:p36 rdfs:label "capital" .
:G1 rdfs:label "Georgia" ; :p36 :Tbilisi .
:G2 rdfs:label "Georgia" ; :p36 :Atlanta .
"""


def countries() -> Database:
    return parse_rdf(COUNTRIES, "turtle")


@pytest.mark.parametrize("subject", ["Malaysia", ":MY", "MY", "http://example.org/MY"])
@pytest.mark.parametrize("predicate", ["capital", ":p36", "p36", "http://example.org/p36"])
def test_a_fact_is_asked_for_by_label_prefixed_name_local_name_or_iri(
    subject: str, predicate: str
) -> None:
    db = countries()
    found = db(subject, predicate)
    assert db.name(found) == ":KL"
    assert db.labels[found] == ("Kuala Lumpur",)


def test_labels_of_other_languages_and_vocabularies_are_names() -> None:
    db = countries()
    assert db.name(db("Singapore", "capital")) == ":City"
    assert db.name(db("Brasil", "capital")) == ":Brasilia"


@pytest.mark.parametrize(
    ("subject", "predicate", "words"),
    [
        ("Malaysa", "capital", "No subject is called 'Malaysa' .*Did you mean `Malaysia`"),
        ("Malaysia", "captial", "No predicate is called 'captial' .*Did you mean `capital`"),
        ("Atlantis", "capital", "Use an IRI, a prefixed name, a local name or a label"),
        ("Georgia", "capital", "2 subjects are called 'Georgia' .*G1>, .*G2>. Pass the IRI"),
        # what the subject has is listed
        ("Singapore", "p421", r"\(Singapore, p421\) lies outside .* subject: :p36, rdfs:label\."),
    ],
)
def test_a_name_that_there_isnt_is_answered_with_the_nearest(
    subject: str, predicate: str, words: str
) -> None:
    with pytest.raises(UnknownTokenError, match=words):
        countries()(subject, predicate)


def test_several_near_names_are_all_named() -> None:
    db = parse_rdf("@prefix : <x:> . :filmA :p 1 . :filmB :p 2 .", "turtle")
    with pytest.raises(UnknownTokenError) as refusal:
        db("filmC", "p")
    # x: has no local names, as no # or / ends it
    assert str(refusal.value).endswith("Did you mean `:filmB` or `:filmA`?")


def test_a_name_of_its_own_comes_before_a_label() -> None:
    # the IRI :capital, and another that is labelled so
    db = parse_rdf(f"{COUNTRIES} :SG :capital 'itself' .", "turtle")
    assert db("SG", "capital").text == "itself"


def test_tables_have_their_labels() -> None:
    assert str(figure_1()("Colin", "lives_in")) == "Malaysia"


def test_a_policy_names_the_first_pair_with_several_objects_as_people_do() -> None:
    text = "@prefix : <http://example.org/> . :Alien :starring :Weaver, :Hurt ."
    with pytest.raises(MultiValuedError, match=r"the first is \(:Alien, :starring\)"):
        parse_rdf(text, "turtle", multi="error")
