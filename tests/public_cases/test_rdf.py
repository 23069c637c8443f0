"""Inputs of public reports about other programs' readers of RDF, each with what is right.

A case is named by the report that it comes from. The right value is that of the recommendation, of
rdflib 7.6, of pyld 3.3, or counted by hand, as `cases.toml` and the line beside it say.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capacity import Database, load
from capacity.database import Term, from_sparql, parse_rdf, write
from capacity.errors import DatabaseFormatError, EndpointError
from tests.database.test_from_sparql import capped
from tests.database.ways import in_each_way
from tests.endpoints import result, says, serving

RDF, XSD = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2001/XMLSchema#"
E = "http://e/"


def facts(*lines: str) -> Database:
    """The database of some lines of N-Triples without their final dots."""
    return parse_rdf("".join(f"{line} .\n" for line in lines), "ntriples", multi="keep")


def xml(body: str, *, root: str = "", before: str = "") -> str:
    return f'{before}<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{E}" {root}>{body}</rdf:RDF>'


def of_xml(text: str, base: str | None = None) -> Database:
    return parse_rdf(text, "rdfxml", base=base, multi="keep")


# JSON-LD


def test_a_type_map_of_nodes_with_ids() -> None:
    # RDFLib/rdflib#3538; pyld: three facts
    text = {
        "@context": {"@vocab": E, "has": {"@container": "@type"}},
        "@id": f"{E}garden",
        "has": {"Tree": {"@id": f"{E}oak", "height": 12}},
    }
    assert parse_rdf(json.dumps(text), "jsonld", multi="keep") == facts(
        f"<{E}garden> <{E}has> <{E}oak>",
        f"<{E}oak> <{RDF}type> <{E}Tree>",
        f'<{E}oak> <{E}height> "12"^^<{XSD}integer>',
    )


def test_values_that_are_no_strings_under_a_type_of_ids() -> None:
    # w3c/json-ld-syntax#405; pyld: numbers and booleans stay literals, strings are IRIs
    text = {
        "@context": {"@vocab": E, "p": {"@type": "@id"}},
        "@id": f"{E}s",
        "p": [1, 2.5, True, "http://x/y", {"@id": "http://x/z"}],
    }
    assert parse_rdf(json.dumps(text), "jsonld", multi="keep") == facts(
        f'<{E}s> <{E}p> "1"^^<{XSD}integer>',
        f'<{E}s> <{E}p> "2.5E0"^^<{XSD}double>',
        f'<{E}s> <{E}p> "true"^^<{XSD}boolean>',
        f"<{E}s> <{E}p> <http://x/y>",
        f"<{E}s> <{E}p> <http://x/z>",
    )


# N-Triples, N-Quads, Turtle


def test_an_escaped_apostrophe_is_one() -> None:
    # SWI-Prolog/packages-semweb#82, dajobe/raptor#77; N-Triples 1.1, ECHAR
    found = in_each_way(lambda: parse_rdf('<x:s> <x:p> "it\\\'s" .\n', "ntriples"))
    assert found == [facts('<x:s> <x:p> "it\'s"')] * 3


@pytest.mark.parametrize("escape", ["\\uD83D", "\\uD83D\\uDE00", "\\U0000D83D"])
def test_a_surrogate_by_an_escape_is_refused(escape: str) -> None:
    # rdfjs/N3.js#593; an escape is of a character, and Unicode has none there
    for found in in_each_way(lambda: parse_rdf(f'\n<x:s> <x:p> "{escape}" .\n', "ntriples")):
        assert isinstance(found, tuple)
        assert found[0] is DatabaseFormatError
        assert "line 2" in found[1]


def test_a_semicolon_instead_of_a_predicate_is_refused() -> None:
    # rdfjs/N3.js#116
    with pytest.raises(DatabaseFormatError, match="line 1"):
        parse_rdf("<x:s> ; <x:p> <x:o> .\n", "turtle")


@pytest.mark.parametrize("between", "|\u2028\u0085\x0b")
def test_characters_that_end_no_line_of_n_quads(between: str) -> None:
    # lanthaler/JsonLD#63; a line ends by CR or LF alone
    text = f'<x:s> <x:p> "a{between}b" <x:g> .\n<x:s> <x:p> "c" <x:g> .\n'
    found = in_each_way(lambda: parse_rdf(text, "nquads", graph="x:g", multi="keep"))
    assert found == [facts(f'<x:s> <x:p> "a{between}b"', '<x:s> <x:p> "c"')] * 3


def test_n_triples_under_another_name_with_lines_twice(tmp_path: Path) -> None:
    # mniepert/mmkb#7; three lines, two facts
    (tmp_path / "a.txt").write_text("<x:s> <x:p> <x:o> .\n<x:s> <x:q> <x:o> .\n" * 2)
    assert load(tmp_path / "a.txt") == facts("<x:s> <x:p> <x:o>", "<x:s> <x:q> <x:o>")


# RDF/XML


def test_a_node_id_that_begins_with_a_digit_is_refused() -> None:
    # RDFLib/rdflib#2637, #1050; RDF 1.1 XML, 7.2.34: an NCName, which begins with no digit
    with pytest.raises(DatabaseFormatError, match="7f3a"):
        of_xml(xml('<e:T rdf:nodeID="7f3a"/>'))


def test_entities_in_a_base() -> None:
    # rdfjs/rdfxml-streaming-parser.js#10; by hand
    text = xml(
        '<e:T rdf:about="#a"><e:p rdf:resource="#b"/></e:T><e:T rdf:about="">'
        '<e:p rdf:resource="../d"/></e:T>',
        root='xml:base="&base;c"',
        before=f'<!DOCTYPE rdf:RDF [<!ENTITY base "{E}b/">]>',
    )
    assert of_xml(text) == facts(
        f"<{E}b/c#a> <{RDF}type> <{E}T>",
        f"<{E}b/c#a> <{E}p> <{E}b/c#b>",
        f"<{E}b/c> <{RDF}type> <{E}T>",
        f"<{E}b/c> <{E}p> <{E}d>",
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("see <![CDATA[a<b]]> here", "see a<b here"),
        ("<![CDATA[a<b]]>", "a<b"),
        ("one<!-- c -->two", "onetwo"),
        ("one<?pi c?>two", "onetwo"),
    ],
)
def test_text_in_pieces_is_one_literal(text: str, value: str) -> None:
    # ruby-rdf/rdf-rdfxml#37, rdfjs/rdfxml-streaming-parser.js#52; XML 1.0, 2.4 to 2.7
    found = of_xml(xml(f'<rdf:Description rdf:about="x:s"><e:p>{text}</e:p></rdf:Description>'))
    assert found == facts(f'<x:s> <{E}p> "{value}"')


def test_an_empty_language_is_none() -> None:
    # shellac/java-rdfa#21, w3c/epubcheck#1209; XML 1.0, 2.12
    text = '<rdf:Description rdf:about="x:s" xml:lang="en"><e:p xml:lang="">x</e:p><e:p>y</e:p>'
    found = of_xml(xml(f"{text}</rdf:Description>"))
    assert found == facts(f'<x:s> <{E}p> "x"', f'<x:s> <{E}p> "y"@en')


def test_another_parse_type_is_an_xml_literal() -> None:
    # w3c/rdf-tests#301, oxigraph#1623; RDF 1.1 XML, 7.2.20: an XML
    # literal, by Exclusive XML Canonicalization; rdflib has the same two facts
    text = '<e:f>1</e:f><e:g rdf:parseType="daml:collection"><e:T/></e:g>'
    found = of_xml(xml(f'<rdf:Description rdf:about="x:s">{text}</rdf:Description>'))
    assert found == facts(
        f'<x:s> <{E}f> "1"',
        f'<x:s> <{E}g> "<e:T xmlns:e=\\"{E}\\"></e:T>"^^<{RDF}XMLLiteral>',
    )


def test_a_resource_on_a_node_is_refused() -> None:
    # information-artifact-ontology/IAO, 2012; RDF 1.1 XML, 7.2.5, and rdflib
    with pytest.raises(DatabaseFormatError, match="resource"):
        of_xml(xml('<e:T rdf:resource="x:a"/>'))


def test_line_breaks_in_an_attribute_are_spaces() -> None:
    # oxigraph#1928; XML 1.0, 3.3.3
    found = of_xml(xml('<rdf:Description rdf:about="x:s" e:p="one\n\ttwo"/>'))
    assert found == facts(f'<x:s> <{E}p> "one  two"')


def test_an_empty_base_is_the_documents() -> None:
    # rdfjs/rdfxml-streaming-parser.js#32, mdesalvo/RDFSharp#149; RFC 3986, 5.2
    text = xml(
        '<e:T rdf:about="http://b.example/x"><e:p rdf:resource="#y"/></e:T>', root='xml:base=""'
    )
    assert of_xml(text, "http://b.example/t") == facts(
        f"<http://b.example/x> <{RDF}type> <{E}T>",
        f"<http://b.example/x> <{E}p> <http://b.example/t#y>",
    )


def test_a_literal_with_the_datatype_of_a_language_needs_one(tmp_path: Path) -> None:
    # apache/jena#3990 (UniProt), linkedpipes/etl#455 (DBpedia); RDF 1.1 Concepts, 3.3
    said = f'<e:p rdf:datatype="{RDF}langString"%s>x</e:p>'
    text = xml(f'<rdf:Description rdf:about="x:s">{said}</rdf:Description>')
    with pytest.raises(DatabaseFormatError, match="language"):
        of_xml(text % "")
    found = of_xml(text % ' xml:lang="en"')
    assert found == facts(f'<x:s> <{E}p> "x"@en')
    write(found, tmp_path / "a.nt")
    assert load(tmp_path / "a.nt") == found


def test_entities_of_entities() -> None:
    # information-artifact-ontology/IAO, 2010, bfo11.owl; XML 1.0, 4.4
    text = xml(
        '<e:T rdf:about="&bfo;a"/>',
        before=f'<!DOCTYPE rdf:RDF [<!ENTITY all "{E}"><!ENTITY bfo "&all;bfo#">]>',
    )
    assert of_xml(text) == facts(f"<{E}bfo#a> <{RDF}type> <{E}T>")


# SPARQL

ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"


def test_virtuosos_blank_nodes() -> None:
    # LDflex/LDflex-Comunica#22, epoz/shmarql#33; SPARQL 1.1 results: a label is any string
    node = {"type": "bnode", "value": "nodeID://b1"}
    with serving(says(result("s p o", (node, "x:p", "x:o"), ("x:o", "x:p", node)))) as server:
        found = from_sparql(server.url, ALL, completeness="trust")
    blank, p, o = Term("blank", "b0"), Term("iri", "x:p"), Term("iri", "x:o")
    assert found == Database.from_triples([(blank, p, o), (o, p, blank)])


def test_an_answer_that_a_stack_trace_cuts_off_is_refused() -> None:
    # osm-search/wikipedia-wikidata#4, the-qa-company/rdf-entity-viewer#1
    whole = result("s p o", ("x:s", "x:p", "x:o"), ("x:t", "x:p", "x:o"))
    cut = whole[: len(whole) // 2] + "\njava.util.concurrent.TimeoutException\n\tat Foo.bar"
    with serving(says(cut)) as server, pytest.raises(DatabaseFormatError, match="no whole"):
        from_sparql(server.url, ALL, completeness="trust")


def test_rows_that_an_endpoint_leaves_out_are_noticed() -> None:
    # RDFLib/sparqlwrapper#48, architolk/Linked-Data-Theatre#75: 10,000 rows of 12,000
    with serving(capped(1200, 1000)) as server:
        with pytest.raises(EndpointError, match="1,000 of 1,200 rows without an error"):
            from_sparql(server.url, ALL)
        assert from_sparql(server.url, ALL, page=500).n_facts == 1200
