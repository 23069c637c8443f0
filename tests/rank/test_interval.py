import numpy as np
import pytest
from hypothesis import given, settings

from capacity.database import Database
from capacity.rank import (
    database_bounds,
    effective_rank_interval,
    rank_interval,
)
from capacity.rank.interval import EFFORTS
from capacity.rank.verify import verify
from capacity.testing import databases
from tests.oracles import KNOWN_RANKS, database, example_2_4, figure_1


@given(databases())
@settings(max_examples=300)
def test_both_ends_are_proved_at_quick(db: Database) -> None:
    for interval in (rank_interval(db), effective_rank_interval(db)):
        assert interval.lower.value <= interval.upper.value
        for end in (interval.lower, interval.upper):
            assert verify(end, db).reason is None
            assert sum(argument.value for argument in end.arguments) == end.value
            assert (end.facts_sha256, end.multi) == (db.facts_sha256, db.multi)


@given(databases())
@settings(max_examples=20)
def test_more_effort_never_widens_the_interval(db: Database) -> None:
    for bound in (rank_interval, effective_rank_interval):
        quick, standard = (bound(db, effort=effort) for effort in EFFORTS[:2])
        assert standard.lower.value >= quick.lower.value
        assert standard.upper.value <= quick.upper.value
        again = bound(db, effort="standard")
        assert again.to_dict() == standard.to_dict()


def test_a_spanning_tree_closes_example_2_2() -> None:
    interval = rank_interval(figure_1())
    assert str(interval) == "[5, 5]"
    assert (interval.lower.by, interval.upper.by) == ("unfolding", "spanning tree")


def test_merging_finds_the_effective_rank_of_example_2_4() -> None:
    assert str(effective_rank_interval(example_2_4())) == "[1, 1]"


def test_substitution_closes_w_where_unfoldings_do_not() -> None:
    db, rank = KNOWN_RANKS["W"][0](), KNOWN_RANKS["W"][1]
    assert max(database_bounds(db).unfoldings) == 2
    interval = rank_interval(db)
    assert (interval.lower.value, interval.lower.by) == (rank, "substitution")


def test_components_choose_their_own_modes() -> None:
    # 3 subjects with one fact each on one side, 3 objects of one subject and predicate on the other
    db = database([(i, 0, i) for i in range(3)] + [(9, 9, 9 + i) for i in range(3)])
    # the first part has unfolding ranks (3, 1, 3), the second (1, 1, 1) or 1 by subject slices
    assert database_bounds(db).unfoldings == (4, 2, 4)
    assert str(rank_interval(db)) == "[4, 4]"


def test_facts_that_peel_are_bounded_at_any_size() -> None:
    # a permutation: every slice has one fact
    n = 50_000
    rng = np.random.default_rng(0)
    rows = zip(range(n), rng.integers(0, 50, n), rng.permutation(n), strict=True)
    db = database([(k, int(q), int(v)) for k, q, v in rows])
    interval = rank_interval(db)
    assert str(interval) == "[50000, 50000]"
    assert verify(interval.lower, db).proved
    assert verify(interval.upper, db).proved


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ValueError, match="quick, standard, thorough"):
        rank_interval(figure_1(), effort="extreme")  # type: ignore[arg-type]
