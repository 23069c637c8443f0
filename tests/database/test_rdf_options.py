"""One graph or all, a base, contexts from files, empty graphs, and limits of sizes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rdflib

from capacity import rank_interval
from capacity.database import (
    Database,
    Term,
    from_rdflib,
    list_graphs,
    load,
    parse_rdf,
    read_rdf,
    to_networkx,
    to_pandas,
    to_rdflib,
    write_tsv,
)
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from tests.formats import texts
from tests.harmful import RDF as XML

DATASET = """
PREFIX e: <http://e/>
e:a e:p e:b, e:c .
e:g { e:a e:p e:d . e:a e:p e:b }
_:h { e:e e:p _:h }
[] { e:f e:p 1 }
"""


def objects(**options: Any) -> list[str]:
    db = parse_rdf(DATASET, "trig", multi="keep", **options)
    return [db.name(one) for one in db.objects]


def test_a_graph_is_named_by_its_iri_a_prefixed_name_or_a_blank_name() -> None:
    assert objects(graph="default") == ["e:b", "e:c"]
    for name in ("http://e/g", "<http://e/g>", "e:g"):
        assert objects(graph=name) == ["e:b", "e:d"]
    # blank nodes have the names of the file, whatever graph is chosen
    assert objects(graph="_:h") == ["_:h"]
    assert objects(graph="_:anonymous1") == ["1"]
    assert objects(graph="union") == objects() == ["_:h", "e:b", "e:c", "e:d", "1"]


def test_graphs_are_listed_by_the_names_that_choose_them(tmp_path: Path) -> None:
    path = tmp_path / "facts.trig"
    path.write_text(DATASET)
    counts = {"default": 2, "http://e/g": 2, "_:h": 1, "_:anonymous1": 1}
    assert list_graphs(path) == counts
    for name, count in counts.items():
        assert load(path, graph=name, multi="keep").n_triples == count
    path.write_text("# nothing")
    assert list_graphs(path, format="trig") == {}


@pytest.mark.parametrize("graph", ["", "not iri", "no-colon", "<x y:>", 3, b"x:g", ["x:g"]])
def test_what_cant_name_a_graph_is_refused(graph: Any) -> None:
    for read in (lambda: objects(graph=graph), lambda: from_rdflib(rdflib.Dataset(), graph=graph)):
        with pytest.raises(InvalidArgumentError, match=r"`graph` must be the IRI .* got"):
            read()


def test_a_graph_that_isnt_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(DatabaseFormatError, match=r"<http://e/G>\. Its graphs are default \(2\)"):
        objects(graph="e:G")
    with pytest.raises(DatabaseFormatError, match="Did you mean `http://e/g`"):
        objects(graph="http://e/gg")
    with pytest.raises(DatabaseFormatError, match="no triples were found in the default graph"):
        parse_rdf("<x:g> { <x:a> <x:p> <x:b> }", "trig", graph="default")


# rdflib's parser of TriG, of its own dataset
@pytest.mark.filterwarnings("ignore:(Dataset|ConjunctiveGraph):DeprecationWarning")
def test_graphs_of_rdflib_have_the_same_names() -> None:
    dataset = rdflib.Dataset()
    dataset.parse(data=DATASET, format="trig")
    assert from_rdflib(dataset, graph="default", multi="keep").n_triples == 2
    assert from_rdflib(dataset, graph="http://e/g", multi="keep").n_triples == 2
    assert from_rdflib(dataset, multi="keep").n_triples == 5
    assert from_rdflib(to_rdflib(parse_rdf("<x:a> <x:p> 1 .", "ttl")), graph="union").n_triples == 1


def test_relative_iris_are_resolved_against_the_base() -> None:
    db = parse_rdf("<a> <#p> <../b> .", "turtle", base="http://e/x/y/facts.ttl")
    assert [t.text for t in db.tokens] == [
        "http://e/x/b", "http://e/x/y/a", "http://e/x/y/facts.ttl#p",
    ]  # fmt: skip
    for base in ("x", "", "a b:", 3):
        with pytest.raises(InvalidArgumentError, match="`base` must be an absolute IRI"):
            parse_rdf("<a> <p> <b> .", "turtle", base=base)  # type: ignore[arg-type]


CONTEXT = {"@context": {"p": "http://x/p", "@base": "http://not/this/", "Q": "http://x/Q"}}


def test_contexts_are_given_as_files_or_documents(tmp_path: Path) -> None:
    (tmp_path / "c.jsonld").write_text(json.dumps(CONTEXT))
    expected = Term("iri", "http://x/p")
    for reference, base, contexts in (
        ("http://c/", None, {"http://c/": CONTEXT}),
        ("http://c/", None, {"http://c/": tmp_path / "c.jsonld"}),
        ("c.jsonld", None, {"c.jsonld": str(tmp_path / "c.jsonld")}),
        ("../c", "http://e/f/d", {"http://e/c": CONTEXT}),
    ):
        text = json.dumps({"@context": [reference, {"z": "x:z"}], "@id": "a", "p": 12})
        db = parse_rdf(text, "jsonld", base=base, contexts=contexts)
        assert db.predicates == (expected,)
        # the base of a context from elsewhere has no effect (JSON-LD 1.1 API, 4.1.2, 5.7)
        assert db.subjects[0].text == ("http://e/f/a" if base else "file:///a")
        assert db.objects[0].text == "12"


def test_a_context_is_imported_and_scoped_and_may_refer_to_itself_below_a_term() -> None:
    contexts = {
        "http://c/": {"@context": {"p": "x:p", "s": {"@id": "x:s", "@context": "http://c/"}}},
        "http://d/": {"@context": {"@import": "/c", "p": "x:other"}},
        "http://d/c": {"@context": {"p": "x:p", "q": "x:q"}},
    }
    text = '{"@context": "http://c/", "@id": "x:a", "s": {"s": {"p": "end"}}}'
    db = parse_rdf(text, "jsonld", contexts=contexts)
    # a triple of each s, and that of p
    assert [p.text for p in db.predicates] == ["x:p", "x:s"]
    assert db.n_triples == 3
    text = '{"@context": "http://d/", "@id": "x:a", "p": 1, "q": 2}'
    assert [p.text for p in parse_rdf(text, "jsonld", contexts=contexts).predicates] == [
        "x:other", "x:q",
    ]  # fmt: skip


def test_a_context_within_json_data_is_data() -> None:
    context = '["http://c/", {"j": {"@id": "x:j", "@type": "@json"}}]'
    text = f'{{"@context": {context}, "@id": "x:a", "j": %s}}'
    data = '{"@context":"http://c/"}'
    db = parse_rdf(text % data, "jsonld", contexts={"http://c/": CONTEXT})
    assert db.objects[0].text == data
    plain = '{"@id": "x:a", "x:j": {"@type": "@json", "@value": {"@context": "http://elsewhere/"}}}'
    assert parse_rdf(plain, "jsonld").objects[0].text == '{"@context":"http://elsewhere/"}'


@pytest.mark.parametrize(
    ("contexts", "reason"),
    [
        (
            None,
            r"its context 'http://c/' is elsewhere.* contexts=\{'http://c/': 'context.jsonld'\}",
        ),
        ({}, "its context 'http://c/' is elsewhere"),
        ({"http://c": CONTEXT}, r"is elsewhere.*Did you mean `http://c`\?"),
        ({"http://c/": {"p": "x:p"}}, "has no key @context"),
        ({"http://c/": {"@context": "http://c/"}}, "refers to itself"),
        ({"http://c/": {"@context": {"@import": "http://d/"}}}, "its context 'http://d/'"),
        ({"http://c/": {"@context": {"@import": 3}}}, "@import must name a context"),
        ({"http://c/": "nowhere.jsonld"}, "nowhere.jsonld: no such file"),
    ],
)
def test_a_context_that_isnt_given_or_isnt_one_is_refused(contexts: Any, reason: str) -> None:
    with pytest.raises(DatabaseFormatError, match=reason):
        parse_rdf('{"@context": "http://c/", "@id": "x:a", "p": 1}', "jsonld", contexts=contexts)


def test_contexts_that_refer_to_each_other_twice_end_soon() -> None:
    terms = {f"t{i}": {"@id": f"x:{i}", "@context": "http://c/"} for i in range(10)}
    text: Any = {"@id": "x:a"}
    for _ in range(20):
        text = {"t0": text}
    with pytest.raises(DatabaseFormatError, match="each as often as used"):
        parse_rdf(json.dumps({"@context": "http://c/", **text}), "jsonld",
                  contexts={"http://c/": {"@context": terms}})  # fmt: skip


@pytest.mark.slow
def test_a_context_within_itself_is_written_as_deep_as_the_document() -> None:
    def read(depth: int, levels: int) -> int:
        context: Any = "http://c/"
        for i in reversed(range(levels)):
            context = {"p": "x:p", f"s{i}": {"@id": "x:s", "@context": context}}
        node: Any = {"p": 1}
        for i in reversed(range(depth)):
            node = {f"s{i % levels}": node}
        text = json.dumps({"@context": "http://c/", "@id": "x:a", **node})
        return parse_rdf(text, "jsonld", contexts={"http://c/": {"@context": context}}).n_triples

    # a triple of each s, and that of p
    assert read(100, 1) == 101
    assert read(100, 20) == 101


def test_a_context_whose_name_is_no_url_is_missing_and_no_more() -> None:
    text = '{"@context": "http://[c/", "@id": "x:a", "p": 1}'
    with pytest.raises(DatabaseFormatError, match=r"its context 'http://\[c/' is elsewhere"):
        parse_rdf(text, "jsonld", contexts={"http://c/": CONTEXT})
    assert parse_rdf(text, "jsonld", contexts={"http://[c/": CONTEXT}).n_triples == 1


def test_contexts_are_a_mapping() -> None:
    for wrong in ([CONTEXT], {1: CONTEXT}, {"x:": 3}):
        with pytest.raises(InvalidTypeError, match="`contexts` must map"):
            parse_rdf('{"@id": "x:a"}', "jsonld", contexts=wrong)  # type: ignore[arg-type]


def test_options_of_rdf_are_refused_for_tables(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tp\tb\n")
    with pytest.raises(DatabaseFormatError, match="`graph` is an option of RDF"):
        load(tmp_path / "a.tsv", graph="default")


EMPTY = {"a.ttl": "", "b.ttl": "@prefix : <x:> .", "c.nt": "# no", "d.json": "{}",
         "e.tsv": "subject\tpredicate\tobject\n", "f.csv": ""}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_file_is_an_empty_database_where_one_asks_for_it(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(EMPTY[name])
    with pytest.raises(DatabaseFormatError, match=r"no triples|is empty|no rows"):
        load(tmp_path / name)
    db = load(tmp_path / name, allow_empty=True)
    assert db.shape == (0, 0, 0)
    assert db.source is not None


def test_an_empty_database_has_no_facts_and_no_rank(tmp_path: Path) -> None:
    db = parse_rdf("", "turtle", allow_empty=True)
    assert (db.n_facts, db.tokens, db.is_functional) == (0, (), True)
    assert db == db.with_policy("first") == db.subset(np.zeros(0, dtype=bool))
    assert str(db).startswith("Database(0 triples: 0 subjects x 0 predicates x 0 objects")
    assert db.to_numpy().shape == db.to_coo().shape == (0, 0, 0)
    assert len(to_pandas(db)) == len(to_rdflib(db)) == len(to_networkx(db)) == 0
    write_tsv(db, tmp_path / "a.tsv")
    assert load(tmp_path / "a.tsv", allow_empty=True) == db
    # a sum of no facts is what the hash of nothing is
    assert (
        db.facts_sha256
        == Database.from_ids([], np.zeros((0, 3), int), allow_empty=True).facts_sha256
    )
    for use in (db.tensor, lambda: rank_interval(db)):
        with pytest.raises(InvalidArgumentError, match="no facts, and so no tensor and no rank"):
            use()
    with pytest.raises(InvalidArgumentError, match="at least one fact"):
        Database.from_triples([])


LONG = "a" * 2000
OF_LENGTH = {name: b"".join(text.rows(1, LONG)) for name, text in texts().items()}


@pytest.mark.parametrize("format", OF_LENGTH)
def test_limits_are_the_same_for_all_formats(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{format}"
    path.write_bytes(OF_LENGTH[format])
    assert load(path, max_term_bytes=2000).n_triples == 1
    with pytest.raises(DatabaseFormatError, match="longer than 1,999 bytes"):
        load(path, max_term_bytes=1999)
    with pytest.raises(DatabaseFormatError, match="more than 1,500 bytes"):
        load(path, max_bytes=1500)
    for wrong in (0, -1, "1", 1.5):
        with pytest.raises(InvalidArgumentError, match="`max_"):
            load(path, max_bytes=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="`max_"):
            load(path, max_term_bytes=wrong)  # type: ignore[arg-type]


def test_the_limit_of_a_term_counts_a_section_of_cdata_whose_signs_begin_no_tag() -> None:
    part = f"<!-- {'c' * 2000} --><x:p><![CDATA[{'<' * 600}{']' * 400}]]></x:p>"
    text = f"{XML}<r:Description r:about='x:a'>{part}</r:Description></r:RDF>"
    assert parse_rdf(text, "rdfxml", max_term_bytes=1000).n_triples == 1
    with pytest.raises(DatabaseFormatError, match="a cell is longer than 999 bytes"):
        parse_rdf(text, "rdfxml", max_term_bytes=999)


@pytest.mark.slow
def test_a_term_over_16_mib_is_refused_in_every_format(tmp_path: Path) -> None:
    for format, text in OF_LENGTH.items():
        path = tmp_path / f"a.{format}"
        path.write_bytes(text.replace(LONG.encode(), b"a" * (2**24 + 1)))
        with pytest.raises(
            DatabaseFormatError, match=r"longer than (8 MiB|16 MiB|16,777,216 bytes)"
        ) as refusal:
            load(path)
        # the advice is true, and not given where the parser itself reads no more
        if "raise `max_term_bytes`" in str(refusal.value):
            assert load(path, max_term_bytes=2**25).n_triples == 1
        else:
            assert "the most that the parser of this format reads" in str(refusal.value)


def test_read_rdf_takes_the_options_of_load(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<a> <p> <b> .")
    options: dict[str, Any] = {"base": "http://e/", "graph": "default"}
    assert read_rdf(tmp_path / "a.ttl", **options) == load(tmp_path / "a.ttl", **options)
