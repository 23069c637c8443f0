"""Documents of RDF/XML, drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
BASE = "http://b.example/c/d?q"
_NAMES = ("a", "b1", "\xe9-.x", "_")
_ENTITIES = """<!ENTITY one "t&#38;two;"><!ENTITY two 'w&#60;b/&#62;&#10;'>
<!ENTITY one "not this one">
<!ENTITY ns "http://e.example/"><!ENTITY deep "&ns;&lt;"><!-- <!ENTITY one "nor this"> -->"""
_DEFAULTS = """<!ATTLIST e:p xml:lang CDATA "fr"><!ATTLIST e:q e:r NMTOKEN #IMPLIED>
<!ATTLIST e:T xmlns:f CDATA #FIXED "http://f.example/" e:s CDATA '&ns;'>"""
# text in pieces: what each is read as doesn't matter to the one who draws
_PIECES = st.lists(
    st.sampled_from(
        [
            "a",
            " ",
            "\n",
            "\r\n",
            "\t",
            "\r",
            "&#13;",
            "&#10;",
            "&#x9;",
            "&lt;",
            "&amp;&quot;&apos;",
            "&ns;",
            "x\\y",
            "\xe9\U0001f600",
            "\x85",
            "&#x85;",
            "]]",
            "\u2028",
            "\x7f",
        ]
    ),
    max_size=4,
).map("".join)
_MARKS = st.sampled_from(
    [
        "<![CDATA[a<b&ns;]]>",
        "<![CDATA[ ]]>",
        "<![CDATA[]]>",
        "<!-- c --->"[:-2] + ">",
        "<?p i?>",
        "<?p?>",
    ]
)
TEXTS = st.lists(_PIECES | _MARKS, max_size=4).map("".join)
VALUES = _PIECES.map(lambda text: text.replace("]]>", ""))
REFERENCES = st.sampled_from(
    [
        "",
        "#",
        "#f",
        "x",
        "../x/./y",
        "?z",
        "//h.example/i",
        "/j",
        "http://k.example/l#m",
        "&ns;n",
        "urn:o:p",
        "./",
    ]
)
_BASES = st.sampled_from(
    ["", "e/", "http://g.example", "../", "#f", "/h?i#j", "http://l.example/m/"]
)
_LANGUAGES = st.sampled_from(["", "en", "de-CH", "EN"])


@st.composite
def _around(draw: st.DrawFn) -> str:
    """Attributes that any element may have."""
    parts = []
    if draw(st.integers(0, 3)) == 0:
        parts.append(f'xml:lang="{draw(_LANGUAGES)}"')
    if draw(st.integers(0, 3)) == 0:
        parts.append(f'xml:base="{draw(_BASES)}"')
    if draw(st.integers(0, 5)) == 0:
        parts.append(
            draw(
                st.sampled_from(
                    [
                        'xmlns:e="http://e2.example/"',
                        'xml:space="preserve"',
                        'xmlns="http://d.example/#"',
                    ]
                )
            )
        )
    return " ".join(parts)


@st.composite
def _properties_as_attributes(draw: st.DrawFn) -> str:
    chosen = draw(
        st.lists(
            st.sampled_from(["e:r", "e:s", "rdf:value", "rdf:_3", "rdf:type"]),
            unique=True,
            max_size=2,
        )
    )
    # rdflib doesn't resolve rdf:type of a property, nor datatypes
    return " ".join(
        f'{name}="{"http://t.example/" if name == "rdf:type" else draw(VALUES)}"' for name in chosen
    )


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2) -> str:
    """A node, which has properties that have nodes."""
    name = draw(st.sampled_from(["rdf:Description", "e:T", "rdf:Seq"]))
    subject = draw(
        st.one_of(
            st.just(""),
            REFERENCES.map(lambda iri: f'rdf:about="{iri}"'),
            st.just('about="u"'),
            st.sampled_from(_NAMES).map(lambda label: f'rdf:nodeID="{label}"'),
            st.integers(0, 40).map(lambda i: f'rdf:ID="i{i}"'),
        )
    )
    inner = draw(st.lists(properties(depth), max_size=3 if depth else 1))
    attributes = f"{subject} {draw(_properties_as_attributes())} {draw(_around())}"
    space = draw(st.sampled_from(["", "\n", " <!-- c --> ", "<?p i?>", "<![CDATA[ ]]>"]))
    return f"<{name} {attributes}>{space}{''.join(inner)}{space}</{name}>"


@st.composite
def properties(draw: st.DrawFn, depth: int) -> str:
    """A property of any kind."""
    name = draw(st.sampled_from(["e:p", "e:q", "rdf:li", "rdf:value", "rdf:_2", "e:p"]))
    kinds = [
        "text",
        "datatype",
        "reference",
        "label",
        "attributes",
        "empty",
        "resource",
        "xml",
        "other",
    ]
    kind = draw(st.sampled_from([*kinds, *(["node", "list"] if depth else [])]))
    said, inner = "", ""
    if kind in ("text", "datatype"):
        inner = draw(TEXTS)
        said = 'rdf:datatype="http://t.example/&#x65;"' if kind == "datatype" else ""
    elif kind == "reference":
        said = f'rdf:resource="{draw(REFERENCES)}" {draw(_properties_as_attributes())}'
        # rdflib adds blanks to the IRI if an XML literal was before
        inner = draw(st.sampled_from(["", "<!-- c -->"]))
    elif kind == "label":
        said = f'rdf:nodeID="{draw(st.sampled_from(_NAMES))}"'
    elif kind == "attributes":
        said = draw(_properties_as_attributes())
    elif kind == "node":
        inner = f" <!-- c -->{draw(nodes(depth - 1))}\n"
    elif kind == "resource":
        said, inner = 'rdf:parseType="Resource"', draw(properties(depth - 1)) if depth > 0 else ""
    elif kind == "list":
        said = 'rdf:parseType="Collection"'
        inner = "\n".join(draw(st.lists(nodes(depth - 1), max_size=2)))
    elif kind in ("xml", "other"):
        said = f'rdf:parseType="{"Literal" if kind == "xml" else "daml:collection"}"'
        # rdflib writes quotation marks, tabs and comments otherwise
        inner = draw(st.sampled_from(["", "a&lt;b", "<b/>", "<e:b>t</e:b>u", "<![CDATA[&]]>"]))
    if kind not in ("attributes", "label") and draw(st.integers(0, 4)) == 0:
        # rdflib doesn't see that one is used twice
        said += ' rdf:ID="j%"'
    return f"<{name} {said} {draw(_around())}>{inner}</{name}>"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document that is well-formed, and RDF/XML but for names of nodes that are used twice."""
    before = draw(
        st.sampled_from(
            ["", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="utf-8"?>\n', "\ufeff"]
        )
    )
    declared = _ENTITIES + (_DEFAULTS if draw(st.booleans()) else "")
    spread = f'xmlns:rdf="{RDF}" xmlns:e="&ns;"'
    if draw(st.integers(0, 4)) == 0:
        found = draw(nodes())
        at = found.index(" ")
        body = (
            f"{found[:at]} {spread} {found[at:]}"
            if "xmlns" not in found
            else f"<rdf:RDF {spread}/>"
        )
    else:
        said = draw(_around().filter(lambda said: "xmlns:e" not in said))
        inner = "".join(draw(st.lists(nodes(), max_size=3)))
        body = f"<rdf:RDF {spread} {said}>\n{inner}</rdf:RDF>"
    for number in range(body.count("j%")):
        body = body.replace("j%", f"j{number}", 1)
    return f"{before}<!-- c --><!DOCTYPE rdf:RDF [{declared}]>\n{body}<?p i?>\n"
