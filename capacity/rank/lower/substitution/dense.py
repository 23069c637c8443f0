"""The substitution method on small tensors: greedy, annealed, and in sparser bases."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.rank.lower.substitution.greedy import greedy_removals
from capacity.rank.lower.substitution.sparse.bases import sparser, work_of_sparser
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.substitution import Substitution

# fewest steps of annealing that are worth an attempt: of all, and for each slice
FEWEST_STEPS, STEPS_A_SLICE = 100, 5


def greedy_orders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily for an order of slices to remove, on each of `Problem.parts`."""
    each = goal.work // len(problem.parts)
    orders = min(goal.limits.orders, each // (4 * problem.size + 200_000))
    for of in problem.parts:
        tensor, known = problem.part(of)
        removals = greedy_removals(
            tensor != 0, known, orders=orders, seed=goal.seed, target=goal.upper
        )
        yield (Substitution(View(of), removals),)


def annealed_orders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily and then by annealing, on each of `Problem.parts`."""
    from capacity.rank.lower.substitution.annealed import annealed_removals

    steps = min(goal.limits.annealing, goal.work // (6 * problem.tensor.size))
    for of in problem.parts:
        tensor, known = problem.part(of)
        removals = greedy_removals(tensor != 0, known, orders=8, seed=goal.seed, target=goal.upper)
        removals = annealed_removals(
            tensor != 0, known, removals, steps=steps, seed=goal.seed, target=goal.upper
        )
        yield (Substitution(View(of), removals),)


def rebased_orders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily and then by annealing, in sparser bases of the smallest part."""
    from capacity.rank.lower.substitution.annealed import annealed_removals

    of = problem.parts[-1]
    tensor, known = problem.part(of)
    each = goal.work // goal.limits.bases - work_of_sparser(tensor)
    steps = min(goal.limits.annealing, each // (3 * tensor.size))
    if steps < FEWEST_STEPS:
        return
    for seed in range(goal.seed, goal.seed + goal.limits.bases):
        X, sure, bases = sparser(tensor, known, np.random.default_rng(seed))
        removals = greedy_removals(X != 0, sure, orders=8, seed=seed, target=goal.upper)
        if X.ndim == 3:
            removals = annealed_removals(
                X != 0, sure, removals, steps=steps, seed=seed, target=goal.upper
            )
        yield (Substitution(View(of, bases), removals),)


SUBSTITUTION = Method(
    "substitution",
    greedy_orders,
    sides=("lower",),
    limit="orders",
    dense=False,
    peeled="also",
    adds=True,
    any_order=True,
    effective="yes",
)
ANNEALED_SUBSTITUTION = Method(
    "annealed substitution",
    annealed_orders,
    sides=("lower",),
    limit="annealing",
    cost=lambda problem: 6 * max(FEWEST_STEPS * problem.tensor.size, STEPS_A_SLICE * problem.size),
    dense=False,
    peeled="also",
    adds=True,
    effective="yes",
)
SUBSTITUTION_IN_OTHER_BASES = Method(
    "substitution in other bases",
    rebased_orders,
    sides=("lower",),
    limit="bases",
    dense=False,
    peeled="also",
    adds=True,
    any_order=True,
    effective="yes",
)
