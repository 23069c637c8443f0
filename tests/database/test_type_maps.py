"""Type maps of JSON-LD are read as the nodes that they stand for.

Expected facts are by JSON-LD 1.1 Processing Algorithms, 5.1.2, step 13.8, and were compared with
pyld 3.0. ``garden`` is of the public reports (RDFLib/rdflib#3538).
"""

from __future__ import annotations

import json
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import parse_rdf
from capacity.database.io.rdf.type_maps import without_type_maps
from capacity.errors import DatabaseFormatError

HAS = {"@id": "e:has", "@container": "@type"}
CONTEXT = {
    "e": "http://e/", "has": HAS, "Tree": "e:Tree", "Oak": "e:Oak", "id": "@id", "type": "@type",
    "none": "@none",
}  # fmt: skip
TREE = "<http://e/g> <http://e/has> <http://e/oak> . <http://e/oak> a <http://e/Tree> ."
# a body beside the context, what differs in that, and the facts in Turtle
CASES: dict[str, tuple[Any, Any, str]] = {
    "garden": ({"has": {"Tree": {"@id": "e:oak", "e:height": 12}}}, {},
               f"{TREE} <http://e/oak> <http://e/height> 12 ."),
    "without @id": ({"has": {"Tree": {"e:height": 12}}}, {},
                    "<http://e/g> <http://e/has> [ a <http://e/Tree> ; <http://e/height> 12 ] ."),
    "several": ({"has": {"Tree": [{"@id": "e:oak"}], "e:Any": {"@id": "e:x"}}}, {},
                f"{TREE} <http://e/g> <http://e/has> <http://e/x> . "
                "<http://e/x> a <http://e/Any> ."),
    "a text": ({"has": {"Tree": "http://e/oak"}}, {}, TREE),
    "none": ({"has": {"@none": {"@id": "e:a"}, "none": {"@id": "e:b"}}}, {},
             "<http://e/g> <http://e/has> <http://e/a> , <http://e/b> ."),
    "a type of its own": ({"has": {"Tree": {"@type": "Oak", "@id": "e:oak"}}}, {},
                          f"{TREE} <http://e/oak> a <http://e/Oak> ."),
    "keywords by other names": ({"has": {"Tree": {"id": "e:oak", "type": "Oak"}}}, {},
                                f"{TREE} <http://e/oak> a <http://e/Oak> ."),
    "a set": ({"has": {"Tree": {"@id": "e:oak"}}},
              {"has": {**HAS, "@container": ["@type", "@set"]}}, TREE),
    "one within another": (
        {"has": {"Tree": {"@id": "e:oak", "has": {"Oak": {"@id": "e:in"}}}}}, {},
        f"{TREE} <http://e/oak> <http://e/has> <http://e/in> . <http://e/in> a <http://e/Oak> ."),
    "in the context of a term": (
        {"has": {"Tree": {"@id": "e:oak", "x": {"Oak": {"@id": "e:in"}}}}},
        {"has": {**HAS, "@context": {"x": {"@id": "e:x", "@container": "@type"}}}},
        f"{TREE} <http://e/oak> <http://e/x> <http://e/in> . <http://e/in> a <http://e/Oak> ."),
    "in the context of a type": (
        {"type": "Tree", "x": {"Oak": {"@id": "e:in"}}},
        {"Tree": {"@id": "e:Tree", "@context": {"x": {"@id": "e:x", "@container": "@type"}}}},
        "<http://e/g> a <http://e/Tree> ; <http://e/x> <http://e/in> . "
        "<http://e/in> a <http://e/Oak> ."),
    "a type with a context": (
        {"has": {"Tree": {"@id": "e:oak", "y": 1}}},
        {"Tree": {"@id": "e:Tree", "@context": {"y": "e:y"}}},
        f"{TREE} <http://e/oak> <http://e/y> 1 ."),
    "a node with a context": (
        {"has": {"Tree": {"@id": "e:oak", "@context": {"z": "e:z"}, "z": 1}}}, {},
        f"{TREE} <http://e/oak> <http://e/z> 1 ."),
    "a vocabulary": ({"has": {"T": {"@id": "e:oak"}}}, {"@vocab": "http://e/", "has": {"@container":
                     "@type"}}, TREE.replace("Tree", "T")),
    "JSON": ({"j": {"has": {"Tree": {"@id": "a"}}}}, {"j": {"@id": "e:j", "@type": "@json"}},
             '<http://e/g> <http://e/j> "{\\"has\\":{\\"Tree\\":{\\"@id\\":\\"a\\"}}}"'
             "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON> ."),
    "keys of another map": ({"ids": {"http://e/has": {"p": "q"}, "has": {"p": "r"}}},
                            {"ids": {"@id": "e:ids", "@container": "@id"}, "p": "e:p"},
                            '<http://e/g> <http://e/ids> <http://e/has> , <http://b/has> . '
                            '<http://e/has> <http://e/p> "q" . <http://b/has> <http://e/p> "r" .'),
    "keys of an index": ({"post": {"has": {"@id": "e:a"}}},
                         {"post": {"@id": "e:post", "@container": "@index"}},
                         "<http://e/g> <http://e/post> <http://e/a> ."),
    "a list of nodes": ({"has": [{"Tree": {"@id": "e:oak"}}, "http://e/oak"]}, {"Tree": "e:has"},
                        "<http://e/g> <http://e/has> [ <http://e/has> <http://e/oak> ] , "
                        "<http://e/oak> ."),
    "nothing": ({"has": {"Tree": [None, {"@id": "e:oak"}], "Oak": None}}, {}, TREE),
    "a set within": ({"has": {"Tree": {"@set": [{"@id": "e:oak"}]}}}, {}, TREE),
    "a term with a prefix": ({"e:has": {"Tree": {"@id": "e:oak"}}},
                             {"e:has": {"@container": "@type"}}, TREE),
    "a term that is an IRI": ({"http://e/has": {"Tree": {"@id": "e:oak"}}},
                              {"http://e/has": {"@container": "@type"}}, TREE),
    "forgotten": ({"e:p": {"@context": [None, {"has": "http://e/q"}], "has": "Tree"}}, {},
                  '<http://e/g> <http://e/p> [ <http://e/q> "Tree" ] .'),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_type_map_is_read_as_its_nodes(case: str) -> None:
    body, others, facts = CASES[case]
    document = {"@context": {**CONTEXT, **others}, "@id": "http://e/g", **body}
    db = parse_rdf(json.dumps(document), "jsonld", base="http://b/d", multi="keep")
    assert canonical(db.token_triples, db.tokens) == canonical(
        (expected := parse_rdf(facts, "turtle", multi="keep")).token_triples, expected.tokens
    )


def canonical(rows: Any, tokens: Any) -> set[str]:
    """The facts, with blank nodes by their places in the graph."""
    text = "\n".join(" ".join(tokens[i].n3() for i in row) + " ." for row in rows.tolist())
    dataset = ox.Dataset(ox.parse(text.encode(), format=ox.RdfFormat.N_TRIPLES))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


def test_what_has_no_type_maps_stays_as_it_is() -> None:
    for text in (b'{"@context": {"p": {"@id": "x:p", "@container": ["@list"]}}, "p": [1.0, 2]}',
                 b'{"@context": {"p": "x:p"}, "p": "\\u00e9"}', b"{}"):  # fmt: skip
        assert without_type_maps("a", text) is text


NUMBERS = st.one_of(
    st.integers(-(10**25), 10**25).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1E400", "1e-7", "0", "-0", "1.50", "00"[:1]]),
)


@given(st.lists(NUMBERS, max_size=5), st.text(max_size=8))
def test_numbers_and_texts_are_written_as_they_were(numbers: list[str], text: str) -> None:
    context = json.dumps({"has": HAS, "e": "http://e/"})
    head = f'{{"@context": {context}, "n": [{", ".join(numbers)}], "t": '
    try:
        document = f"{head}{json.dumps(text)}}}".encode()
    except UnicodeEncodeError:
        return
    made = without_type_maps("a", document).decode("utf-8", "surrogatepass")
    read = json.loads(made, parse_int=str, parse_float=str)
    assert read["n"] == numbers
    assert read["t"] == text


def test_a_document_with_a_key_twice_is_left_to_the_parser() -> None:
    head = b'{"@context": {"h": {"@id": "x:h", "@container": "@type"}}, '
    text = head + b'"http://x/p": "1", "http://x/p": "2"}'
    assert without_type_maps("a", text) is text


# the parser reads these as other facts than pyld does, or as literals of a type; pyld refuses those
UNCLEAR: dict[str, tuple[Any, Any, str]] = {
    "a value": ({"has": {"Tree": {"@value": "x"}}}, {}, "must hold nodes"),
    "a list": ({"has": {"Tree": [{"@list": ["x"]}]}}, {}, "must hold nodes"),
    "a number": ({"has": {"Tree": [5]}}, {}, "holds 5 under 'Tree'"),
    "a vocabulary within": ({"has": {"T": {"@context": {"@vocab": "x:"}, "q": 1}}},
                            {"@vocab": "http://e/"}, "'T' of its type map may mean"),
    "a name within": ({"has": {"Tree": [{"@id": "e:a", "@context": {"Tree": "x:T"}}]}}, {},
                      "'Tree' of its type map may mean"),
    "a context by null": ({"has": {"Tree": {"@context": None, "x:q": 1}}}, {}, "may mean"),
    "a vocabulary of the map's term": (
        {"has": {"T": {"@id": "e:a"}}},
        {"@vocab": "x:", "has": {**HAS, "@context": {"@vocab": "y:"}}}, "of the map's term"),
    "a context of the map's term": (
        {"has": {"Tree": {"@id": "e:a", "q": 1}}},
        {"has": {**HAS, "@context": {"q": "x:q"}},
         "Tree": {"@id": "e:Tree", "@context": {"q": "x:r"}}}, "of the map's term"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_the_parser_would_read_as_other_facts_is_refused(case: str) -> None:
    body, others, said = UNCLEAR[case]
    document = {"@context": {**CONTEXT, **others}, "@id": "http://e/g", **body}
    with pytest.raises(DatabaseFormatError, match=f"{said}.*Write the nodes in a list"):
        parse_rdf(json.dumps(document), "jsonld", base="http://b/d")


def test_broken_json_is_named_with_its_line() -> None:
    with pytest.raises(DatabaseFormatError, match="line 2"):
        parse_rdf('{"@context": {"h": {"@id": "x:h", "@container": "@type"}},\n "h": }', "jsonld")
