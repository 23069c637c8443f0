"""Exhaustive search for trees of the substitution method with distinctions of cases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.exact.types import Indices, Mask
from capacity.rank import RankAnalysis, View, verify
from capacity.rank.lower.substitution import case_trees
from capacity.rank.lower.substitution.case_trees import case_tree
from capacity.rank.lower.substitution.dense import sparser, work_of_sparser
from capacity.rank.lower.substitution.exhaustive import Exhaustive, UnfinishedError, tree_of
from capacity.rank.lower.substitution.greedy import greedy_removals
from capacity.rank.method import Goal, Problem
from capacity.rank.options import BUDGETS
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.cases import State, removed
from capacity.tensor import from_dense
from tests.second_checker import claim, second_checker
from tests.tiers import examples


def most(T: Indices, known: Mask, work: int = 10**10) -> int:
    """The most steps of a tree that the search finds."""
    search, steps = Exhaustive(work), 0
    while search.tree(State.of(T, known), steps + 1) is not None:
        steps += 1
    return steps


def most_by_definition(state: State) -> int:
    """The most steps of any tree: every slice, every set of others, nothing kept or cut off."""
    best = 0
    for mode, remain in enumerate(state.alive):
        for index in np.flatnonzero(remain).tolist():
            others = [j for j in np.flatnonzero(remain).tolist() if j != index]
            for size in range(len(others) + 1):
                for split in itertools.combinations(others, size):
                    try:
                        cases = removed(state, mode, index, list(split))
                    except Refuted:
                        continue
                    best = max(best, 1 + min(map(most_by_definition, cases)))
    return best


def drawn(seed: int, shape: tuple[int, ...]) -> tuple[Indices, Mask]:
    rng = np.random.default_rng(seed)
    T = rng.integers(-1, 3, shape) * (rng.random(shape) < 0.6)
    return T, rng.random(shape) < rng.choice([0.7, 1.0])


@pytest.mark.slow
@given(st.integers(0, 2**20), st.sampled_from([(2, 2, 2), (3, 2, 1), (2, 2, 2, 1)]))
@settings(max_examples=examples(30))
def test_no_tree_proves_more(seed: int, shape: tuple[int, ...]) -> None:
    T, known = drawn(seed, shape)
    assert most(T, known) == most_by_definition(State.of(T, known))


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 10))]
)
def test_no_tree_proves_more_of_a_larger_tensor(seed: int) -> None:
    T, known = drawn(seed, (3, 2, 2))
    assert most(T, known) == most_by_definition(State.of(T, known))


@pytest.mark.slow
@given(st.integers(0, 2**20))
@settings(max_examples=examples(6))
def test_trees_are_true_and_no_weaker_than_orders_and_dont_depend_on_names(seed: int) -> None:
    T, known = drawn(seed, (3, 3, 3))
    found = most(T, known)
    orders = greedy_removals((T != 0) & known, known, orders=20, seed=seed, target=9)
    assert len(orders) <= found
    rng = np.random.default_rng(seed)
    places = np.ix_(*(rng.permutation(n) for n in T.shape))
    modes = rng.permutation(3)
    assert most(T[places].transpose(modes), known[places].transpose(modes)) == found
    if known.all() and T.any():
        tree = Exhaustive(10**10).tree(State.of(T, known), found)
        assert tree is not None
        tensor = from_dense(T)
        # indices without an entry stay out of a tensor
        view = View(tuple(np.arange(n) for n in T.shape))
        if tensor.shape == T.shape:
            said = claim(tensor, tree_of(tree, view, found))
            assert verify(said, tensor).proved
            assert second_checker(said, tensor)


@pytest.mark.slow
def test_an_effective_rank_of_the_atlas_that_random_trees_did_not_close() -> None:
    rows = enumerate(("011", "123", "232"))
    db = Database.from_triples(
        (f"s{k}", f"p{q}", f"o{v}") for k, row in rows for q, v in enumerate(row) if v != "0"
    )
    methods = ["cases", "least squares"]
    interval = RankAnalysis(db, effort="standard", methods=methods).effective_rank
    assert (interval.lower, interval.upper) == (4, 4)
    assert interval.certificates.lower.by == "cases"
    assert second_checker(interval.certificates.lower, db)


@pytest.mark.slow
def test_work_is_limited() -> None:
    T, known = drawn(1, (3, 3, 3))
    needed = most(T, known)
    with pytest.raises(UnfinishedError):
        Exhaustive(200_000).tree(State.of(T, known), needed)
    # distinctions whose entries would be too large
    large = np.array([[1073741789, 1073741783], [0, 1073741741]])[:, :, None]
    everywhere = np.ones(large.shape, bool)
    with pytest.raises(UnfinishedError):
        Exhaustive(10**10).tree(State.of(large, everywhere), 2)
    assert case_tree(large, everywhere, 2, work=10**8, seed=0) is not None
    # the search goes on at random
    assert case_tree(T, known, 10, work=10**6, seed=0) is None


def test_bases_are_changed_only_within_the_work_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    T = np.random.default_rng(0).integers(0, 2, (12, 4, 12))
    calls: list[int] = []

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return sparser(*arguments)

    monkeypatch.setattr(case_trees, "sparser", counted)
    limits = BUDGETS["standard"].limits
    attempts = limits.bases + 1
    for work, called in ((work_of_sparser(T) - 1, 0), (work_of_sparser(T), limits.bases)):
        calls.clear()
        # half of the work is for trees
        goal = Goal(12, 48, 2 * work * attempts, limits, seed=0)
        list(case_trees.case_trees(Problem(T), goal))
        assert len(calls) == called
