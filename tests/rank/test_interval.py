from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from capacity.database import Database
from capacity.rank import (
    CertificatePair,
    RankAnalysis,
    RankInterval,
    database_bounds,
    effective_rank_interval,
    rank_interval,
)
from capacity.rank import analysis as analysis_module
from capacity.rank.options import EFFORTS
from capacity.rank.verifier.checker import verify
from capacity.tensor import SparseTensor
from capacity.testing import databases
from tests.oracles import KNOWN_RANKS, database, example_2_4, figure_1
from tests.searches import progress_of
from tests.second_checker import claim, second_checker
from tests.tiers import examples


@given(databases())
@settings(max_examples=examples(300))
def test_both_ends_are_proved_at_quick(db: Database) -> None:
    for interval in (rank_interval(db), effective_rank_interval(db)):
        assert interval.lower <= interval.upper
        for end in interval.certificates:
            assert verify(end, db).reason is None
            assert sum(argument.value for argument in end.arguments) == end.value
            assert (end.facts_sha256, end.multi) == (db.facts_sha256, db.multi)


@pytest.mark.slow
@given(databases())
@settings(max_examples=examples(5, part=3), deadline=None)
def test_more_effort_never_widens_the_interval(db: Database) -> None:
    for bound in (rank_interval, effective_rank_interval):
        quick, standard = (bound(db, effort=effort) for effort in EFFORTS[:2])
        assert standard.lower >= quick.lower
        assert standard.upper <= quick.upper
        again = bound(db, effort="standard")
        assert again.to_dict() == standard.to_dict()


def test_a_spanning_tree_closes_example_2_2() -> None:
    interval = rank_interval(figure_1())
    assert str(interval) == "[5, 5]"
    assert (interval.certificates.lower.by, interval.certificates.upper.by) == (
        "unfolding",
        "spanning tree",
    )


def test_merging_finds_the_effective_rank_of_example_2_4() -> None:
    assert str(effective_rank_interval(example_2_4())) == "[1, 1]"


def test_substitution_closes_w_where_unfoldings_do_not() -> None:
    db, rank = KNOWN_RANKS["W"][0](), KNOWN_RANKS["W"][1]
    assert max(database_bounds(db).unfoldings) == 2
    interval = rank_interval(db)
    assert (interval.lower, interval.certificates.lower.by) == (rank, "substitution")


def test_components_choose_their_own_modes() -> None:
    # 3 subjects with one fact each on one side, 3 objects of one subject and predicate on the other
    db = database([(i, 0, i) for i in range(3)] + [(9, 9, 9 + i) for i in range(3)])
    # the first part has unfolding ranks (3, 1, 3), the second (1, 1, 1) or 1 by subject slices
    assert database_bounds(db).unfoldings == (4, 2, 4)
    assert str(rank_interval(db)) == "[4, 4]"


@pytest.mark.slow
def test_facts_that_peel_are_bounded_at_any_size() -> None:
    # a permutation: every slice has one fact
    n = 50_000
    rng = np.random.default_rng(0)
    rows = zip(range(n), rng.integers(0, 50, n), rng.permutation(n), strict=True)
    db = database([(k, int(q), int(v)) for k, q, v in rows])
    interval = rank_interval(db)
    assert str(interval) == "[50000, 50000]"
    assert verify(interval.certificates.lower, db).proved
    assert verify(interval.certificates.upper, db).proved


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ValueError, match="quick, standard, thorough"):
        rank_interval(figure_1(), effort="extreme")  # type: ignore[arg-type]


def test_progress_shows_the_interval_closing() -> None:
    db = KNOWN_RANKS["matrices 2 x 2 x 3"][0]()
    told: list[tuple[int, int, str]] = []
    interval = rank_interval(db, progress=progress_of(lambda *state: told.append(state)))
    lowers, uppers, what = zip(*told, strict=True)
    assert list(lowers) == sorted(lowers)
    assert list(uppers) == sorted(uppers, reverse=True)
    assert "Koszul flattening" in what
    assert lowers[0] < interval.lower
    assert uppers[-1] >= interval.upper


@pytest.mark.parametrize("stop_at", ["independent sets", "substitution", "Koszul flattening"])
def test_an_interrupt_leaves_the_best_interval_so_far(stop_at: str) -> None:
    db = KNOWN_RANKS["matrices 2 x 2 x 3"][0]()
    so_far: list[tuple[int, int]] = []

    def interrupt(lower: int, upper: int, what: str) -> None:
        so_far.append((lower, upper))
        if what == stop_at:
            raise KeyboardInterrupt

    interval = rank_interval(db, progress=progress_of(interrupt))
    assert interval.interrupted
    assert (interval.lower, interval.upper) == so_far[-1]
    assert all(verify(end, db).proved for end in interval.certificates)
    assert not rank_interval(db).interrupted


@pytest.mark.parametrize("what", ["merging", "substitution"])
def test_an_interrupt_leaves_the_effective_rank_so_far(what: str) -> None:
    rows = [(k, q, (k * q) % 3) for k in range(4) for q in range(4) if (k + q) % 3]
    db = database([*rows, (9, 9, 9)])
    seen: list[str] = []

    def interrupt(lower: int, upper: int, name: str) -> None:
        if not searching_the_rank:
            seen.append(name)
            if name == what:
                raise KeyboardInterrupt

    searching_the_rank = True
    analysis = RankAnalysis(db, progress=progress_of(interrupt))
    assert not analysis.rank.interrupted
    searching_the_rank = False
    interval = analysis.effective_rank
    assert what in seen
    assert interval.interrupted
    assert all(verify(end, db).proved for end in interval.certificates)


def test_equal_components_are_searched_once() -> None:
    w = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    rows = [((n, k), (n, q), (n, v)) for n in range(50) for k, q, v in w]
    told: list[str] = []
    interval = rank_interval(
        database(rows), progress=progress_of(lambda _l, _u, method: told.append(method))
    )
    assert str(interval) == "[150, 150]"
    assert told.count("substitution") == 1


def test_the_lower_end_of_the_effective_rank_raises_that_of_the_rank() -> None:
    db = figure_1()
    analysis = RankAnalysis(db)
    before, effective = analysis.rank, analysis.effective_rank
    assert analysis.rank is before
    # as if the search for the rank had found less
    vars(analysis)["_rank"] = RankInterval(CertificatePair(claim(db), before.certificates.upper))
    better = analysis.rank
    assert better.lower == effective.lower
    assert better.certificates.lower.quantity == "rank"
    assert verify(better.certificates.lower, db).proved


@pytest.mark.slow
@given(databases(functional=True))
@settings(max_examples=examples(8), deadline=None)
def test_what_bounds_the_effective_rank_bounds_the_rank(db: Database) -> None:
    analysis = RankAnalysis(db, effort="standard")
    interval = analysis.effective_rank
    vars(analysis)["_rank"] = RankInterval(CertificatePair(claim(db), interval.certificates.upper))
    higher = analysis.rank
    assert verify(higher.certificates.lower, db).reason is None
    assert second_checker(higher.certificates.lower, db)


def test_fact_4_adds_the_objects_of_other_components_to_a_game() -> None:
    # a component whose effective rank exceeds its number of objects, and three facts beside it
    rows = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0), (2, 0, 1), (2, 1, 1)]
    alone = effective_rank_interval(database(rows), effort="standard")
    assert alone.lower == 3
    db = database([*rows, *((9 + i, 9 + i, 9 + i) for i in range(3))])
    interval = effective_rank_interval(db, effort="standard")
    assert interval.lower >= 3 + 3
    assert interval.certificates.lower.by == "unfolding + substitution"
    assert verify(interval.certificates.lower, db).proved
    assert second_checker(interval.certificates.lower, db)


def test_each_thing_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4) if k != q])
    counts: Counter[str] = Counter()
    for name in ("database_bounds", "search"):
        whole = getattr(analysis_module, name)

        def counted(*arguments: object, name: str = name, whole: Any = whole) -> object:
            counts[name] += 1
            return whole(*arguments)

        monkeypatch.setattr(analysis_module, name, counted)
    analysis = RankAnalysis(db)
    for _ in range(2):
        assert analysis.bounds.triples == db.n_triples
        assert analysis.rank.upper >= analysis.effective_rank.upper
    # a search for each of the two
    assert counts == {"database_bounds": 1, "search": 2}


def test_one_interrupt_ends_both_searches() -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4) if k != q])
    said: list[str] = []
    analysis = RankAnalysis(
        db, effort="standard", progress=progress_of(lambda _lower, _upper, what: said.append(what))
    )
    vars(analysis)["_rank"] = replace(rank_interval(db), interrupted=True)
    found = analysis.effective_rank
    assert found.interrupted
    assert not said
    assert verify(found.certificates.lower, db).proved
    assert verify(found.certificates.upper, db).proved


def test_games_go_on_where_only_one_of_two_bounds_counts() -> None:
    entries = np.argwhere(np.random.default_rng([3, 77]).random((3, 3, 3)) < 0.6).tolist()
    rows = [(k, q, v) for k, q, v in entries]
    one = rank_interval(database(rows), effort="standard")
    assert one.closed
    twice = database([*rows, *((9 + k, 9 + q, 9 + v) for k, q, v in rows)])
    two = rank_interval(twice, effort="standard")
    # 4 by one flattening, and 4 by substitution where another flattening doesn't add
    assert (one.lower, two.lower) == (5, 9)
    assert verify(two.certificates.lower, twice).proved


@pytest.mark.slow
def test_indices_without_an_entry_change_nothing() -> None:
    rng = np.random.default_rng(0)
    places = np.argwhere(rng.random((3, 4, 4)) < 0.6)
    ones = np.ones(len(places), np.int64)
    small = SparseTensor(places, ones, (3, 4, 4))
    large = SparseTensor(places + np.array([2, 1, 3]), ones, (10**8, 10**8, 8))
    methods = ["substitution", "sparse substitution", "flip graph over F_2"]
    for effort in EFFORTS[:2]:
        one, other = (RankAnalysis(t, effort=effort, methods=methods) for t in (small, large))
        assert str(one.rank) == str(other.rank)
        assert str(one.effective_rank) == str(other.effective_rank)
        assert verify(
            (other.rank.certificates.lower, other.effective_rank.certificates.upper), large
        ).proved
