"""A term is refused where it is made, or files hold it: each is read as what was written."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import (
    Database,
    Term,
    as_database,
    from_networkx,
    from_pandas,
    from_rdflib,
    label,
    load,
    parse_rdf,
    to_networkx,
    to_pandas,
    to_rdflib,
    write,
)
from capacity.database.io.sparql.results import Cells, UnkeptTermError
from capacity.database.terms.grammar import RDF
from capacity.database.terms.term import Kind, blank_names
from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError
from capacity.stores import count_duckdb
from tests.database.ways import WAYS, read_by
from tests.formats import written
from tests.tiers import examples

XSD = "http://www.w3.org/2001/XMLSchema#"
# names, tags and IRIs that some readers let in, and some writers can't write
ODD = [
    "",
    " ",
    "a",
    "a b",
    "a.",
    ".a",
    "a.b",
    "-a",
    "a-",
    "1",
    "a:b",
    ":",
    "\xb7",
    "a\xb7",
    "a\xb7b",
    "a\u203f",
    "a\u200c",
    "\u200ca",
    "\xd7",
    "a\xd7",
    "\xe9",
    "\u2070",
    "\ud800",
    "a\0",
    "\0",
    "\x01",
    "\x7f",
    "\x85",
    "\ufffe",
    "\uffff",
    "\ufeff",
    "\U000f0000",
    "a\nb",
    "\t",
    "a\r",
    '"',
    "\\",
    "<",
    ">",
    "%",
    "%zz",
    "{",
    "#",
    "'",
    "x" * 300,
    "d" * 32,
    "f" * 16,
    "[",
    "a@b",
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(max_size=4))
LANGUAGES = st.sampled_from(
    [
        "",
        "en",
        "EN",
        "zh_TW",
        "zh-TW",
        "zh-tw",
        "toolongtag",
        "x-y",
        "a",
        "en-",
        "-",
        "1",
        "en--ltr",
        "en--up",
        "--ltr",
        "en--",
        "en\0",
        "e n",
        "i-klingon",
        "en-a",
        "\xe9",
        "en--LTR",
    ]
)
DATATYPES = st.sampled_from(
    [
        "",
        f"{RDF}langString",
        f"{RDF}dirLangString",
        f"{XSD}string",
        f"{XSD}integer",
        f"{RDF}XMLLiteral",
        "a",
        "x:a b",
        "x:",
    ]
)
IRIS = st.one_of(
    TEXTS, TEXTS.map(lambda text: f"http://e/{text}"), TEXTS.map(lambda text: f"{text}:a")
)


class Given(NamedTuple):
    """What might be a term."""

    kind: Kind
    text: str
    datatype: str = ""
    language: str = ""

    def n3(self) -> str:
        """Write it as N-Triples would, whether that is valid or not."""
        if self.kind == "iri":
            return f"<{self.text}>"
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind != "literal":
            return self.text
        escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
        text = "".join(escapes.get(c, c) for c in self.text)
        end = f"@{self.language}" if self.language else ""
        return f'"{text}"{end}' + f"^^<{self.datatype}>" * bool(self.datatype)


ANY = st.one_of(
    IRIS.map(lambda text: Given("iri", text)),
    TEXTS.map(lambda text: Given("blank", text)),
    st.builds(lambda *parts: Given("literal", *parts), TEXTS, DATATYPES, LANGUAGES),
    TEXTS.map(lambda text: Given("label", text)),
    st.sampled_from(
        [
            "<x:o>",
            "",
            "<x:o> . <x:a> <x:p> <x:b>",
            "<<( <x:a> <x:p> <x:b> )>>",
            "<<( <x:a> <x:p> _:d )>>",
            f'<<( <x:a> <x:p> "b"^^<{RDF}langString> )>>',
            "<<( <x:a> <x:p> _:a\u203fb )>>",
            '<<( <x:a> <x:p> "b"@EN )>>',
            "<<(<x:a> <x:p> <x:b>)>>",
            "<<( " * 300,
            "<<( <x:a> <x:p> " * 100_000,
        ]
    ).map(lambda text: Given("triple", text)),
)
P = Term("iri", "x:p")


def again(db: Database, folder: Path) -> Iterator[tuple[str, Database]]:
    """Facts as they are read from each file that is written of them, in each way."""
    for suffix in written():
        path = folder / f"facts.{suffix}"
        try:
            write(db, path)
        except InvalidArgumentError:
            continue
        for way in WAYS:
            with read_by(way), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield f"{suffix}, {way}", load(path, multi="keep")


def holds(db: Database, folder: Path) -> None:
    for where, found in again(db, folder):
        assert found == db, where


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("facts")


def made(given: Given) -> Term | None:
    """The term, or None if it is refused."""
    try:
        return Term(*given)
    except InvalidArgumentError:
        return None


@given(rows=st.lists(st.tuples(ANY, st.one_of(st.just(P), ANY), ANY), min_size=1, max_size=3))
@settings(max_examples=examples(600, part=8), deadline=None)
def test_any_terms_are_read_as_they_are_written_or_not_written(
    rows: list[tuple[Given, Given, Given]], folder: Path
) -> None:
    terms = [tuple(made(one) if isinstance(one, Given) else one for one in row) for row in rows]
    known: Any = [row for row in terms if None not in row]
    if known:
        holds(Database.from_triples(known, multi="keep"), folder)


def _may_lack(suffix: str, term: Term) -> bool:
    """Whether a format has no form for a term that others have."""
    if term.kind != "label":
        # a parser gives such names to blank nodes without one
        hex_name = any(re.fullmatch("[a-f][0-9a-f]{15,31}", one) for one in blank_names([term]))
        return hex_name and suffix in written("rdf")
    if suffix in written("rdf"):
        return True
    # TSV has no quoting, and a label may look like a term, or a file of it like none of text
    odd = set(term.text) & set("\t\n\r\0") or term.text.startswith(('"', "<", "_:"))
    return bool(odd) and suffix != "parquet"


@given(given=ANY)
@settings(max_examples=examples(600, part=8), deadline=None)
def test_any_object_is_refused_or_comes_back_from_every_format_of_its_kind(
    given: Given, folder: Path
) -> None:
    term = made(given)
    if term is None:
        return
    p, s = (label("p"), label("s")) if term.kind == "label" else (P, Term("iri", "x:s"))
    db = Database.from_triples([(s, p, term)])
    found = list(again(db, folder))
    for where, read in found:
        assert read == db, where
    suffixes = {where.partition(",")[0] for where, _ in found}
    assert all(suffix in suffixes or _may_lack(suffix, term) for suffix in written())


REFUSED = {
    "a space in an IRI": (("iri", "x:a b"), "An IRI must be absolute, .*; got 'x:a b'"),
    "a relative IRI": (("iri", "Astrid"), r"got 'Astrid' .*label\("),
    "an empty IRI": (("iri", ""), "An IRI must be absolute"),
    "a quote in an IRI": (("iri", 'http://e/"'), "An IRI must be absolute"),
    "half a character in an IRI": (("iri", "x:\ud800"), "An IRI must be absolute"),
    "a language as people write it": (("literal", "a", "", "zh_TW"), "tag of BCP 47.*'zh_TW'"),
    "a letter that lower case turns into k": (("literal", "a", "", "\u212a\u212a"), "BCP 47"),
    "a direction in capitals": (("literal", "a", "", "en--LTR"), "--ltr or --rtl"),
    "a direction without a language": (("literal", "a", "", "--ltr"), "BCP 47"),
    "no direction after dashes": (("literal", "a", "", "en--"), "BCP 47"),
    "no language": (("literal", "a", f"{RDF}langString"), "must have a language; 'a' has none"),
    "no language and no direction": (("literal", "a", f"{RDF}dirLangString"), "have a language"),
    "a language and no direction": (("literal", "a", f"{RDF}dirLangString", "en"), "of the datat"),
    "a language and a number": (("literal", "1", f"{XSD}integer", "en"), "Omit one of the two"),
    "a language and a plain text": (("literal", "1", f"{XSD}string", "en"), "Omit one of the two"),
    "a datatype that is no IRI": (("literal", "1", "integer"), "datatype of a literal must be an"),
    "half a character in a literal": (("literal", "\ud800"), "must have a form in UTF-8"),
    "half a character in a label": (("label", "a\udfff"), "must have a form in UTF-8"),
    "a blank node of JSON-LD": (("blank", "a:b"), "name of a blank node must.*got 'a:b'"),
    "a blank node that ends in a dot": (("blank", "a."), "none is the last"),
    "a blank node without a name": (("blank", ""), "name of a blank node"),
    "an IRI as a triple term": (("triple", "<x:a>"), "got '<x:a>'. Pass the kind"),
    "half a triple term": (("triple", "<<( <x:a> <x:p>"), "must be one of N-Triples"),
    "a triple term with a relative IRI": (("triple", "<<( <a> <x:p> <x:b> )>>"), "of N-Triples"),
    "a datatype of an IRI": (("iri", "x:a", f"{XSD}anyURI"), "A literal alone has a datatype"),
    "a language of a label": (("label", "chat", "", "fr"), "A literal alone has"),
    "another kind": (("uri", "x:a"), "of the kind 'iri', .*got 'uri'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_format_can_write_is_refused_where_it_is_made(case: str) -> None:
    fields, said = REFUSED[case]
    with pytest.raises(InvalidArgumentError, match=said):
        Term(*fields)  # type: ignore[arg-type]
    whole: tuple[Any, ...] = (*fields, "", "")[:4]
    with pytest.raises(InvalidArgumentError, match=said):
        Term._make(whole)
    with pytest.raises(InvalidArgumentError, match=said):
        Term("label", "a")._replace(**dict(zip(Term._fields, whole, strict=True)))


@pytest.mark.parametrize("fields", [("iri", 5), (None, "a"), ("literal", "1", int), ("label", None),
                                    ("iri", 10**5000)])  # fmt: skip
def test_a_term_is_made_of_texts(fields: Any) -> None:
    with pytest.raises(InvalidTypeError, match="A term must be made of texts"):
        Term(*fields)


def test_what_is_one_term_to_rdf_is_one() -> None:
    # RDF 1.1 Concepts, 3.3: "a" is of xsd:string, "a"@en of rdf:langString; tags in lower case
    assert Term("literal", "a", f"{XSD}string") == Term("literal", "a")
    assert Term("literal", "a", f"{RDF}langString", "EN-gb") == Term("literal", "a", "", "en-gb")
    both = Term("literal", "a", f"{RDF}dirLangString", "HE--rtl")
    assert both == Term("literal", "a", "", "he--rtl")
    # "1" and "01" are two literals, 3.3
    assert Term("literal", "1", f"{XSD}integer") != Term("literal", "01", f"{XSD}integer")
    spaced = Term("triple", "<<(<x:a>  <x:p> 'b'@EN )>>".replace("'", '"'))
    assert spaced.text == '<<( <x:a> <x:p> "b"@en )>>'
    rdflib = pytest.importorskip("rdflib")
    iri = Term("iri", rdflib.URIRef("x:a"))
    assert (type(iri.text), iri) == (str, Term("iri", "x:a"))


def test_a_term_is_itself_when_it_is_copied() -> None:
    term = Term("literal", "a", "", "en")
    for again_ in (pickle.loads(pickle.dumps(term)), copy.deepcopy(term), term._replace()):
        assert again_ == term
        assert type(again_) is Term


def test_blank_nodes_of_libraries_get_names_that_formats_have(tmp_path: Path) -> None:
    # two nodes whose names RDF has not, and one whose name would be taken by the first of them
    import pyoxigraph as ox
    import rdflib

    graph, store = rdflib.Graph(), ox.Store()
    for name, other in (("a b", "a:b"), ("b0", "b0"), ("nodeID://b1", "c:d")):
        graph.add((rdflib.BNode(name), rdflib.URIRef("x:p"), rdflib.BNode("b0")))
        store.add(ox.Quad(ox.BlankNode(other), ox.NamedNode("x:p"), ox.BlankNode("b0")))
    for source in (graph, store):
        db = as_database(source)
        assert [t.text for t in db.tokens if t.kind == "blank"] == ["b0", "b1", "b2"]
        assert (db.n_triples, len(db.objects)) == (3, 1)
        write(db, tmp_path / "facts.nt")
        assert load(tmp_path / "facts.nt") == db
    with pytest.raises(InvalidArgumentError, match="name of a blank node"):
        Database.from_triples([(rdflib.BNode("a b"), "p", "x")])
    with pytest.raises(InvalidArgumentError, match="name of a blank node"):
        Database.from_triples([(ox.BlankNode("a:b"), "p", "x")])


def _turtle(term: Given) -> str:
    return f"<x:s> <x:p> {term.n3()} ."


def _json(term: Given) -> str:
    value: dict[str, Any] = {"@value": term.text}
    if term.kind in ("iri", "blank"):
        value = {"@id": term.text if term.kind == "iri" else f"_:{term.text}"}
    language, _, direction = term.language.partition("--")
    if term.datatype:
        value["@type"] = term.datatype
    if language or direction:
        value |= {"@language": language} | ({"@direction": direction} if direction else {})
    return json.dumps({"@id": "x:s", "x:p": value})


def _xml(term: Given) -> str:
    text = term.text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    said = {"iri": f'rdf:resource="{text}"', "blank": f'rdf:nodeID="{text}"'}.get(term.kind, "")
    if term.kind == "literal":
        said = f'xml:lang="{term.language}"' + f' rdf:datatype="{term.datatype}"' * bool(
            term.datatype
        )
    inner = text.replace(">", "&gt;") if term.kind == "literal" else ""
    return (
        f'<rdf:Description xmlns:rdf="{RDF}" xmlns:x="x:" rdf:about="x:s">'
        f"<x:p {said}>{inner}</x:p></rdf:Description>"
    )


def _from_rdflib(term: Given) -> Database:
    import rdflib

    node: Any = rdflib.URIRef(term.text) if term.kind == "iri" else rdflib.BNode(term.text)
    if term.kind == "literal":
        datatype = rdflib.URIRef(term.datatype) if term.datatype else None
        node = rdflib.Literal(
            term.text, lang=term.language or None, datatype=datatype, normalize=False
        )
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("x:s"), rdflib.URIRef("x:p"), node))
    return from_rdflib(graph)


def _from_pandas(term: Given) -> Database:
    import pandas as pd

    return from_pandas(pd.DataFrame([["a", "p", term.text]], columns=["s", "p", "o"]))


def _from_networkx(term: Given) -> Database:
    import networkx as nx

    graph = nx.MultiDiGraph()
    graph.add_edge("a", term.text, key="p")
    return from_networkx(graph)


def _from_results(term: Given) -> Database:
    """Read it as the answer of an endpoint, in JSON."""
    kind = {"iri": "uri", "blank": "bnode"}.get(term.kind, "literal")
    language, _, direction = term.language.partition("--")
    said = {"datatype": term.datatype, "xml:lang": language, "its:dir": direction}
    cell = {"type": kind, "value": term.text}
    cell |= {key: value for key, value in said.items() if value and kind == "literal"}
    try:
        return Database.from_triples([(Term("iri", "x:s"), P, Cells().term(cell))])
    except UnkeptTermError as error:
        raise InvalidArgumentError(str(error)) from None


def _from_table(term: Given, suffix: str) -> Database:
    """Read it as a cell of a table, which may have commas and quotation marks."""
    rows = [["?s", "?p", "?o"], ["<x:s>", "<x:p>", term.n3()]]
    text = io.StringIO(newline="")
    if suffix == "csv":
        csv.writer(text).writerows(rows)
    else:
        text.write("".join("\t".join(row) + "\n" for row in rows))
    with TemporaryDirectory() as folder:
        path = Path(folder, f"facts.{suffix}")
        path.write_bytes(text.getvalue().encode())
        return load(path)


READERS: dict[str, Callable[[Given], Database]] = {
    "turtle": lambda term: parse_rdf(_turtle(term), "turtle"),
    "ntriples": lambda term: parse_rdf(_turtle(term), "ntriples"),
    "trig": lambda term: parse_rdf(_turtle(term), "trig"),
    "n3": lambda term: parse_rdf(_turtle(term), "n3"),
    "jsonld": lambda term: parse_rdf(_json(term), "jsonld"),
    "rdfxml": lambda term: parse_rdf(_xml(term), "rdfxml"),
    "SPARQL": _from_results,
    "tsv": partial(_from_table, suffix="tsv"),
    "csv": partial(_from_table, suffix="csv"),
    "rdflib": _from_rdflib,
    "pandas": _from_pandas,
    "networkx": _from_networkx,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", READERS)
@given(term=ANY)
@settings(max_examples=examples(300, part=5), deadline=None)
def test_what_a_reader_lets_in_is_written_as_it_is_or_not_written(
    reader: str, term: Given, folder: Path
) -> None:
    for way in WAYS:
        with read_by(way):
            try:
                db = READERS[reader](term)
            # rdflib refuses languages, and a text may have no form in UTF-8
            except (CapacityError, ValueError, TypeError):
                continue
        holds(db, folder)


@given(term=ANY)
@settings(max_examples=examples(600, part=8), deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_what_the_libraries_are_given_comes_back(term: Given) -> None:
    if made(term) is None:
        return
    db = Database.from_triples([(Term("iri", "x:s"), P, Term(*term))])
    routes: list[tuple[Callable[[], Any], Callable[[Any], Database]]] = [
        (lambda: to_pandas(db, terms="n3"), lambda frame: from_pandas(frame, terms="n3")),
        (lambda: to_rdflib(db), from_rdflib),
        (lambda: to_networkx(db), from_networkx),
    ]
    for there, back in routes:
        try:
            given = there()
        except CapacityError:
            continue
        assert back(given) == db


def test_a_literal_without_its_language_is_refused_where_it_is_read() -> None:
    # RDF 1.1 Concepts, 3.3: such a literal has a language, and N-Triples' parser refuses it, too
    for datatype in ("langString", "dirLangString"):
        term = Given("literal", "x", f"{RDF}{datatype}")
        for reader in READERS.keys() - {"rdflib", "pandas", "networkx"}:
            for way in WAYS:
                with read_by(way), pytest.raises(CapacityError, match=r"[Ll]angString|language"):
                    READERS[reader](term)
        with pytest.raises(InvalidArgumentError, match="must have a language"):
            _from_rdflib(term)


def test_labels_that_json_alone_has_are_renamed() -> None:
    text = '{"@id": "_:a:b", "x:p": [{"@id": "_:b"}, {"@id": "_:a:b"}]}'
    for way in WAYS:
        with read_by(way):
            db = parse_rdf(text, "jsonld", multi="keep")
        assert [str(token) for token in db.tokens] == ["_:b0", "_:b1", "<x:p>"]


# rightly names of one blank node each, by JSON-LD 1.1, 4.5.1; pyld reads them so
@pytest.mark.parametrize(
    "name", ["a b", "a.", "", "-a", "nodeID://b1", "<x>", 'a"b', "a\\b", "\n", "\u0301", "\xd7"]
)
def test_any_name_of_json_is_one_of_a_blank_node(name: str, folder: Path) -> None:
    node = {"@id": f"_:{name}"}
    document = {
        "@id": "x:s", "x:p": [node, {"@id": "_:b"}, {"@id": "_:x:61"}, f"_:{name}",
                              {"@value": f"see _:{name}", "@language": "en"}],
        "x:q": {"@value": [f"_:{name}"], "@type": "@json"}, "x:r": {**node, "x:p": node},
    }  # fmt: skip
    in_json = json.dumps([f"_:{name}"], ensure_ascii=False).replace("\\", r"\\").replace('"', r"\"")
    literal = Term("literal", f"_:{name}").n3()
    lines = (
        f"<x:s> <x:p> _:b0, _:b1, _:b2, {literal}, {literal[:1]}see {literal[1:]}@en; "
        f'<x:q> "{in_json}"^^<{RDF}JSON>; <x:r> _:b0 . _:b0 <x:p> _:b0 .'
    )
    expected = parse_rdf(lines, "turtle", multi="keep")
    texts = [json.dumps(document, ensure_ascii=raw) for raw in (False, True)]
    texts.append(texts[0].replace('"_:', r'"\u005f\u003A'))
    for text in texts:
        for way in WAYS:
            with read_by(way):
                assert parse_rdf(text, "jsonld", multi="keep") == expected
    (folder / "a.jsonld").write_text(texts[0], encoding="utf-8")
    counts = count_duckdb(folder / "a.jsonld")
    assert (counts.facts, counts.objects) == (expected.n_facts, expected.shape[2])


_PARTS = st.sampled_from(
    [
        "_:",
        "x:",
        "xx:",
        "61",
        "6120",
        " ",
        "a",
        ".",
        '"',
        "\\",
        "\n",
        "\u0301",
        "<",
        "_:a b",
        "\xe9",
        "{",
    ]
)
_LIKE_NAMES = st.lists(_PARTS, max_size=5).map("".join)


@given(
    texts=st.lists(_LIKE_NAMES, min_size=1, max_size=4),
    names=st.lists(_LIKE_NAMES, max_size=2),
    raw=st.booleans(),
)
@settings(max_examples=examples(600, part=6), deadline=None)
def test_a_literal_that_looks_like_a_name_of_json_stays_as_it_is(
    texts: list[str], names: list[str], raw: bool
) -> None:
    values = [
        *texts,
        *({"@value": text, "@language": "en"} for text in texts),
        *({"@value": [text], "@type": "@json"} for text in texts),
        *({"@id": f"_:{name}"} for name in names),
    ]
    document = json.dumps({"@id": "x:s", "x:p": values}, ensure_ascii=not raw)
    found = parse_rdf(document, "jsonld", multi="keep").objects
    literals = {(o.text, o.language) for o in found if o.kind == "literal" and not o.datatype}
    assert literals == {(text, language) for text in texts for language in ("", "en")}
    assert {json.loads(o.text)[0] for o in found if o.datatype} == {*texts}
    assert sum(o.kind == "blank" for o in found) == len({*names})


def test_blank_nodes_with_names_of_anonymous_ones_are_written_in_tables_alone(
    tmp_path: Path,
) -> None:
    db = Database.from_triples([(Term("blank", "d" * 32), P, P)])
    with pytest.raises(InvalidArgumentError, match="would get other names"):
        write(db, tmp_path / "facts.nt")
    write(db, tmp_path / "facts.tsv")
    assert load(tmp_path / "facts.tsv") == db
