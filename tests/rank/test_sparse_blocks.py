"""Orders of sparse substitution with several slices at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.exact.block_rank import PRIME
from capacity.rank import BlockSubstitution, Substitution, View, rank_interval, verify
from capacity.rank.lower.substitution.sparse.blocks import (
    Block,
    Steps,
    with_blocks,
    without_conflicts,
)
from capacity.rank.lower.substitution.sparse.evolution import evolved
from capacity.rank.lower.substitution.sparse.layout import SparseLayout
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.options import BUDGETS
from capacity.rank.reductions.subtensor import relocated
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


@pytest.mark.slow
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
                block.first,
                np.delete(tensor.indices[block.columns], removals[block.first, 0], axis=1),
                block.eliminated,
                PRIME,
            )
            for block in steps.blocks
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


@pytest.mark.slow
@pytest.mark.usefixtures("few_orders")
def test_dense_parts_give_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = dense_parts(0)
    assert tensor.n_entries >= 1_000
    search = {"effort": "standard", "methods": ["sparse substitution"]}
    interval = rank_interval(tensor, **search)
    (argument,) = interval.certificates.lower.arguments
    assert isinstance(argument, BlockSubstitution)
    assert verify(interval, tensor).proved
    assert (
        rank_interval(tensor, **search).certificates.lower.to_dict()
        == interval.certificates.lower.to_dict()
    )
    monkeypatch.setattr("capacity.rank.lower.substitution.sparse.methods.TRIALS", 0)
    assert rank_interval(tensor, **search).lower <= interval.lower - 10
    # without its groups it proves nothing: their slices hide each other
    alone = Substitution(argument.view, argument.removals)
    claimed = replace(interval.certificates.lower, arguments=(alone,))
    assert "isn't known to be nonzero" in str(verify(claimed, tensor).reason)


def test_one_more_than_it_proves_is_refused_by_both_checkers() -> None:
    rng = np.random.default_rng(1)
    tensor = a_graph(rng, (5, 3, 5), 0.7)
    layout = SparseLayout.of(tensor.indices)
    start = next(iter(evolved(layout, 1, rng)))
    *_, steps = with_blocks(layout, tensor.values, start, 100, 10**10, rng)
    removals = pairs(layout, steps.order)
    (group, *_) = steps.blocks
    columns = np.delete(tensor.indices[group.columns], removals[group.first, 0], axis=1)
    argument = BlockSubstitution(
        View(tuple(map(np.arange, tensor.shape))), removals[: group.first + len(columns)],
        np.array([[group.first, len(columns)]]), columns,
        np.array([group.eliminated]), PRIME,
    )  # fmt: skip
    good = claim(tensor, argument)
    assert verify(good, tensor).proved
    assert second_checker(good, tensor)
    # a place twice makes the minor singular
    twice = replace(argument, columns=np.concatenate([columns[:1], columns[:-1]]))
    bad = claim(tensor, twice)
    assert not verify(bad, tensor).proved
    assert not second_checker(bad, tensor)


def test_a_slice_that_is_twice_in_a_group_is_refused_before_any_work() -> None:
    n = 3_000
    tensor = SparseTensor(
        np.argwhere(np.ones((2, n, 2), np.int64)), np.ones(4 * n, np.int64), (2, n, 2)
    )
    columns = np.stack([np.arange(n), np.zeros(n, np.int64)], axis=1)
    argument = BlockSubstitution(
        View(tuple(map(np.arange, tensor.shape))), np.zeros((n, 2), np.int64),
        np.array([[0, n]]), columns, np.array([0]), 7,
    )  # fmt: skip
    budget = CheckBudget()
    before = budget.steps
    assert verify(claim(tensor, argument), tensor, budget=budget).reason == (
        "a slice is twice in a group"
    )
    assert before - budget.steps < 10**8


def test_a_search_of_dense_tensors_may_find_it_too() -> None:
    """Its places are those of the view, so they stay when it is carried over to the whole."""

    def two_rows(problem: Problem, _goal: Goal) -> list[tuple[BlockSubstitution]]:
        view = View(tuple(map(np.arange, problem.tensor.shape)))
        pivots = np.argwhere(problem.tensor[0])[:1], np.argwhere(problem.tensor[1])[:1]
        steps, groups = np.array([[0, 0], [0, 1]]), np.array([[0, 2]])
        none = np.zeros(1, np.int64)
        return [(BlockSubstitution(view, steps, groups, np.concatenate(pivots), none, 7),)]

    places = np.array([(2, 3, 1), (2, 6, 1), (4, 3, 5), (4, 6, 5), (7, 7, 7)])
    tensor = SparseTensor(places, np.ones(5, np.int64), (8, 8, 8))
    method = Method("two rows", two_rows, sides=("lower",), adds=True)
    lower = rank_interval(tensor, methods=[method]).certificates.lower
    assert verify(lower, tensor).proved
    problem = Problem(np.eye(2, dtype=np.int64)[:, None])
    (argument,) = two_rows(problem, Goal(0, 9, 0, BUDGETS["quick"].limits, 0))[0]
    moved = relocated(argument, (np.array([2, 4]), np.array([3]), np.array([1, 5])))
    assert verify(claim(tensor, moved), tensor).proved


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


def test_a_cut_never_goes_through_a_block() -> None:
    none = np.zeros(0, np.int64)
    blocks = tuple(Block(first, np.arange(3), 0) for first in (2, 6))
    steps = Steps(np.arange(12), blocks)
    for length in range(13):
        part = steps.cut(length)
        assert len(part.order) == {3: 2, 4: 2, 7: 6, 8: 6}.get(length, length)
        assert len(part.blocks) == (length >= 5) + (length >= 9)
    assert not len(Steps(none).cut(0).order)
