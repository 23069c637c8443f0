"""One-way facts, and what symmetric scores can rank, against brute force."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import (
    Obstruction,
    QueryGraph,
    asymmetric_relations,
    one_way_cycles,
    one_way_paths,
)
from capacity.embedding.one_way import one_way_facts
from capacity.errors import InvalidArgumentError
from tests.tiers import examples

Facts = set[tuple[int, int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Database, Facts, int]:
    """A graph of a few entities and relations, with loops and facts in both directions."""
    n, q = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    every = [*itertools.product(range(n), range(q), range(n))]
    chosen = draw(st.sets(st.sampled_from(every), min_size=1, max_size=14))
    db = Database.from_triples(
        [(f"e{s}", f"r{p}", f"e{o}") for s, p, o in sorted(chosen)], multi="keep"
    )
    return db, chosen, n


def named(db: Database, facts: list[Obstruction]) -> list[tuple[str, ...]]:
    tokens = sorted({*map(str, db.subjects), *map(str, db.objects)})
    return [(str(db.predicates[one.relation]), *(tokens[e] for e in one.entities)) for one in facts]


def ranks(facts: Facts, relation: int, n: int, *, both: bool) -> bool:
    """Whether some symmetric scores rank the queries of a relation: no circle among the pairs."""
    order = nx.DiGraph()
    mine = {(s, o) for s, q, o in facts if q == relation}
    for turned in (False, True) if both else (False,):
        pairs = {(o, s) for s, o in mine} if turned else mine
        for s in range(n):
            answers = {o for o in range(n) if (s, o) in pairs}
            if not answers:
                continue
            for above, below in itertools.product(answers, {*range(n)} - answers):
                order.add_edge(frozenset((s, above)), frozenset((s, below)))
    return nx.is_directed_acyclic_graph(order)


@given(graphs())
@settings(max_examples=examples(150))
def test_obstructions_are_those_of_brute_force(drawn: tuple[Database, Facts, int]) -> None:
    db, facts, _ = drawn
    graph = QueryGraph.of(db, shared=True)
    relations = sorted({q for _, q, _ in facts})
    # entities of no fact have no query
    used = sorted({e for s, _, o in facts for e in (s, o)})
    number = {e: i for i, e in enumerate(used)}
    facts = {(number[s], q, number[o]) for s, q, o in facts}
    for found, both in ((one_way_cycles(graph), False), (one_way_paths(graph), True)):
        hard = [i for i, q in enumerate(relations) if not ranks(facts, q, len(used), both=both)]
        assert [one.relation for one in found] == hard
        for one in found:
            q = relations[one.relation]
            steps = [*itertools.pairwise(one.entities)]
            assert all((s, q, o) in facts and (o, q, s) not in facts for s, o in steps)
            if both:
                assert len(steps) == 2
            else:
                assert one.entities[0] == one.entities[-1]
                assert len({*one.entities}) == len(steps) >= 2


@given(graphs())
@settings(max_examples=examples(80))
def test_a_sum_with_its_transpose_ranks_where_there_is_no_path(
    drawn: tuple[Database, Facts, int],
) -> None:
    db, _, _ = drawn
    graph = QueryGraph.of(db, shared=True)
    hard = {one.relation for one in one_way_paths(graph)}
    n = graph.n_entities
    for q in {*range(graph.shape[1])} - hard:
        M = np.zeros((n, n), int)
        s, _, o = graph.triples[graph.triples[:, 1] == q].T
        M[s, o] = 1
        scores = M + M.T
        for true, row in [*zip(M, scores, strict=True), *zip(M.T, scores.T, strict=True)]:
            assert true.all() or not true.any() or row[true > 0].min() > row[true == 0].max()


@given(graphs())
@settings(max_examples=examples(60))
def test_one_way_facts_and_names(drawn: tuple[Database, Facts, int]) -> None:
    db, facts, _ = drawn
    graph = QueryGraph.of(db, shared=True)
    expected = {(f"r{q}", f"e{s}", f"e{o}") for s, q, o in facts if (o, q, s) not in facts}
    tokens = sorted({*map(str, db.subjects), *map(str, db.objects)})
    found = one_way_facts(graph).tolist()
    assert {(str(db.predicates[q]), tokens[s], tokens[o]) for s, q, o in found} == expected
    asymmetric = named(db, asymmetric_relations(graph))
    assert {one[0] for one in asymmetric} == {one[0] for one in expected}
    assert {*asymmetric} <= expected


def test_a_cycle_is_short_and_found_in_a_long_chain() -> None:
    chain = [(f"e{i}", "r", f"e{i + 1}") for i in range(3000)]
    far = QueryGraph.of(Database.from_triples(chain, multi="keep"))
    assert one_way_cycles(far) == []
    assert len(one_way_paths(far)) == 1
    closed = QueryGraph.of(Database.from_triples([*chain, ("e2999", "r", "e2997")], multi="keep"))
    (cycle,) = one_way_cycles(closed)
    assert len(cycle.entities) == 4


def test_separate_vectors_have_no_obstruction() -> None:
    db = Database.from_triples([("Ada", "born in", "London"), ("Bob", "born in", "Rome")])
    graph = QueryGraph.of(db)
    assert graph.entities is None
    with pytest.raises(InvalidArgumentError, match="separate vectors"):
        one_way_facts(graph)
    with pytest.raises(InvalidArgumentError, match="`shared` must be True, False or None"):
        QueryGraph.of(db, shared="yes")  # type: ignore[arg-type]
    # shared all the same: subjects and objects differ, so nothing is in the way but signs
    both = QueryGraph.of(db, shared=True)
    assert one_way_cycles(both) == one_way_paths(both) == []
    assert len(asymmetric_relations(both)) == 1
