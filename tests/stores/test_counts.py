"""What counts prove: both ends hold of the rank, and beat the paper's count."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import Database, rank_interval
from capacity.rank import paper_bound, slice_rank_sum
from capacity.testing import (
    KnownDatabase,
    databases,
    databases_of_known_rank,
    hard_databases,
    rdf_databases,
)
from tests.stores.recount import facts_of, recount
from tests.tiers import examples

SMALL = st.one_of(databases(), hard_databases(), rdf_databases())


@settings(max_examples=examples(200), deadline=None)
@given(SMALL)
def test_counts_bound_what_exact_ranks_bound(db: Database) -> None:
    found = recount("", facts_of(db))
    assert found.lower <= rank_interval(db).upper
    assert rank_interval(db).lower <= found.upper
    # the smaller side of a slice is no less than its rank, and no more than its columns
    for mode in range(3):
        assert slice_rank_sum(db, mode) <= found.slice_sums[mode]
    assert found.upper <= found.paper == paper_bound(db) <= found.facts
    # of a functional database every object is the only one of a pair
    assert found.functional == db.is_functional
    assert not found.functional or found.private[2] == found.objects <= found.lower


@settings(max_examples=examples(100), deadline=None)
@given(databases_of_known_rank())
def test_a_known_rank_lies_between(known: KnownDatabase) -> None:
    found = recount("", facts_of(known.database))
    if known.rank is not None:
        assert found.lower <= known.rank <= found.upper


def test_counts_of_facts_by_hand() -> None:
    # Oslo and Bergen share (in, Norway), so that no subject is the only one of that pair; each is
    # the only one of its (zip, ...) pair. Each predicate is the only one of some (subject, object)
    # pair, and each object of its (subject, predicate) pair
    db = Database.from_triples(
        [("Oslo", "in", "Norway"), ("Bergen", "in", "Norway"),
         ("Oslo", "zip", "0010"), ("Bergen", "zip", "5003")]
    )  # fmt: skip
    found = recount("towns", facts_of(db))
    assert found.private == (2, 2, 3)
    # 2 + 2 subjects' predicates; min(2, 1) + min(2, 2) of in and zip; an object has one predicate
    assert found.slice_sums == (4, 3, 3)
    assert (found.subject_objects, found.predicate_objects, found.paper) == (4, 3, 3)
    assert (found.lower, found.upper) == (3, 3)
    assert (found.lower_by, found.upper_by) == (
        "private objects",
        "predicate slices' smaller sides",
    )
    assert repr(found) == "StoreCounts(towns: 4 facts, 2 x 2 x 3; functional; rank in [3, 3])"
    assert "lower bound 3: as many objects are the only object of some pair" in str(found)


def test_a_full_block_has_rank_1_at_least() -> None:
    # all eight triples of two tokens each: nothing is the only one of a pair
    db = Database.from_triples([(k, q, v) for k in "ab" for q in "pq" for v in "xy"], multi="keep")
    found = recount("", facts_of(db))
    assert (found.private, found.lower, found.lower_by) == ((0, 0, 0), 1, "facts")
    assert "there is a fact" in found.explanation[0]


@settings(max_examples=examples(50), deadline=None)
@given(rdf_databases())
def test_counts_go_to_json(db: Database) -> None:
    found = recount("a.nt", facts_of(db))
    said = json.loads(json.dumps(found.to_dict()))
    assert said["rank"]["lower"] == found.lower
    assert sum(row["facts"] for row in said["predicates"]) == said["triples"] == db.n_triples


def test_no_facts_have_rank_0() -> None:
    found = recount("", set())
    assert (found.lower, found.upper, found.functional) == (0, 0, True)
    assert str(found)
