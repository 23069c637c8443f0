"""Syntax folded to facts: lists, restrictions and statement nodes, each counted by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, Selection, load, parse_rdf
from capacity.database.terms.term import Term, display
from capacity.database.terms.vocabularies import known_prefixes
from capacity.errors import InvalidArgumentError, InvalidTypeError, UnknownTokenError
from tests.tiers import examples

DATA = Path(__file__).parent / "folding_data"
PREFIXES = """
@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def graph(text: str) -> Database:
    return parse_rdf(
        f"{PREFIXES}{text}", "turtle", multi="keep", annotations_of_facts="keep", allow_empty=True
    )


def facts_of(db: Database) -> set[tuple[str, ...]]:
    """The facts by short names; all blank nodes are called ``_``."""
    return {
        tuple(
            "_"
            if term.kind == "blank"
            else re.sub(r"_:\w+", "_", display(term, known_prefixes(db)).removeprefix(":"))
            for term in (db.roles[mode][i] for mode, i in enumerate(row))
        )
        for row in db.tuples.tolist()
    }


def folded(text: str, fold: str) -> tuple[set[tuple[str, ...]], dict[str, int]]:
    """The facts of a text after a fold, and its numbers that aren't 0."""
    part = graph(text).select(fold=fold)
    assert part.selected is not None
    assert part.selected.folded is not None
    counts = {name: n for name, n in part.selected.folded.counts.items() if n}
    return facts_of(part), counts


def said(*facts: str) -> set[tuple[str, ...]]:
    return {tuple(fact.split()) for fact in facts}


# of each, the facts that its lists are folded to, and how many lists
LISTS: dict[str, tuple[str, set[tuple[str, ...]], int]] = {
    "members": (":s :p ( :a :b :a ) .", said("s p a", "s p b"), 1),
    "a list of one": (":s :p ( 1 ) .", said("s p 1"), 1),
    "no member": (":s :p () , :a .", said("s p a"), 1),
    "two owners": (
        ":s :p _:l . :t :q _:l . _:l rdf:first :a ; rdf:rest () .", said("s p a", "t q a"), 1,
    ),
    "lists in a list": (":s :p ( :a ( :b ( :c ) ) () ) .", said("s p a", "s p b", "s p c"), 3),
    "cells that are declared, and have names": (
        ":s :p :l . :l a rdf:List ; rdf:first :a ; rdf:rest :m . "
        ":m a rdf:List ; rdf:first :b ; rdf:rest () .",
        said("s p a", "s p b"), 1,
    ),
    "what else there is": (":s :p ( :a ) . :a :q [ :r :b ] .", said("s p a", "a q _", "_ r b"), 1),
}  # fmt: skip


@pytest.mark.parametrize("what", LISTS)
def test_a_list_becomes_its_members(what: str) -> None:
    text, facts, n = LISTS[what]
    empty = text.startswith(":s :p () ,")
    assert folded(text, "lists") == (facts, {"lists_empty" if empty else "lists": n})


# of each, how many lists are kept
MALFORMED = {
    "a circle": (":s :p _:l . _:l rdf:first :a ; rdf:rest _:m . _:m rdf:first :b ; rdf:rest _:l .",
                 1),
    "a circle without an owner": ("_:l rdf:first :a ; rdf:rest _:l .", 1),
    "two rests": (":s :p _:l . _:l rdf:first :a ; rdf:rest () , _:m . _:m rdf:first :b ; "
                  "rdf:rest () .", 1),
    "two firsts": (":s :p _:l . _:l rdf:first :a , :b ; rdf:rest () .", 1),
    "a tail that two lists share": (
        ":s :p _:l . :t :p _:m . _:l rdf:first :a ; rdf:rest _:n . _:m rdf:first :b ; "
        "rdf:rest _:n . _:n rdf:first :c ; rdf:rest () .", 1,
    ),
    "a tail that is a list of its own": (
        ":s :p _:l . :t :p _:n . _:l rdf:first :a ; rdf:rest _:n . _:n rdf:first :c ; "
        "rdf:rest () .", 1,
    ),
    "no rest": (":s :p _:l . _:l rdf:first :a .", 1),
    "no first": (":s :p _:l . _:l rdf:rest () .", 1),
    "no end": (":s :p _:l . _:l rdf:first :a ; rdf:rest :b .", 1),
    "a cell that says more": (":s :p _:l . _:l rdf:first :a ; rdf:rest () ; :since 1990 .", 1),
    "a cell of another class": (":s :p _:l . _:l a :Cell ; rdf:first :a ; rdf:rest () .", 1),
    "a list that is a subject": ("( :a ) :p :b .", 1),
    "a list without an owner": ("_:l rdf:first :a ; rdf:rest () .", 1),
    "a list that holds itself": (":s :p _:l . _:l rdf:first _:l ; rdf:rest () .", 1),
    "lists that hold each other": (
        ":s :p _:l . _:l rdf:first _:m ; rdf:rest () . _:m rdf:first _:l ; rdf:rest () .", 2,
    ),
    "a list in one that is kept": (":s :p _:l . _:l rdf:first ( :a ) , :b ; rdf:rest () .", 2),
    "a list in a triple term": (
        ":s :p _:l . :t :says <<( :s :q _:l )>> . _:l rdf:first :a ; rdf:rest _:m . "
        "_:m rdf:first :b ; rdf:rest () .", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_list_is_kept_and_counted(what: str) -> None:
    text, n = MALFORMED[what]
    # beside a list that is folded
    facts, counts = folded(f"{text} :x :y ( :z ) .", "lists")
    assert counts == {"lists": 1, "lists_kept": n}
    assert facts == facts_of(graph(text)) | said("x y z")


NESTED = st.recursive(
    st.sampled_from("abc"), lambda inner: st.lists(inner, max_size=3), max_leaves=8
)


def written(value: Any) -> str:
    return f":{value}" if isinstance(value, str) else f"( {' '.join(map(written, value))} )"


def leaves(value: Any) -> set[str]:
    return {value} if isinstance(value, str) else set().union(*map(leaves, value))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(NESTED, min_size=1, max_size=4))
def test_lists_of_lists_are_folded_to_all_that_they_hold(values: list[Any]) -> None:
    text = "".join(f":s :p{i} {written(value)} . " for i, value in enumerate(values))
    facts, counts = folded(f"{text} :x :y :z .", "lists")
    wanted = {("s", f"p{i}", leaf) for i, value in enumerate(values) for leaf in leaves(value)}
    assert facts == wanted | said("x y z")
    assert "lists_kept" not in counts


CELLS = [Term("blank", name) for name in "lmno"]
NIL, FIRST, REST = (
    Term("iri", f"http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}")
    for name in ("nil", "first", "rest")
)
OTHERS = [Term("iri", f"x:{name}") for name in "ab"]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sets(
        st.tuples(
            st.sampled_from([*CELLS, OTHERS[0]]),
            st.sampled_from([FIRST, REST, REST, OTHERS[1]]),
            st.sampled_from([*CELLS, NIL, NIL, *OTHERS]),
        ),
        min_size=1,
    )
)
def test_whatever_cells_say_a_second_fold_changes_nothing(facts: set[tuple[Term, ...]]) -> None:
    db = Database.from_triples([*facts, ("x", "y", "z")], multi="keep")
    once = db.select(fold="lists")
    assert once.select(fold="lists") == once
    # no cell is left half: what is left of lists stood there before
    of_lists = {fact for fact in rows_of(once) if fact[1] in (FIRST, REST)}
    assert of_lists <= facts
    # a fact that has nothing to do with lists stays
    plain = {fact for fact in facts if not {fact[1], fact[2]} & {FIRST, REST, NIL, *CELLS}}
    assert plain <= rows_of(once)


def rows_of(db: Database) -> set[tuple[Term, ...]]:
    return {tuple(db.tokens[i] for i in row) for row in db.token_triples.tolist()}


def test_lists_that_are_shared_many_times_over_are_refused_before_they_are_written_out() -> None:
    # a list of 2,000 members, of which 2,000 subjects are owners: four million facts
    cells = "".join(f"_:c{i} rdf:first :m{i} ; rdf:rest _:c{i + 1} . " for i in range(2000))
    end = "_:c2000 rdf:first :m ; rdf:rest () . "
    owners = "".join(f":s{i} :p _:c0 . " for i in range(2000))
    with pytest.raises(InvalidArgumentError, match="must not make over 16 times"):
        graph(cells + end + owners).select(fold="lists")


def test_restrictions_of_an_ontology_become_facts_by_hand() -> None:
    db = load(DATA / "pizza.ttl", multi="keep", fold="restrictions,lists")
    assert db.selected is not None
    assert db.selected.folded is not None
    types = said("Pizza rdf:type owl:Class", "hasTopping rdf:type owl:ObjectProperty",
                 "Margherita rdf:type owl:Class", "mine rdf:type Margherita")  # fmt: skip
    edges = said(
        "Pizza hasBase Base",
        "Margherita rdfs:subClassOf Pizza", "Margherita hasTopping Mozzarella",
        "Margherita hasTopping Tomato", "Margherita comesFrom Italy",
        "CheesyPizza rdfs:subClassOf Pizza", "CheesyPizza hasTopping Cheese",
        "CheesyPizza hasBase ThinBase",
        "Quattro hasTopping Cheese", "mine eatenBy Ann",
    )  # fmt: skip
    # what no fact follows from: only, a complement, at most, at least 0, some of an individual
    kept = said(
        "Margherita rdfs:subClassOf _", "CheesyPizza rdfs:subClassOf _",
        "Quattro rdfs:subClassOf _",
        "mine rdf:type _", "_ rdf:type owl:Restriction", "_ rdf:type owl:Class",
        "_ owl:onProperty hasTopping", "_ owl:onProperty eatenBy", "_ owl:allValuesFrom _",
        "_ owl:unionOf Mozzarella", "_ owl:unionOf Tomato", "_ owl:complementOf Calzone",
        "_ owl:onClass Fish", "_ owl:onClass Meat", "_ owl:maxQualifiedCardinality 1",
        "_ owl:minQualifiedCardinality 0", "_ owl:someValuesFrom Person",
        "_ rdf:type owl:AllDisjointClasses", "_ owl:members Mozzarella", "_ owl:members Tomato",
        "_ owl:members Fish",
    )  # fmt: skip
    assert facts_of(db) == types | edges | kept
    # axioms: of Pizza 1, of Margherita 3, the definition, of Quattro 1, of mine 1
    # lists left to fold: of the union and of the disjoint classes
    assert {name: n for name, n in db.selected.folded.counts.items() if n} == {
        "restrictions": 7, "restrictions_kept": 4, "lists": 2,
    }  # fmt: skip
    # what an ontologist asks for: facts between classes, without syntax
    plain = load(DATA / "pizza.ttl", multi="keep", fold=["lists", "restrictions"], schema="drop")
    assert facts_of(plain) == {fact for fact in edges if fact[1] != "rdfs:subClassOf"}


R = "a owl:Restriction ; owl:onProperty :p ; owl:someValuesFrom :B"
# of each, the facts, and how many axioms are folded and restrictions kept
RESTRICTIONS: dict[str, tuple[str, set[tuple[str, ...]], int, int]] = {
    "a definition in the way of OWL 1": (
        f":A owl:intersectionOf ( :C [ {R} ] ) .", said("A rdfs:subClassOf C", "A p B"), 1, 0,
    ),
    "an undeclared restriction": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :B ] .", said("A p B"), 1, 0,
    ),
    "one restriction of two classes": (
        f":A rdfs:subClassOf _:r . :C rdfs:subClassOf _:r . _:r {R} .", said("A p B", "C p B"),
        2, 0,
    ),
    "a value that is a literal": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue 3 ] .", said("A p 3"), 1, 0,
    ),
    "an intersection twice": (
        f":A rdfs:subClassOf _:i . _:i owl:intersectionOf ( _:j _:j ) . "
        f"_:j owl:intersectionOf ( [ {R} ] ) .", said("A p B"), 1, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", RESTRICTIONS)
def test_a_restriction_becomes_a_fact(what: str) -> None:
    text, facts, n, kept = RESTRICTIONS[what]
    counts = {"restrictions": n, "restrictions_kept": kept}
    assert folded(text, "restrictions") == (facts, {k: v for k, v in counts.items() if v})


# of each, how many restrictions are kept, with all facts
KEPT = {
    "two fillers": (f":A rdfs:subClassOf [ {R} , :C ] .", 1),
    "two properties": (
        ":A rdfs:subClassOf [ owl:onProperty :p , :q ; owl:someValuesFrom :B ] .", 1,
    ),
    "no filler": (":A rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ] .", 1),
    "the inverse of a property": (
        ":A rdfs:subClassOf [ owl:onProperty [ owl:inverseOf :p ] ; owl:someValuesFrom :B ] .", 1,
    ),
    "a filler without a name": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom [ owl:complementOf :B ] ] .",
        1,
    ),
    "a restriction that says more": (f":A rdfs:subClassOf [ {R} ; rdfs:label 'x' ] .", 1),
    "a subject without a name": (f"[ a owl:Class ; owl:complementOf :C ] rdfs:subClassOf [ {R} ] .",
                                 1),
    "a restriction within another class": (f"[ {R} ] rdfs:subClassOf :A .", 1),
    "a disjoint restriction": (f":A owl:disjointWith [ {R} ] .", 1),
    "a number without a class": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality 1 ] .", 1,
    ),
    "a domain": (f":q rdfs:domain [ {R} ] .", 1),
    "an intersection over a broken list": (
        f":A rdfs:subClassOf [ owl:intersectionOf _:l ] . _:l rdf:first [ {R} ] ; rdf:rest _:l .",
        1,
    ),
    "a union": (f":A rdfs:subClassOf [ owl:unionOf ( :C [ {R} ] ) ] .", 1),
}  # fmt: skip


@pytest.mark.parametrize("what", KEPT)
def test_a_restriction_that_says_no_such_fact_is_kept_and_counted(what: str) -> None:
    text, n = KEPT[what]
    assert folded(text, "restrictions") == (facts_of(graph(text)), {"restrictions_kept": n})


def test_a_restriction_that_something_else_names_stays_beside_its_fact() -> None:
    text = f":A rdfs:subClassOf _:r . :A owl:disjointWith _:r . _:r {R} ."
    facts, counts = folded(text, "restrictions")
    assert counts == {"restrictions": 1, "restrictions_kept": 1}
    assert facts == facts_of(graph(text)) - said("A rdfs:subClassOf _") | said("A p B")


def test_an_annotated_axiom_about_a_restriction_goes_with_it_if_statements_are_folded() -> None:
    text = f""":A rdfs:subClassOf _:r . _:r {R} .
        [] a owl:Axiom ; owl:annotatedSource :A ; owl:annotatedProperty rdfs:subClassOf ;
           owl:annotatedTarget _:r ; :source :Paper ."""
    facts, counts = folded(text, "statements,restrictions")
    assert facts == said("A p B")
    assert counts == {"statements": 1, "qualifiers_omitted": 1, "restrictions": 1}


def wikidata(**options: Any) -> Database:
    return load(DATA / "wikidata.ttl", multi="keep", **options)


LABELS = said("wd:Q1 rdfs:label Alphaville", "wd:Q2 rdfs:label Betatown")
STATED = said(
    "wd:Q1 wdt:P31 wd:Q515", "wd:Q1 wdt:P6 wd:Q11", "wd:Q1 wdt:P6 wd:Q12", "wd:Q1 wdt:P1082 +1200",
    "wd:Q2 wdt:P6 wd:Q12", "wd:Q2 wdt:P31 wd:Q515",
)  # fmt: skip
# without a value it states nothing that is a fact
NO_VALUE = said(
    "wd:Q2 p:P6 wds:Q2-b", "wds:Q2-b rdf:type wikibase:Statement", "wds:Q2-b rdf:type wdno:P6",
    "wds:Q2-b wikibase:rank wikibase:NormalRank",
)  # fmt: skip


def test_statements_of_wikidata_become_facts_by_hand() -> None:
    db = wikidata(fold="statements")
    assert facts_of(db) == LABELS | STATED | NO_VALUE
    assert db.selected is not None
    assert db.selected.folded is not None
    # eight with a value, of which one is deprecated; qualifiers 2 + 1 + 1 + 1 + 1
    assert {name: n for name, n in db.selected.folded.counts.items() if n} == {
        "statements": 7, "statements_kept": 1, "statements_deprecated": 1, "qualifiers_omitted": 6,
    }  # fmt: skip


STARTS = {
    ("wd:Q1", "wdt:P6", "1990", "wd:Q11"), ("wd:Q1", "wdt:P6", "1998", "wd:Q12"),
    ("wd:Q1", "wdt:P6", "2006", "wd:Q11"), ("wd:Q2", "wdt:P6", "1980", "wd:Q12"),
}  # fmt: skip


def by_year(db: Database) -> set[tuple[str, ...]]:
    return {tuple(cell.removesuffix("-01-01T00:00:00Z") for cell in fact) for fact in facts_of(db)}


@pytest.mark.parametrize("name", ["pq:P580", "P580", "http://www.wikidata.org/prop/qualifier/P580"])
def test_a_qualifier_becomes_a_part_of_the_key(name: str) -> None:
    db = wikidata(fold=f"statements:{name}")
    assert db.arity == 4
    assert by_year(db) == STARTS
    assert db.selected is not None
    assert db.selected.folded is not None
    # an end and a point in time are left out; of 12 facts three have a start: Q11 has two
    counts = db.selected.folded.counts
    assert (counts["qualifiers_omitted"], counts["facts_without_qualifier_omitted"]) == (2, 9)


def test_all_qualifiers_become_facts_of_order_five() -> None:
    db = wikidata(fold="statements:order-5")
    others = {
        ("wd:Q1", "wdt:P6", "wd:Q11", "pq:P582", "1998"),
        ("wd:Q1", "wdt:P1082", "+1200", "pq:P585", "2020"),
    }
    starts = {(s, p, o, "pq:P580", start) for s, p, start, o in STARTS}
    assert by_year(db) == starts | others


STATEMENTS: dict[str, tuple[str, set[tuple[str, ...]], dict[str, int]]] = {
    "reified and asserted": (
        ":a :p :b . _:r a rdf:Statement ; rdf:subject :a ; rdf:predicate :p ; rdf:object :b ; "
        ":since 1990 .",
        said("a p b"), {"statements": 1, "qualifiers_omitted": 1},
    ),
    "reified alone": (
        "_:r rdf:subject :a ; rdf:predicate :p ; rdf:object :b .", said("a p b"),
        {"statements": 1, "statements_not_asserted": 1},
    ),
    "a singleton property": (
        ":a :p1 :b . :p1 rdf:singletonPropertyOf :p ; :since 1990 .", said("a p b"),
        {"statements": 1, "qualifiers_omitted": 1},
    ),
    "statements of another Wikibase": (
        """<http://w.example/entity/Q1> <http://w.example/prop/P1> _:s .
           _:s <http://w.example/prop/statement/P1> :b .""",
        said("<http://w.example/entity/Q1> <http://w.example/prop/direct/P1> b"),
        {"statements": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", STATEMENTS)
def test_a_statement_node_becomes_what_it_states(what: str) -> None:
    text, facts, counts = STATEMENTS[what]
    assert folded(text, "statements") == (facts, counts)


UNFOLDED = {
    "a part is missing": "_:r rdf:subject :a ; rdf:predicate :p .",
    "two objects": "_:r rdf:subject :a ; rdf:predicate :p ; rdf:object :b , :c .",
    "somebody says it, and the graph doesn't": (
        ":Bob :says _:r . _:r rdf:subject :a ; rdf:predicate :p ; rdf:object :b ."
    ),
    "a predicate without a name": "_:r rdf:subject :a ; rdf:predicate _:p ; rdf:object :b .",
    "a property of two facts": ":a :p1 :b , :c . :p1 rdf:singletonPropertyOf :p .",
    "a property that stands for two": ":a :p1 :b . :p1 rdf:singletonPropertyOf :p , :q .",
    "a statement of two subjects": """
        @prefix p: <http://w.example/prop/> . @prefix ps: <http://w.example/prop/statement/> .
        :a p:P1 _:s . :b p:P1 _:s . _:s ps:P1 :c .""",
    "a statement by another property": """
        @prefix p: <http://w.example/prop/> . @prefix ps: <http://w.example/prop/statement/> .
        :a p:P1 _:s . _:s ps:P2 :c .""",
}


@pytest.mark.parametrize("what", UNFOLDED)
def test_a_node_that_states_nothing_for_sure_is_kept_and_counted(what: str) -> None:
    facts, counts = folded(UNFOLDED[what], "statements")
    assert counts == {"statements_kept": 1}
    assert facts == facts_of(graph(UNFOLDED[what]))


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a wrong name": ("list", InvalidArgumentError, "Did you mean `lists`"),
    "a number": (3, InvalidTypeError, "a sequence of names; got 3"),
    "a number in a list": ([3], InvalidTypeError, "must hold names; got 3"),
    "two forms": (["statements", "statements:order-5"], InvalidArgumentError, "one form"),
    "order 5 with lists": ("lists,statements:order-5", InvalidArgumentError, "Omit the others"),
    "no qualifier": ("statements:", InvalidArgumentError, "statements:QUALIFIER"),
    "several qualifiers": (
        "statements:order-4", InvalidArgumentError,
        r"these have 3. The most frequent are pq:P580 \(4\)",
    ),
    "an unknown qualifier": ("statements:P58", UnknownTokenError, "Did you mean `.*P58"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_folded_is_said(what: str) -> None:
    fold, error, words = WRONG[what]
    with pytest.raises(error, match=words):
        wikidata(fold=fold)


def test_facts_of_other_arities_and_those_of_lists_alone_are_not_folded() -> None:
    with pytest.raises(InvalidArgumentError, match="three columns"):
        Database.from_tuples([("a", "b")]).select(fold="lists")
    with pytest.raises(InvalidArgumentError, match="at least one fact"):
        graph(":s :p () .").select(fold="lists")
    assert graph("").select(fold="lists").n_facts == 0


def test_a_fold_is_told_and_its_numbers_are_those_of_the_facts() -> None:
    part = graph(":s :p ( :a :b ) ; :q 'x' .").select(fold="lists", literals="drop")
    assert part.selected is not None
    # an owner, four of cells, and a literal; two members and the literal
    assert str(part.selected) == (
        "6 facts are folded to 3: lists 1; of these 2 of 3 facts are selected; omitted by "
        "literals 1"
    )
    assert part.selected.to_dict() == {
        "options": {"literals": "drop", "fold": ["lists"]},
        "folded": {"of": 6, "facts": 3, "lists": 1, "lists_empty": 0, "lists_kept": 0},
        "of": 3, "kept": 2, "omitted": {"literals": 1},
    }  # fmt: skip
    assert Selection(fold="lists, statements").options() == {"fold": ("lists", "statements")}
