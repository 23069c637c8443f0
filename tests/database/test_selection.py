"""The part of the facts that one means: each criterion by its definition, alone and with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rdflib
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capacity.database import Database, Selection, load, parse_rdf
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError, InvalidTypeError, UnknownTokenError
from capacity.rank import describe
from tests.tiers import examples

PREFIXES = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""
# 3 + 6 + 5 + 2 facts; :note is an annotation because the facts say so
FILMS = f"""{PREFIXES}
:Film a owl:Class ; rdfs:label "film" ; rdfs:comment "A moving picture" .
:Alien a :Film ; rdfs:label "Alien"@en ; :year 1979 ; :director :Scott ; :set [ :place :England ] .
:Aliens a :Film ; skos:prefLabel "Aliens" ; :year 1986 ; :director :Cameron ; :note "old" .
:note a owl:AnnotationProperty .
:year rdfs:label "year of release" .
"""
N = 16

# of each criterion, how many of the facts it omits, counted by hand
OMITTED: dict[str, tuple[dict[str, Any], int]] = {
    # rdf:type 4 times, rdfs:label 3 times, rdfs:comment
    "schema": ({"schema": "drop"}, 8),
    # three labels, a comment, a prefLabel, two years, a note
    "literals": ({"literals": "drop"}, 8),
    # three labels, a comment, a prefLabel, and the note
    "annotations": ({"annotations": "drop"}, 6),
    # :set and :place
    "blank nodes": ({"blank_nodes": "drop"}, 2),
    # all but two years and two directors
    "predicates": ({"predicates": ["year", "director"]}, N - 4),
    "one predicate": ({"predicates": "year"}, N - 2),
    "exclude": ({"exclude": ["year", ":note"]}, 3),
    # two years, two directors, :set, :place and :note stay
    "a namespace": ({"namespaces": "http://example.org/"}, N - 7),
    "a prefix": ({"namespaces": ":"}, N - 7),
    "a declared prefix": ({"namespaces": ["rdfs", "skos"]}, N - 5),
    # the facts of :Alien and of :Aliens stay, not those of the blank node
    "types": ({"types": "Film"}, N - 10),
    "two types": ({"types": [":Film", "owl:Class"]}, N - 13),
}


def films() -> Database:
    db = parse_rdf(FILMS, "turtle")
    assert db.n_facts == N
    return db


@pytest.mark.parametrize("what", OMITTED)
def test_each_criterion_omits_what_its_definition_says(what: str) -> None:
    criteria, omitted = OMITTED[what]
    part = films().select(**criteria)
    assert part.n_facts == N - omitted
    assert part.selected is not None
    (name,) = criteria
    assert part.selected.omitted == {name: omitted}
    assert (part.selected.of, part.selected.kept) == (N, N - omitted)


def test_criteria_are_independent_and_each_has_its_number() -> None:
    # types still sees the types that schema omits; of the ten facts of films, two types and a
    # label are schema, and of the others a prefLabel, a note and two years are literals
    part = films().select(types="Film", schema="drop", literals="drop")
    names = sorted(films().name(q) for q in part.predicates)
    assert names == [":director", ":set"]
    assert str(part.selected) == (
        "3 of 16 facts are selected; omitted by schema 8, by literals 8, by types 6"
    )


def test_a_predicate_has_all_its_names() -> None:
    iri = "http://example.org/year"
    for name in (iri, f"<{iri}>", ":year", "year", "year of release", Term("iri", iri),
                 rdflib.URIRef(iri), [rdflib.URIRef(iri)]):  # fmt: skip
        assert films().select(predicates=name).n_facts == 2
    # no prefix of rdf is declared, and none is needed
    assert films().select(predicates="rdf:type").n_facts == 4


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a wrong predicate": (
        {"predicates": "yaer"}, UnknownTokenError,
        "No predicate is called 'yaer' in the facts. Did you mean `year`",
    ),
    "a wrong class": ({"types": "Flim"}, UnknownTokenError, "No class .* Did you mean `Film`"),
    "a wrong namespace": (
        {"namespaces": "http://example.com/"}, UnknownTokenError,
        r"holds none. Theirs are http://example.org/, .* Did you mean `http://example.org/`\?",
    ),
    "two predicates": (
        {"exclude": "label"}, UnknownTokenError, "2 predicates are called 'label' .* Pass the IRI",
    ),
    "a wrong choice": ({"schema": "dorp"}, InvalidArgumentError, "Did you mean `drop`"),
    "a wrong option": ({"exlude": "year"}, InvalidTypeError, "Did you mean `exclude`"),
    "no name": ({"exclude": ""}, InvalidArgumentError, "must not be empty"),
    "a number": ({"exclude": 3}, InvalidTypeError, "a sequence of names; got 3"),
    "a number as a name": ({"exclude": [0.5]}, InvalidTypeError, "got 0.5"),
    "a mapping": ({"exclude": {"a": 1}}, InvalidTypeError, "a sequence of names"),
    "a term for a namespace": (
        {"namespaces": [Term("iri", "x:")]}, InvalidTypeError, "must be strings",
    ),
    "nothing stays": (
        {"predicates": "director", "exclude": "director"}, InvalidArgumentError,
        "at least one fact; 0 of 17 .* omitted by predicates 15, by exclude 2. Omit one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_selected_is_said(what: str) -> None:
    criteria, error, words = WRONG[what]
    text = f"{FILMS} :Alien :label 'x' ."
    with pytest.raises(error, match=words):
        parse_rdf(text, "turtle").select(**criteria)


def test_types_need_types() -> None:
    with pytest.raises(InvalidArgumentError, match="`types` needs facts with the predicate"):
        Database.from_triples([("a", "p", "b")]).select(types="b")


def test_facts_of_other_arities_have_no_predicates_to_select_by() -> None:
    db = Database.from_tuples([("a", "b"), ("a", Term("literal", "b"))], multi="keep")
    with pytest.raises(InvalidArgumentError, match="three columns"):
        db.select(exclude="a")
    assert db.select(literals="drop").n_facts == 1


def test_a_triple_term_with_a_blank_node_has_one_and_a_text_like_one_has_none() -> None:
    text = """<x:a> <x:says> <<( _:b <x:p> <x:c> )>> .
              <x:a> <x:says> <<( <x:b> <x:p> "_:c <_:d>" )>> ."""
    db = parse_rdf(text, "ntriples", multi="keep", annotations_of_facts="keep")
    part = db.select(blank_nodes="drop")
    assert [v.text for v in part.objects] == ['<<( <x:b> <x:p> "_:c <_:d>" )>>']


def test_load_selects_as_select_does_and_applies_the_policy_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "films.ttl"
    path.write_text(f'{FILMS} :Alien rdfs:label "Alien"@de .')
    whole = load(path, multi="keep")
    part = load(path, multi="keep", annotations="drop", exclude=["year"])
    assert part == whole.select(annotations="drop", exclude=["year"])
    assert part.selected is not None
    # seven annotations and two years
    assert part.selected.to_dict() == {
        "options": {"annotations": "drop", "exclude": ["year"]},
        "of": 17, "kept": 8, "omitted": {"annotations": 7, "exclude": 2},
    }  # fmt: skip
    assert whole.selected is None
    # two labels would be refused by the policy, but aren't there
    assert load(path, multi="error", annotations="drop").is_functional
    with pytest.raises(UnknownTokenError, match=r"films\.ttl: No predicate is called 'yaer'"):
        load(path, exclude="yaer")
    with pytest.raises(InvalidTypeError, match=r"`load` has no option `exlude`.*`exclude`"):
        load(path, exlude="year")  # type: ignore[call-arg]


def test_a_selection_is_told_with_its_source_and_survives_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "films.ttl"
    path.write_text(FILMS)
    part = load(path, literals="drop")
    assert part.source is not None
    assert part.source.name == "films.ttl"
    assert part.with_policy("first").selected == part.selected


# schema="drop" omits the declaration of :note and the label of :year, which stay known
def test_what_the_file_says_of_kinds_outlives_a_selection() -> None:
    part = films().select(schema="drop")
    # a label by skos, and the note that the file declares
    both = part.select(annotations="drop")
    assert both == films().select(schema="drop", annotations="drop")
    assert both.selected is not None
    assert both.selected.omitted == {"annotations": 2}
    assert part.select(exclude="year of release") == part.select(exclude=":year")
    # and a selection of a selection, and a policy
    for db in (part, part.select(blank_nodes="drop"), part.with_policy("first")):
        rows = {row.name: row for row in describe(db).predicates}
        assert [name for name, row in rows.items() if row.annotation] == [":note", "skos:prefLabel"]
        assert rows[":year"].label == "year of release"
        assert describe(db).kinds["annotations"] == 2
        # an annotation isn't advised to be dropped by its name
        assert not any(":note" in one.text for one in describe(db).advice)
    # classes keep their labels, too
    named = films().select(annotations="drop").select(types="film")
    assert named == films().select(annotations="drop", types="film")
    # two types, years and directors, and the :set
    assert named.n_facts == 7


TYPE = Term("iri", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SUBJECTS = [Term("iri", "x:s0"), Term("iri", "x:s1"), Term("blank", "a"), Term("blank", "b")]
PREDICATES = [TYPE, *(Term("iri", iri) for iri in (f"{RDFS}label", f"{RDFS}domain", "y:p", "x:q"))]
OBJECTS = [*SUBJECTS, Term("iri", "x:C"), Term("literal", "x:C"), Term("literal", "c", "", "en")]
FACTS = st.sets(
    st.tuples(*(st.sampled_from(terms) for terms in (SUBJECTS, PREDICATES, OBJECTS))), min_size=1
)
CHOICES = st.dictionaries(
    st.sampled_from(["schema", "literals", "annotations", "blank_nodes", "predicates", "exclude",
                     "namespaces", "types"]), st.integers(0, 30), max_size=4
)  # fmt: skip

Fact = tuple[Term, Term, Term]


def criteria_for(facts: set[Fact], drawn: dict[str, int]) -> dict[str, Any]:
    """Options whose names occur in the facts."""
    predicates = sorted({q for _, q, _ in facts})
    classes = sorted({v for _, q, v in facts if q == TYPE})
    found: dict[str, Any] = {}
    for name, i in drawn.items():
        if name in ("predicates", "exclude"):
            found[name] = [predicates[i % len(predicates)]]
        elif name == "namespaces":
            found[name] = [predicates[i % len(predicates)].text[:2]]
        elif name != "types":
            found[name] = "drop"
        elif classes:
            found[name] = [classes[i % len(classes)]]
    return found


def hanging(facts: set[Fact]) -> set[Term]:
    """The blank nodes that hang on schema, of facts without the vocabularies of OWL and SHACL."""
    schema = {fact for fact in facts if fact[1] == TYPE or fact[1].text.startswith(RDFS)}
    individuals = {k for k, q, v in schema if q == TYPE and v.kind == "iri"}
    # facts of RDFS that lead to one are all schema, and links of others are by x:q and y:p
    links = {(k, v) for k, _, v in facts - schema if v.kind == "blank"}
    owned = {v for _, q, v in schema if v.kind == "blank" and q.text != f"{RDFS}label"}
    suspects = owned - individuals
    for _ in facts:
        suspects |= {v for k, v in links if k in suspects} - individuals
    for _ in facts:
        suspects -= {v for k, v in links if k not in suspects}
    return suspects


def stays(fact: Fact, facts: set[Fact], criteria: dict[str, Any]) -> bool:
    """The definitions, one fact at a time."""
    k, q, v = fact
    types = {c for s, p, c in facts if (s, p) == (k, TYPE)}
    tests = {
        "schema": lambda _: q != TYPE and not q.text.startswith(RDFS) and k not in hanging(facts),
        "literals": lambda _: v.kind != "literal",
        "annotations": lambda _: q.text != f"{RDFS}label",
        "blank_nodes": lambda _: "blank" not in (k.kind, q.kind, v.kind),
        "predicates": lambda wanted: q in wanted,
        "exclude": lambda unwanted: q not in unwanted,
        "namespaces": lambda wanted: q.text[:2] in wanted,
        "types": lambda wanted: bool(types & set(wanted)),
    }
    return all(tests[name](value) for name, value in criteria.items())


A, B, X = Term("blank", "a"), Term("blank", "b"), Term("iri", "x:s0")
DOMAIN, LABEL = Term("iri", f"{RDFS}domain"), Term("iri", f"{RDFS}label")
Q = Term("iri", "x:q")


@settings(max_examples=examples(150))
@given(FACTS, CHOICES)
@example({(X, DOMAIN, A), (A, Q, B), (B, Q, X), (X, Q, X)}, {"schema": 0})
@example({(X, DOMAIN, A), (A, Q, B), (B, Q, X), (X, Q, B)}, {"schema": 0})
def test_a_selection_keeps_what_all_its_criteria_let_stay(
    facts: set[Fact], drawn: dict[str, int]
) -> None:
    db, criteria = Database.from_triples(facts, multi="keep"), criteria_for(facts, drawn)
    kept = {fact for fact in facts if stays(fact, facts, criteria)}
    if not kept:
        with pytest.raises(InvalidArgumentError, match="at least one fact"):
            db.select(**criteria)
        return
    part = db.select(**criteria)
    assert part == Database.from_triples(kept, multi="keep")
    assert part.selected is not None
    for name, omitted in part.selected.omitted.items():
        one = {name: criteria[name]}
        assert omitted == len([fact for fact in facts if not stays(fact, facts, one)])
    # a part of the facts is a part of the tensor
    assert np.all(np.array(part.shape) <= db.shape)


# y:p is a predicate that facts can declare an annotation
DECLARED = st.sets(
    st.tuples(
        st.sampled_from([*SUBJECTS, Term("iri", "y:p"), Term("iri", "x:q")]),
        st.sampled_from([TYPE, *PREDICATES]),
        st.sampled_from(
            [*OBJECTS, Term("iri", "http://www.w3.org/2002/07/owl#AnnotationProperty")]
        ),
    ),
    min_size=1,
)
KINDS = ("schema", "literals", "annotations", "blank_nodes")


@settings(max_examples=examples(150))
@example({(X, LABEL, A), (A, Q, X)}, ["annotations", "schema"], 1)
@given(DECLARED, st.lists(st.sampled_from(KINDS), max_size=4), st.integers(0, 4))
def test_dropping_kinds_in_two_calls_is_dropping_them_in_one(
    facts: set[Fact], kinds: list[str], n_first: int
) -> None:
    db = Database.from_triples(facts, multi="keep")
    every: dict[str, Any] = dict.fromkeys(kinds, "drop")
    first: dict[str, Any] = dict.fromkeys(kinds[:n_first], "drop")
    then: dict[str, Any] = dict.fromkeys(kinds[n_first:], "drop")
    try:
        both = db.select(**every)
    except InvalidArgumentError:
        with pytest.raises(InvalidArgumentError, match="at least one fact"):
            db.select(**first).select(**then)
        return
    assert db.select(**first).select(**then) == both


def test_a_selection_says_what_it_is() -> None:
    assert Selection().options() == {}
    assert Selection(schema="drop", exclude="year").options() == {
        "schema": "drop", "exclude": ("year",),
    }  # fmt: skip
    assert films().select() == films()
    assert str(films().select().selected) == "all 16 facts are selected"


def test_an_empty_database_has_nothing_to_select() -> None:
    empty = parse_rdf("", "turtle", allow_empty=True)
    assert empty.select(literals="drop").n_facts == 0
