"""What hangs on schema goes with it: lists, restrictions and shapes whose owner was dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from capacity.database import Database, load, parse_rdf
from capacity.errors import InvalidArgumentError
from capacity.rank import describe

PREFIXES = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
# a fact that stays, for a selection must keep one
STAYS = ":Rome :in :Italy ."


def left(text: str) -> set[str]:
    """The facts that ``schema="drop"`` leaves beside `STAYS`; blank nodes without their names."""
    db = parse_rdf(f"{PREFIXES}{STAYS}{text}", "turtle", multi="keep", annotations_of_facts="keep")
    part = db.select(schema="drop")
    facts = {
        " ".join(
            "_" if term.kind == "blank" else db.name(term).lstrip(":")
            for term in (part.subjects[k], part.predicates[q], part.objects[v])
        )
        for k, q, v in part.triples.tolist()
    }
    assert "Rome in Italy" in facts
    return facts - {"Rome in Italy"}


# nothing of these says anything without the statement that it hangs on
GONE = {
    "a list of classes": ":A owl:unionOf ( :B :C :D ) .",
    "a list in a class in a restriction in a list": """
        :A owl:equivalentClass [ a owl:Class ; owl:intersectionOf (
            :B [ a owl:Restriction ; owl:onProperty :p ;
                 owl:allValuesFrom [ a owl:Class ; owl:unionOf ( :C :D ) ] ] ) ] .""",
    "facets of a datatype, which XML Schema names": """
        :p rdfs:range [ a rdfs:Datatype ; owl:onDatatype xsd:integer ;
                        owl:withRestrictions ( [ xsd:minInclusive 5 ] [ xsd:maxInclusive 9 ] ) ] .
        """,
    "all different individuals": "[] a owl:AllDifferent ; owl:distinctMembers ( :B :C ) .",
    "an axiom with a source of its own": """
        [] a owl:Axiom ; owl:annotatedSource :A ; owl:annotatedProperty rdfs:subClassOf ;
           owl:annotatedTarget :B ; :source :Paper .""",
    "a shape": """
        :Shape sh:property [ sh:path ( :p :q ) ; :priority 3 ; sh:in ( 1 2 ) ] .""",
    "an empty list": ":A owl:unionOf () .",
    "a list that is a circle": ":A owl:oneOf _:l . _:l rdf:first :B ; rdf:rest _:l .",
    "a list whose cells have names": """
        :Shape sh:or :numbers . :numbers rdf:first [ sh:datatype xsd:int ] ; rdf:rest :more .
        :more rdf:first [ sh:datatype xsd:float ] ; rdf:rest () .""",
    "two owners, both of them schema": ":A owl:unionOf _:l . :B owl:oneOf _:l ."
    " _:l rdf:first :C ; rdf:rest () .",
}


@pytest.mark.parametrize("what", GONE)
def test_what_hangs_on_schema_alone_goes_with_it(what: str) -> None:
    assert left(GONE[what]) == set()


# of each, the facts that stay
STAY = {
    "a list of a property of its own": (
        ":A :members ( :B ) .",
        {"A members _", "_ rdf:first B", "_ rdf:rest rdf:nil"},
    ),
    "a list with an owner that isn't schema, too": (
        ":A owl:unionOf _:l . :A :members _:l . _:l rdf:first :B ; rdf:rest () .",
        {"A members _", "_ rdf:first B", "_ rdf:rest rdf:nil"},
    ),
    "the empty list as a value": (":A :members () .", {"A members rdf:nil"}),
    "a blank node of the facts": (
        ":A :set [ :place :England ] .", {"A set _", "_ place England"},
    ),
    "a blank subject": ("[] :place :England .", {"_ place England"}),
    "an individual without a name": (
        ":A owl:sameAs _:b . _:b :place :England .", {"_ place England"},
    ),
    "an individual among those that differ": (
        "[] a owl:AllDifferent ; owl:distinctMembers ( :B [ a :City ; :place :England ] ) .",
        {"_ place England"},
    ),
    "an individual that OWL names so": (
        ":A owl:oneOf ( [ a owl:NamedIndividual ; :place :England ] ) .", {"_ place England"},
    ),
    "a list whose cells have names": (
        ":Shape sh:or :l . :B :members :l . :l rdf:first :B ; rdf:rest () .",
        {"B members l", "l rdf:first B", "l rdf:rest rdf:nil"},
    ),
    "other facts of a cell with a name": (
        ":Shape sh:or :l . :l rdf:first :B ; rdf:rest () ; :place :England .",
        {"l place England"},
    ),
    "what an annotation of RDFS leads to": (
        ":A rdfs:seeAlso [ :place :England ] .", {"_ place England"},
    ),
    "a class with a name": (":A rdfs:subClassOf :B . :B :place :England .", {"B place England"}),
    "blank nodes in a circle of facts": (
        "_:a :knows _:b . _:b :knows _:a .", {"_ knows _"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", STAY)
def test_what_something_else_leads_to_stays(what: str) -> None:
    text, facts = STAY[what]
    assert left(text) == facts


def test_what_an_annotation_alone_leads_to_goes_in_either_order() -> None:
    text = f"{PREFIXES}{STAYS} :A owl:x _:b ; skos:note _:b . _:b :place :England ."
    db = parse_rdf(text, "turtle")
    both = db.select(schema="drop", annotations="drop")
    assert both.n_facts == 1
    assert db.select(schema="drop").select(annotations="drop") == both
    assert db.select(annotations="drop").select(schema="drop") == both


ONTOLOGY = f"""{PREFIXES}
:Pizza a owl:Class ; rdfs:label "pizza" .
:hasTopping a owl:ObjectProperty ; rdfs:domain :Pizza .
:Margherita a owl:Class ; rdfs:subClassOf :Pizza ,
    [ a owl:Restriction ; owl:onProperty :hasTopping ; owl:someValuesFrom :Tomato ] ,
    [ a owl:Restriction ; owl:onProperty :hasTopping ;
      owl:allValuesFrom [ a owl:Class ; owl:unionOf ( :Tomato :Mozzarella ) ] ] .
:Tomato skos:prefLabel "tomato" . :Mozzarella skos:prefLabel "mozzarella" .
"""


def test_the_advice_on_schema_is_true_and_counts_what_hangs_on_it(tmp_path: Path) -> None:
    path = tmp_path / "pizza.ttl"
    path.write_text(ONTOLOGY)
    db = load(path, multi="keep")
    found = describe(db)
    # all but two labels by SKOS: :Pizza 2, :hasTopping 2, :Margherita 4, the restrictions 3 and 3,
    # the union 2, its list 4
    assert db.n_facts == 22
    assert found.kinds["schema"] == 20
    (advice,) = (one for one in found.advice if one.selection.schema == "drop")
    part = db.select(schema="drop")
    assert (advice.omits, advice.leaves) == (20, describe(part).bound)
    assert "`--schema drop` leaves 2 facts of rank at most 2" in advice.text
    assert {part.predicates[q].text for q in part.triples[:, 1].tolist()} == {
        "http://www.w3.org/2004/02/skos/core#prefLabel"
    }


def test_an_ontology_without_other_facts_is_refused_whole() -> None:
    db = parse_rdf(f"{PREFIXES} :A owl:unionOf ( :B :C ) .", "turtle")
    with pytest.raises(InvalidArgumentError, match=r"omitted by schema 5\. Omit one of the \w+\.$"):
        db.select(schema="drop")
    text = ":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :B ] ."
    db = parse_rdf(f"{PREFIXES}{text}", "turtle")
    with pytest.raises(InvalidArgumentError, match="`fold` makes facts of restrictions"):
        db.select(schema="drop")
    # and so it is
    assert db.select(schema="drop", fold="restrictions").n_facts == 1


def test_a_table_whose_labels_look_like_lists_has_none() -> None:
    db = Database.from_triples([("a", "rdf:first", "b"), ("_:l", "rdf:rest", "c")])
    assert str(db.select(schema="drop").selected) == (
        "2 of 2 facts are selected; omitted by schema 0"
    )
