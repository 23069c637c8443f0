import itertools

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import database_bounds, rank_interval
from capacity.rank.lower.independent_sets import independent_sets, largest_independent_set
from capacity.rank.verifier.checker import verify
from capacity.testing import databases
from tests.oracles import database
from tests.second_checker import claim, second_checker

edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=14)


@given(edges)
def test_the_independent_set_is_independent_and_largest(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs).T
    a, b = largest_independent_set(left, right, 6, 6)
    assert not (a[left] & b[right]).any()
    # Koenig: vertices less the size of a largest matching, found by another library
    graph = nx.Graph([(("l", i), ("r", j)) for i, j in pairs])
    graph.add_nodes_from(
        itertools.chain((("l", i) for i in range(6)), (("r", j) for j in range(6)))
    )
    top = {n for n in graph if n[0] == "l"}
    matching = nx.bipartite.maximum_matching(graph, top_nodes=top)
    assert a.sum() + b.sum() == 12 - len(matching) // 2


@given(databases(max_subjects=8, max_objects=8, max_triples=30))
def test_minors_of_independent_sets_are_proved(db: Database) -> None:
    component = database_bounds(db).component
    sets = independent_sets(db.tensor(), component)
    arguments = sets.arguments(db.shape, np.ones(len(sets.values), bool))
    assert sum(argument.value for argument in arguments) == sets.values.sum()
    certificate = claim(db, *arguments)
    assert verify(certificate, db).reason is None
    assert second_checker(certificate, db)
    assert certificate.value <= rank_interval(db).upper


def test_independent_sets_beat_unfoldings() -> None:
    # subjects 0-4 answer five predicates with one object each, own by predicate: subject rank 1,
    # object rank 5; subjects 5-9 have one predicate and one object in common with nobody's answers
    rows = [(k, q, q) for k in range(5) for q in range(5)]
    rows += [(5 + i, i, 0) for i in range(5)]
    db = database(rows)
    interval = rank_interval(db)
    assert max(database_bounds(db).unfoldings) < interval.lower <= interval.upper
    assert verify(interval.certificates.lower, db).proved
