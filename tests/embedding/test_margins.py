"""The scale of scores that a dimension takes, against vectors that are made and bounds by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import Database
from capacity.embedding import Margin, QueryGraph, margins, margins_of
from capacity.errors import InvalidArgumentError
from tests.tiers import examples


@pytest.mark.parametrize(
    ("n", "necessary", "circle"),
    [
        (552, (33, 5.7, 4.6, 4.6), 142_884),
        (3155, (81, 9.6, 5.5, 5.5), 5.548e6),
        (14951, (179, 14.8, 6.3, 6.3), 142e6),
    ],
)
def test_the_table_of_the_theory(n: int, necessary: tuple[float, ...], circle: float) -> None:
    found = margins(n, 0.95, [2, 4, 8, 16])
    assert [one.necessary for one in found] == pytest.approx(necessary, abs=0.5)
    assert found[0].by == "a circle"
    assert found[0].enough == pytest.approx(circle, rel=2e-3)


@given(st.integers(2, 60), st.floats(0.51, 0.999), st.integers(2, 70), st.integers(0, 2**31))
@settings(max_examples=examples(100), deadline=None)
def test_the_vectors_reach_tau_at_the_scale_that_is_enough(
    n: int, tau: float, d: int, seed: int
) -> None:
    (found,) = margins(n, tau, [d])
    e = vectors(found.by, n, d, np.random.default_rng(seed))
    scores = found.enough * e @ e.T
    p = np.exp(np.diag(scores) - np.logaddexp.reduce(scores, axis=1))
    assert p.min() >= tau * (1 - 1e-9)
    assert found.necessary <= found.enough * (1 + 1e-12)


def vectors(by: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors of the name `by`, shape (n, d)."""
    if by == "a simplex":
        e = np.eye(n) - 1 / n
        basis = np.linalg.svd(e)[2][: n - 1]
        e = e @ basis.T
        return np.pad(e / np.linalg.norm(e, axis=1)[:, None], ((0, 0), (0, d - n + 1)))
    if by == "signs at random":
        mu = math.sqrt(2 * math.log(max(2, n * (n - 1) / 2)) / d)
        while True:
            e = rng.choice([-1.0, 1.0], (n, d)) / math.sqrt(d)
            if (e @ e.T - 2 * np.eye(n)).max() <= mu:
                return e
    circles = 1 if by == "a circle" else int(by.split()[0])
    points = next(p for p in range(2, n + 1) if p**circles >= n)
    angles = np.array(np.unravel_index(range(n), (points,) * circles)).T * 2 * np.pi / points
    e = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / math.sqrt(circles)
    return np.pad(e, ((0, 0), (0, d - 2 * circles)))


@given(st.integers(2, 2000), st.floats(0.51, 0.999), st.integers(1, 2000))
@settings(max_examples=examples(100))
def test_more_dimensions_and_fewer_answers_need_no_more(n: int, tau: float, answers: int) -> None:
    answers = min(answers, n)
    found = margins(n, tau, [2, 3, 8, 64], answers=answers)
    assert all(a.necessary >= b.necessary and a.enough >= b.enough for a, b in pairwise(found))
    for one, all_of_them in zip(found, margins(n, tau, [2, 3, 8, 64]), strict=True):
        assert one.necessary <= all_of_them.necessary
        assert one.enough == all_of_them.enough


def test_two_objects_in_two_dimensions_are_exact() -> None:
    # the best vectors are e and -e: the scores R and -R
    assert margins(2, 0.9, [2]) == (
        Margin(2, pytest.approx(math.log(9) / 2), pytest.approx(math.log(9) / 2), "a simplex"),  # type: ignore[arg-type]
    )


def test_a_graph_is_asked_for_its_single_answers() -> None:
    one = [(f"s{i}", "r", f"o{i % 3}") for i in range(5)]
    several = [("s9", "r", f"p{i}") for i in range(4)]
    graph = QueryGraph.of(Database.from_triples(one + several, multi="keep"), shared=False)
    assert margins_of(graph, 0.9) == margins(7, 0.9, answers=3)
    assert margins_of(QueryGraph.of(Database.from_triples(several, multi="keep")), 0.9) == ()
    assert margins_of(QueryGraph.of(Database.from_triples([("a", "r", "b")]), shared=False)) == ()


@pytest.mark.parametrize("tau", [0.5, 1.0, 0.0, math.nan, 2])
def test_a_wrong_tau_is_told(tau: float) -> None:
    with pytest.raises(InvalidArgumentError, match="above 1/2 and below 1"):
        margins(3, tau)


@pytest.mark.parametrize(
    "options",
    [{"n_objects": 1}, {"dimensions": [1]}, {"dimensions": 5}, {"answers": 4}, {"tau": "0.9"}],
)
def test_wrong_numbers_are_told(options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError):
        margins(**{"n_objects": 3, **options})  # type: ignore[arg-type]
