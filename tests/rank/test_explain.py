"""Explanations of an interval are true of it."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.rank import RankAnalysis, effective_rank_interval, rank_interval
from capacity.rank.lower.koszul import best_flattening, highest_bound
from capacity.rank.options import BUDGETS
from capacity.rank.upper import slices
from capacity.rank.verifier.checker import verify
from capacity.tensor import from_dense
from tests.oracles import database
from tests.searches import progress_of
from tests.tiers import examples


def numbers(line: str) -> tuple[int, int]:
    """The bound that a line names, and the sum of what gives it."""
    bound, parts = line.split(": ", 1)
    shares = [int(n.replace(",", "")) for n in re.findall(r"(?:^|, )([\d,]+) by", parts)]
    return int(bound.split()[-1].replace(",", "")), sum(shares)


@pytest.mark.parametrize("seed", range(12))
def test_what_methods_give_adds_up_to_the_bounds(seed: int) -> None:
    db = random_database(seed, triples=(10, 60))
    for interval in (rank_interval(db), effective_rank_interval(db)):
        below, above, *left = interval.explanation
        assert numbers(below) == (interval.lower,) * 2
        assert numbers(above) == (interval.upper,) * 2
        assert any(line.startswith("open") for line in left) is not interval.closed


def test_the_widest_component_that_is_open_is_named() -> None:
    rng = np.random.default_rng(0)
    dense = [(k, q, int(rng.integers(3))) for k in range(6) for q in range(6)]
    db = database([*dense, (7, 7, 7), (8, 8, 8)])
    interval = rank_interval(db)
    _, _, left, *_ = interval.explanation
    lower, upper = interval.lower - 2, interval.upper - 2
    assert (
        left == f"open: 1 of 3 components; the widest, 36 facts, 6 x 6 x 3, in [{lower}, {upper}]"
    )


def test_what_is_too_large_is_said_to_be() -> None:
    rng = np.random.default_rng(0)
    rows = [(k, q, int(rng.integers(60))) for k in range(60) for q in range(60)]
    *_, too_large, stuck = rank_interval(database(rows)).explanation
    assert too_large.startswith("too large to search at this effort")
    assert "can't prove more than 178, the number of slices but two" in stuck


@given(st.integers(0, 10**6))
@settings(max_examples=examples(30), deadline=None)
def test_no_flattening_shows_more_than_the_highest_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensor = rng.integers(0, 2, rng.integers(1, 8, 3))
    found = best_flattening(tensor, seed=0, work=10**8)
    assert found is None or found[0] <= highest_bound(tensor.shape)


def test_a_closed_interval_has_nothing_left() -> None:
    db = Database.from_triples([("a", "p", "x")])
    assert len(rank_interval(db).explanation) == 2


def test_what_is_one_too_many_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], problems=0))
    rng = np.random.default_rng(0)
    db = database([(k, q, int(rng.integers(3))) for k in range(6) for q in range(6)])
    *_, too_many, _ = rank_interval(db).explanation
    assert "more components are open" in too_many


def test_a_bound_that_does_not_add_is_named() -> None:
    # of two equal components one has its flattening's bound in the sum
    entries = np.argwhere(np.random.default_rng(5).random((4, 5, 5)) < 0.5).tolist()
    rows = [(k, q, v) for k, q, v in entries]
    one, two = (
        rank_interval(database([(n + k, n + q, n + v) for n in (0, 9)[:count] for k, q, v in rows]))
        for count in (1, 2)
    )
    assert one.certificates.lower.by == "Koszul flattening"
    assert two.lower < 2 * one.lower
    alone = f"at least {one.lower} on its own, by Koszul flattening, which doesn't add"
    assert alone in two.explanation


def test_what_peeling_solves_is_said_to_be_peeled() -> None:
    db = database([(k, q, 3 * k + q) for k in range(4) for q in range(3)] + [(0, 0, 99)])
    interval = rank_interval(db)
    assert {interval.certificates.lower.by, interval.certificates.upper.by} <= {
        "unfolding",
        "slices",
        "peeling",
    }


def test_an_interrupt_is_said_to_be_one() -> None:
    def interrupt(lower: int, upper: int, what: str) -> None:
        raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    db = database([(k, q, int(rng.integers(3))) for k in range(6) for q in range(6)])
    found = rank_interval(db, progress=progress_of(interrupt))
    assert found.explanation[-1] == "interrupted before the search was over"
    assert not any("too large" in line for line in found.explanation)


def test_the_upper_bound_of_the_rank_is_named_as_such() -> None:
    rows = [(k, q, (3 * k * q) % 4) for k in range(5) for q in range(4) if (k + q) % 4]
    db = database(rows)
    analysis = RankAnalysis(db)
    effective, rank = analysis.effective_rank, rank_interval(db)
    same = effective.upper == rank.upper
    assert same is effective.explanation[1].endswith(
        f"by the rank's upper bound ({rank.certificates.upper.by})"
    )


def test_blocks_that_are_too_large_to_factor_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    M = np.random.default_rng(0).integers(0, 2, (12, 12))
    M[0] = M[1] + M[2]
    tensor = from_dense(np.stack([M, np.eye(12, dtype=np.int64)]))
    before = rank_interval(tensor, methods=[])
    monkeypatch.setattr(slices, "FACTORED_ENTRIES", 100)
    found = rank_interval(tensor, methods=[])
    assert found.upper == before.upper + 1
    assert verify(found.certificates.upper, tensor).proved
    assert "1 by lines of blocks that are too large to factor" in found.explanation[1]
    assert numbers(found.explanation[1]) == (found.upper, found.upper)
    assert found.explanation[-1].startswith(f"the ranks of slices yield {before.upper}, ")
    # closed but for these lines
    alone = from_dense(M[None])
    found = rank_interval(alone, methods=[])
    assert (found.lower, found.upper) == (11, 12)
    assert found.explanation[-1].startswith("the ranks of slices yield 11, ")


@pytest.mark.parametrize("seed", [-1, 1.5, 2**70, "one"])
def test_a_seed_is_an_integer_or_a_generator(seed: object) -> None:
    db = database([(0, 0, 0)])
    for search in (rank_interval, effective_rank_interval):
        with pytest.raises(ValueError, match=r"`seed` must be an integer from 0 to 2\^63 - 1"):
            search(db, seed=seed)  # type: ignore[arg-type]
        # the same range as everywhere, and a generator
        good: Any
        for good in (2**63 - 1, np.int64(3), np.random.default_rng(0)):
            assert str(search(db, seed=good)) == "[1, 1]"


def test_a_whole_that_is_small_when_peeled_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    pairs = [(k, q) for k in range(8) for q in range(5) if rng.random() < 0.6]
    core = [(k, q, int(rng.integers(4))) for k, q in pairs]
    # objects that are mentioned once, each of a subject of its own
    singles = [(100 + i, q, 100 + i) for i, q in enumerate([0, 1, 2, 3, 4] * 6)]
    small, large = database(core), database([*core, *singles])
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], largest=20_000))
    alone, both = effective_rank_interval(small), effective_rank_interval(large)
    assert not any("too large" in line for line in both.explanation)
    assert both.lower - len(singles) >= alone.lower - 4 > 0
    for end in both.certificates:
        assert verify(end, large).proved
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], largest=10))
    assert "too large" in effective_rank_interval(large).explanation[-1]


def test_numpy_seeds_are_seeds() -> None:
    db = database([(k, q, (k * q) % 3) for k in range(4) for q in range(4)])
    one = rank_interval(db, effort="standard", seed=np.uint8(3))  # type: ignore[arg-type]
    assert str(one) == str(rank_interval(db, effort="standard", seed=3))
