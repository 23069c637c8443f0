"""Large RDF is read as columns: the same facts, names and errors as the parser's, line by line."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, Term, load, parse_rdf, write
from capacity.database.io.files import pieces
from capacity.database.io.files.pieces import UnsuitedError
from capacity.database.io.rdf.lines import large
from capacity.database.io.rdf.lines.columns import LineReader
from capacity.database.io.rdf.lines.compiled_lines import CompiledLines
from capacity.database.io.rdf.lines.matched_lines import MatchedLines
from capacity.database.policy import POLICIES
from capacity.database.terms.columns import KINDS, NO_GRAPH, TermColumns
from capacity.database.terms.nodes import term_from_pyoxigraph
from capacity.errors import MultiValuedError, MultiValuedWarning
from capacity.rank import rank_interval, verify
from tests.database.test_round_trips import BLANKS, IRIS, TEXT, literals
from tests.database.ways import WAYS, in_each_way, read_by
from tests.oracles import EXAMPLES
from tests.tiers import examples

# terms that are valid, nearly valid, or written in a way that has exceptions
_WRITTEN = """
<x:a> <http://e.org/a> <http://e.org:80/a#b> <http:///a> <file:///a/b> <http:////a> <a> <x:>
<http://e.org/?q=%41> <http://e.org?q> <x:%zz> <x:%4> <http://a:b/> <http://a@b/> <http://a:/> <x:é>
<http://é/> <http://[::1]/> <http://a_b/> <x:[a]> <x:{a}> <x:a'b(c)*+,;=!$&@~> <X:a> <1:a>
<x:a#b#c> <x+y.z-:a> <//a> <http:a> <http:/a> <http:/a//b> <x://> <x://~/> <mailto:a@b>
<x:\\u0041> <x:a <http://e.org/été/東?ß#é> <x:a\u00a1b> <x:\u00b5> <x:\uffef> <x:\U00010400>
_:a _:a.b _:a. _:a- _:1 _:é _: _:a:b _:-a _:_a-1 _:a..b _:a_b.
"a" "" "a"@en "a"@en-US "a"@EN "a"@en-Latn-US "a"@x-y "a"@en--ltr "a"@e "a"@engl "a"@en- "a"@ "a"en
"a"@be-tarask "a"@zh-Hant-TW "a"@es-419 "a"@de-1996 "a"@en-GB-GB "a"@en-us-latn "a"@sl-rozaj-x
"é" "\\u0041" "a\\nb" "a\x7fb" "a\x00b" "a""b" 'a' "a "\\t\\b\\n\\r\\f\\"\\'\\\\"
"\\u0000\\u00e9"@fr "\\u20AC\\U0001F600\\U0010FFFF"
"\\uD83D\\uDE00" "\\uDFFF" "\\U00110000" "\\u00" "\\a"
"a\\" "\\\\" "\\
"\\u007f\\uFFFE\\u07ff\\u0800"^^<x:t> "\\"<<\\""@en-US
"1"^^<http://www.w3.org/2001/XMLSchema#integer> "a"^^<http://www.w3.org/2001/XMLSchema#string>
"a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> "a"^^<x> "a"^^ "a"^<x:a> "a"^^_:a
<<(<x:a><x:p><x:b>)>> <<( . # VERSION "1.2"
"""
WRITTEN = st.sampled_from([*_WRITTEN.split(), '"a b"', '"a\tb"', "<x:a b>"])
ENDS = st.sampled_from(
    [
        " .\n",
        ".\n",
        " . \n",
        "\t.\t\n",
        "\n",
        " .\r\n",
        " .\r",
        " .# c\r\n",
        " .#\r<x:a>\n",
        " .",
        " . .\n",
    ]
)
LINES = st.one_of(
    st.builds(
        lambda before, between, terms, end: before + between.join(terms) + end,
        st.sampled_from(["", " \t"]),
        st.sampled_from([" ", "", "\t", "  ", "\n"]),
        st.lists(WRITTEN, min_size=3, max_size=4),
        ENDS,
    ),
    st.sampled_from(
        [
            "<x:s> <x:p> <x:o> .\n",
            "_:a <x:p> _:b .\n",
            "\n",
            "  \n",
            " \r\n",
            "# c\n",
            " # \r<x:a>\n",
            "\r",
            "",
        ]
    ),
    st.lists(WRITTEN, max_size=5).map("".join),
)
FORMATS = {
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "turtle": ox.RdfFormat.TURTLE,
    "nquads": ox.RdfFormat.N_QUADS,
    "trig": ox.RdfFormat.TRIG,
}
PLAIN_TERMS = st.one_of(IRIS, BLANKS, literals(TEXT))


@pytest.fixture(params=[True, False], ids=["compiled", "matched"])
def compiled(request: pytest.FixtureRequest) -> bool:
    return request.param


def by_lines(text: bytes, width: int, *, compiled: bool) -> list[tuple[Term | None, ...]] | None:
    """Return the facts in columns, with None for the default graph; None if they are unsuited."""
    reader = LineReader(width, compiled=compiled)
    try:
        reader.feed(text)
        found = reader.found()
    except UnsuitedError:
        return None
    columns = [one.tolist() for one in (found.terms.kinds, found.terms.texts, found.terms.tails)]
    terms = [
        None if kind == NO_GRAPH else Term(KINDS[kind], text, *found.terms.pairs[tail])
        for kind, text, tail in zip(*columns, strict=True)
    ]
    rows = np.concatenate(found.rows)
    if width == 4:
        rows = np.column_stack([rows, np.concatenate(found.graphs)])
    return [tuple(terms[i] for i in row) for row in rows.tolist()]


def by_parser(text: bytes, width: int) -> list[tuple[Term | None, ...]] | None:
    """Return the facts, with None for the default graph; None if the text is refused."""
    format = ox.RdfFormat.N_QUADS if width == 4 else ox.RdfFormat.N_TRIPLES
    rows: list[tuple[Term | None, ...]] = []
    try:
        for quad in ox.parse(text, format=format):
            row = tuple(map(term_from_pyoxigraph, (quad.subject, quad.predicate, quad.object)))
            default = isinstance(quad.graph_name, ox.DefaultGraph)
            graph = None if default else term_from_pyoxigraph(quad.graph_name)
            rows.append((*row, graph) if width == 4 else row)
    except (SyntaxError, ValueError):
        return None
    return rows


@settings(max_examples=examples(2000), deadline=None)
@given(st.lists(LINES, min_size=1, max_size=5).map("".join), st.sampled_from([3, 4]))
def test_what_is_read_by_lines_is_what_the_parser_reads(text: str, width: int) -> None:
    found = by_lines(text.encode(), width, compiled=True)
    # what is unsuited is left to the parser
    assert found is None or found == by_parser(text.encode(), width)
    assert by_lines(text.encode(), width, compiled=False) == found


@settings(max_examples=examples(300), deadline=None)
@given(WRITTEN, st.sampled_from("spog"), st.sampled_from([3, 4]))
def test_a_line_with_one_doubtful_term_is_what_the_parser_reads(
    term: str, place: str, width: int
) -> None:
    terms = ["<x:s>", "<x:p>", "<x:o>", "<x:g>"][:width]
    at = min("spog".index(place), width - 1)
    terms[at] = term
    text = (" ".join(terms) + " .\n").encode()
    found = by_lines(text, width, compiled=True)
    assert found is None or found == by_parser(text, width)
    assert by_lines(text, width, compiled=False) == found


@settings(max_examples=examples(1000), deadline=None)
@given(
    st.lists(LINES, min_size=1, max_size=5).map("".join),
    st.sampled_from([3, 4]),
    st.booleans(),
)
def test_the_same_lines_are_plain_in_python_as_to_compiled_code(
    text: str, width: int, trusted: bool
) -> None:
    lines = text.encode()
    if trusted:
        try:
            written = ox.serialize(
                ox.parse(lines, format=FORMATS["nquads"]), format=FORMATS["nquads"]
            )
        except (SyntaxError, ValueError):
            return
        assert written is not None
        lines = written
    (rows, others), (its_rows, its_others) = (
        kind(width).scanned(lines, trusted=trusted) for kind in (MatchedLines, CompiledLines)
    )
    assert len(rows) == len(its_rows)
    # a bare line that ends the text is one of the others to the pattern alone
    assert others.tolist()[: len(its_others)] == its_others.tolist()
    assert not b"".join(lines[begin:end] for begin, end, _ in others[len(its_others) :]).strip(
        b" \t\r"
    )


def test_a_plain_line_between_the_parts_of_another_is_refused_as_the_parser_does(
    compiled: bool,
) -> None:
    # without the line between, the parser takes the two others for one fact
    text = b"<x:s> <x:p>\n<x:a> <x:b> <x:c> .\n<x:o> .\n"
    assert by_parser(text, 3) is None
    assert by_lines(text, 3, compiled=compiled) is None


def test_plain_lines_never_reach_the_parser(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the parser was called")

    monkeypatch.setattr(ox, "parse", refuse)
    text = (
        '<http://e.org:80/a?b=%41#c> <x:p> "été"@en-GB .\r\n'
        '_:b0 <x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>.\n'
        "# a comment\n\n"
        ' <http://e.org/été> <x:p> "say \\"no\\"\\n\\u00e9\\U0001F600 \\\\u0041" . # another\n'
        '_:a-b_c <x:p> "тэст"@be-tarask .\n'
        '<urn:isbn:1> <mailto:a@b.c> "a" .'
    )
    found = by_lines(text.encode(), 3, compiled=compiled)
    assert found is not None
    assert [row[2] for row in found] == [
        Term("literal", "été", language="en-gb"),
        Term("literal", "1", "http://www.w3.org/2001/XMLSchema#integer"),
        Term("literal", 'say "no"\né\U0001f600 \\u0041'),
        Term("literal", "тэст", language="be-tarask"),
        Term("literal", "a"),
    ]


def test_lines_that_are_not_plain_are_rewritten_some_at_a_time(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[bytes | None] = []
    serialize = ox.serialize

    def counted(*given: object, **options: object) -> bytes | None:
        written.append(serialize(*given, **options))  # type: ignore[arg-type]
        return written[-1]

    # escapes in IRIs, and such tags, are for the parser
    text = "".join(
        f'<x:\\u0041{i}> <x:p> "{i}" .\n<x:b> <x:p> "{i}"@x-y .\n<x:c> <x:p> _:c .\n'
        for i in range(1000)
    ).encode()
    monkeypatch.setattr(ox, "serialize", counted)
    found = by_lines(text, 3, compiled=compiled)
    # all at once, with a line after each: nodes of Python would take six times as long
    assert [one.count(b"\n") for one in written if one is not None] == [4000]
    assert found == by_parser(text, 3)


def test_a_long_term_that_is_written_in_many_pieces_is_copied_once() -> None:
    term = b"a" * 8192
    copied = 0

    class Reader:
        n_rows = 0

        def feed(self, lines: memoryview) -> None:
            nonlocal copied
            copied += len(lines)

    fed = []
    sink = large._Sink(Reader(), 2**40, 10, lambda: fed.append(1))  # type: ignore[arg-type]
    for _ in range(4000):
        sink.write(term)
    # 32 MB without the end of a line: nothing is put together, and then once
    assert (fed, copied) == ([], 0)
    sink.write(b" .\n")
    assert (len(fed), copied) == (1, 4000 * 8192 + 3)


def in_each(text: bytes, format: str, **options: Any) -> list[object]:
    """Read a text in each way."""
    return in_each_way(lambda: parse_rdf(text, format, **options))


def assert_same(one: object, *others: object) -> None:
    """Compare databases in all that a user can see of them."""
    for other in others:
        _assert_same(one, other)


def _assert_same(one: object, two: object) -> None:
    if not isinstance(one, Database) or not isinstance(two, Database):
        assert one == two
        return
    assert one == two
    assert two == one
    assert list(one.tokens) == list(two.tokens)
    assert one.facts_sha256 == two.facts_sha256
    assert hash(one) == hash(two)
    assert one.source == two.source
    assert (one.multi, one.prefixes, one.selected) == (two.multi, two.prefixes, two.selected)
    assert one.roles == two.roles
    assert repr(one) == repr(two)
    assert np.array_equal(one.token_tuples, two.token_tuples)


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(IRIS, BLANKS), IRIS, PLAIN_TERMS, st.one_of(st.none(), IRIS, BLANKS)
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(list(FORMATS)),
    st.sampled_from(POLICIES),
)  # fmt: skip
def test_any_facts_are_the_same_as_columns(
    rows: list[tuple[Term, Term, Term, Term | None]], format: str, multi: str
) -> None:
    graphs = format in ("nquads", "trig")
    text = "".join(
        f"{s.n3()} {p.n3()} {o.n3()}{' ' + g.n3() if graphs and g is not None else ''} .\n"
        for s, p, o, g in rows
    ).encode()
    line = ox.RdfFormat.N_QUADS if graphs else ox.RdfFormat.N_TRIPLES
    written = ox.serialize(ox.parse(text, format=line), format=FORMATS[format])
    assert written is not None
    assert_same(*in_each(written, format, multi=multi))
    chosen = ["default", *{g.text for *_, g in rows if g is not None and g.kind == "iri"}]
    for graph in chosen if graphs else []:
        assert_same(*in_each(written, format, multi="keep", graph=graph))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ttl")), ids=lambda path: path.name)
def test_the_examples_are_the_same_as_columns(path: Path) -> None:
    compiled, in_python, by_facts = in_each(path.read_bytes(), "turtle", multi="keep")
    assert_same(compiled, in_python, by_facts)
    for db in (compiled, in_python):
        assert isinstance(db, Database)
        assert isinstance(db.tokens, TermColumns)


ANONYMOUS = b"""
@prefix e: <http://e/> .
[] e:p [ e:q _:x ] , "a\\nb" .
_:x e:p [] .
e:s e:p ( 1 2 [] ) .
"""
KEPT: dict[str, object] = {"annotations_of_facts": "keep"}
OTHERS: dict[str, tuple[bytes, str, dict[str, object]]] = {
    "anonymous nodes, whose names the parser draws": (ANONYMOUS, "turtle", {}),
    "no triples": (b"@prefix e: <http://e/> .", "turtle", {}),
    "broken": (b"<x:a> <x:p> <x:b> .\n<x:a> <x:p> .\n", "ntriples", {}),
    "broken late": (b"<x:a> <x:p> <x:b> .\n" * 50_000 + b"<x:a> <x:p> .\n", "ntriples", {}),
    "an annotation": (b"<x:a> <x:p> <x:b> {| <x:q> 1 |} .", "turtle", KEPT),
    "a reified statement": (
        b"@prefix r: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . "
        b"<x:r> r:subject <x:s> ; r:predicate <x:p> ; r:object <x:o> ; <x:q> 1 .",
        "turtle",
        {"annotations_of_facts": "drop"},
    ),
    "no such graph": (b"<x:a> <x:p> <x:b> <x:g> .\n", "nquads", {"graph": "x:h"}),
    "a graph by a prefixed name": (
        b"@prefix e: <http://e/> . e:g { e:a e:p e:b } e:h { e:a e:p e:c }",
        "trig",
        {"graph": "e:g"},
    ),
    "a graph with a blank name": (b"<x:a> <x:p> <x:b> _:g .\n", "nquads", {"graph": "_:g"}),
    "a base that is relative": (b"<x:a> <x:p> <x:b> .", "ntriples", {"base": "e"}),
    "a base": (b"<a> <p> <b> .", "turtle", {"base": "http://e/"}),
    "RDF/XML": (
        b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        b'<e:C r:about="a"><e:p>x</e:p><e:q r:parseType="Resource"><e:p/></e:q></e:C></r:RDF>',
        "rdfxml",
        {},
    ),
    "JSON-LD": (b'{"http://e/p": {"@id": "http://e/a", "http://e/q": [1, true]}}', "jsonld", {}),
    "N3": (b"@prefix e: <http://e/> . e:a e:p e:b .", "n3", {}),
    "long terms": (b'<x:a> <x:p> "%s" .\n' % (b"a" * 2000), "ntriples", {"max_term_bytes": 1000}),
    "a line over several pieces": (b'<x:a> <x:p> "%s" .\n' % (b"a" * 3_000_000), "ntriples", {}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_texts_are_the_same_as_columns(what: str) -> None:
    text, format, options = OTHERS[what]
    assert_same(*in_each(text, format, multi="keep", **options))


@pytest.fixture(params=WAYS[:2])
def columns(request: pytest.FixtureRequest) -> Database:
    """Facts of which several terms differ in one field alone, read as columns."""
    text = """
    <x:a> <x:p> "a", "a"@en, "a"@de, "a"^^<x:t>, _:a, <x:b>, "a\\u0000\\"é\\u007f" ; <x:q> "b" .
    <x:b> <x:p> <x:a> .
    """
    with read_by(request.param):
        db = parse_rdf(text, "turtle", multi="keep")
    assert isinstance(db.tokens, TermColumns)
    return db


def test_columns_of_terms_are_a_sequence_like_a_tuple(columns: Database) -> None:
    terms = tuple(columns.tokens)
    assert list(terms) == sorted(terms)
    assert columns.tokens == terms
    assert terms == columns.tokens
    assert columns.tokens != terms[1:]
    assert columns.tokens[-1] == terms[-1]
    assert columns.tokens[1:7:2] == terms[1:7:2]
    assert columns.tokens.index(terms[3]) == 3
    assert terms[2] in columns.tokens
    with pytest.raises(IndexError):
        columns.tokens[len(terms)]
    assert pickle.loads(pickle.dumps(columns)) == columns


def test_columns_are_written_as_json_writes_their_terms(columns: Database) -> None:
    assert isinstance(columns.tokens, TermColumns)
    lines = b"".join(columns.tokens.json_lines())
    assert lines == b"".join(json.dumps(term).encode() + b"\n" for term in columns.tokens)


def test_parts_of_columns_are_those_of_tuples(columns: Database) -> None:
    plain = Database.from_ids(tuple(columns.tokens), columns.token_tuples, multi="keep")
    assert_same(columns.subset(np.arange(3)), plain.subset(np.arange(3)))
    assert columns.select(literals="drop") == plain.select(literals="drop")
    for policy in POLICIES[2:-1]:
        assert columns.with_policy(policy) == plain.with_policy(policy)
    with pytest.raises(MultiValuedError, match="one object"):
        columns.with_policy("error").tensor()
    interval = rank_interval(columns)
    assert verify(interval.certificates.upper, plain).proved


def test_several_objects_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGE", 0)
    with pytest.warns(MultiValuedWarning, match="^1 of 1 .* have several objects"):
        parse_rdf("<x:a> <x:p> <x:b>, <x:c> .", "turtle")


@pytest.mark.parametrize("format", ["ntriples", "turtle"])
def test_a_terminal_shows_how_much_is_read(
    format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pieces, "LARGE", 0)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    parse_rdf("<x:a> <x:p> <x:b> .\n" * 10, format)
    # 200 bytes of 200
    assert "200/200" in capsys.readouterr().err


@pytest.mark.slow
def test_a_large_file_is_the_same_as_the_parser_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "facts.nt"
    rows = zip(*(rng.integers(0, n, 130_000).tolist() for n in (9_000, 20, 20_000)), strict=True)
    path.write_text(
        "".join(
            f"<http://example.org/subject{s}> <http://example.org/p{p}> "
            + (f"_:b{o}", f'"été {o}"@fr', f'"line\\n{o}"', f"<x:{o}>")[o % 4]
            + " .\n"
            for s, p, o in rows
        )
    )
    assert path.stat().st_size > pieces.LARGE
    db, *others = in_each_way(lambda: load(path, multi="keep"))
    assert isinstance(db, Database)
    assert_same(db, *others)
    again = tmp_path / "again.nt"
    write(db, again)
    assert load(again, multi="keep").facts_sha256 == db.facts_sha256


_FIRST_READING = """
import sys
from capacity import load
db = load(sys.argv[1], multi="keep")
print(type(db.tokens).__name__, db.n_facts, "numba" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "line"), [
    ("nt", '<http://example.org/s{i}> <http://example.org/p> "{i} of \\"many\\""@en .\n'),
    ("ttl", "<http://example.org/s{i}> <http://example.org/p> {i}, <http://example.org/o{i}> .\n"),
    ("csv", "the subject {i},the predicate,the object {i}\n"),
])  # fmt: skip
def test_the_first_large_file_of_an_environment_is_read_as_columns_and_nothing_is_compiled(
    suffix: str, line: str, tmp_path: Path
) -> None:
    path, kept = tmp_path / f"facts.{suffix}", tmp_path / "kept"
    with path.open("w") as file:
        file.writelines(line.format(i=i) for i in range(pieces.LARGE // len(line) + 1))
    assert path.stat().st_size >= pieces.LARGE
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_READING, path], check=True, capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(kept)},
    )  # fmt: skip
    n = (pieces.LARGE // len(line) + 1) * (2 if suffix == "ttl" else 1)
    assert done.stdout.split() == ["TermColumns", str(n), "False"]
    # but for the tally of what was read
    assert not [path for path in kept.rglob("*.*") if path.suffix != ".tally"]
