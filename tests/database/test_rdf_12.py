"""RDF 1.2: triple terms are tokens, what is asserted is a fact, and facts about facts are said."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from capacity.database import Database, Term, load, parse_rdf, to_rdflib
from capacity.database.terms.nodes import parse_n3
from capacity.errors import AnnotationWarning, DatabaseFormatError, InvalidArgumentError

TERMS = """
PREFIX : <http://e/>
:bob :says <<( :moon :of "cheese <http://e/x>"@EN--ltr )>>, <<( :a :p <<( _:x :q 01 )>> )>>, _:x .
"""


def test_a_triple_term_is_a_token_like_others() -> None:
    db = parse_rdf(TERMS, "turtle", multi="keep", annotations_of_facts="keep")
    assert db.shape == (1, 1, 3)
    inner = '<<( _:x <http://e/q> "01"^^<http://www.w3.org/2001/XMLSchema#integer> )>>'
    texts = [
        '<<( <http://e/moon> <http://e/of> "cheese <http://e/x>"@en--ltr )>>',
        f"<<( <http://e/a> <http://e/p> {inner} )>>",
    ]
    # kinds sort first: blank nodes, then triple terms; the blank node within is the one outside
    assert db.objects == (Term("blank", "x"), *sorted(Term("triple", t) for t in texts))
    assert [t.n3() for t in db.objects[1:]] == sorted(texts) == [str(t) for t in db.objects[1:]]
    assert db.name(Term("triple", texts[0])) == '<<( :moon :of "cheese <http://e/x>"@en--ltr )>>'


def test_the_hash_of_facts_without_triple_terms_is_as_it_was() -> None:
    # of a version that knew no triple terms
    db = Database.from_triples(
        [("a", "p", Term("literal", "b", language="en")), (Term("iri", "x:a"), "p", "c")]
    )
    assert db.facts_sha256 == ("52d94c9e0cf5d7d9a45c4b27ea01507464aaf43fc27ea3d4834dad436240319d")


@pytest.mark.parametrize("format", ["ntriples", "nquads", "turtle", "trig"])
def test_a_version_is_announced_in_every_format(format: str, tmp_path: Path) -> None:
    text = (
        'VERSION "1.2"\n<x:a> <x:p> "VERSION" .\n  VERSION \'1.1\' # again\n<x:a> <x:q> <x:b> .\n'
    )
    assert parse_rdf(text, format).n_triples == 2
    (tmp_path / "facts").write_text(text)
    assert load(tmp_path / "facts").n_triples == 2
    # lines are counted as they stand
    with pytest.raises(DatabaseFormatError, match="line 3"):
        parse_rdf('VERSION "1.2"\n<x:a> <x:p> <x:b> .\n<x:a> .\n', format)


PRESIDENTS = """
PREFIX : <http://e/>
:bush :president :usa {| :since 2001 ; :until 2009 |} .
:obama :president :usa ~ :r {| :since 2009 |} .
:usa :capital :washington .
<< :moon :of :cheese >> :by :bob .
"""
# the triples asserted are 3; the reifiers are 3, each with one rdf:reifies, and 4 annotations
ASSERTED, ABOUT = 3, 7


def presidents(choice: str | None, text: str = PRESIDENTS, format: str = "turtle") -> Database:
    return parse_rdf(text, format, multi="keep", annotations_of_facts=choice)


def note_of(db: Database) -> str:
    assert db.source is not None
    (note,) = db.source.notes
    return note


def facts(db: Database) -> set[tuple[str, ...]]:
    return {tuple(db.name(db.tokens[i]) for i in row) for row in db.token_tuples}


def test_what_is_asserted_is_loaded_and_what_is_said_about_it_is_counted() -> None:
    with pytest.warns(AnnotationWarning, match=r"7 of 10 triples are about.*order-4 or order-5"):
        db = presidents(None)
    assert db.n_triples == ASSERTED + ABOUT
    assert db.source is not None
    assert db.source.notes[0].startswith("7 of 10 triples are about other facts")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert presidents("keep") == db
        plain = parse_rdf("<x:a> <x:p> <x:b> .", "turtle")
    assert plain.source is not None
    assert plain.source.notes == ()
    dropped = presidents("drop")
    assert facts(dropped) == {
        (":bush", ":president", ":usa"),
        (":obama", ":president", ":usa"),
        (":usa", ":capital", ":washington"),
    }


def test_annotations_become_facts_of_order_5_with_their_values_as_objects() -> None:
    db = presidents("order-5")
    assert facts(db) == {
        (":bush", ":president", ":usa", ":since", "2001"),
        (":bush", ":president", ":usa", ":until", "2009"),
        (":obama", ":president", ":usa", ":since", "2009"),
    }
    assert db.source is not None
    # of the facts, only that of the capital has none; the moon is not of cheese
    assert (
        "omitted are 1 facts without any annotation, and 1 that are annotated" in db.source.notes[0]
    )


@pytest.mark.parametrize("name", [":since", "http://e/since", "<http://e/since>"])
def test_the_value_of_one_annotation_becomes_a_part_of_the_key(name: str) -> None:
    db = presidents(name)
    assert facts(db) == {
        (":bush", ":president", "2001", ":usa"),
        (":obama", ":president", "2009", ":usa"),
    }
    assert db(":bush", ":president", "2001").text == "http://e/usa"


def test_annotations_by_other_predicates_are_counted() -> None:
    # Obama's fact has no :until, nor has that of the capital; Bush's has a :since, and Obama's
    note = note_of(presidents(":until"))
    assert note.endswith(
        "omitted are 2 facts without the annotation <http://e/until>, 1 that are annotated and not "
        "asserted, and 2 other annotations."
    )
    note = note_of(presidents(":since"))
    assert note.endswith("asserted, and 1 other annotation.")
    # said twice of a fact, by two reifiers, it is one annotation
    twice = """PREFIX : <http://e/>
        :a :p :b {| :q 1 ; :r 2 |} {| :q 1 ; :r 2 |} ."""
    note = note_of(presidents(":q", twice))
    assert note.startswith("1 facts of arity 4")
    assert note.endswith("and 1 other annotation.")


def test_order_4_needs_one_annotation_or_its_name() -> None:
    one = PRESIDENTS.replace("; :until 2009", "")
    assert presidents("order-4", one) == presidents(":since", one)
    with pytest.raises(InvalidArgumentError, match=r"got 2 of them.*since> \(2\).*until> \(1\)"):
        presidents("order-4")
    with pytest.raises(InvalidArgumentError, match=r"Did you mean `http://e/until`"):
        presidents("http://e/untill")
    with pytest.raises(InvalidArgumentError, match=r"order-5, or the IRI.*got 'order-6'"):
        presidents("order-6")
    # said of a fact that isn't asserted
    with pytest.raises(InvalidArgumentError, match="No asserted fact is annotated"):
        presidents("order-4", "<< <x:a> <x:p> <x:b> >> <x:q> <x:c> .")
    with pytest.raises(DatabaseFormatError, match="no fact is annotated"):
        presidents("order-5", "<x:a> <x:p> <x:b> .")
    with pytest.raises(DatabaseFormatError, match="nothing is left of it"):
        presidents("drop", "<< <x:a> <x:p> <x:b> >> <x:q> <x:c> .")


REIFIED = """
PREFIX : <http://e/> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
:bush :president :usa . :usa :capital :washington .
[ a rdf:Statement ; rdf:subject :bush ; rdf:predicate :president ; rdf:object :usa ; :since 2001 ] .
[ a owl:Axiom ; owl:annotatedSource :usa ; owl:annotatedProperty :capital ;
  owl:annotatedTarget :washington ; :since 1790 ] .
"""


def test_statements_of_rdf_1_1_and_axioms_of_owl_are_facts_about_facts_too() -> None:
    # of each five triples
    with pytest.warns(AnnotationWarning, match="10 of 12 triples"):
        presidents(None, REIFIED)
    assert presidents("drop", REIFIED).n_triples == 2
    assert facts(presidents("order-4", REIFIED)) == {
        (":bush", ":president", "2001", ":usa"),
        (":usa", ":capital", "1790", ":washington"),
    }
    xml = """<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
    <r:Description r:about="http://e/a"><e:p r:ID="i">b</e:p></r:Description>
    <r:Description r:about="#i" e:since="2001"/></r:RDF>"""
    assert facts(presidents("order-4", xml, "rdfxml")) == {("e:a", "e:p", "2001", "b")}


def test_terms_that_rdflib_hasnt_are_refused_in_words() -> None:
    for text in ('"a"@en--ltr', "<<( <x:a> <x:p> <x:b> )>>"):
        db = presidents("keep", f"<x:a> <x:p> {text} .")
        with pytest.raises(InvalidArgumentError, match=r"rdflib has no .*RDF 1.2.*to_pandas"):
            to_rdflib(db)


@pytest.mark.parametrize(
    "cell",
    [
        "<<( <x:a> <x:p> <x:b> )>> . <x:c> <x:d> <<( <x:a> <x:p> <x:b> )>>",
        "<<( <x:a> <x:p> <x:b> )>> # note",
        "<<( <x:a> <x:p> )>>",
        "<<( <x:a> <x:p> <x:b> )>> )>>",
        "<<( <x:a> <x:p> <<( <x:b> )>>",
        '<<( "a" <x:p> <x:b> )>>',
        "<< <x:a> <x:p> <x:b> >>",
        "<<( <x:a> <x:p> " * 2000 + "<x:b>" + " )>>" * 2000,
        "<<( " + "<x:a> " * 100_000,
        "<<(" + "_:a" * 100_000,
    ],
)
def test_a_cell_with_a_broken_triple_term_is_refused(cell: str) -> None:
    with pytest.raises(InvalidArgumentError, match="one N-Triples term"):
        parse_n3([cell])


def test_a_literal_in_a_triple_term_may_hold_what_looks_like_many() -> None:
    cell = '<<( <x:a> <x:p> "' + "<<( " * 1000 + '" )>>'
    assert parse_n3([cell])[cell].text == cell


def test_code_in_long_strings_is_no_nest() -> None:
    code = "cout << x << y; // it's\n" * 200
    for quote in ("'''", '"""'):
        db: Any = parse_rdf(f"<x:a#b> <x:p> {quote}{code}{quote} . # it's {'<<' * 200}\n", "turtle")
        assert db.objects[0].text == code
