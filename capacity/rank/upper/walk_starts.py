"""Decompositions from which walks in the flip graph start.

They have small integer coefficients: the fibers of each mode, one term per fiber; fibers of modes
drawn at random; and the spanning trees over the slices of each mode, where their factors are
integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from capacity.exact.types import Indices, IntegerFactors, Term, Vector, vector
from capacity.rank.method import Goal, Problem
from capacity.rank.reductions.subtensor import restricted
from capacity.rank.upper.spanning_tree import spanning_tree, spanning_tree_terms, spanning_tree_work

# most terms of a start; the number of pairs grows as their square
MOST_TERMS = 1_500


def start_of(problem: Problem, goal: Goal) -> Sequence[Term]:
    """Return the goal's decomposition, as one of the core for the rank."""
    return goal.start if problem.known is not None else restricted(goal.start, problem.core.chosen)


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


def starts_modulo(p: int, tensor: Indices, problem: Problem, goal: Goal) -> Iterator[list[Indices]]:
    """Yield starts modulo a prime, with coefficients around 0 and no term that vanishes.

    Parameters
    ----------
    p : int
        The prime.
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor.
    problem, goal : Problem, Goal
        As a method gets them; the current decomposition comes first, if it is one modulo p.
    """
    first = first_decompositions(tensor, np.random.default_rng(goal.seed), work=3 * goal.work)
    for factors in (_residues(start_of(problem, goal), tensor.shape, p), *first):
        if factors is None:
            continue
        most = (p - 1) // 2
        small = [(f + most) % p - most for f in factors]
        left = np.logical_and.reduce([f.any(axis=1) for f in small])
        if 0 < left.sum() <= MOST_TERMS:
            yield [f[left] for f in small]


def _residues(terms: Sequence[Term], shape: tuple[int, ...], p: int) -> list[Indices] | None:
    """Terms modulo a prime; None if it divides a denominator."""
    factors = [np.zeros((len(terms), n), np.int64) for n in shape]
    for r, term in enumerate(terms):
        for m, (indices, values) in enumerate(term):
            if any(x.denominator % p == 0 for x in values):
                return None
            residues = [x.numerator * pow(x.denominator, -1, p) % p for x in values]
            factors[m][r, list(indices)] = residues
    return factors


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
