"""The substitution method on small tensors: greedy, annealed, and in sparser bases.

The rank doesn't depend on the basis of a mode, but the bound by the substitution method does: a
removed slice hides entries wherever it is nonzero, so more slices can be removed from a sparse
tensor. An operation on integer rows adds one slice to another of its mode, or subtracts it. The
operation that leaves the fewest entries is taken, ties at random, until none helps.

For the effective rank, an entry of the new slice is known only if it is known in both; unknown
entries count as nonzero.

References
----------
B. Alexeev, M. Forbes, J. Tsimerman, Tensor rank: some lower and upper bounds, CCC 2011
(substitution after a change of basis).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.lower.substitution.greedy import greedy_removals
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.substitution import Substitution

# fewest steps of annealing that are worth an attempt: of all, and for each slice
FEWEST_STEPS, STEPS_A_SLICE = 100, 5


def greedy_orders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily for an order of slices to remove, on each of `Problem.parts`."""
    work = goal.work // len(problem.parts)
    orders = min(goal.limits.orders, work // (4 * problem.size + 200_000))
    for indices in problem.parts:
        tensor, known = problem.part(indices)
        removals = greedy_removals(
            tensor != 0, known, orders=orders, seed=goal.seed, target=goal.upper
        )
        yield (Substitution(View(indices), removals),)


def annealed_orders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily and then by annealing, on each of `Problem.parts`."""
    from capacity.rank.lower.substitution.annealed import annealed_removals

    steps = min(goal.limits.annealing, goal.work // (6 * problem.tensor.size))
    for indices in problem.parts:
        tensor, known = problem.part(indices)
        removals = greedy_removals(tensor != 0, known, orders=8, seed=goal.seed, target=goal.upper)
        removals = annealed_removals(
            tensor != 0, known, removals, steps=steps, seed=goal.seed, target=goal.upper
        )
        yield (Substitution(View(indices), removals),)


def rebased_orders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Search greedily and then by annealing, in sparser bases of the smallest part."""
    from capacity.rank.lower.substitution.annealed import annealed_removals

    indices = problem.parts[-1]
    tensor, known = problem.part(indices)
    work = goal.work // goal.limits.bases - work_of_sparser(tensor)
    steps = min(goal.limits.annealing, work // (3 * tensor.size))
    if steps < FEWEST_STEPS:
        return
    for seed in range(goal.seed, goal.seed + goal.limits.bases):
        X, sure, bases = sparser(tensor, known, np.random.default_rng(seed))
        removals = greedy_removals(X != 0, sure, orders=8, seed=seed, target=goal.upper)
        if X.ndim == 3:
            removals = annealed_removals(
                X != 0, sure, removals, steps=steps, seed=seed, target=goal.upper
            )
        yield (Substitution(View(indices, bases), removals),)


def work_of_sparser(tensor: Indices) -> int:
    """About the nanoseconds that `sparser` takes, if one operation removes four entries."""
    # each operation compares all pairs of slices
    return 2 * tensor.size * max(tensor.shape) * (np.count_nonzero(tensor) // 4 + 5) + 10**6


def sparser(
    tensor: Indices, known: Mask, rng: np.random.Generator
) -> tuple[Indices, Mask, tuple[Indices, ...]]:
    """Change the bases of a tensor so that fewer entries are nonzero or unknown.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n0, n1, ...)
        The tensor; entries that aren't known are ignored.
    known : ndarray of bool, shape (n0, n1, ...)
        Mask of the known entries.
    rng : numpy.random.Generator
        Generator for ties and the order of the modes.

    Returns
    -------
    tensor, known : ndarrays, shape (n0, n1, ...)
        The tensor in the new bases, and the mask of its known entries.
    bases : tuple of ndarrays of int64, shapes (n_m, n_m)
        Unimodular P_m with ``tensor = (P_0, P_1, ...) tensor_before``.

    Examples
    --------
    >>> T = np.array([[[1, 1, 1]], [[1, 1, 0]]])
    >>> found, _, bases = sparser(T, np.ones(T.shape, bool), np.random.default_rng(0))
    >>> int((found != 0).sum())
    2
    """
    tensor, known = tensor.astype(np.int64), known.copy()
    bases = tuple(np.eye(n, dtype=np.int64) for n in tensor.shape)
    unchanged = 0
    modes = rng.permutation(tensor.ndim)
    while unchanged < tensor.ndim:
        mode = int(modes[unchanged])
        rows = np.moveaxis(tensor, mode, 0).reshape(len(bases[mode]), -1)
        unknown = ~np.moveaxis(known, mode, 0).reshape(rows.shape)
        # gain[c, i, j]: entries that slice i loses when slice j is subtracted (c = 0) or added
        both = unknown[:, None] | unknown[None]
        gain = ((rows != 0) | unknown).sum(axis=1)[:, None] - np.stack(
            [((rows[:, None] + c * rows[None] != 0) | both).sum(axis=2) for c in (-1, 1)]
        )
        gain[:, np.arange(len(rows)), np.arange(len(rows))] = 0
        best = gain.max()
        if best <= 0:
            unchanged += 1
            continue
        choices = np.argwhere(gain == best)
        c, i, j = choices[rng.integers(len(choices))].tolist()
        at_i, at_j = [slice(None)] * tensor.ndim, [slice(None)] * tensor.ndim
        at_i[mode], at_j[mode] = i, j
        tensor[tuple(at_i)] += (2 * c - 1) * tensor[tuple(at_j)]
        known[tuple(at_i)] &= known[tuple(at_j)]
        bases[mode][i] += (2 * c - 1) * bases[mode][j]
        unchanged = 0
        modes = rng.permutation(tensor.ndim)
    return tensor, known, bases


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
