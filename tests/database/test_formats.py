"""One set of facts gives the same Database from every format and library."""

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import assume, given
from hypothesis import strategies as st

from capacity.database import (
    Database,
    Format,
    Reading,
    Term,
    Text,
    from_networkx,
    from_pandas,
    from_rdflib,
    label,
    load,
    parse_rdf,
    read_table,
    register_format,
    to_networkx,
    to_pandas,
    to_rdflib,
    write_tsv,
)
from capacity.database.io.files.content import check
from capacity.database.io.files.formats import FORMATS, FileHead, resolve_format, unregister_format
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.testing import databases, labels, rdf_databases
from tests.formats import Text as FormatText
from tests.formats import as_written, texts
from tests.oracles import EXAMPLES, figure_1


def as_quads(db: Database) -> list[ox.Quad]:
    def node(term: Term) -> ox.NamedNode | ox.Literal:
        if term.kind == "iri":
            return ox.NamedNode(term.text)
        if term.language:
            return ox.Literal(term.text, language=term.language)
        datatype = ox.NamedNode(term.datatype) if term.datatype else None
        return ox.Literal(term.text, datatype=datatype)

    nodes = [node(t) for t in db.tokens]
    return [ox.Quad(*(nodes[i] for i in row)) for row in db.token_triples]  # type: ignore[arg-type]


@given(rdf_databases())
def test_every_rdf_format_gives_the_same_database(db: Database) -> None:
    for name, known in FORMATS.items():
        # pyoxigraph doesn't write N3; Turtle is N3
        if name == "n3" or known.kind != "rdf":
            continue
        parser = ox.RdfFormat.from_media_type(known.aliases[-1])
        text = ox.serialize(as_quads(db), format=parser)
        assert text is not None
        again = parse_rdf(text, name, multi="keep")
        assert again == db, name
        assert again.facts_sha256 == db.facts_sha256
    turtle = ox.serialize(as_quads(db), format=ox.RdfFormat.TURTLE)
    assert turtle is not None
    assert parse_rdf(turtle, "n3", multi="keep") == db


@given(rdf_databases())
def test_rdflib_graphs_and_what_rdflib_writes_give_the_same_database(db: Database) -> None:
    graph = to_rdflib(db)
    assert from_rdflib(graph, multi="keep") == db
    # rdflib's Turtle and JSON-LD writers rewrite "1"^^xsd:decimal and the like
    for name, chosen in (("nt", "ntriples"), ("xml", "rdfxml")):
        text = graph.serialize(format=name)
        assert parse_rdf(text, chosen, multi="keep") == db, name


@given(db=rdf_databases())
def test_tables_of_n_triples_terms_give_the_same_database(
    db: Database, tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = to_pandas(db)
    assert from_pandas(frame, terms="n3", multi="keep") == db
    folder = tmp_path_factory.mktemp("tables")
    write_tsv(db, folder / "facts.tsv")
    assert read_table(folder / "facts.tsv", terms="n3", multi="keep") == db
    frame.to_csv(folder / "facts.csv", index=False)
    assert read_table(folder / "facts.csv", terms="n3", multi="keep") == db


@given(rows=st.lists(st.tuples(labels(), labels(), labels()), min_size=1, max_size=8))
def test_tables_of_labels_come_back_as_they_were(
    rows: list[tuple[Term, Term, Term]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    # a row of empty cells is refused, and in TSV what looks quoted as in CSV
    assume(all(any(term.text for term in row) for row in rows))
    assume(all(term.text == '"' or '"' not in term.text for row in rows for term in row))
    db = Database.from_triples(rows, multi="keep")
    folder = tmp_path_factory.mktemp("labels")
    assert from_pandas(to_pandas(db), multi="keep") == db
    write_tsv(db, folder / "facts.tsv")
    assert read_table(folder / "facts.tsv", multi="keep") == db
    to_pandas(db).to_csv(folder / "facts.csv", index=False)
    assert load(folder / "facts.csv", multi="keep") == db


@given(databases())
def test_networkx_graphs_come_back_as_they_were(db: Database) -> None:
    assert from_networkx(to_networkx(db), multi="keep") == db


@given(rdf_databases())
def test_networkx_keeps_rdf_terms(db: Database) -> None:
    assert from_networkx(to_networkx(db), multi="keep") == db


def test_networkx_edges_need_a_direction_and_a_predicate() -> None:
    with pytest.raises(ValueError, match="pass a DiGraph"):
        from_networkx(nx.Graph([("a", "b")]))
    with pytest.raises(ValueError, match="must have the attribute 'predicate'"):
        from_networkx(nx.MultiDiGraph([("a", "b")]))
    graph = nx.DiGraph()
    graph.add_edge("a", "b", kind="knows")
    assert from_networkx(graph, predicate="kind")("a", "knows") == label("b")


def test_cells_stay_what_they_are(tmp_path: Path) -> None:
    rows = [("a", "p", "NA"), ("b", "p", "null"), ("c", "p", ""), ("d", "p", '"quoted'),
            ("e", "p", "1.0"), ("f", "p", " padded "), ("g", "p", "line\u2028break")]  # fmt: skip
    (tmp_path / "t.tsv").write_text("".join("\t".join(r) + "\n" for r in rows), encoding="utf-8")
    db = read_table(tmp_path / "t.tsv")
    assert {db(k, "p").text for k in "abcdefg"} == {r[2] for r in rows}
    (tmp_path / "t.csv").write_bytes(
        b'a,p,NA\r\nb,p,null\r\nc,p,\r\nd,p,"""quoted"\r\ne,p,"two\nlines, and a comma"\r\n'
    )
    db = read_table(tmp_path / "t.csv")
    assert db("d", "p").text == '"quoted'
    assert db("e", "p").text == "two\nlines, and a comma"
    assert db("c", "p").text == ""


def test_a_frame_may_have_other_columns_and_no_cell_without_a_value() -> None:
    frame = pd.DataFrame({"object": ["x"], "note": [1], "subject": ["a"], "predicate": ["p"]})
    assert from_pandas(frame)("a", "p") == label("x")
    assert from_pandas(frame.assign(object=1))("a", "p") == label("1")
    with pytest.raises(TypeError, match=r"holds \[1\] of type list\. .*explode"):
        from_pandas(frame.assign(object=pd.Series([[1]])))
    with pytest.raises(ValueError, match=r"a cell is missing\. Drop the row or fill it"):
        from_pandas(frame.assign(object=[float("nan")]))
    with pytest.raises(ValueError, match="three columns"):
        from_pandas(frame[["subject", "object"]])


def test_labels_get_iris_only_with_a_base() -> None:
    db = figure_1()
    with pytest.raises(ValueError, match="Make IRIs of labels"):
        to_rdflib(db)
    graph = to_rdflib(db, base="http://example.org/")
    assert from_rdflib(graph) == load(EXAMPLES / "figure-1.ttl")


def test_minted_iris_never_merge_two_tokens() -> None:
    db = Database.from_triples([("a", "p", Term("iri", "x:a"))])
    with pytest.raises(ValueError, match="denote two tokens"):
        to_rdflib(db, base="x:")


def test_what_a_form_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tab or a line break"):
        write_tsv(Database.from_triples([("a\tb", "p", "x")]), tmp_path / "t.tsv")
    rdf = load(EXAMPLES / "figure-1.ttl")
    with pytest.raises(ValueError, match="would lose its kind"):
        to_pandas(rdf, terms="label")
    with pytest.raises(ValueError, match="no form for the label"):
        to_pandas(figure_1(), terms="n3")
    assert not (tmp_path / "t.tsv").exists()


def test_literals_follow_rdf_1_1_term_identity() -> None:
    text = """
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    <x:a> <x:p> "1", "1"^^xsd:string, "1"@en, "1"@EN, 1, "01"^^xsd:integer .
    """
    db = parse_rdf(text, "turtle", multi="keep")
    # plain = xsd:string; language tags compare in lower case; 1 and 01 are two terms
    assert {t.n3().replace("http://www.w3.org/2001/XMLSchema#", "") for t in db.objects} == {
        '"1"', '"1"@en', '"1"^^<integer>', '"01"^^<integer>',
    }  # fmt: skip
    # and rdflib's two spellings of a string are one term
    graph = rdflib.Graph()
    for value in (rdflib.Literal("1"), rdflib.Literal("1", datatype=rdflib.XSD.string)):
        graph.add((rdflib.URIRef("x:a"), rdflib.URIRef("x:p"), value))
    assert from_rdflib(graph).n_triples == 1


def test_blank_nodes_read_the_same_twice_and_apart() -> None:
    text = "<x:a> <x:p> [ <x:q> 'b' ], [ <x:q> 'b' ], _:named ."
    first, second = (parse_rdf(text, "turtle", multi="keep") for _ in range(2))
    assert first == second
    assert [t.text for t in first.tokens if t.kind == "blank"] == ["b0", "b1", "b2"]


def test_named_graphs_are_merged_or_chosen() -> None:
    text = """
    <x:a> <x:p> <x:b> .
    <x:g> { <x:a> <x:p> <x:b> . <x:c> <x:p> <x:d> }
    <x:h> { <x:e> <x:p> <x:f> }
    """
    assert parse_rdf(text, "trig").n_triples == 3
    assert parse_rdf(text, "trig", graph="x:g").n_triples == 2
    with pytest.raises(DatabaseFormatError, match="no triples were found in the graph <x:none>"):
        parse_rdf(text, "trig", graph="x:none")
    dataset = rdflib.Dataset()
    for graph, facts in {"x:g": "ab cd", "x:h": "ef"}.items():
        for k, v in facts.split():
            triple = (rdflib.URIRef(f"x:{k}"), rdflib.URIRef("x:p"), rdflib.URIRef(f"x:{v}"))
            dataset.graph(rdflib.URIRef(graph)).add(triple)
    assert from_rdflib(dataset).n_triples == 3
    assert from_rdflib(dataset, graph="x:g").n_triples == 2


def test_schema_can_be_dropped() -> None:
    text = """
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    <x:a> a <x:C> ; rdfs:label "a" ; <x:p> <x:b> .
    """
    db = parse_rdf(text, "turtle")
    assert db.select(schema="drop").n_triples == 1


def test_names_for_people_are_qnames_or_whole_iris() -> None:
    db = load(EXAMPLES / "figure-1.ttl")
    assert db.name(db.subjects[0]) == ":Astrid"
    assert db(":Astrid", ":born_in").text == "http://example.org/Singapore"
    assert db.name(Term("iri", "http://elsewhere.org/x")) == "<http://elsewhere.org/x>"
    assert db.name(Term("iri", "http://example.org/a/b")) == "<http://example.org/a/b>"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress,
                                      lambda d: pa.compress(d, "zstd", asbytes=True)])  # fmt: skip
def test_compressed_files_are_read_by_their_magic_bytes(compress, tmp_path: Path) -> None:
    plain = (EXAMPLES / "figure-1.ttl").read_bytes()
    (tmp_path / "figure.ttl.z").write_bytes(compress(plain))
    (tmp_path / "figure.ttl.gz").write_bytes(compress(plain))
    assert load(tmp_path / "figure.ttl.gz") == load(EXAMPLES / "figure-1.ttl")
    assert load(tmp_path / "figure.ttl.z", format="ttl") == load(EXAMPLES / "figure-1.ttl")


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_bytes(b"\xef\xbb\xbf" + (EXAMPLES / "figure-1.ttl").read_bytes())
    assert load(tmp_path / "a.ttl") == load(EXAMPLES / "figure-1.ttl")


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.nt", "@prefix : <x:> . :a :p :b .", "turtle"),
        ("a.ttl", '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax'
         '-ns#"><rdf:Description rdf:about="x:a"><p xmlns="x:">b</p></rdf:Description></rdf:RDF>',
         "rdfxml"),
        ("a", "<x:a> <x:p> <x:b> .", "nquads"),
        ("a", '[{"@id": "x:a", "x:p": [{"@id": "x:b"}]}]', "jsonld"),
        ("a.ttl", "[ <x:p> <x:b> ] .", "turtle"),
        ("a.trig", "<x:g> { <x:a> <x:p> <x:b> }", "trig"),
        ("a", "GRAPH <x:g> { <x:a> <x:p> <x:b> }", None),
        ("a.txt", "a\tp\tb\n", "tsv"),
        ("a.nt.gz", "<x:a> <x:p> <x:b> .", "ntriples"),
    ],
)  # fmt: skip
def test_the_content_tells_the_format_before_the_name(
    name: str, text: str, format: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    if format is None:
        with pytest.raises(
            DatabaseFormatError, match=f"Choose one with `format`: {next(iter(FORMATS))}"
        ):
            load(tmp_path / name)
    else:
        db = load(tmp_path / name)
        assert db.source is not None
        assert db.source.format == format
        assert db.n_triples == 1


def test_a_text_for_the_tests_is_made_by_the_format_that_writes_it() -> None:
    assert as_written(FORMATS["ntriples"]) == texts()["ntriples"]
    assert as_written(FORMATS["tsv"]) == FormatText("a\tb\t%s\n", "subject\tpredicate\tobject\n")
    # bytes, and what is only read
    assert as_written(FORMATS["parquet"]) is as_written(FORMATS["jsonld"]) is None
    assert "parquet" not in texts()


def semicolons(text: Text, _: Reading) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A table of another separator."""
    for number, line in enumerate(text.lines(), start=1):
        yield number, tuple(line.rstrip("\n").split(";"))


def test_a_table_from_outside_has_the_rules_and_options_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "facts.scsv"
    register_format(Format("scsv", ("scsv",), semicolons, "table"))
    try:
        path.write_text("Relation;Head;Tail\nknows;Ann;Bob\n")
        # by the header's words
        assert load(path)("Ann", "knows") == label("Bob")
        path.write_text("name;born;city\nAnn;1990;Oslo\nBob;1980;Rome\n")
        with pytest.raises(DatabaseFormatError, match="one column per property"):
            load(path)
        assert load(path, table="wide")("Bob", "city") == label("Rome")
        assert load(path, columns=["name", "born", "city"])("Bob", "1980") == label("Rome")
        path.write_text("Ann;knows\n")
        with pytest.raises(DatabaseFormatError, match=r"facts\.scsv, line 1.*this one has 2 cells"):
            load(path)
    finally:
        unregister_format("scsv")


@pytest.mark.parametrize("has", ["neither", "both"])
def test_a_format_splits_or_parses(has: str) -> None:
    functions = {"neither": {}, "both": {"split": sentences, "parse": load}}
    with pytest.raises(InvalidArgumentError, match=r"must have a function `split`"):
        register_format(Format("said", (), **functions[has]))  # type: ignore[arg-type]


def test_names_extensions_and_media_types_name_formats() -> None:
    content = check("facts", b"anything")
    for name, known in FORMATS.items():
        assert name == known.aliases[0]
        for alias in known.aliases:
            assert resolve_format(content, alias.upper()) is known


def sentences(text: Text, _: Reading) -> Iterator[tuple[int, tuple[str, ...]]]:
    """A toy format: a fact a line, "Astrid knows Bernard."."""
    for number, line in enumerate(text.lines(), start=1):
        if line.strip():
            yield number, tuple(line.rstrip(".\n").split())


def ends_in_a_stop(head: FileHead) -> int:
    return 9 * head.first.endswith(".") if len(head.first.split()) == 3 else 0


def test_a_format_from_outside_is_guessed_and_read_and_can_be_taken_out(tmp_path: Path) -> None:
    (tmp_path / "facts.said").write_text("Astrid knows Bernard.\n")
    (tmp_path / "facts").write_text("Astrid knows Bernard.\n")
    register_format(Format("said", ("said",), sentences, likelihood=ends_in_a_stop))
    try:
        for name in ("facts.said", "facts"):
            assert load(tmp_path / name)("Astrid", "knows") == label("Bernard")
        with pytest.raises(InvalidArgumentError, match="must be its own; 'said' is taken"):
            register_format(Format("other", ("said",), sentences))
        with pytest.raises(InvalidArgumentError, match="in lower case"):
            register_format(Format("Other", (), sentences))
        with pytest.raises(DatabaseFormatError, match="it must be a table"):
            read_table(tmp_path / "facts.said")
    finally:
        unregister_format("said")
    with pytest.raises(
        DatabaseFormatError, match=f"Choose one with `format`: {next(iter(FORMATS))}"
    ):
        load(tmp_path / "facts.said")


def test_a_format_from_outside_has_source_and_limits_and_errors_with_the_file(
    tmp_path: Path,
) -> None:
    register_format(Format("said", ("said",), sentences))
    path = tmp_path / "facts.said"
    try:
        path.write_text("Astrid knows Bernard.\n")
        source = load(path).source
        assert source is not None
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert (source.name, source.sha256, source.format) == ("facts.said", digest, "said")
        assert load([path, path.with_name("*.said")]).source is not None
        path.write_text("\n")
        assert load(path, allow_empty=True).shape == (0, 0, 0)
        with pytest.raises(DatabaseFormatError, match=r"facts\.said.* empty"):
            load(path)
        path.write_text("Astrid knows Bernard.\nAstrid knows.\n")
        for allow_empty in (False, True):
            with pytest.raises(DatabaseFormatError, match=r"facts\.said.*line 2.*3 terms.* has 2"):
                load(path, allow_empty=allow_empty)
        # as many terms as one says
        path.write_text("Astrid knows.\n")
        assert load(path, arity=2).shape == (1, 1)
        path.write_text("Astrid knows Bernard.\nAstrid knows Carl.\n")
        with pytest.raises(DatabaseFormatError, match="more than 1 rows"):
            load(path, max_rows=1)
        with pytest.raises(DatabaseFormatError, match="a term, 'Bernard'"):
            load(path, multi="keep", max_term_bytes=6)
        with pytest.raises(DatabaseFormatError, match="`columns` is an option of tables"):
            load(path, columns=[0, 1])
    finally:
        unregister_format("said")


def test_rdflib_nodes_in_a_frame_do_not_lose_their_kind() -> None:
    node = rdflib.Literal("chat", lang="fr")
    frame = pd.DataFrame({"s": ["a"], "p": ["p"], "o": pd.Series([node], dtype=object)})
    with pytest.raises(TypeError, match="from_triples"):
        from_pandas(frame)


def test_sets_have_no_table_form() -> None:
    db = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="set")
    with pytest.raises(ValueError, match=r"no form for the (set|label)"):
        to_pandas(db)


def test_blank_nodes_of_tables_keep_their_names(tmp_path: Path) -> None:
    text = "".join(f"_:x{i} <x:p> _:y{i} .\n" for i in range(12))
    db = parse_rdf(text, "ntriples")
    write_tsv(db, tmp_path / "t.tsv")
    assert read_table(tmp_path / "t.tsv", terms="n3") == db


def test_ids_must_be_integers_of_three_columns() -> None:
    tokens = [label(c) for c in "abcdef"]
    for bad in (np.array([[0, 1], [2, 3], [4, 5]]), np.array([[0.9, 1.2, 2.9]]), np.arange(3)):
        with pytest.raises(ValueError, match=r"integers of shape \(n, 3\)"):
            Database.from_ids(tokens, bad)
    with pytest.raises(ValueError, match="indices into distinct"):
        Database.from_ids(tokens, np.array([[0, 1, 6]]))
