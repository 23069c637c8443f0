"""Counts by the queries of an endpoint: those of the facts, or an error."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity import Database, rank_interval
from capacity.database import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.errors import DatabaseFormatError, EndpointError, InvalidArgumentError
from capacity.stores import StoreCounts, count_endpoint
from tests.endpoints import Asked, Oxigraph, needs_oxigraph, oxigraph, result, serving
from tests.stores.recount import Fact, recount
from tests.tiers import examples

TYPE = Term("iri", RDF_TYPE)
GRAPHS = ("", "x:g", "x:h")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.database.io.sparql.client.PAUSES", (0.01, 0.01))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oxigraph]:
    with oxigraph(tmp_path_factory.mktemp("store")) as server:
        yield server


def facts() -> st.SearchStrategy[set[Fact]]:
    """Facts with classes, blank nodes, triple terms, and literals that look alike."""
    nodes = [Term("iri", f"x:{c}") for c in "abc"] + [Term("blank", "d"), Term("blank", "e")]
    predicates = [Term("iri", f"x:{c}") for c in "apq"] + [TYPE]
    objects = [*nodes, Term("literal", "x:a"), Term("literal", "x:a", "", "en"),
               Term("literal", "x:a", "http://www.w3.org/2001/XMLSchema#token"),
               Term("triple", '<<( <x:a> <x:p> "c" )>>')]  # fmt: skip
    fact = st.tuples(*(st.sampled_from(terms) for terms in (nodes, predicates, objects)))
    return st.sets(fact, max_size=25)


def nquads(graphs: dict[str, set[Fact]]) -> str:
    return "".join(
        f"{' '.join(term.n3() for term in fact)} {f'<{name}> ' if name else ''}.\n"
        for name, graph in graphs.items()
        for fact in graph
    )


def comparable(found: StoreCounts) -> StoreCounts:
    """Counts without their source; of blank classes an endpoint has other names."""
    classes = sorted((n, "_" if one.kind == "blank" else one.n3()) for one, n in found.classes)
    return replace(found, source=str(classes), classes=(), notes=())


@pytest.mark.slow
@needs_oxigraph
@given(st.fixed_dictionaries({name: facts() for name in GRAPHS}))
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_endpoints_counts_are_those_of_its_facts(
    real: Oxigraph, graphs: dict[str, set[Fact]]
) -> None:
    real.hold(nquads(graphs))
    every = set[Fact]().union(*graphs.values())
    wanted = {None: every, "union": every, "default": graphs[""], "x:g": graphs["x:g"]}
    for graph, of in wanted.items():
        if not of:
            with pytest.raises(DatabaseFormatError, match="there are no facts in the"):
                count_endpoint(real.sparql, graph=graph)
            continue
        found = count_endpoint(real.sparql, graph=graph)
        assert comparable(found) == comparable(recount("", of))
        assert found.source == real.sparql
        # a triple term is a label to the tensor, as any other term
        interval = rank_interval(Database.from_triples(of, multi="keep"))
        assert found.lower <= interval.upper
        assert interval.lower <= found.upper


@needs_oxigraph
def test_an_endpoint_whose_default_graph_is_the_union_has_the_same_facts(tmp_path: Path) -> None:
    # x:a x:p x:b is in both, and counts once
    graphs = {"": {iris("x:a x:p x:b")}, "x:g": {iris("x:a x:p x:b"), iris("x:a x:q x:b")}}
    with oxigraph(tmp_path, "--union-default-graph") as server:
        server.hold(nquads(graphs))
        assert count_endpoint(server.sparql).facts == 2
        # which is what this endpoint means by it
        assert count_endpoint(server.sparql, graph="default").facts == 2
        assert count_endpoint(server.sparql, graph="x:g").facts == 2


def iris(text: str) -> Fact:
    s, p, o = (Term("iri", one) for one in text.split())
    return s, p, o


@needs_oxigraph
def test_triple_terms_are_said(real: Oxigraph) -> None:
    real.hold("<x:a> <x:p> <<( _:b <x:p> <x:c> )>> .\n_:b <x:p> <x:c> .")
    found = count_endpoint(real.sparql, graph="default")
    assert found.predicates_rows[0].blank_facts == 1
    assert found.notes == (
        "the facts are those of the endpoint's default graph",
        "the objects of 1 facts are triple terms, and blank nodes in these aren't counted",
    )


@needs_oxigraph
def test_what_is_counted_is_told(real: Oxigraph) -> None:
    real.hold("<x:a> <x:p> <x:b> .")
    told: list[tuple[str, int, int, float | None]] = []
    count_endpoint(real.sparql, progress=lambda *now: told.append(now))
    # as many queries as were promised, one after the other
    assert [(done, total) for _, done, total, _ in told] == [(i, 18) for i in range(18)]
    assert told[0][0] == "counting facts"


@needs_oxigraph
def test_a_server_that_is_killed_meanwhile_is_an_error(tmp_path: Path) -> None:
    with oxigraph(tmp_path) as server:
        server.hold("<x:a> <x:p> <x:b> .")

        def kill(_what: str, done: int, _total: int, _left: float | None) -> None:
            if done == 5:
                server.process.kill()
                server.process.wait()

        with pytest.raises(EndpointError, match=r"can't be reached any more|connection broke"):
            count_endpoint(server.sparql, progress=kill)


@pytest.mark.parametrize("graph", ["people", "", "x:g> } DROP ALL #", 7, "_:b"])
def test_a_graph_is_an_iri(graph: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="`graph` must be an absolute IRI"):
        count_endpoint("http://127.0.0.1:9/", graph=graph)


# servers that do harm


class Counting:
    """An endpoint of true counts, but for the answers to some queries, in their order."""

    def __init__(self, lies: dict[int, Any]) -> None:
        self.store = ox.Store()
        for s, p, o in ("apx", "apy", "bpx", "bqz", "cqz"):
            nodes = [ox.NamedNode(f"x:{c}") for c in (s, p, o)]
            self.store.add(ox.Quad(*nodes))  # type: ignore[arg-type]
        self.lies = lies
        self.n = 0
        self.lock = threading.Lock()

    def __call__(self, handler: Any, asked: Asked) -> None:
        with self.lock:
            number, self.n = self.n, self.n + 1
        found = self.store.query(asked.query)
        data = found.serialize(format=ox.QueryResultsFormat.JSON)  # type: ignore[union-attr]
        del found
        lie = self.lies.get(number)
        if lie is None:
            handler.send(data)
        elif callable(lie):
            lie(handler, data)
        else:
            handler.send(lie)


def test_the_counts_of_the_endpoint_in_the_tests_below() -> None:
    with serving(Counting({})) as server:
        found = count_endpoint(server.url)
    assert (found.facts, found.subjects, found.predicates, found.objects) == (5, 3, 2, 3)
    assert (found.pairs, found.multi_valued_pairs) == (4, 1)
    assert len(server.asked) == 18


@pytest.mark.parametrize("number", range(18))
@pytest.mark.parametrize("change", [-5, 5])
def test_counts_that_cannot_all_be_right_are_refused(number: int, change: int) -> None:
    def lie(handler: Any, data: bytes) -> None:
        # in answers of several numbers, the first
        rows = json.loads(data)
        cell = next(
            value
            for row in rows["results"]["bindings"]
            for value in row.values()
            if value["type"] == "literal"
        )
        cell["value"] = str(int(cell["value"]) + change)
        handler.send(json.dumps(rows))

    if number == 16:
        lies = {16: result("o n", ("x:class", 4 if change > 0 else -1))}
    else:
        lies = {number: lie}
    with (
        serving(Counting(lies)) as server,
        pytest.raises((EndpointError, DatabaseFormatError), match=r"contradict|whole number|no fa"),
    ):
        count_endpoint(server.url)


@pytest.mark.parametrize(
    ("lie", "said"),
    [(result("n", ("x:many",)), "a count must be a whole number; it is <x:many>"),
     (result("n"), "has 0 rows, where one number must be"),
     (result("n", (5,), (5,)), "has 2 rows, where one number must be"),
     ("<html>", "no whole result"),
     ('{"error": "timeout"}', "no whole result")],
)  # fmt: skip
def test_what_is_no_count_is_refused(lie: str, said: str) -> None:
    for number in (0, 3):
        with (
            serving(Counting({number: lie})) as server,
            pytest.raises((EndpointError, DatabaseFormatError), match=said),
        ):
            count_endpoint(server.url)


def test_a_part_of_the_predicates_is_refused() -> None:
    def one_row(handler: Any, data: bytes) -> None:
        rows = json.loads(data)
        del rows["results"]["bindings"][1:]
        handler.send(json.dumps(rows))

    with (
        serving(Counting({1: one_row})) as server,
        pytest.raises(EndpointError, match="contradict each other"),
    ):
        count_endpoint(server.url)


@pytest.mark.parametrize(
    "headers",
    [("X-SQL-State", "S1TAT"), ("X-SPARQL-MaxRows", "1")],
)
def test_counts_of_a_part_are_refused(headers: tuple[str, str]) -> None:
    def part(handler: Any, data: bytes) -> None:
        handler.send(data, headers=[headers])

    with (
        serving(Counting({4: part})) as server,
        pytest.raises(EndpointError, match=r"as incomplete|cuts answers off at 1 rows"),
    ):
        count_endpoint(server.url)


def test_a_query_that_takes_too_long_is_an_error() -> None:
    def slow(handler: Any, data: bytes) -> None:
        time.sleep(3)

    with (
        serving(Counting({7: slow})) as server,
        pytest.raises(EndpointError, match=r"silent for 0\.3 seconds"),
    ):
        count_endpoint(server.url, timeout=0.3)


def test_a_busy_endpoint_is_asked_again() -> None:
    def busy(handler: Any, data: bytes) -> None:
        handler.send("", status=503)

    with serving(Counting({2: busy, 3: busy})) as server:
        assert count_endpoint(server.url).facts == 5
    assert len(server.asked) == 20


def test_every_query_is_a_select_of_sparql_1_1() -> None:
    with serving(Counting({})) as server:
        count_endpoint(server.url)
    for asked in server.asked:
        assert asked.query.startswith("SELECT ")
        # which endpoints of 1.1 don't know
        assert "TRIPLE" not in asked.query.upper()
