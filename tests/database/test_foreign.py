"""What isn't read is named, with what converts it; what is read is never taken for it."""

import io
import json
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdflib

from capacity.database import Database, from_networkx, from_rdflib, load
from capacity.database.io.files.foreign import foreign_text
from capacity.errors import DatabaseFormatError
from tests.hostile_rdf import WHOLE
from tests.oracles import EXAMPLES

TRIX = """<?xml version="1.0"?><!-- <svg> --><TriX xmlns="http://www.w3.org/2004/03/trix/trix-1/">
<graph><uri>http://x/g</uri><triple><uri>http://x/a</uri><uri>http://x/p</uri>
<plainLiteral>b</plainLiteral></triple></graph></TriX>"""
HEXTUPLES = '["http://x/a", "http://x/p", "b", "http://www.w3.org/2001/XMLSchema#string", "", ""]\n'
TEXTS = {
    "TriX": TRIX,
    "HexTuples": HEXTUPLES,
    "OWL in OWL/XML": '<?xml version="1.0"?>\n<Ontology xmlns="http://www.w3.org/2002/07/owl#">',
    "OWL in functional syntax": "Prefix(:=<http://x/>)\nOntology(<http://x/o>\n)",
    "OWL in Manchester syntax": "# an ontology\nPrefix: : <http://x/>\nOntology: <http://x/o>",
    "an ontology in OBO format": "format-version: 1.2\n\n[Term]\nid: X:1\nname: a\n",
    "a pointer of git-LFS": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    "an HTML page, perhaps with RDFa": '<!DOCTYPE html><p vocab="x:" property="p">b</p><html>',
    "an HTML page with JSON-LD": '<html><script type="application/ld+json">{}</script></html>',
    "an HTML page. Download": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>',
    "an SVG image": '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="x:"><x:a x:b="c"/></svg>',
    "GraphML": '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"/>',
    "a SPARQL result in XML": '<sparql xmlns="http://www.w3.org/2005/sparql-results#"></sparql>',
    "a SPARQL result in JSON": '{"head": {"vars": ["s"]}, "results": {"bindings": []}}',
    "an ontology in OBO Graphs JSON": '{\n "graphs" : [ {\n "nodes" : [ {"id": "x:a"} ] } ] }',
    "RDF/JSON": '{"http://x/a": {"http://x/p": [{"value": "b", "type": "literal"}]}}',
}


@pytest.mark.parametrize("what", TEXTS)
@pytest.mark.parametrize("name", ["facts", "facts.ttl", "facts.rdf"])
def test_a_text_of_another_format_is_named_whatever_it_is_called(
    what: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(TEXTS[what])
    with pytest.raises(DatabaseFormatError, match=f"it is {what}"):
        load(tmp_path / name)


PLAIN_JSON = {
    '{"people": {"Ann": {"age": 42}}}': "it is plain JSON",
    '{"s": ["a"]}\n{"s": ["b"]}\n': r'line 2.*JSON Lines.*format="records"',
    '{"@context": {"name": "http://x/name"}}': r"a context alone.*contexts=",
    # whose keys may be of a vocabulary
    '{"@context": {}, "name": "Ann"}': "no triples were found",
    '{"@id": "http://x/a", "name": "Ann"}': "no triples were found",
    '{"http://x/name": null}': "no triples were found",
    "[]": "no triples were found",
}


@pytest.mark.parametrize("text", PLAIN_JSON)
@pytest.mark.parametrize("name", ["a.json", "a.jsonld"])
def test_json_that_is_no_json_ld_is_told(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DatabaseFormatError, match=PLAIN_JSON[text]):
        load(tmp_path / name)


def test_a_text_of_another_format_is_named_when_its_parser_fails(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(TEXTS["OWL in functional syntax"])
    with pytest.raises(DatabaseFormatError, match=r"functional syntax. .*robot convert"):
        load(tmp_path / "a", format="turtle")


def test_advice_keeps_cells_as_they_stand_and_terms_as_terms(tmp_path: Path) -> None:
    said = []
    for data in (*archives(tmp_path).values(), b"1\n0 1 0\n"):
        (tmp_path / "facts").write_bytes(data)
        with pytest.raises(DatabaseFormatError) as refusal:
            load(tmp_path / "facts")
        said.append(str(refusal.value))
    pandas = [text for text in said if "pd.read_excel" in text or "pd.read_csv" in text]
    assert len(pandas) == 2
    assert all("dtype=str, keep_default_na=False)" in text for text in pandas)
    # CSV has lost the kinds of terms
    for what in ("a SPARQL result in XML", "a SPARQL result in JSON"):
        found = foreign_text(TEXTS[what])
        assert found is not None
        assert "text/tab-separated-values" in found.advice


def archives(folder: Path) -> dict[str, bytes]:
    zipped, tarred, array, excel = (io.BytesIO() for _ in range(4))
    facts = (EXAMPLES / "figure-1.ttl").read_bytes()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("facts.ttl", facts)
    with zipfile.ZipFile(excel, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        archive.add(EXAMPLES / "figure-1.ttl")
    np.save(array, np.zeros(3))
    sqlite3.connect(folder / "a.db").execute("create table t (s, p, o)").connection.close()
    pd.DataFrame({"s": ["a"]}).to_parquet(folder / "a.parquet")
    pd.DataFrame({"s": ["a"]}).to_feather(folder / "a.arrow")
    return {
        "a zip archive": zipped.getvalue(),
        "an Excel file": excel.getvalue(),
        "a tar archive": tarred.getvalue(),
        "an array of numpy": array.getvalue(),
        "an SQLite database": (folder / "a.db").read_bytes(),
        "a Parquet file that is cut off": (folder / "a.parquet").read_bytes()[:-9],
        "an Arrow file": (folder / "a.arrow").read_bytes(),
        "an HDT file": b"$HDT\1<http://purl.org/HDT/hdt#HDTv1>\0",
    }


def test_an_archive_or_a_database_is_named(tmp_path: Path) -> None:
    import gzip

    for what, data in archives(tmp_path).items():
        for packed in (data, gzip.compress(data)):
            (tmp_path / "facts.ttl").write_bytes(packed)
            with pytest.raises(DatabaseFormatError, match=f"it is {what}"):
                load(tmp_path / "facts.ttl")
    (tmp_path / "facts.ttl").write_bytes(gzip.compress(gzip.compress(b"a")))
    with pytest.raises(DatabaseFormatError, match="compressed twice"):
        load(tmp_path / "facts.ttl")


# rdflib's parser of datasets, of its own dataset
@pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph):DeprecationWarning")
@pytest.mark.parametrize(("format", "text"), [("trix", TRIX), ("hext", HEXTUPLES)])
def test_what_the_advice_says_of_rdflib_works(format: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "facts").write_text(text)
    with pytest.raises(DatabaseFormatError, match=f'format="{format}"'):
        load(tmp_path / "facts")
    db = from_rdflib(rdflib.Dataset().parse(data=text, format=format))
    assert [str(term) for term in db.tokens] == ["<http://x/a>", "<http://x/p>", '"b"']


@pytest.mark.parametrize(
    "text",
    [
        *WHOLE.values(),
        # a relative IRI, a prefix and a word that are also names of other formats
        "<svg> <p> <o> .",
        "<x:svg> <x:p> <x:o> .",
        "@prefix Class: <x:> . Class:a Class:b Class:c .",
        "version\tp\thttps://git-lfs.github.com/spec/",
        '["a"]',
        '[{"@id": "x:a"}]',
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://www.w3.org/'
        '2002/07/owl#"><Ontology rdf:about=""/></rdf:RDF>',
        '<Ontology xmlns="http://x/" xmlns:x="http://x/" x:p="v"/>',
    ],
)
def test_what_is_read_is_taken_for_nothing_else(text: str) -> None:
    assert foreign_text(text) is None


GRAPH = {
    "id": "x:g",
    "nodes": [{"id": "x:a"}],
    "edges": [{"sub": "x:a", "pred": "is_a", "obj": "x:b"}],
}


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"meta": {"v": {"w": 1}}, "graphs": [GRAPH]}, "OBO Graphs JSON. Convert it"),
        ({"@context": {}, "graphs": [GRAPH]}, "OBO Graphs JSON. Convert it"),
        (GRAPH, "OBO Graphs JSON. Convert it"),
        ({"directed": True, "nodes": [{"id": 1}], "links": []}, "nodes and links. Read it"),
        ({"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 1}]}, "nodes and links. Read it"),
        ({"nodes": 5, "edges": []}, "it is plain JSON"),
    ],
)  # fmt: skip
def test_json_of_another_format_is_named_whatever_its_order(
    document: object, what: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(DatabaseFormatError, match=what):
        load(tmp_path / "a.json")


# of the name of the links, which changed
@pytest.mark.filterwarnings("ignore")
def test_the_advice_about_nodes_and_links_works(tmp_path: Path) -> None:
    import networkx as nx

    graph = nx.MultiDiGraph()
    graph.add_edge("Ann", "Bob", relation="knows")
    (tmp_path / "a.json").write_text(json.dumps(nx.node_link_data(graph)))
    with pytest.raises(DatabaseFormatError, match=r"nx\.node_link_graph\(json\.load"):
        load(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    db = from_networkx(nx.node_link_graph(document), predicate="relation")
    assert db == Database.from_triples([("Ann", "knows", "Bob")])
