"""What the words of an interval say is true of it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.rank import effective_rank_interval, rank_interval
from capacity.rank.flattening import best_flattening, highest_bound
from tests.oracles import database


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
        assert numbers(below) == (interval.lower.value,) * 2
        assert numbers(above) == (interval.upper.value,) * 2
        assert any(line.startswith("open") for line in left) is not interval.closed


def test_the_widest_component_that_is_open_is_named() -> None:
    rng = np.random.default_rng(0)
    dense = [(k, q, int(rng.integers(3))) for k in range(6) for q in range(6)]
    db = database([*dense, (7, 7, 7), (8, 8, 8)])
    interval = rank_interval(db)
    _, _, left, *_ = interval.explanation
    lower, upper = interval.lower.value - 2, interval.upper.value - 2
    assert (
        left == f"open: 1 of 3 components; the widest, 36 facts, 6 x 6 x 3, in [{lower}, {upper}]"
    )


def test_what_is_too_large_is_said_to_be() -> None:
    rng = np.random.default_rng(0)
    rows = [(k, q, int(rng.integers(60))) for k in range(60) for q in range(60)]
    assert rank_interval(database(rows)).explanation[-1].startswith("too large")


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_no_flattening_shows_more_than_the_highest_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensor = rng.integers(0, 2, rng.integers(1, 8, 3))
    found = best_flattening(tensor, seed=0, prime=2**31 - 1, work=10**8)
    assert found is None or found[0] <= highest_bound(tensor.shape)


def test_a_closed_interval_has_nothing_left() -> None:
    db = Database.from_triples([("a", "p", "x")])
    assert len(rank_interval(db).explanation) == 2
