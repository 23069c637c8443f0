"""RDF/XML is read as XML 1.0 and the grammar of RDF 1.1 XML have it, or refused with the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, list_graphs, load, parse_rdf
from capacity.database.io.rdf.rdfxml.names import Base
from capacity.errors import DatabaseFormatError
from capacity.stores import count_duckdb
from tests.database.ways import WAYS, read_by
from tests.rdf_xml_documents import RDF, documents
from tests.rdf_xml_readers import by_capacity, by_rdflib

HEAD = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="http://e/">'
XML_LITERAL = "^^<rdf:XMLLiteral>"


def document(body: str, before: str = "") -> str:
    return f"{before}{HEAD}\n{body}</rdf:RDF>"


def facts(body: str, before: str = "", base: str = "http://b/c") -> set[str]:
    db = parse_rdf(document(body, before), "rdfxml", base=base, multi="keep")
    tokens = [term.n3().replace(RDF, "rdf:") for term in db.tokens]
    return {" ".join(tokens[i] for i in row) for row in db.token_triples.tolist()}


def objects(inner: str, before: str = "", base: str = "http://b/c") -> set[str]:
    """Objects of a property of a node without a type."""
    found = facts(f'<rdf:Description rdf:about="http://s">{inner}</rdf:Description>', before, base)
    return {fact.split(" ", 2)[2] for fact in found if fact.startswith("<http://s> <http://e/p> ")}


@settings(max_examples=100, deadline=None)
@given(documents())
def test_a_document_is_read_as_by_rdflib_or_refused_by_both(text: str) -> None:
    theirs = by_rdflib(text)
    if theirs is not None:
        assert by_capacity(text) == theirs
        return
    with pytest.raises(DatabaseFormatError, match=r"line \d"):
        by_capacity(text)


# in place of a node, or as a property of one; both refuse these
FORBIDDEN = {
    "nodes, 7.2.5 and 7.2.11": [
        f'<e:T rdf:{name}="x"/>'
        for name in (
            "resource",
            "datatype",
            "parseType",
            "li",
            "Description",
            "RDF",
            "bagID",
            "aboutEach",
            "aboutEachPrefix",
        )
    ]
    + [f"<rdf:{name}/>" for name in ("li", "RDF", "about", "ID", "bagID", "nodeID", "parseType")]
    + [
        '<e:T rdf:about="a" rdf:ID="b"/>',
        '<e:T about="a" rdf:nodeID="b"/>',
        '<e:T rdf:ID="a" rdf:nodeID="b"/>',
    ],
    "names, 7.2.22, 7.2.23, 7.2.30 and 7.2.34": [
        *(
            f'<e:T rdf:{kind}="{name}"/>'
            for kind in ("ID", "nodeID")
            for name in ("7f3a", "a:b", "", "a b", "-")
        ),
        '<e:T rdf:ID="s"/><e:T rdf:ID="s"/>',
    ],
    "properties, 7.2.6 and 7.2.14": [
        f"<e:T><rdf:{name}/></e:T>"
        for name in ("Description", "RDF", "resource", "aboutEach", "bagID")
    ]
    + [
        f'<e:T><e:p rdf:{name}="x"/></e:T>'
        for name in ("about", "li", "bagID", "aboutEach", "Description")
    ]
    + [
        '<e:T><e:p rdf:resource="x" rdf:nodeID="y"/></e:T>',
        "<e:T><e:p><e:T/><e:T/></e:p></e:T>",
        '<e:T><e:p rdf:nodeID="x"><e:T/></e:p></e:T>',
    ],
    "parseType, 7.2.17 to 7.2.19": [
        f'<e:T><e:p rdf:parseType="{kind}" {also}/></e:T>'
        for kind, also in (
            ("Resource", 'e:r="x"'),
            ("Literal", 'rdf:resource="x"'),
            ("Literal", 'rdf:datatype="http://x/"'),
            ("Collection", 'rdf:nodeID="x"'),
            ("Collection", 'rdf:type="x"'),
            ("other", 'e:r="x"'),
        )
    ],
    "namespaces": [
        "<f:T/>",
        '<e:T f:p="x"/>',
        '<e:T xmlns:f=""/>',
        '<e:T xmlns:xml="x:y"/>',
        '<e:T xmlns:xmlns="x:y"/>',
        '<e:T xmlns:g="http://www.w3.org/2000/xmlns/"/>',
        '<e:T xmlns:g="http://www.w3.org/XML/1998/namespace"/>',
        '<e:T xmlns:g="http://e/" e:p="x" g:p="y"/>',
        "<e:a:b/>",
        "<e:1/>",
        "<:a/>",
        '<e:T e:p:q="x"/>',
        '<e:T><e:p rdf:parseType="Literal"><f:x/></e:p></e:T>',
        '<e:T><e:p rdf:parseType="Literal"><e:x e:a="1" xmlns:g="http://e/" g:a="2"/></e:p></e:T>',
    ],
    "XML 1.0": [
        '<e:T e:p="a<b"/>',
        '<e:T e:p="&nothing;"/>',
        "<e:T>&#0;</e:T>",
        "<e:T><e:p>&#8;</e:p></e:T>",
        "<e:T><e:p>a\x08</e:p></e:T>",
        "<e:T><e:p>]]></e:p></e:T>",
        "<e:T><e:p>\ufffe</e:p></e:T>",
        '<e:T e:p="x" e:p="y"/>',
        "<e:T><!-- -- --></e:T>",
        "<e:T></e:p>",
        "<?xml version='1.0'?>",
    ],
    "terms": [
        '<e:T xml:lang="zh_TW" e:p="x"/>',
        '<e:T><e:p xml:lang="a b">x</e:p></e:T>',
        '<e:T rdf:about="a b"/>',
        '<e:T rdf:about="http://a/{b}"/>',
        f'<e:T><e:p rdf:datatype="{RDF}langString">x</e:p></e:T>',
        f'<e:T><e:p rdf:datatype="{RDF}dirLangString" xml:lang="en">x</e:p></e:T>',
    ],
}
# rdflib reads these, against the paragraphs of RDF 1.1 XML Syntax
READ_BY_RDFLIB = {
    "6.1.4, attributes without a namespace": ['<e:T foo="x"/>', '<e:T><e:p foo="x"/></e:T>'],
    "6.1.2, names of elements are IRIs": ["<T/>", "<e:T><p/></e:T>", '<T xmlns="rel"/>'],
    "7.2.11 and 6.1.4, one attribute of an IRI": ['<e:T rdf:about="a" about="b"/>'],
    "7.2.10 to 7.2.13, text among elements": [
        "text",
        "&#160;",
        "<e:T>text</e:T>",
        "<e:T><e:p/>t</e:T>",
        "<e:T><e:p>t<e:T/></e:p></e:T>",
        "<e:T><e:p><e:T/>t</e:p></e:T>",
        '<e:T><e:p rdf:parseType="Collection">t</e:p></e:T>',
        '<e:T><e:p rdf:parseType="Resource">t</e:p></e:T>',
    ],
    "7.2.15, nodes beside a datatype": ['<e:T><e:p rdf:datatype="http://x/"><e:T/></e:p></e:T>'],
    "7.2.21, properties that have an object": [
        '<e:T><e:p rdf:resource="x" rdf:datatype="http://y/"/></e:T>',
        '<e:T><e:p e:r="x" rdf:datatype="http://y/"/></e:T>',
        '<e:T><e:p rdf:resource="x">t</e:p></e:T>',
        '<e:T><e:p e:r="x">t</e:p></e:T>',
    ],
    "7.3 and constraint-id, an ID of a property once": [
        '<e:T><e:p rdf:ID="s"/><e:p rdf:ID="s"/></e:T>',
    ],
}


def refused_with_its_line(body: str) -> None:
    with pytest.raises(DatabaseFormatError, match=r"line 2 \(read as rdfxml\)"):
        parse_rdf(document(body), "rdfxml", base="http://b/c")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_is_forbidden_is_refused_with_its_line_as_by_rdflib(what: str) -> None:
    for body in FORBIDDEN[what]:
        refused_with_its_line(body)
        assert by_rdflib(document(body)) is None


@pytest.mark.parametrize("what", READ_BY_RDFLIB)
def test_what_rdflib_reads_against_the_recommendation_is_refused(what: str) -> None:
    for body in READ_BY_RDFLIB[what]:
        refused_with_its_line(body)
        assert by_rdflib(document(body)) is not None


def test_an_attribute_of_the_whole_is_refused() -> None:
    # 7.2.9; a version and a direction are those of RDF 1.2
    for attribute in ('e:p="x"', 'rdf:about="x"', 'rdf:ID="x"'):
        with pytest.raises(DatabaseFormatError, match=r"line 1 .*rdf:RDF can't have the attribute"):
            parse_rdf(f"{HEAD[:-1]} {attribute}/>", "rdfxml")


# what rdflib reads otherwise; the objects of e:p are derived from the paragraphs
OTHERWISE = {
    "7.2.16, a datatype is resolved": ('<e:p rdf:datatype="#t">x</e:p>', {'"x"^^<http://b/c#t>'}),
    "7.2.21, rdf:type is resolved": ('<e:p rdf:type="t"/>', {"_:b0"}),
    "7.2.17, comments of an XML literal are kept, in canonical form": (
        "<e:p rdf:parseType='Literal'><!-- c --><?p i?><b a='\"&#9;'/></e:p>",
        {f'"<!-- c --><?p i?><b a=\\"&quot;&#x9;\\"></b>"{XML_LITERAL}'},
    ),
    "Concepts 3.3, a language makes a language-tagged string": (
        f'<e:p xml:lang="en" rdf:datatype="{RDF}langString">x</e:p>',
        {'"x"@en'},
    ),
    # RDF 1.1 is read by the version; this is what RDF 1.2 makes of a file of RDF 1.1
    "RDF 1.2 XML, parseType Triple without a version counts for nothing": (
        '<e:p rdf:parseType="Triple"><e:T><e:p/></e:T></e:p><e:p>x</e:p>',
        {'"x"'},
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_what_rdflib_reads_otherwise_is_read_as_the_recommendation_says(what: str) -> None:
    inner, expected = OTHERWISE[what]
    assert objects(inner) == expected


# XML 1.0 before RDF/XML: text in pieces, line ends (2.11), attribute values (3.3.3), defaults
# (3.3.2), entities (4.4)
READ = {
    "text beside CDATA": ("<e:p>see <![CDATA[a<b]]> here</e:p>", {'"see a<b here"'}),
    "text around a comment": ("<e:p>one<!-- c -->two</e:p>", {'"onetwo"'}),
    "text around an instruction": ("<e:p>one<?p i?>two<?q?></e:p>", {'"onetwo"'}),
    "two sections": ("<e:p><![CDATA[a]]><![CDATA[]]><![CDATA[b]]></e:p>", {'"ab"'}),
    "blanks": ("<e:p> <!-- c -->\n</e:p>", {r'" \n"'}),
    "an empty language": ('<e:p xml:lang="en"/><e:p xml:lang="">x</e:p>', {'""@en', '"x"'}),
    "an unused language that is none": (
        '<e:p xml:lang="zh_TW" rdf:resource="#x"/>',
        {"<http://b/c#x>"},
    ),
    "another parseType": (
        '<e:p rdf:parseType="daml:collection"><e:T/></e:p>',
        {f'"<e:T xmlns:e=\\"http://e/\\"></e:T>"{XML_LITERAL}'},
    ),
    "line ends": ("<e:p>a\r\nb\rc&#13;</e:p>", {r'"a\nb\nc\r"'}),
    "a relative base": (
        '<e:p xml:base="../d/" rdf:resource="x"/><e:p xml:base="#f" rdf:resource=""/>',
        {"<http://b/d/x>", "<http://b/c>"},
    ),
    "an empty base": ('<e:p xml:base="" rdf:resource="#x"/>', {"<http://b/c#x>"}),
    "blanks beside an object": ('<e:p rdf:resource="#x"> \n </e:p>', {"<http://b/c#x>"}),
    "namespaces of an XML literal, those that are used": (
        '<e:p xmlns:f="http://f/" xmlns="http://d/" rdf:parseType="Literal">'
        '<f:a b="1" f:a="2"><c/><f:d/></f:a></e:p>',
        {
            r'"<f:a xmlns:f=\"http://f/\" b=\"1\" f:a=\"2\"><c xmlns=\"http://d/\"></c><f:d></f:d></f:a>"'
            + XML_LITERAL
        },
    ),
}


@pytest.mark.parametrize("what", READ)
def test_xml_is_processed_before_rdf(what: str) -> None:
    inner, expected = READ[what]
    assert objects(inner) == expected


def test_the_values_of_attributes_are_normalised() -> None:
    # each line end and each tab is a space, but a reference to one is kept
    body = '<rdf:Description rdf:about="http://s" e:p="one\n\ttwo\r\n&#10;&#9;"/>'
    assert facts(body) == {r'<http://s> <http://e/p> "one  two \n\t"'}


def test_defaults_of_the_internal_subset_are_read() -> None:
    before = (
        '<!DOCTYPE rdf:RDF [<!ATTLIST e:p xml:lang CDATA "en"><!ATTLIST e:T e:q NMTOKEN #IMPLIED>]>'
    )
    assert objects("<e:p>x</e:p>", before) == {'"x"@en'}
    # values of other types than CDATA lose their outer blanks (3.3.3)
    assert '<http://s> <http://e/q> "a"' in facts('<e:T rdf:about="http://s" e:q=" a "/>', before)


def test_entities_may_use_entities_and_the_first_declaration_counts() -> None:
    # 4.2 and 4.4: entities are read where they are used, with the markup in them
    before = (
        '<!DOCTYPE rdf:RDF [<!-- <!ENTITY a "no"> --><!ENTITY a "&b;/&#38;b;">'
        '<!ENTITY b "x&#60;!---->">'
        "<!ENTITY a 'no'><!ENTITY p '<e:p>&a;</e:p>'>]>"
    )
    assert objects("&p;", before) == {'"x/x"'}


def test_a_type_that_is_declared_elsewhere_is_not_fetched() -> None:
    for id in ('SYSTEM "http://x/a.dtd"', "PUBLIC '-//x' 'a.dtd'"):
        before = f"<!-- c -->\n<!DOCTYPE rdf:RDF {id} [<!ENTITY b 'x'>]>"
        assert objects("<e:p>&b;</e:p>", before) == {'"x"'}
        for inner in ("<e:p>&c;</e:p>", '<e:p e:q="&c;"/>'):
            with pytest.raises(DatabaseFormatError, match=r"line 3 .*undefined entity"):
                objects(inner, before)


def test_entities_within_entities_are_followed_so_far_only() -> None:
    for n, refused in ((90, False), (200, True)):
        chain = "".join(f'<!ENTITY a{i} "&a{i + 1};">' for i in range(n))
        # in both orders
        for declared in (chain + f'<!ENTITY a{n} "x">', f'<!ENTITY a{n} "x">' + chain):
            before = f"<!DOCTYPE rdf:RDF [\n{declared}]>"
            if refused:
                with pytest.raises(DatabaseFormatError, match=r"line 2 .*over 100 deep"):
                    objects("<e:p>&a0;</e:p>", before)
            else:
                assert objects("<e:p>&a0;</e:p>", before) == {'"x"'}


def test_attributes_by_default_expand_so_far_only() -> None:
    before = f'<!DOCTYPE r [<!ATTLIST e:p e:q CDATA "{"a" * 10_000}">]>'
    with pytest.raises(
        DatabaseFormatError, match=r"line 2 .*its attributes expand to over 4,194,304"
    ):
        facts(f"<e:T>{'<e:p/>' * 1000}</e:T>", before)


@pytest.mark.parametrize(
    ("encoding", "text", "read"),
    [
        ("UTF-8", "\xe9", True),
        ("utf8", "\xe9", True),
        ("US-ASCII", "e", True),
        ("ASCII", "e", True),
        ("windows-1252", "e", True),
        ("ISO-8859-1", "e", True),
        ("US-ASCII", "\xe9", False),
        ("windows-1252", "\xe9", False),
        ("UTF-16", "e", False),
        ("utf-7", "e", False),
        ("nothing", "e", False),
    ],
)
def test_an_encoding_is_read_where_the_text_is_that_of_utf_8(
    encoding: str, text: str, read: bool
) -> None:
    before = f"<?xml version='1.0' encoding='{encoding}'?>"
    if read:
        assert objects(f"<e:p>{text}</e:p>", before) == {f'"{text}"'}
    else:
        with pytest.raises(DatabaseFormatError, match=f"line 1 .*the encoding {encoding}, and not"):
            objects(f"<e:p>{text}</e:p>", before)


# the codec, what the file declares, and its text
ENCODED = {
    "Latin-1": ("latin-1", "ISO-8859-1", "caf\xe9 \x85"),
    "Windows": ("cp1252", "windows-1252", "\u20ac \u2019"),
    "Latin-9": ("iso8859-15", "iso-8859-15", "\u20ac \u0153"),
    "Cyrillic": ("koi8-r", "KOI8-R", "\u0434\u0443\u0431"),
    "UTF-16 with a mark": ("utf-16", "UTF-16", "caf\xe9 \U0001f333"),
    "UTF-16 without a declaration": ("utf-16", None, "caf\xe9 \U0001f333"),
    "UTF-16, the other way round": ("utf-16-be", "utf-16", "caf\xe9"),
}


@pytest.mark.parametrize("case", ENCODED)
def test_another_encoding_is_read_as_it_is_declared(case: str, tmp_path: Path) -> None:
    codec, name, text = ENCODED[case]
    before = "" if name is None else f"<?xml version='1.0' encoding='{name}'?>\n"
    # more than is looked at to recognise the format, and cut within a character
    whole = document(f"<!-- {text * 9000} --><e:T rdf:about='http://s' e:p='{text}'/>", before)
    (tmp_path / "a.rdf").write_bytes(whole.encode(codec))
    expected = parse_rdf(
        document(f"<e:T rdf:about='http://s' e:p='{text}'/>"), "rdfxml", multi="keep"
    )
    for way in WAYS:
        with read_by(way):
            assert load(tmp_path / "a.rdf") == expected
    (tmp_path / "a.rdf.gz").write_bytes(gzip.compress(whole.encode(codec)))
    assert load(tmp_path / "a.rdf.gz") == expected
    assert count_duckdb(tmp_path / "a.rdf").facts == 2
    graph = rdflib.Graph().parse(tmp_path / "a.rdf", format="xml")
    assert {str(o) for o in graph.objects(predicate=rdflib.URIRef("http://e/p"))} == {text}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (document("<e:T e:p='\xe9'/>").encode("latin-1"), "0xe9 isn't UTF-8"),
        (document("<e:T e:p='\xe9'/>", "<?xml version='1.0' encoding='EUC-JP'?>").encode("latin-1"),
         "0xe9 isn't UTF-8"),
        (document("<e:T/>", "<?xml version='1.0' encoding='UTF-8'?>").encode("utf-16"), "UTF-16"),
        (document("<e:T/>").encode("utf-16") + b"\0\xd8", "UTF-16"),
        (document("<e:T e:p='%'/>", "<?xml version='1.0' encoding='cp1252'?>").encode().replace(
            b"%", b"\x81"), "0x81 isn't UTF-8"),
    ],
)  # fmt: skip
def test_what_isnt_in_its_encoding_is_refused(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.rdf").write_bytes(data)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=said):
            read(tmp_path / "a.rdf")


def test_a_label_that_only_xml_has_is_renamed() -> None:
    # a label of N-Triples ends in no dot
    db = parse_rdf(document('<e:T rdf:nodeID="a."><e:p rdf:nodeID="a."/></e:T>'), "rdfxml")
    assert [term.n3() for term in db.subjects] == ["_:b0"]
    assert "_:b0" in [term.n3() for term in db.objects]


def test_prefixes_are_those_around_the_first_triple() -> None:
    text = (
        f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="http://d/#" xmlns:r="relative"><Description/>'
        '<rdf:Description xmlns:f="http://f/"><f:p>x</f:p></rdf:Description>'
        '<rdf:Description xmlns:g="http://g/"><g:p>x</g:p></rdf:Description></rdf:RDF>'
    )
    assert parse_rdf(text, "rdfxml").prefixes == {"": "http://d/#", "rdf": RDF}


@settings(max_examples=30, deadline=None)
@given(documents())
def test_a_large_document_is_read_as_a_small_one(text: str) -> None:
    found: list[Database | str] = []
    for way in WAYS:
        with read_by(way):
            try:
                found.append(
                    parse_rdf(
                        text,
                        "rdfxml",
                        base="http://b/c",
                        multi="keep",
                        allow_empty=True,
                        annotations_of_facts="keep",
                    )
                )
            except DatabaseFormatError as error:
                found.append(str(error))
    assert found[0] == found[1] == found[2]


def test_graphs_are_listed_and_files_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.rdf"
    path.write_text(document("<e:T><e:p>a<!-- c -->b</e:p></e:T>"), encoding="utf-8")
    assert list_graphs(path) == {"default": 2}
    assert load(path).n_triples == 2


_REFERENCES = st.text(alphabet="ab:/?#.%2", max_size=9)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["http://h/a/b?c", "http://h", "file:///a/", "x:/a"]), _REFERENCES)
def test_references_are_resolved_as_in_turtle(base: str, reference: str) -> None:
    body = f'<e:T rdf:about="{reference}"/>'
    try:
        turtle = parse_rdf(f"<{reference}> <x:p> <x:o> .", "turtle", base=base)
    except DatabaseFormatError:
        with pytest.raises(DatabaseFormatError):
            parse_rdf(document(body), "rdfxml", base=base)
        return
    assert parse_rdf(document(body), "rdfxml", base=base).subjects == turtle.subjects


def test_the_examples_of_the_rfc_are_resolved() -> None:
    # RFC 3986, 5.4.1 and 5.4.2
    base = Base("http://a/b/c/d;p?q")
    expected = {
        "g:h": "g:h",
        "g": "http://a/b/c/g",
        "./g": "http://a/b/c/g",
        "g/": "http://a/b/c/g/",
        "/g": "http://a/g",
        "//g": "http://g",
        "?y": "http://a/b/c/d;p?y",
        "g?y": "http://a/b/c/g?y",
        "#s": "http://a/b/c/d;p?q#s",
        "g#s": "http://a/b/c/g#s",
        "": "http://a/b/c/d;p?q",
        ".": "http://a/b/c/",
        "..": "http://a/b/",
        "../..": "http://a/",
        "../../../g": "http://a/g",
        "/./g": "http://a/g",
        "g.": "http://a/b/c/g.",
        "./../g": "http://a/b/g",
        "g/./h": "http://a/b/c/g/h",
        "g;x=1/../y": "http://a/b/c/y",
        "g?y/../x": "http://a/b/c/g?y/../x",
    }
    assert {one: base.resolved(one) for one in expected} == expected
    # 5.2.3 and 5.2.4, of a base without an authority
    assert [Base("urn:a:b").resolved(one) for one in ("c", "#d", "../e", "f/../g")] == [
        "urn:c",
        "urn:a:b#d",
        "urn:e",
        "urn:/g",
    ]


def test_pieces_of_a_file_may_end_anywhere() -> None:
    # the parser of XML is given 64 KiB at once, or more within a comment
    long = f"<!--{'-x' * 100_000}-->"
    triple = (
        f'<e:p rdf:parseType="Triple">{long}<rdf:Description rdf:about="http://t">{long}'
        f"<e:q>a{long}b</e:q>{long}</rdf:Description>{long}</e:p>"
    )
    text = (
        f'{HEAD[:-1]} rdf:version="1.2"><rdf:Description rdf:about="http://s"><e:p>c</e:p>{triple}'
        f'{long}<e:p rdf:parseType="Literal">d{long}</e:p></rdf:Description></rdf:RDF>'
    )
    db = parse_rdf(text, "rdfxml", multi="keep", annotations_of_facts="keep")
    assert {term.n3() for term in db.objects} == {
        '"c"',
        '<<( <http://t> <http://e/q> "ab" )>>',
        f'"d{long}"^^<{RDF}XMLLiteral>',
    }


def test_an_iri_that_each_triple_repeats_is_written_out_so_far_only() -> None:
    text = f'<e:T rdf:about="http://{"s" * 10**6}">{"<e:p/>" * 1000}</e:T>'
    with pytest.raises(DatabaseFormatError, match=r"line 2 .*written out"):
        parse_rdf(document(text), "rdfxml")
