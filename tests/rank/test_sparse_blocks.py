"""Orders of sparse substitution with several slices at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.rank import BlockSubstitution, Substitution, View, rank_interval, verify
from capacity.rank.effort import BUDGETS
from capacity.rank.lower.substitution.sparse_blocks import Group, Steps, with_blocks
from capacity.rank.lower.substitution.sparse_conflicts import without_conflicts
from capacity.rank.lower.substitution.sparse_evolution import evolved
from capacity.rank.lower.substitution.sparse_layout import SparseLayout
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.procedures import sparse_removals
from capacity.rank.verifier.procedures.sparse_removals import require_sparse_removals
from capacity.tensor import SparseTensor
from tests.second_checker import claim, second_checker
from tests.tiers import examples

NONE = 2, np.zeros((0, 2), np.int64)


def a_graph(rng: np.random.Generator, shape: tuple[int, int, int], density: float) -> SparseTensor:
    """Entries of a few values, with each index in use."""
    tensor = rng.integers(1, 4, shape) * (rng.random(shape) < density)
    places = np.argwhere(tensor)
    values = tensor[tuple(places.T)]
    at = np.stack([np.unique(of, return_inverse=True)[1].ravel() for of in places.T], axis=1)
    return SparseTensor(at, values, (at.max(axis=0) + 1).tolist())


def pairs(layout: SparseLayout, slices: np.ndarray) -> np.ndarray:
    of = layout.modes[slices]
    return np.stack([of, slices - (np.cumsum(layout.shape) - layout.shape)[of]], axis=1)


@given(st.integers(0, 10**9))
@settings(max_examples=examples(60), deadline=None)
def test_the_checker_accepts_every_order_with_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 9, 3).tolist())
    tensor = a_graph(rng, shape, rng.uniform(0.2, 0.9))
    if not tensor.n_entries:
        return
    layout = SparseLayout.of(tensor.indices)
    start = next(iter(evolved(layout, 1, rng)))
    length = len(start[0])
    for steps in with_blocks(layout, tensor.values, start, 40, 10**10, rng):
        assert len(steps.order) > length
        length = len(steps.order)
        removals = pairs(layout, steps.order)
        groups = [
            sparse_removals.Group(
                group.first,
                np.delete(tensor.indices[group.columns], removals[group.first, 0], axis=1),
                group.eliminated,
                group.prime,
            )
            for group in steps.groups
        ]
        require_sparse_removals(
            tensor.indices, tensor.values, tensor.shape, NONE, removals, CheckBudget(), groups
        )


def dense_parts(seed: int) -> SparseTensor:
    """Many subjects with few objects, few with many, and facts that join all of them."""
    rng = np.random.default_rng(seed)
    tensor = np.zeros((48, 6, 48), np.int64)
    tensor[:8, :5, :40] = rng.random((8, 5, 40)) < 0.5
    tensor[8:, :5, 40:] = rng.random((40, 5, 8)) < 0.5
    tensor[:, 5] = rng.random((48, 48)) < 0.03
    places = np.argwhere(tensor)
    return SparseTensor(places, np.ones(len(places), np.int64), tensor.shape)


@pytest.fixture
def few_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred orders instead of thousands, and a tenth of the work."""
    budget = BUDGETS["standard"]
    fewer = replace(budget, work=budget.work // 10, limits=replace(budget.limits, evolved=200))
    monkeypatch.setitem(BUDGETS, "standard", fewer)


@pytest.mark.usefixtures("few_orders")
def test_dense_parts_give_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = dense_parts(0)
    assert tensor.n_entries >= 1_000
    search = {"effort": "standard", "methods": ["sparse substitution"]}
    interval = rank_interval(tensor, **search)
    (argument,) = interval.lower.arguments
    assert isinstance(argument, BlockSubstitution)
    assert verify(interval, tensor).proved
    assert rank_interval(tensor, **search).lower.to_dict() == interval.lower.to_dict()
    monkeypatch.setattr("capacity.rank.lower.substitution.sparse.TRIALS", 0)
    assert rank_interval(tensor, **search).lower.value <= interval.lower.value - 10
    # without its groups it proves nothing: their slices hide each other
    alone = Substitution(argument.view, argument.removals)
    claimed = replace(interval.lower, arguments=(alone,))
    assert "isn't known to be nonzero" in str(verify(claimed, tensor).reason)


def test_one_more_than_it_proves_is_refused_by_both_checkers() -> None:
    rng = np.random.default_rng(1)
    tensor = a_graph(rng, (5, 3, 5), 0.7)
    layout = SparseLayout.of(tensor.indices)
    start = next(iter(evolved(layout, 1, rng)))
    *_, steps = with_blocks(layout, tensor.values, start, 100, 10**10, rng)
    removals = pairs(layout, steps.order)
    (group, *_) = steps.groups
    columns = np.delete(tensor.indices[group.columns], removals[group.first, 0], axis=1)
    argument = BlockSubstitution(
        View(tuple(map(np.arange, tensor.shape))), removals[: group.first + len(columns)],
        np.array([[group.first, len(columns)]]), columns,
        np.array([group.eliminated]), group.prime,
    )  # fmt: skip
    good = claim(tensor, argument)
    assert verify(good, tensor).proved
    assert second_checker(good, tensor)
    # a place twice makes the minor singular
    twice = replace(argument, columns=np.concatenate([columns[:1], columns[:-1]]))
    bad = claim(tensor, twice)
    assert not verify(bad, tensor).proved
    assert not second_checker(bad, tensor)


@given(st.integers(0, 10**9))
@settings(max_examples=examples(100), deadline=None)
def test_no_edge_is_left_between_vertices_that_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    first, second = np.nonzero(np.triu(rng.random((n, n)) < rng.uniform(0, 0.6), 1))
    given_up = without_conflicts(first, second, rng.uniform(0.1, 9, n))
    assert (given_up[first] | given_up[second]).all()
    # nothing without an edge is given up
    assert set(np.flatnonzero(given_up).tolist()) <= {*first.tolist(), *second.tolist()}


def test_a_cut_never_goes_through_a_group() -> None:
    none = np.zeros(0, np.int64)
    groups = tuple(Group(first, np.arange(3), 0, 7) for first in (2, 6))
    steps = Steps(np.arange(12), groups)
    for length in range(13):
        part = steps.cut(length)
        assert len(part.order) == {3: 2, 4: 2, 7: 6, 8: 6}.get(length, length)
        assert len(part.groups) == (length >= 5) + (length >= 9)
    assert not len(Steps(none).cut(0).order)
