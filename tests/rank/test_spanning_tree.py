"""Spanning trees over slices: their weights are counted before their terms are made."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.rank.method import Goal, Problem
from capacity.rank.options import BUDGETS
from capacity.rank.upper.spanning_tree import spanning_tree, spanning_tree_terms, spanning_trees
from tests.tiers import examples


def goal(upper: int) -> Goal:
    return Goal(0, upper, 10**9, BUDGETS["quick"].limits, 0)


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2]))
@settings(max_examples=examples(60))
def test_a_tree_gives_as_many_terms_as_it_weighs_and_they_add_up(seed: int, mode: int) -> None:
    rng = np.random.default_rng(seed)
    tensor = rng.integers(-2, 3, rng.integers(1, 6, 3))
    tree = spanning_tree(tensor, mode)  # type: ignore[arg-type]
    terms = spanning_tree_terms(tensor, tree)
    # the minors of so small a tensor are below the prime
    assert len(terms) == tree.weight
    total = np.zeros(tensor.shape, object)
    for term in terms:
        for i, x in zip(*term[0], strict=True):
            for j, y in zip(*term[1], strict=True):
                for k, z in zip(*term[2], strict=True):
                    total[i, j, k] += x * y * z
    assert (total == tensor).all()


@pytest.mark.parametrize("seed", range(3))
def test_terms_are_made_only_for_a_tree_that_improves_the_bound(seed: int) -> None:
    problem = Problem((np.random.default_rng(seed).random((5, 4, 6)) < 0.4).astype(np.int8))
    least = min(spanning_tree(problem.core.tensor, mode).weight for mode in (0, 1, 2))
    ((found,),) = spanning_trees(problem, goal(least + 1))
    assert found.value == least
    assert not list(spanning_trees(problem, goal(least)))
