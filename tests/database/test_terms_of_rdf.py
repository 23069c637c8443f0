"""Whatever terms are let in, a file is read as what was written, or it isn't written."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
    to_networkx,
    to_pandas,
    to_rdflib,
    write,
)
from capacity.database.io.sparql.results import Cells, UnkeptTermError
from capacity.database.terms.grammar import RDF
from capacity.errors import CapacityError, InvalidArgumentError
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
ANY = st.one_of(
    IRIS.map(lambda text: Term("iri", text)),
    TEXTS.map(lambda text: Term("blank", text)),
    st.builds(lambda *parts: Term("literal", *parts), TEXTS, DATATYPES, LANGUAGES),
    TEXTS.map(label),
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
    ).map(lambda text: Term("triple", text)),
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


@given(rows=st.lists(st.tuples(ANY, st.one_of(st.just(P), ANY), ANY), min_size=1, max_size=3))
@settings(max_examples=examples(600, part=8), deadline=None)
def test_any_terms_are_read_as_they_are_written_or_not_written(
    rows: list[tuple[Term, Term, Term]], folder: Path
) -> None:
    holds(Database.from_triples(rows, multi="keep"), folder)


@given(term=ANY)
@settings(max_examples=examples(600, part=8), deadline=None)
def test_any_object_is_read_as_it_is_written_or_not_written(term: Term, folder: Path) -> None:
    holds(Database.from_triples([(Term("iri", "x:s"), P, term)]), folder)


def _turtle(term: Term) -> str:
    return f"<x:s> <x:p> {term.n3()} ."


def _json(term: Term) -> str:
    value: dict[str, Any] = {"@value": term.text}
    if term.kind in ("iri", "blank"):
        value = {"@id": term.text if term.kind == "iri" else f"_:{term.text}"}
    language, _, direction = term.language.partition("--")
    if term.datatype:
        value["@type"] = term.datatype
    if language or direction:
        value |= {"@language": language} | ({"@direction": direction} if direction else {})
    return json.dumps({"@id": "x:s", "x:p": value})


def _xml(term: Term) -> str:
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


def _from_rdflib(term: Term) -> Database:
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


def _from_pandas(term: Term) -> Database:
    import pandas as pd

    return from_pandas(pd.DataFrame([["a", "p", term.text]], columns=["s", "p", "o"]))


def _from_networkx(term: Term) -> Database:
    import networkx as nx

    graph = nx.MultiDiGraph()
    graph.add_edge("a", term.text, key="p")
    return from_networkx(graph)


def _from_results(term: Term) -> Database:
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


def _from_table(term: Term, suffix: str) -> Database:
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


READERS: dict[str, Callable[[Term], Database]] = {
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
    reader: str, term: Term, folder: Path
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
def test_what_the_libraries_are_given_comes_back(term: Term) -> None:
    db = Database.from_triples([(Term("iri", "x:s"), P, term)])
    routes: list[tuple[Callable[[], Any], Callable[[Any], Database]]] = [
        (lambda: to_pandas(db, terms="n3"), lambda frame: from_pandas(frame, terms="n3")),
        (lambda: to_rdflib(db), from_rdflib),
        (lambda: to_networkx(db), from_networkx),
    ]
    for there, back in routes:
        try:
            made = there()
        except CapacityError:
            continue
        assert back(made) == db


def test_a_literal_without_its_language_is_refused_where_it_is_read() -> None:
    # RDF 1.1 Concepts, 3.3: such a literal has a language, and N-Triples' parser refuses it, too
    for datatype in ("langString", "dirLangString"):
        term = Term("literal", "x", f"{RDF}{datatype}")
        for reader in READERS.keys() - {"rdflib", "pandas", "networkx"}:
            for way in WAYS:
                with read_by(way), pytest.raises(CapacityError, match=r"[Ll]angString|language"):
                    READERS[reader](term)
        with pytest.raises(InvalidArgumentError, match="RDF has no literal that is read as"):
            write(Database.from_triples([(P, P, term)]), "facts.nt")


def test_labels_that_json_alone_has_are_renamed() -> None:
    text = '{"@id": "_:a:b", "x:p": [{"@id": "_:b"}, {"@id": "_:a:b"}]}'
    for way in WAYS:
        with read_by(way):
            db = parse_rdf(text, "jsonld", multi="keep")
        assert [str(token) for token in db.tokens] == ["_:b0", "_:b1", "<x:p>"]


def test_blank_nodes_with_names_of_anonymous_ones_are_written_in_tables_alone(
    tmp_path: Path,
) -> None:
    db = Database.from_triples([(Term("blank", "d" * 32), P, P)])
    with pytest.raises(InvalidArgumentError, match="would get other names"):
        write(db, tmp_path / "facts.nt")
    write(db, tmp_path / "facts.tsv")
    assert load(tmp_path / "facts.tsv") == db
