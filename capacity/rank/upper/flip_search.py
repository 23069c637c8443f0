"""Starting points and lengths of walks in the flip graph.

A walk starts from a decomposition with small integer coefficients: the fibers of each mode, one
term per fiber; fibers of modes drawn at random; and the spanning trees over the slices of each
mode, where their factors are integers. The first half of the steps is shared among these starts;
the second half continues from the shortest decomposition found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from capacity.exact.types import Indices, IntegerFactors, Term, Vector, vector
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding, restricted
from capacity.rank.upper.spanning_tree import spanning_tree, spanning_tree_terms, spanning_tree_work
from capacity.rank.verifier.kinds.decomposition import Decomposition

# steps per compiled call, so that Ctrl-C is noticed in between
STRIDE = 500_000
# fewest steps that are worth a walk
FEWEST = 1_000
# most terms of a start; the number of pairs grows as their square
MOST_TERMS = 1_500


def flips(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Walk in the flip graph; yield each decomposition that is shorter than those before.

    For the rank the walks are on the core, and for the effective rank on the tensor itself. One of
    them starts from the goal's decomposition.
    """
    from capacity.rank.upper.flip_graph import flip_walk

    whole = problem.known is not None
    tensor = problem.tensor if whole else problem.core.tensor
    observed = None if problem.known is None else problem.known[:, :, 0]
    # trees get more than their share: on dense facts they are the shortest starts by far
    first = first_decompositions(
        tensor.astype(np.int64), np.random.default_rng(goal.seed), work=3 * goal.work
    )
    first = [factors for factors in first if _walkable(factors)]
    given = start_of(problem, goal)
    at_hand = as_factors(given, tensor.shape) if 0 < len(given) <= MOST_TERMS else None
    starts = [*([] if at_hand is None else [at_hand]), *first]
    starts.sort(key=lambda factors: len(factors[0]))
    if not starts:
        return
    steps = min(goal.limits.flips, goal.work // _cost(tensor.shape, len(starts[0][0])))
    best, shortest = starts[0], goal.upper
    seed = 1000 * goal.seed
    for turn in range(len(starts) + max(1, steps // 2 // STRIDE)):
        from_start = turn < len(starts)
        n = min(STRIDE, steps // 2 // len(starts) if from_start else steps // 2)
        if n < FEWEST or shortest <= goal.lower:
            return
        start = starts[turn] if from_start else best
        found = flip_walk(start, steps=n, seed=seed + turn, target=goal.lower, observed=observed)
        if len(found[0]) < len(best[0]) or (not from_start and len(found[0]) == len(best[0])):
            best = found
        if len(best[0]) < shortest:
            shortest = len(best[0])
            terms = as_terms(best)
            yield (Decomposition(tuple(terms if whole else problem.core.lifted(terms))),)


def start_of(problem: Problem, goal: Goal) -> Sequence[Term]:
    """Return the goal's decomposition, as one of the core for the rank."""
    return goal.start if problem.known is not None else restricted(goal.start, problem.core.chosen)


def _walkable(factors: IntegerFactors) -> bool:
    """Return True if all coefficients are within those of a walk."""
    return all(np.abs(of).max(initial=0) <= 2 for of in factors)


def as_terms(factors: IntegerFactors) -> list[Term]:
    """Convert dense factors, with one row per term, to terms."""
    return [(_sparse(a), _sparse(b), _sparse(c)) for a, b, c in zip(*factors, strict=True)]


def as_factors(terms: Iterable[Term], shape: tuple[int, ...]) -> IntegerFactors | None:
    """Convert terms to dense factors; None unless all coefficients are integers within -2 .. 2."""
    listed = list(terms)
    found = [np.zeros((len(listed), n), np.int64) for n in shape]
    for r, term in enumerate(listed):
        for mode, (indices, values) in enumerate(term):
            if any(x.denominator != 1 or abs(x) > 2 for x in values):
                return None
            found[mode][r, list(indices)] = [int(x) for x in values]
    return found[0], found[1], found[2]


def _cost(shape: tuple[int, ...], n_terms: int) -> int:
    """Estimate the nanoseconds of one step in the flip graph."""
    return 100 + 3 * max(shape) + 4 * n_terms


def first_decompositions(
    tensor: Indices, rng: np.random.Generator, *, work: int
) -> Iterable[IntegerFactors]:
    """Yield starts of walks: fibers of random modes, of each mode, and integer spanning trees.

    Starts of more than `MOST_TERMS` terms are omitted, and so are trees that cost more than `work`.
    """
    fibers = _random_fibers(tensor, rng)
    if fibers is not None:
        yield fibers
    for mode in range(3):
        if np.count_nonzero(tensor.any(axis=mode)) <= MOST_TERMS:
            yield _fibers(tensor, mode)
        if spanning_tree_work(tensor.shape, mode) > work:
            continue
        terms = spanning_tree_terms(tensor, spanning_tree(tensor, mode))
        factors = as_factors(terms, tensor.shape)
        if factors is not None and len(factors[0]) <= MOST_TERMS:
            yield factors


def _fibers(tensor: Indices, mode: int) -> IntegerFactors:
    """Decompose a tensor into its nonzero fibers along a mode."""
    across = np.moveaxis(tensor, mode, 2)
    i, j = np.nonzero(across.any(axis=2))
    factors: list[Indices] = [
        np.eye(across.shape[0], dtype=np.int64)[i],
        np.eye(across.shape[1], dtype=np.int64)[j],
    ]
    factors.insert(mode, across[i, j])
    return factors[0], factors[1], factors[2]


def _random_fibers(tensor: Indices, rng: np.random.Generator) -> IntegerFactors | None:
    """Decompose a tensor into fibers through its entries, in random order and of random modes.

    Each fiber takes the entries that earlier ones didn't. None if there are more than `MOST_TERMS`.
    """
    rest = tensor.copy()
    rows: list[list[list[int]]] = [[], [], []]
    for place in rng.permutation(np.argwhere(tensor)):
        if not rest[tuple(place)]:
            continue
        if len(rows[0]) == MOST_TERMS:
            return None
        mode = int(rng.integers(3))
        fiber = np.moveaxis(rest, mode, 2)[tuple(place[m] for m in range(3) if m != mode)]
        for m, n in enumerate(tensor.shape):
            unit = [int(i == place[m]) for i in range(n)]
            rows[m].append(fiber.tolist() if m == mode else unit)
        fiber[:] = 0
    a, b, c = (np.array(of, np.int64).reshape(len(of), -1) for of in rows)
    return a, b, c


def _sparse(x: Indices) -> Vector:
    where = np.flatnonzero(x)
    return vector(where.tolist(), [Fraction(int(c)) for c in x[where]])


def _least_work(problem: Problem) -> int:
    """Estimate the least work that allows a walk, if it starts with as few terms as possible."""
    tensor = problem.tensor if problem.known is not None else problem.core.tensor
    fewest = min(int(np.count_nonzero(tensor.any(axis=mode))) for mode in range(3))
    return 2 * FEWEST * _cost(tensor.shape, fewest)


FLIP_GRAPH = Method(
    "flip graph",
    flips,
    sides=("upper",),
    limit="flips",
    cost=_least_work,
    dense=False,
    peeled="also",
    effective="yes",
)
