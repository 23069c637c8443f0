"""Substitution on sparse entries: orders that the checker accepts, and no slice left to remove."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import MemoryBudgetError
from capacity.rank import rank_interval, verify
from capacity.rank.lower.substitution.sparse.layout import SparseLayout
from capacity.rank.lower.substitution.sparse.methods import sparse_orders
from capacity.rank.lower.substitution.sparse.orders import Costs, sparse_order
from capacity.rank.method import Component, Goal, Method
from capacity.rank.options import BUDGETS
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.procedures.sparse_removals import require_sparse_removals
from capacity.tensor import SparseTensor
from tests.tiers import examples

NONE = 2, np.zeros((0, 2), np.int64)


def graph(seed: int, n: int, shape: tuple[int, int, int] = (60, 8, 60)) -> SparseTensor:
    """Entries with popular indices; each index of a mode is in use."""
    rng = np.random.default_rng(seed)
    places = (np.array(shape) * rng.random((n, 3)) ** 2).astype(int)
    at = np.stack([np.unique(of, return_inverse=True)[1].ravel() for of in places.T], axis=1)
    at = np.unique(at, axis=0)
    return SparseTensor(at, np.ones(len(at), np.int64), (at.max(axis=0) + 1).tolist())


def is_accepted(tensor: SparseTensor, removals: np.ndarray) -> bool:
    try:
        require_sparse_removals(
            tensor.indices, tensor.values, tensor.shape, NONE, removals, CheckBudget()
        )
    except Refuted:
        return False
    return True


def costs_at_random(layout: SparseLayout, rng: np.random.Generator) -> Costs:
    return Costs(
        rng.random(len(layout.slices)), rng.random(), rng.random(3), 3 * rng.random(),
        rng.random(3), rng.random(len(layout.modes)),
    )  # fmt: skip


@given(st.integers(0, 10**9))
@settings(max_examples=examples(150), deadline=None)
def test_orders_are_accepted_and_no_slice_is_left(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, 3).tolist())
    tensor = graph(seed, int(rng.integers(1, 60)), shape)
    layout = SparseLayout.of(tensor.indices)
    n = len(layout.modes)
    other = sparse_order(layout, costs_at_random(layout, rng), np.zeros(0, np.int64))
    start = other[: rng.integers(len(other) + 1)]
    first = np.cumsum(layout.shape) - layout.shape
    order = sparse_order(layout, costs_at_random(layout, rng), start)
    assert order[: len(start)].tolist() == start.tolist()
    removals = np.stack([layout.modes[order], order - first[layout.modes[order]]], axis=1)
    assert is_accepted(tensor, removals)
    for x in set(range(n)) - set(order.tolist()):
        mode = int(layout.modes[x])
        assert not is_accepted(tensor, np.concatenate([removals, [(mode, x - first[mode])]]))


@pytest.fixture
def few_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred orders instead of thousands."""
    budget = BUDGETS["standard"]
    fewer = replace(budget, limits=replace(budget.limits, evolved=200))
    monkeypatch.setitem(BUDGETS, "standard", fewer)


@pytest.mark.slow
@pytest.mark.usefixtures("few_orders")
@pytest.mark.parametrize("seed", range(3))
def test_it_proves_more_than_bounds_that_need_no_search(seed: int) -> None:
    tensor = graph(seed, 700)
    without = rank_interval(tensor, methods=[]).lower
    interval = rank_interval(tensor, effort="standard", methods=["sparse substitution"])
    assert interval.lower > without
    assert "sparse substitution" in interval.certificates.lower.by
    assert verify(interval, tensor).proved
    again = rank_interval(tensor, effort="standard", methods=["sparse substitution"])
    assert again.certificates.lower.to_dict() == interval.certificates.lower.to_dict()


def asked(tensor: SparseTensor, upper: int, work: int, spend: CheckBudget) -> list[int]:
    rows = np.arange(tensor.n_entries)
    component = Component(tensor, rows, (0, 0, 0), spend.spend)
    goal = Goal(0, upper, work, BUDGETS["standard"].limits, 0)
    return [argument.value for (argument,) in sparse_orders(component, goal)]


def test_it_ends_with_its_work_or_at_the_upper_end() -> None:
    tensor = graph(0, 700)
    few = asked(tensor, 10**6, 6 * 1_000 * tensor.n_entries, CheckBudget())
    many = asked(tensor, 10**6, 600 * 1_000 * tensor.n_entries, CheckBudget())
    assert few == many[: len(few)]
    assert few == sorted(set(few))
    assert few[-1] < many[-1]
    assert asked(tensor, few[0], 10**10, CheckBudget()) == few[:1]
    assert not asked(tensor, 10**6, 0, CheckBudget())


def test_what_the_verifier_cannot_afford_is_not_searched() -> None:
    tensor = graph(0, 700)
    with pytest.raises(MemoryBudgetError, match="costly"):
        asked(tensor, 10**6, 10**10, CheckBudget(1_000))


@pytest.mark.slow
@pytest.mark.usefixtures("few_orders")
def test_it_can_be_stopped_between_two_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = graph(0, 700)
    calls = 0

    def stopped(*of: object) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return sparse_order(*of)  # type: ignore[arg-type]

    monkeypatch.setattr("capacity.rank.lower.substitution.sparse.evolution.sparse_order", stopped)
    interval = rank_interval(tensor, effort="standard", methods=["sparse substitution"])
    assert interval.interrupted
    assert interval.certificates.lower.by == "sparse substitution"
    assert verify(interval, tensor).proved


@pytest.mark.slow
def test_work_goes_where_the_interval_is_wide() -> None:
    one, other = graph(0, 700), graph(1, 300)
    places = np.concatenate([one.indices, other.indices + np.array(one.shape)])
    tensor = SparseTensor(places, np.ones(len(places), np.int64), (places.max(axis=0) + 1).tolist())
    works: dict[int, int] = {}

    def watched(_component: Component, goal: Goal) -> list[Finding]:
        works[goal.upper - goal.lower] = goal.work
        return []

    method = Method("watched", find_in_entries=watched, sides=("lower",), fewest=100, adds=True)
    rank_interval(tensor, effort="standard", methods=[method])
    assert len(works) == 2
    work = BUDGETS["standard"].work
    assert works == {gap: work * gap // sum(works) for gap in works}
