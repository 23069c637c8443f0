"""Queries of SPARQL: their parts, and parameters that never leave their place."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Term
from capacity.database.io.sparql.query_parameters import bound, written_term
from capacity.database.io.sparql.query_parts import read_query, terminals
from capacity.database.terms.nodes import term_from_pyoxigraph, term_to_pyoxigraph
from capacity.errors import InvalidArgumentError, InvalidTypeError
from tests.tiers import examples

HOSTILE = [
    "> } DROP ALL #",
    '" } ; DROP ALL #',
    "' } DROP ALL #",
    '""" } DROP ALL #',
    "a\nb } #\r\nDROP ALL",
    "\\",
    '\\" } DROP ALL #',
    "\\u0022 } DROP ALL #",
    "\\\\u0022 } DROP ALL #",
    "\\U00000022 } DROP ALL #",
    "\\u005Cu0022 } DROP ALL #",
    "{{{}}}<>?x $x",
    "\0\x7f\u0085\u2028\ufeff",
]
# from what can begin or end a terminal, and escapes
_TRICKY = st.text(st.sampled_from("\"'\\uU0022<>{}()#?$x \n\r\t\0@^.;:"), max_size=12)
_TEXTS = st.one_of(st.sampled_from(HOSTILE), _TRICKY, st.text(st.characters(codec="utf-8")))


def asked(query: str) -> list[tuple[str, ...]]:
    """The rows that a real engine gives, over no facts."""
    found = ox.Store().query(query)
    assert isinstance(found, ox.QuerySolutions)
    return [tuple(str(node) for node in row) for row in found]


@given(_TEXTS)
@settings(max_examples=examples(1000))
def test_a_literal_comes_back_as_it_was_bound_and_changes_nothing_else(text: str) -> None:
    query = 'SELECT ?o ?end { BIND(?x AS ?o) BIND("end" AS ?end) }'
    made = bound(query, {"x": text})
    # the same terminals, with one string in the place of the variable
    before, after = terminals_of(query), terminals_of(made)
    at = before.index("?x")
    assert [*after[:at], "?x", *after[at + 1 :]] == before
    found = ox.Store().query(made)
    assert isinstance(found, ox.QuerySolutions)
    (row,) = found
    assert row["o"] == ox.Literal(text)
    assert row["end"] == ox.Literal("end")


def terminals_of(query: str) -> list[str]:
    """Terminals as an endpoint reads them that replaces escapes of code points first."""
    return [token.text for token in terminals(unescaped(query))]


def unescaped(query: str) -> str:
    """Replace escapes as SPARQL 1.1, section 19.2, has it: before all else."""
    made, at = "", 0
    while at < len(query):
        length = {"\\u": 4, "\\U": 8}.get(query[at : at + 2], 0)
        digits = query[at + 2 : at + 2 + length]
        if length and len(digits) == length and set(digits) <= set(string.hexdigits):
            made, at = made + chr(int(digits, 16)), at + 2 + length
        else:
            made, at = made + query[at], at + 1
    return made


@given(_TEXTS)
@settings(max_examples=examples(1000))
def test_a_backslash_of_a_value_is_never_an_escape_of_a_code_point(text: str) -> None:
    # read by an endpoint that replaces escapes first, as 19.2 has it, it is the same literal
    written = unescaped(written_term("x", text))
    assert terminals_of(written_term("x", text)) == [written]
    assert written[0] == written[-1] == '"'
    # and by one that knows them in strings alone
    (row,) = ox.Store().query(f"SELECT ({written_term('x', text)} AS ?o) {{}}")  # type: ignore[misc]
    assert row["o"].value == text


@pytest.mark.parametrize("iri", HOSTILE)
def test_a_hostile_iri_is_refused(iri: str) -> None:
    rdflib = pytest.importorskip("rdflib")
    with pytest.raises(InvalidArgumentError, match="IRI must be absolute"):
        Term("iri", f"http://x/{iri}")
    # what rdflib lets in
    with pytest.raises(InvalidArgumentError, match="must be a valid IRI or literal"):
        bound("SELECT ?s ?o { ?s ?x ?o }", {"x": rdflib.URIRef(f"http://x/{iri}")})


@pytest.mark.parametrize(
    "term",
    [lambda _: Term("literal", "x", language="en } DROP ALL #"),
     lambda _: Term("literal", "x", datatype="x:t> } DROP ALL #"),
     lambda _: Term("iri", "not absolute"),
     lambda rdflib: rdflib.Literal("x", datatype="x:t> } DROP ALL #"),
     lambda rdflib: rdflib.URIRef("not absolute"),
     lambda _: "\ud800"],
)  # fmt: skip
def test_a_wrong_term_is_refused(term: Callable[[Any], object]) -> None:
    rdflib = pytest.importorskip("rdflib")
    with pytest.raises(InvalidArgumentError, match="must be"):
        bound("SELECT ?s ?o { ?s ?x ?o }", {"x": term(rdflib)})


@pytest.mark.parametrize("term", [Term("blank", "b"), Term("triple", "<<( <x:s> <x:p> <x:o> )>>")])
def test_only_iris_and_literals_are_bound(term: Term) -> None:
    with pytest.raises(InvalidArgumentError, match="must be an IRI or a literal"):
        bound("SELECT ?s ?o { ?s ?x ?o }", {"x": term})


@pytest.mark.parametrize("term", [Term("label", "Oslo"), Term("set", "a")])
def test_labels_have_no_form_in_a_query(term: Term) -> None:
    with pytest.raises(InvalidArgumentError):
        bound("SELECT ?s ?o { ?s ?x ?o }", {"x": term})


@pytest.mark.parametrize("value", [None, b"x", ["x"], object()])
def test_values_of_other_types_are_refused(value: object) -> None:
    with pytest.raises(InvalidTypeError, match="must be a Term, a str, a number or a node"):
        bound("SELECT ?s ?o { ?s ?x ?o }", {"x": value})


def test_terms_of_all_libraries_are_bound() -> None:
    rdflib = pytest.importorskip("rdflib")
    query = "SELECT (?x AS ?o) (1 AS ?i) {}"
    for value, wanted in [
        (rdflib.Literal("chat", lang="fr"), '"chat"@fr'),
        (ox.Literal("chat", language="fr"), '"chat"@fr'),
        (Term("literal", "chat", language="fr"), '"chat"@fr'),
        (rdflib.URIRef("x:a"), "<x:a>"),
        (7, '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        (True, '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'),
        (0.5, '"0.5"^^<http://www.w3.org/2001/XMLSchema#double>'),
    ]:
        assert asked(bound(query, {"x": value}))[0][0] == wanted


def test_a_name_that_the_query_has_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got 'contry'\. Did you mean `country`"):
        bound("SELECT ?s ?o { ?s <x:in> ?country ; <x:p> ?o }", {"contry": "x"})
    # a variable within a string, a comment or an IRI is none
    with pytest.raises(InvalidArgumentError, match=r"got 'x'\. It has o, s"):
        bound("SELECT ?s ?o { ?s <x:?x> ?o, \"?x\", '''?x''' } # ?x", {"x": "y"})


def test_only_the_variables_are_replaced() -> None:
    query = (
        'SELECT ?s ?x { ?s <x:?x> ?x , "?x" , """a"?x""" , ex:p\\?x ; ex:q?x . '
        "FILTER(?y<?x && ?xx != $x) } # ?x"
    )
    made = bound(query, {"x": 1})
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert made == (
        f'SELECT ?s  ({one} AS ?x)  {{ ?s <x:?x>  {one}  , "?x" , """a"?x""" , ex:p\\?x ; '
        f"ex:q {one}  . FILTER(?y< {one}  && ?xx !=  {one} ) }} # ?x"
    )


@pytest.mark.parametrize(
    "query",
    ["SELECT ?s ?o { ?s <x:p> ?o BIND(1 AS ?x) }",
     "SELECT ?s (1 AS ?x) { ?s <x:p> ?o }",
     "SELECT ?s ?o { VALUES ?x { 1 } ?s ?x ?o }",
     "SELECT ?s ?o { ?s ?x ?o } VALUES (?s ?x) { (1 2) }"],
)  # fmt: skip
def test_a_variable_that_the_query_binds_is_no_parameter(query: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must not be bound by the query itself"):
        bound(query, {"x": 1})


def test_a_parameter_holds_in_inner_groups_and_columns() -> None:
    # a block of VALUES would leave the inner FILTER without ?x, and so without rows
    query = """SELECT ?s ?x { SELECT ?s ?x { { SELECT ?x { ?x_1 ?x_2 ?x_3 } }
        UNION { VALUES ?s { 1 2 3 } FILTER(?s > ?x) } } }"""
    assert [row[0][1] for row in asked(bound(query, {"x": 1}))] == ["2", "3"]
    assert {row[1] for row in asked(bound(query, {"x": 1}))} == {
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    }


def test_escapes_of_code_points_are_refused_in_queries() -> None:
    # one endpoint ends the string at \u0022, another doesn't
    with pytest.raises(InvalidArgumentError, match="Write the character"):
        bound('SELECT ?s ?o { ?s ?p ?o FILTER(?o != "\\u0022") }', None)


@pytest.mark.parametrize(
    ("query", "said"),
    [("ASK { ?s ?p ?o }", "got ASK"),
     ("DESCRIBE <x:a>", "got a DESCRIBE"),
     ("DROP ALL", "got an update, DROP"),
     ("PREFIX x: <x:> INSERT DATA { x:a x:p x:o }", "got an update, INSERT"),
     ("", "got no form"),
     ("PREFIX", "got no form"),
     ("SELECT * { ?s ?p ?o }", r"got SELECT \*"),
     ("SELECT ?s { ?s ?p ?o }", "got 1 columns"),
     ("SELECT COUNT(*) { ?s ?p ?o }", "got 0 columns"),
     ("SELECT (COUNT(*)) ?s { ?s ?p ?o }", r"needs a name: \(\.\.\. AS \?o\)"),
     ("SELECT ?s ?p ?s { ?s ?p ?o }", "must differ"),
     ("SELECT ?s ?p ?o", "without a pattern"),
     ("SELECT ?s (1", "isn't closed"),
     ('SELECT ?s ?o { ?s ?p "o }', "a string that isn't closed"),
     ("SELECT ?s ?o \\", "a backslash"),
     ("SELECT ?s ?o { \ud800 }", "half of a surrogate pair")],
)  # fmt: skip
def test_other_queries_are_refused_with_the_reason(query: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        read_query(bound(query, None))


def test_a_query_must_be_text() -> None:
    with pytest.raises(InvalidTypeError, match="`query` must be a str"):
        bound(b"SELECT ?s ?o { ?s ?p ?o }", None)  # type: ignore[arg-type]


QUERIES = [
    "SELECT ?s ?p ?o { ?s ?p ?o }",
    "# SELECT ?x\nPREFIX x: <x:>\nPREFIX h: <x:#>\nBASE <x:>\n"
    "SELECT DISTINCT ?s (x:p AS ?p) ?o # }\n"
    "WHERE { ?s x:p ?o } # end",
    "select reduced $s ((1 + (2)) as ?p) ?o { ?s <x:p> ?o } order by ?s limit 2 offset 1",
    "SELECT ?s ?p ?o { { SELECT ?s { ?s ?x ?y } } ?s ?p ?o } VALUES ?s { <x:a> }",
    "SELECT ?s ?p (COUNT(*) AS ?o) { ?s ?p ?x } GROUP BY ?s ?p HAVING (COUNT(*) > 0)",
    "SELECT ?s ?p ?o FROM <x:g>\n#c\nFROM NAMED <x:h> WHERE { ?s ?p ?o }",
    "PREFIX x: <x:> SELECT ?s ?p ?o { ?s ?p ?o . FILTER(STR(?s)<'x:b'&&?o!=<x:z>) }",
]


def store() -> ox.Store:
    """Twelve triples in the default graph, and one in each of two others."""
    made = ox.Store()
    node = ox.NamedNode
    for s in "abcd":
        for o in "uvw":
            made.add(ox.Quad(node(f"x:{s}"), node("x:p"), node(f"x:{o}")))
    for g in "gh":
        made.add(ox.Quad(node("x:a"), node("x:q"), node("x:u"), node(f"x:{g}")))
    return made


@pytest.mark.parametrize("text", QUERIES)
def test_pages_and_counts_are_those_of_the_query_itself(text: str) -> None:
    query, facts = read_query(text), store()
    rows = [tuple(map(str, row)) for row in facts.query(text)]  # type: ignore[union-attr]
    assert rows
    assert query.columns == ("s", "p", "o")

    def counted(distinct: bool) -> int:
        (row,) = facts.query(query.counted(distinct=distinct))  # type: ignore[misc]
        return int(row["n"].value)

    assert counted(False) == len(rows)
    assert counted(True) == len(set(rows))
    paged = [
        tuple(map(str, row))
        for start in range(0, len(rows), 5)
        for row in facts.query(query.page(5, start))  # type: ignore[union-attr]
    ]
    # pages are of different rows
    assert sorted(paged) == sorted(set(rows))
    # the lines of messages are those of the author
    assert query.counted(distinct=False).count("\n") == text.count("\n") + 1


@given(st.text(st.characters(codec="utf-8"), max_size=40))
@settings(max_examples=examples(300))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    for query in (text, f"SELECT ?s ?p ?o {{ {text}", f"SELECT {text} {{ ?s ?p ?o }}"):
        try:
            read_query(query)
        except InvalidArgumentError:
            continue


def test_terms_go_to_nodes_and_back() -> None:
    # what a parameter means is the term itself
    term = Term("literal", "a\\u0022", language="en")
    assert term_from_pyoxigraph(term_to_pyoxigraph(term)) == term
