"""Facts of SPARQL endpoints, whole or not at all: a real Oxigraph, and servers that do harm."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity import Database
from capacity.database import Term, from_sparql, parse_rdf, write
from capacity.database.io.sparql.endpoints import Endpoint, credentials_of, endpoint_at
from capacity.errors import (
    DatabaseFormatError,
    EndpointError,
    InvalidArgumentError,
    InvalidTypeError,
    MultiValuedError,
    MultiValuedWarning,
)
from capacity.testing import rdf_databases
from tests.endpoints import (
    Asked,
    Harmful,
    Oxigraph,
    capped,
    needs_oxigraph,
    oxigraph,
    result,
    says,
    serving,
)
from tests.oracles import EXAMPLES
from tests.tiers import examples

ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"
XSD = "http://www.w3.org/2001/XMLSchema#"
FACTS = result("s p o", ("x:a", "x:p", "x:u"), ("x:a", "x:q", "x:v"))
TWO = result("n", (2,))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.database.io.sparql.client.PAUSES", (0.01, 0.01))
    for name in ("USER", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"CAPACITY_SPARQL_{name}", raising=False)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oxigraph]:
    with oxigraph(tmp_path_factory.mktemp("store")) as server:
        yield server


def numbered(n: int) -> str:
    """So many facts, one a subject."""
    return "".join(f"<x:s{i}> <x:p> <x:o{i}> .\n" for i in range(n))


def canonical(db: Database) -> Database:
    """The facts with numbers as a store of values writes them, which 01 and +1 aren't."""

    def term(one: Term) -> Term:
        return one if not one.datatype else one._replace(text="1", datatype=f"{XSD}integer")

    rows = [[term(db.tokens[i]) for i in row] for row in db.token_tuples.tolist()]
    return Database.from_triples(rows, multi="keep")


# the real server


@needs_oxigraph
@given(db=rdf_databases(), page=st.none() | st.integers(1, 30))
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_facts_that_an_endpoint_holds_come_back_with_their_digest(
    real: Oxigraph, db: Database, page: int | None
) -> None:
    facts = canonical(db)
    real.hold(nquads(facts))
    # in one answer, and in pages of any size; the digest is the source's, too
    found = Database.from_sparql(real.sparql, ALL, page=page, multi="keep")
    assert found == facts
    assert found.facts_sha256 == facts.facts_sha256
    assert found.source is not None
    assert found.source.sha256 == facts.facts_sha256
    # and as RDF
    assert from_sparql(real.sparql, f"CONSTRUCT {{ ?s ?p ?o }} {ALL[16:]}", multi="keep") == facts


def nquads(db: Database) -> str:
    return "".join(
        " ".join(db.tokens[i].n3() for i in row) + " .\n" for row in db.token_tuples.tolist()
    )


@needs_oxigraph
def test_a_file_gives_the_same_facts_by_an_endpoint(real: Oxigraph, tmp_path: Path) -> None:
    db = parse_rdf((EXAMPLES / "figure-1.ttl").read_bytes(), "turtle")
    write(db, tmp_path / "facts.nt")
    real.hold((tmp_path / "facts.nt").read_text())
    found = from_sparql(real.sparql, ALL)
    assert found == db
    query = hashlib.sha256(ALL.encode()).hexdigest()
    assert found.source is not None
    assert found.source.name == real.sparql
    assert found.source.format == "sparql"
    assert found.source.notes == (
        f"SHA-256 of the query, with its parameters: {query}",
        "8 rows in 1 answer, as many as the endpoint counts",
    )


@needs_oxigraph
def test_the_object_is_the_last_column_of_any_number(real: Oxigraph) -> None:
    real.hold('<x:a> <x:p> <x:u> .\n<x:b> <x:p> "v"@en .')
    pairs = from_sparql(real.sparql, "SELECT ?s ?o { ?s ?p ?o }")
    assert pairs == Database.from_tuples(
        [(Term("iri", "x:a"), Term("iri", "x:u")),
         (Term("iri", "x:b"), Term("literal", "v", language="en"))]
    )  # fmt: skip
    four = from_sparql(real.sparql, "SELECT ?s ?p (1 AS ?year) ?o { ?s ?p ?o }", page=1)
    assert four.shape == (2, 1, 1, 2)


@needs_oxigraph
def test_parameters_are_terms(real: Oxigraph) -> None:
    hostile = 'Nor"way } DROP ALL # \\u0022'
    literal = hostile.replace("\\", "\\\\").replace('"', '\\"')
    real.hold(f'<x:a> <x:in> "{literal}" .\n<x:b> <x:in> <x:Norway> .')
    query = "SELECT ?s ?p ?land { ?s ?p ?land FILTER(?land = ?land) }"
    for value, subject in ((hostile, "x:a"), (Term("iri", "x:Norway"), "x:b")):
        found = from_sparql(real.sparql, query, parameters={"land": value})
        assert [term.text for term in found.subjects] == [subject]
    with pytest.raises(DatabaseFormatError, match=r"no rows.*an IRI is a Term"):
        from_sparql(real.sparql, query, parameters={"land": "x:Norway"})


@needs_oxigraph
def test_a_policy_holds_for_the_facts_that_came(real: Oxigraph) -> None:
    real.hold("<x:a> <x:p> <x:u>, <x:v> .".replace(", ", " .\n<x:a> <x:p> "))
    with pytest.warns(MultiValuedWarning, match=r"1 of 1 .*pairs"):
        kept = from_sparql(real.sparql, ALL)
    with pytest.raises(MultiValuedError):
        from_sparql(real.sparql, ALL, multi="error")
    first = from_sparql(real.sparql, ALL, multi="first")
    assert (kept.n_facts, first.n_facts) == (2, 1)
    # the source is of the facts that came
    assert kept.source == first.source
    assert from_sparql(real.sparql, ALL, multi="keep") == kept


@needs_oxigraph
def test_no_rows_are_no_facts_unless_they_may_be(real: Oxigraph) -> None:
    real.hold("")
    for query in (ALL, "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"):
        with pytest.raises(DatabaseFormatError, match="the query has no rows"):
            from_sparql(real.sparql, query)
        assert from_sparql(real.sparql, query, allow_empty=True).shape == (0, 0, 0)
    assert from_sparql(real.sparql, ALL, page=5, allow_empty=True).n_facts == 0
    assert from_sparql(
        real.sparql, ALL, page=5, allow_empty=True, completeness="trust"
    ).n_facts == 0  # fmt: skip


@needs_oxigraph
def test_blank_nodes_come_in_one_answer_alone(real: Oxigraph) -> None:
    real.hold("_:a <x:p> _:b .\n_:b <x:p> _:a .\n<x:c> <x:p> <x:c> .")
    whole = from_sparql(real.sparql, ALL)
    assert whole.shape == (3, 1, 3)
    # the names of stores are random, and renamed
    assert {term.text for term in whole.subjects if term.kind == "blank"} == {"b0", "b1"}
    assert from_sparql(real.sparql, ALL, page=3).shape == (3, 1, 3)
    with pytest.raises(EndpointError, match="blank nodes, whose names are others in each page"):
        from_sparql(real.sparql, ALL, page=2)
    with pytest.raises(EndpointError, match="blank nodes, whose names are others in each page"):
        from_sparql(real.sparql, ALL, page=2, completeness="trust")
    found = from_sparql(real.sparql, "SELECT ?s ?p ?o { ?s ?p ?o FILTER(!ISBLANK(?s)) }", page=1)
    assert found.n_facts == 1


@needs_oxigraph
def test_pages_hold_different_rows_and_all_of_them(real: Oxigraph) -> None:
    real.hold(numbered(25))
    told: list[tuple[str, int, int, float | None]] = []
    found = from_sparql(
        real.sparql,
        "SELECT ?s ?p ?o { ?s ?p ?o { SELECT ?again { VALUES ?again { 1 2 } } } }",
        page=10,
        progress=lambda *now: told.append(now),
    )
    assert found.n_facts == 25
    # 10, 10 and 5; what is counted are different rows
    assert found.source is not None
    assert found.source.notes[1].startswith("25 rows in 3 answers")
    trusted = from_sparql(real.sparql, ALL, page=10, completeness="trust")
    assert trusted == found
    assert trusted.source is not None
    assert "which the endpoint didn't count" in trusted.source.notes[1]


@needs_oxigraph
def test_limits_of_rows_and_bytes_hold(real: Oxigraph) -> None:
    real.hold(numbered(25))
    for options in ({}, {"page": 10}):
        with pytest.raises(EndpointError, match="the query has 25 rows, more than 24"):
            from_sparql(real.sparql, ALL, max_rows=24, **options)  # type: ignore[arg-type]
    with pytest.raises(EndpointError, match="its answer has more than 24 rows"):
        from_sparql(real.sparql, ALL, max_rows=24, completeness="trust")
    with pytest.raises(EndpointError, match="the query has more than 24 rows"):
        from_sparql(real.sparql, ALL, max_rows=24, page=10, completeness="trust")
    construct = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    with pytest.raises(EndpointError, match="25 triples, more than 24"):
        from_sparql(real.sparql, construct, max_rows=24)
    assert from_sparql(real.sparql, ALL, max_rows=25).n_facts == 25
    for query in (ALL, construct):
        with pytest.raises(EndpointError, match="more than 500 bytes"):
            from_sparql(real.sparql, query, max_bytes=500)


@needs_oxigraph
def test_a_round_number_of_triples_is_no_proof_of_all(real: Oxigraph) -> None:
    real.hold(numbered(1000))
    construct = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    with pytest.raises(EndpointError, match="1,000 triples, a round number"):
        from_sparql(real.sparql, construct)
    assert from_sparql(real.sparql, construct, completeness="trust").n_facts == 1000


@needs_oxigraph
def test_the_endpoint_says_where_a_query_is_wrong(real: Oxigraph) -> None:
    # in the author's second line
    query = "SELECT ?s ?p ?o {\n ?s ?p ?o ?? }"
    with pytest.raises(EndpointError, match=r"400 \(Bad Request\): error at 2:"):
        from_sparql(real.sparql, query, completeness="trust")
    with pytest.raises(EndpointError, match=r"can't be counted.*400 \(Bad Request\): "):
        from_sparql(real.sparql, query)


@needs_oxigraph
def test_a_server_that_is_killed_between_pages_is_an_error(tmp_path: Path) -> None:
    with oxigraph(tmp_path) as server:
        server.hold(numbered(50))

        def in_pages() -> None:
            while True:
                from_sparql(server.sparql, ALL, page=2)

        killer = threading.Timer(0.3, server.process.kill)
        killer.start()
        with pytest.raises(EndpointError, match=r"can't be reached|connection broke"):
            in_pages()
        killer.join()


@needs_oxigraph
def test_a_slow_query_ends_at_its_time_out(real: Oxigraph) -> None:
    real.hold(numbered(300))
    # 300^4 rows
    slow = "SELECT ?s ?p ?o { ?s ?p ?o . ?a ?p ?b . ?c ?p ?d . ?e ?p ?f }"
    start = time.monotonic()
    with pytest.raises(EndpointError, match=r"silent for 0\.5 seconds"):
        from_sparql(real.sparql, slow, timeout=0.5)
    assert time.monotonic() - start < 30


def test_without_the_server_nothing_is_asked_twice() -> None:
    # a port that nothing listens to is refused at once, and most likely a wrong address
    with pytest.raises(EndpointError, match=r"it can't be reached .*ConnectionRefusedError"):
        from_sparql("http://127.0.0.1:9/sparql", ALL)


# servers that do harm


def test_a_query_is_posted_with_the_librarys_name_and_version() -> None:
    from capacity import __version__

    with serving(says(TWO), says(FACTS)) as server:
        db = from_sparql(f"{server.url}?default-graph-uri=x%3Ag#part", ALL)
    assert db.shape == (1, 2, 2)
    count, select = server.asked
    assert select.method == "POST"
    assert select.path == "/sparql?default-graph-uri=x%3Ag"
    assert select.query == ALL
    assert count.query == "SELECT (COUNT(*) AS ?n)  WHERE { SELECT ?s ?p ?o  { ?s ?p ?o }\n}"
    assert select.headers["User-Agent"] == f"knowledge-capacity/{__version__}"
    assert select.headers["Accept"].startswith("application/sparql-results+json")
    assert "Authorization" not in select.headers


def trusted(server: Harmful, **options: Any) -> Database:
    """One request alone, without a count."""
    return from_sparql(server.url, ALL, completeness="trust", **options)


def test_a_silent_server_ends_at_the_time_out() -> None:
    with (
        serving(lambda _handler, _asked: time.sleep(5)) as server,
        pytest.raises(EndpointError, match=r"silent for 0\.2 seconds\. .*raise `timeout`"),
    ):
        trusted(server, timeout=0.2)
    # a query that takes long isn't asked again
    assert len(server.asked) == 1


@pytest.mark.parametrize("where", ["headers", "body"])
def test_a_server_that_drips_ends_at_the_deadline(where: str) -> None:
    def drip(handler: Any, _asked: Asked) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        if where == "body":
            handler.wfile.write(
                b"Content-Type: application/sparql-results+json\r\nContent-Length: 9999\r\n\r\n"
            )
        for _ in range(100):
            handler.wfile.write(b"X" if where == "headers" else b" ")
            time.sleep(0.05)

    start = time.monotonic()
    with (
        serving(drip) as server,
        pytest.raises(EndpointError, match=r"within 0\.5 seconds\. .*raise `deadline`"),
    ):
        trusted(server, timeout=2, deadline=0.5)
    assert time.monotonic() - start < 4


def breaks(handler: Any, _asked: Asked) -> None:
    handler.send(FACTS[:60], length=len(FACTS))
    handler.end()


def breaks_at_once(handler: Any, _asked: Asked) -> None:
    handler.end()


def breaks_a_chunk(handler: Any, _asked: Asked) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/sparql-results+json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(f"{60:x}\r\n{FACTS[:60]}\r\n".encode())
    handler.end()


@pytest.mark.parametrize("how", [breaks, breaks_at_once, breaks_a_chunk])
def test_a_broken_answer_is_asked_again_and_dropped(how: Any) -> None:
    with serving(how, says(FACTS)) as server:
        assert trusted(server).n_facts == 2
    assert len(server.asked) == 2
    with (
        serving(how) as server,
        pytest.raises(EndpointError, match="its connection broke, 3 times"),
    ):
        trusted(server)
    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_endpoint_is_asked_again_after_a_pause(status: int) -> None:
    with serving(says("busy", status=status), says(FACTS)) as server:
        assert trusted(server).n_facts == 2
    with (
        serving(says("busy", status=status)) as server,
        pytest.raises(EndpointError, match=rf"it answered {status} \(.*\), 3 times"),
    ):
        trusted(server)


def test_the_pause_is_the_one_that_the_endpoint_asks_for() -> None:
    told: list[str] = []
    start = time.monotonic()
    with serving(says("", status=503, headers=[("Retry-After", "1")]), says(FACTS)) as server:
        assert trusted(server, progress=lambda what, *_: told.append(what)).n_facts == 2
    assert time.monotonic() - start >= 1
    assert told == ["waiting 1 s, for it answered 503 (Service Unavailable)"]
    # a pause that there is no time for isn't waited for
    with (
        serving(says("", status=429, headers=[("Retry-After", "7200")])) as server,
        pytest.raises(EndpointError, match=r"429 .*asks to wait 7200 seconds.*raise `deadline`"),
    ):
        trusted(server)


def endless(beginning: str, more: str) -> Any:
    def answer(handler: Any, _asked: Asked) -> None:
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("Content-Type", "application/sparql-results+json")
        handler.end_headers()
        with contextlib.suppress(OSError):
            handler.wfile.write(beginning.encode())
            while True:
                handler.wfile.write(more.encode())

    return answer


def test_an_answer_without_end_is_cut_at_the_limit() -> None:
    row = f',{{"s":{{"type":"uri","value":"x:{"a" * 9000}"}}'
    for name in "po":
        row += f',"{name}":{{"type":"uri","value":"x:b"}}'
    for beginning, more in ((FACTS[:-3], row + "}"), ('{"head":{"vars":["', "a" * 9000)):
        with (
            serving(endless(beginning, more)) as server,
            pytest.raises(EndpointError, match="holds more than 1,000,000 bytes"),
        ):
            trusted(server, max_bytes=10**6)
    with (
        serving(endless(FACTS[:-3], row + "}")) as server,
        pytest.raises(EndpointError, match="more than 20 rows"),
    ):
        trusted(server, max_rows=20)


@pytest.mark.slow
def test_gzip_is_unpacked_within_the_limit() -> None:
    packed = [("Content-Encoding", "gzip")]
    with serving(says(gzip.compress(FACTS.encode()), headers=packed)) as server:
        assert trusted(server).n_facts == 2
        assert server.asked[0].headers["Accept-Encoding"] == "gzip"
    # 10^8 spaces in 100 kilobytes
    bomb = gzip.compress(b"{" + b" " * 10**8)
    with (
        serving(says(bomb, headers=packed)) as server,
        pytest.raises(EndpointError, match="more than 1,000,000 bytes"),
    ):
        trusted(server, max_bytes=10**6)
    whole = gzip.compress(FACTS.encode())
    for body, said in ((whole[:-9], "its gzip has no end"), (whole + b"more", "after the end"),
                       (b"no gzip", "isn't gzip")):  # fmt: skip
        with (
            serving(says(body, headers=packed)) as server,
            pytest.raises(EndpointError, match=said),
        ):
            trusted(server)
    with (
        serving(says(FACTS, headers=[("Content-Encoding", "br")])) as server,
        pytest.raises(EndpointError, match="packed by 'br'"),
    ):
        trusted(server)


@pytest.mark.parametrize(
    ("answer", "said"),
    [(says("<html><body>Welcome</body></html>", type="text/html; charset=utf-8"),
      r"it is text/html, which begins '<html><body>Welcome.*often ends in /sparql"),
     # brackets of a script, however many, aren't those of JSON
     (says("<html><script>" + "[" * 300 + "]" * 300 + "</script></html>", type="text/html"),
      r"it is text/html, which begins '<html><script>"),
     (says(FACTS[:-20]), "no whole result of SPARQL in JSON"),
     (says(FACTS[:-1]), "no whole result of SPARQL in JSON"),
     (says(""), "no whole result of SPARQL in JSON"),
     (says('{"error": "out of memory"}'), "must contain a 'boolean' or a 'results' key"),
     (says("Virtuoso S1T00 Error SR171: Transaction timed out"), "it begins 'Virtuoso S1T00"),
     (says(FACTS, type="text/csv"), "it is text/csv"),
     (says(FACTS, type=""), "of no type"),
     (says('{"head":{},"boolean":true}'), "yes or no"),
     (says(result("s o", ("x:a", "x:b"))), "its columns are s o, not s p o"),
     (says(result("s p o", ("x:a", "x:p", None))), r"row 0 has no \?o.*FILTER\(BOUND\(\?o\)\)"),
     # not the fault of the transport: the second row's object has a space
     (says(FACTS.replace("x:v", "no iri")),
      r"sparql\): \?o of row 1, from 0, can't be kept: RDF has no IRI 'no iri' \(Invalid IRI code"),
     (says('{"head":{"vars":["s","p","o"]},"results":{"bindings":[{"s":'
           + '{"type":"triple","value":{"subject":' * 200_000), "nests over 256 deep"),
     (says('{"head":{"vars":["s"]},"x":"' + '\\"[' * 9 + '","y":' + "[" * 300), "nests over 256")],
)  # fmt: skip
def test_what_is_no_result_is_refused_with_the_reason(answer: Any, said: str) -> None:
    with serving(answer) as server, pytest.raises(DatabaseFormatError, match=said) as error:
        trusted(server)
    assert error.value.format == "sparql"
    # and isn't asked again
    assert len(server.asked) == 1


@pytest.mark.slow
def test_brackets_in_strings_are_no_nesting() -> None:
    # of a megabyte, over the pieces in which it comes, with escapes at every place
    text = '[{"\\' * 250_000
    cell = {"type": "literal", "value": text}
    with serving(says(result("s p o", ("x:a", "x:p", cell)))) as server:
        db = trusted(server)
    assert db.objects[0] == Term("literal", text)


@pytest.mark.parametrize(
    ("answer", "said"),
    [(says(FACTS, headers=[("X-SPARQL-MaxRows", "2")]), "cuts answers off at 2 rows"),
     (says(FACTS, headers=[("X-SQL-State", "S1TAT"), ("X-SQL-Message", "RC...: incomplete")]),
      r"as incomplete \(X-SQL-State S1TAT\): RC\.\.\.: incomplete")],
)  # fmt: skip
def test_an_answer_that_says_it_is_cut_off_is_refused(answer: Any, said: str) -> None:
    with serving(answer) as server, pytest.raises(EndpointError, match=said):
        trusted(server)
    # one row less than the limit is all
    with serving(says(FACTS, headers=[("X-SPARQL-MaxRows", "3")])) as server:
        assert trusted(server).n_facts == 2


def test_a_silent_cap_is_found() -> None:
    with serving(capped(25, 10)) as server:
        with pytest.raises(
            EndpointError, match=r"10 of 25 rows without an error.*page=10, or small"
        ):
            from_sparql(server.url, ALL)
        with pytest.raises(
            EndpointError, match=r"10 of 25 rows without an error.*page=10, or small"
        ):
            from_sparql(server.url, ALL, page=20)
        # pages that aren't larger than the cap are whole
        assert from_sparql(server.url, ALL, page=10).n_facts == 25
        assert from_sparql(server.url, ALL, page=4).n_facts == 25
        # where nobody counts, the pages go on to an empty one
        assert trusted(server, page=20).n_facts == 25
        # one answer isn't all, and only the count could have told
        assert trusted(server).n_facts == 10


def test_rows_that_change_meanwhile_are_found() -> None:
    with (
        serving(says(result("n", (1,))), says(FACTS)) as server,
        pytest.raises(EndpointError, match="returned 2 rows, and had counted 1: its facts changed"),
    ):
        from_sparql(server.url, ALL)
    # an order that differs from page to page gives a row twice, and another never
    with (
        serving(says(result("n", (4,))), says(FACTS)) as server,
        pytest.raises(EndpointError, match="a row came twice"),
    ):
        from_sparql(server.url, ALL, page=2)
    with (
        serving(says(TWO), says(FACTS)) as server,
        pytest.raises(EndpointError, match="more rows than the 1 of a page"),
    ):
        from_sparql(server.url, ALL, page=1)


@pytest.mark.parametrize("count", ["x:two", {"type": "literal", "value": "-1"},
                                   {"type": "literal", "value": "2.5"},
                                   {"type": "literal", "value": "NaN"}])  # fmt: skip
def test_a_count_must_be_a_number(count: Any) -> None:
    with (
        serving(says(result("n", (count,)))) as server,
        pytest.raises(DatabaseFormatError, match="a count must be a whole number"),
    ):
        from_sparql(server.url, ALL)


def test_an_endpoint_that_cannot_count_says_so() -> None:
    with (
        serving(says("no sub-selects", status=500), says(FACTS)) as server,
        pytest.raises(EndpointError, match=r"can't be counted.*no sub-selects.*=.trust"),
    ):
        from_sparql(server.url, ALL)


# RDF


def test_rdf_without_an_end_is_refused() -> None:
    def close(handler: Any, _asked: Asked) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/turtle")
        handler.end_headers()
        handler.wfile.write(b"<x:a> <x:p> <x:b> .")
        handler.close_connection = True

    construct = "CONSTRUCT WHERE { ?s ?p ?o }"
    with (
        serving(close) as server,
        pytest.raises(EndpointError, match="neither a length nor an end"),
    ):
        from_sparql(server.url, construct)
    with serving(says("<x:a> <x:p> <x:b> .", type="text/turtle")) as server:
        assert from_sparql(server.url, construct).n_facts == 1
    with (
        serving(says("<x:a> <x:p> \n<x:b", type="text/turtle")) as server,
        pytest.raises(DatabaseFormatError, match=r"^http://.*line 2 \(read as turtle\)"),
    ):
        from_sparql(server.url, construct)
    with (
        serving(says("<rdf:RDF/>", type="application/rdf+xml")) as server,
        pytest.raises(DatabaseFormatError, match="must be RDF in N-Triples or Turtle"),
    ):
        from_sparql(server.url, construct)
    with pytest.raises(InvalidArgumentError, match="`page` needs a SELECT"):
        from_sparql("http://127.0.0.1:9", construct, page=5)


# redirects and credentials


def redirects(status: int, where: str) -> Any:
    return says("", status=status, headers=[("Location", where)])


@pytest.mark.parametrize(("status", "method"), [(301, "POST"), (302, "POST"), (303, "GET"),
                                                (307, "POST"), (308, "POST")])  # fmt: skip
def test_redirects_are_followed_with_the_query(
    status: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPACITY_SPARQL_TOKEN", "secret")
    with serving(redirects(status, "/there"), says(FACTS)) as server:
        assert trusted(server).n_facts == 2
    first, second = server.asked
    assert (second.method, second.path) == (method, "/there")
    assert second.body == (first.body if method == "POST" else b"")
    # on the same host of this machine they may be known
    assert second.headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_or_port_is_refused_by_name_and_not_followed(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPACITY_SPARQL_USER", "ann")
    monkeypatch.setenv("CAPACITY_SPARQL_PASSWORD", "se:cret")
    with serving(says(FACTS)) as other, serving(redirects(status, other.url)) as server:
        with pytest.raises(EndpointError, match="to another host or port") as error:
            trusted(server)
        assert f"{other.url}, which isn't asked. If you trust it, pass that address" in str(
            error.value
        )
        # neither the query nor the credentials are known there
        assert other.asked == []
        elsewhere = server.url.replace("127.0.0.1", "localhost")
    with (
        serving(redirects(status, elsewhere)) as server,
        pytest.raises(EndpointError, match="another host or port, http://localhost:"),
    ):
        trusted(server)
    encoded = base64.b64encode(b"ann:se:cret").decode()
    assert server.asked[0].headers["Authorization"] == f"Basic {encoded}"


def test_a_redirect_on_one_host_may_go_on_to_another_path_and_no_further() -> None:
    with serving(says(FACTS)) as other:
        steps = redirects(307, "/there"), redirects(307, other.url)
        with serving(*steps) as server, pytest.raises(EndpointError, match="isn't asked"):
            trusted(server)
    assert [one.path for one in server.asked] == ["/sparql", "/there"]
    assert other.asked == []


@pytest.mark.parametrize(
    ("location", "said"),
    [("file:///etc/passwd", "no address of http or https"),
     ("ftp://127.0.0.1/", "no address of http or https"),
     ("http://ann:secret@127.0.0.1/", "no address of http or https"),
     ("/sparql", "redirects more than 5 times")],
)  # fmt: skip
def test_redirects_to_nowhere_are_refused(location: str, said: str) -> None:
    with serving(redirects(302, location)) as server, pytest.raises(EndpointError, match=said):
        trusted(server)


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "Set CAPACITY_SPARQL_USER and CAPACITY_SPARQL_PASSWORD, or CAPACITY_SPARQL_TOKEN"),
     (403, "Set CAPACITY_SPARQL_USER"),
     (400, r"no such function: f\. Fix the query"),
     (404, "Pass the address that takes queries by POST"),
     (500, "Ask for fewer facts, or ask again later"),
     (299, r"it answered 299: ")],
)  # fmt: skip
def test_other_statuses_say_what_to_do(status: int, said: str) -> None:
    answer = says("no such\nfunction: f", status=status)
    with serving(answer) as server, pytest.raises(EndpointError, match=said):
        trusted(server)
    assert len(server.asked) == 1


def test_secrets_are_in_no_message_and_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPACITY_SPARQL_TOKEN", "s3cret")

    def repeats(handler: Any, asked: Asked) -> None:
        handler.send(f"wrong: {asked.headers['Authorization']}", status=401)

    with serving(repeats) as server, pytest.raises(EndpointError) as error:
        from_sparql(f"{server.url}?key=k3y", ALL)
    said = str(error.value)
    assert "Check CAPACITY_SPARQL_USER" in said
    assert "***" in said
    assert not {"s3cret", "k3y"} & set(said.replace(" ", "=").split("="))
    assert "s3cret" not in said
    assert "k3y" not in said
    with serving(says(TWO), says(FACTS)) as server:
        db = from_sparql(f"{server.url}?key=k3y", ALL)
    assert "k3y" not in json.dumps([str(db.source), repr(db.source)])
    assert db.source is not None
    assert db.source.name == server.url
    assert "secret" not in repr(credentials_of({"CAPACITY_SPARQL_TOKEN": "secret"}))


@pytest.mark.parametrize(
    ("environment", "said"),
    [({"USER": "ann"}, "must be set together"),
     ({"PASSWORD": "x"}, "must be set together"),
     ({"USER": "ann", "PASSWORD": "x", "TOKEN": "y"}, "either"),
     ({"TOKEN": "s3cret\nX-Evil: 1"}, "printable ASCII"),
     ({"USER": "ann", "PASSWORD": "s3cret\r\n"}, "no control characters"),
     ({"USER": "an:n", "PASSWORD": "s3cret"}, "no colon")],
)  # fmt: skip
def test_wrong_credentials_are_refused_unseen(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said) as error:
        credentials_of({f"CAPACITY_SPARQL_{name}": value for name, value in environment.items()})
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "keeps"),
    [("https://example.org/", True), ("http://example.org/", False), ("http://localhost/", True),
     ("http://127.0.0.1:8/", True), ("http://[::1]/", True), ("http://127.0.0.1.org/", False),
     ("http://localhost.example.org/", False)],
)  # fmt: skip
def test_credentials_go_over_https_or_to_this_machine(url: str, keeps: bool) -> None:
    assert endpoint_at(url).keeps_secrets is keeps


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("http://a.org/x", "http://a.org/y", True), ("http://a.org/", "https://a.org/", True),
     ("https://a.org/", "http://a.org/", False), ("http://a.org/", "http://b.org/", False),
     ("http://a.org/", "http://a.org:81/", False), ("https://A.org/", "https://a.org:443/", True),
     ("https://a.org/", "https://a.org.b.org/", False), ("http://a/", "https://a:444/", False)],
)  # fmt: skip
def test_one_host_is_told_from_another(one: str, other: str, same: bool) -> None:
    assert endpoint_at(one).is_at(endpoint_at(other)) is same


@pytest.mark.parametrize(
    ("url", "said"),
    [("ftp://example.org/", "with http or https"), ("example.org/sparql", "with http or https"),
     ("file:///etc/passwd", "with http or https"), ("http://", "with http or https"),
     ("http:///sparql", "with http or https"), ("http://exa mple.org/", "percent-encoded"),
     ("http://example.org/\nX: 1", "percent-encoded"), ("http://exämple.org/", "percent-encoded"),
     ("http://example.org:99999/", "valid host or port"), ("http://[::1/", "valid host or port"),
     ("http://example.org:0/", "with http or https"),
     ("https://ann:s3cret@example.org/", "CAPACITY_SPARQL_USER"),
     ("https://s3cret@example.org/", "CAPACITY_SPARQL_USER"),
     ("https://ann:s3cret@[x/", "valid host or port"),
     ("ftp://example.org/?key=s3cret", "with http or https")],
)  # fmt: skip
def test_wrong_addresses_are_refused_without_their_secrets(url: str, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said) as error:
        from_sparql(url, ALL)
    assert "s3cret" not in str(error.value)


def test_an_address_must_be_text() -> None:
    with pytest.raises(InvalidTypeError, match="`endpoint` must be the address"):
        from_sparql(Path("http://example.org"), ALL)  # type: ignore[arg-type]
    assert isinstance(endpoint_at("http://example.org"), Endpoint)


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": "5"}, {"timeout": float("nan")}, {"deadline": -1},
     {"deadline": float("inf")}, {"max_rows": 0}, {"max_bytes": 1.5}, {"page": 0},
     {"completeness": "maybe"}, {"multi": "some"}, {"parameters": {"x": 1}}],
)  # fmt: skip
def test_options_out_of_range_are_refused_before_anything_is_asked(options: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        from_sparql("http://127.0.0.1:9/", ALL, **options)
    with pytest.raises(InvalidTypeError):
        from_sparql("http://127.0.0.1:9/", ALL, parameters="x")  # type: ignore[arg-type]


def test_nothing_is_left_open_after_an_interrupt() -> None:
    def interrupt(_what: str, _done: int, _total: int, _left: float | None) -> None:
        raise KeyboardInterrupt

    # that of this test's own limit of time is one
    before = {*threading.enumerate()}

    def timers() -> list[threading.Thread]:
        new = {*threading.enumerate()} - before
        return [thread for thread in new if isinstance(thread, threading.Timer)]

    with serving(capped(3000, 5000)) as server:
        with pytest.raises(KeyboardInterrupt):
            from_sparql(server.url, ALL, progress=interrupt)
        # the alarm of the deadline ends with the call, if not at once
        for _ in range(500):
            if not timers():
                break
            time.sleep(0.02)
        assert not timers()
