"""Any set of RDF terms comes back from every format that can hold it."""

import csv
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import (
    Database,
    Term,
    from_networkx,
    from_pandas,
    from_rdflib,
    label,
    load,
    parse_rdf,
    read_table,
    to_networkx,
    to_pandas,
    to_rdflib,
    write_tsv,
)
from capacity.database.terms.nodes import parse_n3, term_from_pyoxigraph, term_to_pyoxigraph
from capacity.errors import InvalidArgumentError
from tests.tiers import examples

# every character that UTF-8 has a form of: controls, NUL, the ends of planes, both sides of the
# surrogates
CHARACTERS = st.one_of(
    st.sampled_from(
        "\0\t\n\r\x1b\x7f\x85\u2028\ud7ff\ue000\ufeff\ufffe\uffff\U0010ffff\"'\\<>{}^`"
    ),
    st.characters(exclude_categories=["Cs"]),
)
TEXT = st.text(CHARACTERS, max_size=8)
# and those that XML has a form of
XML_TEXT = st.text(
    CHARACTERS.filter(lambda c: c in "\t\n" or (c >= " " and c not in "\ufffe\uffff\x7f")),
    max_size=8,
)
# RFC 3987 allows some more
IRIS = st.text(
    st.characters(
        categories=["L", "Nd"], max_codepoint=0xDFFFD, include_characters="/?=&.-_~:@+'()"
    ),
    max_size=4,
).map(lambda text: Term("iri", f"http://e/p{text}"))
PREDICATES = st.sampled_from("pqr").map(lambda name: Term("iri", f"http://e/{name}"))
BLANKS = st.sampled_from(["b0", "b1", "x", "a.b-c", "_9"]).map(lambda name: Term("blank", name))
LANGUAGES = st.sampled_from(["en", "fr-be", "zh-hant-tw", "en--ltr", "ar--rtl"])
DATATYPES = st.sampled_from(["integer", "decimal", "dateTime", "token"]).map(
    lambda name: f"http://www.w3.org/2001/XMLSchema#{name}"
)


def literals(text: st.SearchStrategy[str]) -> st.SearchStrategy[Term]:
    return st.one_of(
        text.map(lambda t: Term("literal", t)),
        st.builds(lambda t, tag: Term("literal", t, language=tag), text, LANGUAGES),
        st.builds(lambda t, type: Term("literal", t, type), text, DATATYPES),
    )


def triple_terms(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.builds(
        lambda s, p, o: Term("triple", f"<<( {s} {p} {o} )>>"),
        st.one_of(IRIS, BLANKS), IRIS, inner,
    )  # fmt: skip


TERMS = st.recursive(st.one_of(IRIS, BLANKS, literals(TEXT)), triple_terms, max_leaves=3)


def databases(objects: st.SearchStrategy[Term]) -> st.SearchStrategy[Database]:
    rows = st.lists(st.tuples(st.one_of(IRIS, BLANKS), PREDICATES, objects), min_size=1, max_size=5)
    return rows.map(lambda rows: Database.from_triples(rows, multi="keep"))


def canonical(db: Database) -> list[str]:
    """Lines of the facts that don't depend on the names of blank nodes."""
    nodes: Any = [term_to_pyoxigraph(token) for token in db.tokens]
    dataset = ox.Dataset(ox.Quad(*(nodes[i] for i in row)) for row in db.token_triples)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return sorted(map(str, dataset))


def read_again(text: str | bytes, format: str) -> Database:
    return parse_rdf(text, format, multi="keep", annotations_of_facts="keep")


@given(TERMS)
@settings(max_examples=examples(500))
def test_a_term_is_itself_in_n_triples_and_in_the_parser(term: Term) -> None:
    assert parse_n3([term.n3()]) == {term.n3(): term}
    assert term_from_pyoxigraph(term_to_pyoxigraph(term)) == term


@given(databases(TERMS))
@settings(max_examples=examples(250))
def test_any_terms_come_back_from_every_format_like_turtle(db: Database) -> None:
    lines = "".join(f"{' '.join(db.tokens[i].n3() for i in row)} .\n" for row in db.token_triples)
    for format in ("ntriples", "nquads", "turtle", "trig"):
        assert canonical(read_again(lines, format)) == canonical(db)
    nodes: Any = [term_to_pyoxigraph(token) for token in db.tokens]
    quads = [ox.Quad(*(nodes[i] for i in row)) for row in db.token_triples]
    for format, syntax in (
        ("ntriples", ox.RdfFormat.N_TRIPLES),
        ("turtle", ox.RdfFormat.TURTLE),
        ("trig", ox.RdfFormat.TRIG),
    ):
        text = ox.serialize(quads, format=syntax)
        assert text is not None
        assert canonical(read_again(text, format)) == canonical(db)


@given(databases(st.one_of(IRIS, literals(TEXT))))
@settings(max_examples=examples(250))
def test_any_terms_without_triples_come_back_from_json(db: Database) -> None:
    nodes: Any = [term_to_pyoxigraph(token) for token in db.tokens]
    quads = [ox.Quad(*(nodes[i] for i in row)) for row in db.token_triples]
    text = ox.serialize(quads, format=ox.RdfFormat.JSON_LD)
    assert text is not None
    assert canonical(read_again(text, "jsonld")) == canonical(db)


@given(databases(st.one_of(IRIS, BLANKS, literals(XML_TEXT))))
@settings(max_examples=examples(250))
def test_any_terms_that_xml_can_hold_come_back_from_it(db: Database) -> None:
    nodes: Any = [term_to_pyoxigraph(token) for token in db.tokens]
    quads = [ox.Quad(*(nodes[i] for i in row)) for row in db.token_triples]
    text = ox.serialize(quads, format=ox.RdfFormat.RDF_XML)
    assert text is not None
    assert canonical(read_again(text, "rdfxml")) == canonical(db)


@pytest.mark.slow
@given(db=databases(TERMS))
@settings(max_examples=examples(250))
def test_any_terms_come_back_from_tables_and_networkx(
    db: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    frame = to_pandas(db, terms="n3")
    assert from_pandas(frame, terms="n3", multi="keep") == db
    assert from_networkx(to_networkx(db), multi="keep") == db
    write_tsv(db, folder / "facts.tsv")
    assert read_table(folder / "facts.tsv", terms="n3", multi="keep") == db
    frame.to_csv(folder / "facts.csv", index=False)
    assert read_table(folder / "facts.csv", terms="n3", multi="keep") == db


@given(db=databases(st.one_of(IRIS, BLANKS, literals(TEXT))))
@settings(max_examples=examples(250))
def test_any_terms_that_rdflib_has_come_back_from_it(db: Database) -> None:
    if any("--" in term.language for term in db.objects):
        with pytest.raises(InvalidArgumentError, match="base direction"):
            to_rdflib(db)
    else:
        assert from_rdflib(to_rdflib(db), multi="keep") == db


@given(rows=st.lists(st.tuples(*[TEXT.map(label)] * 3), min_size=1, max_size=5))
@settings(max_examples=examples(250))
def test_any_labels_come_back_from_csv(
    rows: list[tuple[Term, Term, Term]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    db = Database.from_triples(rows, multi="keep")
    path = tmp_path_factory.mktemp("labels") / "facts.csv"
    # what `write_tsv` advises where it can't write a label
    to_pandas(db).to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    # a fact of nothing but empty labels is read when it is said to be one
    blank = any(not any(term.text for term in row) for row in rows)
    assert load(path, multi="keep", table="long" if blank else None) == db
