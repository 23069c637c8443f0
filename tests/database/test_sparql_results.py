"""Results of SPARQL in JSON: any label is a blank node, and a term that RDF hasn't is named."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import Database, load
from capacity.database import Term, from_sparql, write
from capacity.database.io.sparql.results import BrokenResultError, Cells, Result
from capacity.database.terms.nodes import term_from_pyoxigraph, term_to_pyoxigraph
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.testing import rdf_databases
from tests.endpoints import result, says, serving
from tests.tiers import examples

ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
XSD, RDF = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
Cell = dict[str, Any]


def blank(label: str) -> Cell:
    return {"type": "bnode", "value": label}


def of(*rows: tuple[Any, Any, Any]) -> Database:
    with serving(says(result("s p o", *rows))) as server:
        return from_sparql(server.url, ALL, completeness="trust", multi="keep")


# labels


# Virtuoso's, rdf4j's, a number's, one as in Turtle, and what no N-Triples label is; `b1` is both a
# label and a name that another one may get
@pytest.mark.parametrize(
    "label",
    ["nodeID://b10006", "b1", "genid-5d-x", "7", "_:a", "a b", "a.", "-", "", "node/1", "é\u0301",
     "\u0000", "\U0001f600", '"<>'],
)  # fmt: skip
def test_any_string_is_a_label(label: str, tmp_path: Path) -> None:
    # two nodes, the first of which is in two rows: named in the order in which they come
    found = of((blank(label), "x:p", "x:u"), (blank(f"{label}'"), "x:p", blank(label)))
    b0, b1, p = Term("blank", "b0"), Term("blank", "b1"), Term("iri", "x:p")
    assert found == Database.from_triples([(b0, p, Term("iri", "x:u")), (b1, p, b0)])
    write(found, tmp_path / "facts.nt")
    assert load(tmp_path / "facts.nt") == found


@given(st.lists(st.text(), min_size=2, max_size=6, unique=True), st.data())
@settings(max_examples=examples(50), deadline=None)
def test_one_label_is_one_node_and_two_are_two(labels: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[st.integers(0, len(labels) - 1)] * 2), min_size=1))
    body = result("s p o", *((blank(labels[i]), "x:p", blank(labels[j])) for i, j in rows))
    order = list(dict.fromkeys(i for row in rows for i in row))
    cells = Cells()
    for row, numbers in zip(Result(io.BytesIO(body.encode()).read), rows, strict=True):
        names = [f"b{order.index(i)}" for i in numbers]
        assert [cells.term(row[name]).text for name in "so"] == names


def test_a_label_in_a_triple_term_is_that_of_the_answer() -> None:
    triple = {"type": "triple", "value": {
        "subject": blank("nodeID://b1"), "predicate": {"type": "uri", "value": "x:p"},
        "object": {"type": "triple", "value": {
            "subject": {"type": "uri", "value": "x:a"},
            "predicate": {"type": "uri", "value": "x:p"}, "object": blank("nodeID://b2")}},
    }}  # fmt: skip
    found = of((blank("nodeID://b2"), "x:p", triple))
    assert found.objects[0].text == "<<( _:b1 <x:p> <<( <x:a> <x:p> _:b0 )>> )>>"


def test_labels_of_two_pages_are_two_nodes() -> None:
    # the first page's node isn't the second one's, whatever their labels: no row comes twice
    row = result("s p o", (blank("nodeID://b1"), "x:p", "x:u"))
    with (
        serving(says(row), says(row)) as server,
        pytest.raises(OSError, match="blank nodes, whose names are others in each page"),
    ):
        from_sparql(server.url, ALL, completeness="trust", page=1)


# terms


@pytest.mark.parametrize(
    ("cell", "term"),
    [
        ({"type": "typed-literal", "value": "1", "datatype": f"{XSD}integer"},
         Term("literal", "1", f"{XSD}integer")),
        ({"type": "literal", "value": "a", "xml:lang": "en-GB"}, Term("literal", "a", "", "en-gb")),
        ({"type": "literal", "value": "a", "xml:lang": "en", "datatype": f"{RDF}langString"},
         Term("literal", "a", "", "en")),
        ({"type": "literal", "value": "a", "xml:lang": "he", "its:dir": "rtl"},
         Term("literal", "a", "", "he--rtl")),
        # what is empty, or null, says nothing
        ({"type": "literal", "value": "", "xml:lang": "", "datatype": None}, Term("literal", "")),
    ],
)  # fmt: skip
def test_literals_are_those_of_the_format(cell: Cell, term: Term) -> None:
    assert of(("x:a", "x:p", cell)).objects[0] == term


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        *((({"type": "uri", "value": iri}, f"RDF has no IRI '{iri}'"))
          for iri in ("http://e.example/a b", "x:a|b", "x:{a}", "x:%zz", "relative", "")),
        ({"type": "literal", "value": "a", "xml:lang": "zh_TW"}, "no literal 'a'@zh_TW"),
        ({"type": "literal", "value": "a", "datatype": "no iri"}, "no literal 'a'^^<no iri>"),
        ({"type": "literal", "value": "\ud800"}, "no literal '\\ud800'"),
        ({"type": "literal", "value": "a", "datatype": f"{RDF}langString"}, "it needs a language"),
        ({"type": "literal", "value": "a", "its:dir": "ltr"}, "it needs a language"),
        ({"type": "literal", "value": "a", "xml:lang": "en", "its:dir": "up"}, "base direction"),
        ({"type": "literal", "value": "a", "xml:lang": "en", "datatype": f"{XSD}string"},
         "another datatype"),
        ({"type": "literal", "value": "a", "xml:lang": 5}, "no literal 'a'"),
        ({"type": "literal", "value": 5}, "must be a string"),
        ({"type": "literal"}, "must be a string"),
        ({"type": "literal", "value": "a", "lang": "en"}, "has no key 'lang'"),
        ({"type": "variable", "value": "a"}, "no terms of the type 'variable'"),
        ({"value": "a"}, "an object with a type"),
        ({}, "an object with a type"),
        ({"type": "triple", "value": {"subject": 1}}, "a subject, a predicate and an object"),
        ({"type": "triple", "value": {"subject": {"type": "literal", "value": "a"},
          "predicate": {"type": "uri", "value": "x:p"}, "object": {"type": "uri", "value": "x:u"}}},
         "subject of a triple term must be an IRI or a blank node"),
    ],
)  # fmt: skip
def test_a_term_that_rdf_has_not_is_named_with_its_row(cell: Cell, said: str) -> None:
    row = ("x:a", "x:p", "x:u")
    with (
        serving(says(result("s p o", row, row, ("x:a", "x:p", cell)))) as server,
        pytest.raises(DatabaseFormatError) as error,
    ):
        from_sparql(server.url, ALL, completeness="trust", multi="keep")
    assert error.value.reason.startswith("?o of row 2, from 0, can't be kept: ")
    assert said in error.value.reason
    # the answer is whole, and asking again doesn't help
    assert "whole" not in str(error.value)
    assert "sk again" not in str(error.value)
    assert len(server.asked) == 1


# the text


def in_pieces(data: bytes, size: int) -> Callable[[int], bytes]:
    stream = io.BytesIO(data)
    return lambda n: stream.read(min(n, size))


@given(rdf_databases(), st.integers(1, 50))
@settings(max_examples=examples(50), deadline=None)
def test_terms_are_those_that_another_parser_reads(db: Database, size: int) -> None:
    rows: list[Any] = [
        [term_to_pyoxigraph(db.tokens[i]) for i in row] for row in db.token_tuples.tolist()
    ]
    store = ox.Store()
    store.extend(ox.Quad(*row) for row in rows)
    answer: Any = store.query(ALL)
    body = answer.serialize(format=ox.QueryResultsFormat.JSON)
    by_other: Any = ox.parse_query_results(io.BytesIO(body), ox.QueryResultsFormat.JSON)
    expected = [
        [node if isinstance(node, ox.BlankNode) else term_from_pyoxigraph(node) for node in row]
        for row in by_other
    ]
    cells, names = Cells(), {}
    found = [[cells.term(row[name]) for name in "spo"] for row in Result(in_pieces(body, size))]
    for row in expected:
        for i, node in enumerate(row):
            if isinstance(node, ox.BlankNode):
                row[i] = Term("blank", names.setdefault(node, f"b{len(names)}"))
    assert found == expected


ROW = {name: {"type": "uri", "value": f"x:{name}"} for name in "spo"}
HEAD = {"vars": ["s", "p", "o"], "link": []}
LAYOUTS: dict[str, Any] = {
    "as it is mostly": json.dumps({"head": HEAD, "results": {"bindings": [ROW, ROW]}}),
    "the head last": json.dumps({"results": {"bindings": [ROW, ROW]}, "head": HEAD}),
    "keys of other versions": json.dumps({
        "x": [1.5e3, -12, None, True, {"a": "[{"}], "head": HEAD,
        "results": {"distinct": False, "ordered": True, "bindings": [ROW, ROW], "y": 10}, "z": 3,
    }),
    "with spaces": json.dumps({"head": HEAD, "results": {"bindings": [ROW, ROW]}}, indent=3),
    "marked as UTF-8": "\ufeff" + json.dumps({"head": HEAD, "results": {"bindings": [ROW, ROW]}}),
}  # fmt: skip


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_rows_are_the_same_in_any_pieces_and_none_of_a_part(text: str) -> None:
    data = text.encode()
    for size in (1, 7, len(data)):
        found = Result(in_pieces(data, size))
        assert list(found) == [ROW, ROW]
        assert found.columns == ["s", "p", "o"]
    for end in range(len(data.rstrip())):
        with pytest.raises(BrokenResultError):
            list(Result(in_pieces(data[:end], 64)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "expecting '{'"),
        ('{"head":{"vars":["s"]},"results":[]}', "expecting '{'"),
        ('{"head":{"vars":["s"]},"results":{"bindings":{}}}', "expecting '['"),
        ('{"head":{"vars":["s"]},"results":{"bindings":[5]}}', "a row must be an object"),
        ('{"head":{"vars":"s"},"results":{"bindings":[]}}', "'vars' must be a list"),
        ('{"head":{"vars":["s"]},"results":{}}', "'results' key, with its head"),
        ('{"results":{"bindings":[]}}', "'results' key, with its head"),
        ('{"head":{"vars":["s"]},"results":{"bindings":[]}} more', "continues after its end"),
        # of two values of one key, none is the right one
        ('{"head":{"vars":["s"]},"results":{"bindings":[{"s":1,"s":2}]}}', "a key twice"),
        ('{"results":{"bindings":[],"bindings":[]}}', "each once"),
        ('{"head":{"vars":["s"]},"x":NaN}', "no NaN"),
        ('{"head" {"vars":["s"]}}', "expecting ':'"),
        # in words that Python changes
        ('{"head":{"vars":["s"],},"results":{"bindings":[]}}', ""),
        ('{"head":{"vars":["s"]},"results":{"bindings":[{"s":"a\tb"}]}}', "ontrol character"),
    ],
)  # fmt: skip
def test_other_json_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BrokenResultError) as error:
        list(Result(io.BytesIO(text.encode()).read))
    assert said in str(error.value)


def test_a_broken_beginning_is_not_read_to_the_end() -> None:
    # of a stream without an end
    asked: list[int] = []

    def read(n: int) -> bytes:
        asked.append(n)
        return b'{"head":{"vars" ["s"]}' + b" " * 10_000

    with pytest.raises(BrokenResultError):
        list(Result(read))
    assert len(asked) == 1


def test_a_query_without_variables_has_none_to_name() -> None:
    query = "CONSTRUCT { <x:a> <x:p> <x:b> } WHERE { <x:a> <x:p> <x:b> }"
    with pytest.raises(InvalidArgumentError, match="It has none"):
        from_sparql("http://127.0.0.1:9/", query, parameters={"land": "x"})
