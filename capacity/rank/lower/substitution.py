"""The substitution method on small tensors: greedy, annealed, and in sparser bases."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.rank.lower.greedy_substitution import greedy_moves
from capacity.rank.lower.sparse_bases import sparser
from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.substitution import Substitution

# fewest steps of annealing that are worth an attempt
FEWEST_STEPS = 100


def greedy_games(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily for an order of slices to remove, on each of `Problem.parts`."""
    each = goal.work // len(problem.parts)
    games = min(goal.limits.games, each // (4 * problem.size + 200_000))
    for of in problem.parts:
        tensor, known = problem.part(of)
        moves = greedy_moves(tensor != 0, known, games=games, seed=goal.seed, target=goal.upper)
        yield (Substitution(View(of), moves),)


def annealed_games(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily and then by annealing, on each of `Problem.parts`."""
    from capacity.rank.lower.annealed_substitution import annealed_moves

    steps = min(goal.limits.annealing, goal.work // (6 * problem.tensor.size))
    for of in problem.parts:
        tensor, known = problem.part(of)
        moves = greedy_moves(tensor != 0, known, games=8, seed=goal.seed, target=goal.upper)
        moves = annealed_moves(
            tensor != 0, known, moves, steps=steps, seed=goal.seed, target=goal.upper
        )
        yield (Substitution(View(of), moves),)


def rebased_games(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily and then by annealing, in sparser bases of the smallest part."""
    from capacity.rank.lower.annealed_substitution import annealed_moves

    of = problem.parts[-1]
    tensor, known = problem.part(of)
    # each operation that removes an entry compares all pairs of slices
    each = 2 * tensor.size * max(tensor.shape) * (np.count_nonzero(tensor) // 4 + 5) + 10**6
    steps = min(goal.limits.annealing, (goal.work // goal.limits.bases - each) // (3 * tensor.size))
    if steps < FEWEST_STEPS:
        return
    for seed in range(goal.seed, goal.seed + goal.limits.bases):
        X, sure, bases = sparser(tensor, known, np.random.default_rng(seed))
        moves = greedy_moves(X != 0, sure, games=8, seed=seed, target=goal.upper)
        moves = annealed_moves(X != 0, sure, moves, steps=steps, seed=seed, target=goal.upper)
        yield (Substitution(View(of, bases), moves),)


SUBSTITUTION = Method(
    "substitution",
    greedy_games,
    sides=("lower",),
    limit="games",
    dense=False,
    peeled="also",
    adds=True,
    effective="yes",
)
ANNEALED_SUBSTITUTION = Method(
    "annealed substitution",
    annealed_games,
    sides=("lower",),
    limit="annealing",
    cost=lambda problem: FEWEST_STEPS * 6 * problem.tensor.size,
    dense=False,
    peeled="also",
    adds=True,
    effective="yes",
)
SUBSTITUTION_IN_OTHER_BASES = Method(
    "substitution in other bases",
    rebased_games,
    sides=("lower",),
    limit="bases",
    dense=False,
    peeled="also",
    adds=True,
    effective="yes",
)
