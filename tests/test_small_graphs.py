"""Small graphs are done in Python, large ones by scipy: the answers are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.rank.lower import independent_sets
from capacity.rank.upper import spanning_tree
from capacity.tensor import structure

Answer = Callable[[], Any]


def both(module: Any, answer: Answer) -> tuple[Any, Any]:
    """Answers of a module by its way for small graphs, and by that for large ones."""
    answers: list[Any] = []
    for small in (10**9, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "SMALL", small)
            answers.append(answer())
    return answers[0], answers[1]


def edges(n: int, m: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, m - 1))
    return st.lists(ends, min_size=1, max_size=60)


@given(edges(20, 20))
def test_components_of_small_graphs_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    tails, heads = np.array(pairs).T
    mine, theirs = both(structure, lambda: structure.connected_labels(tails, heads, 20))
    assert (mine == theirs).all()


@given(edges(12, 15))
def test_independent_sets_of_small_graphs_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs).T
    mine, theirs = both(
        independent_sets, lambda: independent_sets.largest_independent_set(left, right, 12, 15)
    )
    assert all((a == b).all() for a, b in zip(mine, theirs, strict=True))
    in_left, in_right = mine
    assert not (in_left[left] & in_right[right]).any()


@given(st.integers(2, 25), st.data())
def test_spanning_trees_of_small_graphs_are_those_of_scipy(n: int, data: st.DataObject) -> None:
    # few weights, so that many are equal and the order of edges decides
    size = n * (n - 1) // 2
    weights = np.zeros((n, n))
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    weights[np.triu_indices(n, 1)] = drawn
    mine, theirs = both(spanning_tree, lambda: spanning_tree.minimum_spanning_tree(weights))
    assert mine == theirs
