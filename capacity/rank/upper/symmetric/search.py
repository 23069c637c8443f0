"""Walks over F_2 through decompositions with a cyclic symmetry, lifted to the rationals.

They are for tensors that a cyclic permutation of the modes preserves modulo 2, in some order of the
indices of each mode: the product of n x n matrices, that of a pattern of their entries, group
algebras, symmetric tensors. There are fewer such decompositions, and they are a third as large, so
walks come down in fewer steps where the shortest have many terms. Walks without the symmetry
continue from them, and what is found is lifted as theirs is, with the symmetry or without it
(`capacity.rank.upper.walk_search`, `capacity.rank.upper.lifting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from capacity.exact.types import Indices, Mask, Term
from capacity.exact.words import Words, packed
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.upper.binary_search import BinaryLayout
from capacity.rank.upper.lifting import rational_lift
from capacity.rank.upper.symmetric.identification import identification
from capacity.rank.upper.walk_search import fewest_fibers, least_work, shorter

# largest side of a tensor: a factor has one bit for each index
_LONGEST = 64
# most terms of a start; the list of pairs grows as their square
_MOST_TERMS = 600
# these walks take the work of a search, divided by this
_PART = 3
# more work than any search has
_NEVER = 2**62
# steps without a shorter decomposition until a longer one, and terms by which it may exceed that:
# those of two orbits
PATIENCE, SLACK = 1_000, 6
# orbits of entries, and of fibers in different orders
STARTS = 8


class SymmetricLayout:
    """A tensor over F_2 that a cyclic permutation of its modes preserves, and its decompositions.

    Those that have the symmetry are walked through with it or, every other time, without it.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n, n, n)
        The tensor; n is at most 64.
    indices : tuple of ndarrays of int64
        The order of each mode's indices in which the permutation preserves it modulo 2.
    seed : int
        Seed of the walks.

    Notes
    -----
    Decompositions are words of shape (3, rank, 1), in that order of the indices. With the symmetry,
    the three terms of an orbit follow each other.
    """

    def __init__(
        self, tensor: Indices, indices: tuple[Indices, Indices, Indices], seed: int
    ) -> None:
        self.tensor, self.indices, self.seed = tensor, indices, seed
        self.plain = BinaryLayout(tensor[np.ix_(*indices)], None, seed)

    def walked(self, words: Words, steps: int, target: int, seed: int) -> tuple[Words, int]:
        """Return the shortest decomposition that a walk meets, and its steps."""
        from capacity.rank.upper.symmetric.walk import walk

        chosen = representatives(words)
        if chosen is None or (seed >= STARTS and seed % 2):
            return self.plain.walked(words, steps, target, seed)
        room = np.zeros(3 * (words.shape[1] + SLACK + 4), np.uint64)
        room[: chosen.size] = chosen.ravel()
        state = np.random.default_rng([self.seed, seed]).integers(1, 2**64, 1, dtype=np.uint64)
        found, done = walk(room, len(chosen), steps, state, target, PATIENCE, SLACK)
        return expanded(found.reshape(-1, 3)), done

    def factors(self, words: Words) -> list[Mask]:
        """Return the factors in the tensor's own order of indices, as bits, of shapes (rank, n)."""
        found = self.plain.factors(words)
        return [of[:, np.argsort(order)] for of, order in zip(found, self.indices, strict=True)]

    def lifted(self, words: Words) -> list[Term] | None:
        """Return terms over the rationals that are a decomposition modulo 2; None if none are."""
        return rational_lift(self.tensor, self.factors(words))

    def cost_of_step(self, n_terms: int) -> int:
        """Estimate the nanoseconds of a step, which are about those of a plain walk."""
        return self.plain.cost_of_step(n_terms)

    def cost_of_lift(self, n_terms: int) -> tuple[int, int]:
        """Estimate the nanoseconds of a lift, and of one that fails."""
        return self.plain.cost_of_lift(n_terms)


def representatives(words: Words) -> Words | None:
    """Return the first term of each orbit, of shape (n, 3); None if there are other terms."""
    terms = words[:, :, 0].T.tolist()
    found: list[list[int]] = []
    while terms:
        orbit = _orbit(terms[0])
        if terms[: len(orbit)] != orbit:
            return None
        found.append(orbit[0])
        del terms[: len(orbit)]
    return np.array(found, np.uint64).reshape(-1, 3)


def expanded(chosen: Words) -> Words:
    """Return the words of all terms of the orbits of some, of shape (3, rank, 1)."""
    rows = [term for one in chosen.tolist() for term in _orbit(one)]
    return np.array(rows, np.uint64).reshape(-1, 3).T[:, :, None]


def _orbit(term: list[int]) -> list[list[int]]:
    a, b, c = term
    return [term] if a == b == c else [term, [b, c, a], [c, a, b]]


def symmetric_flips(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Walk over F_2 with a symmetry; yield each decomposition that is shorter and lifts."""
    tensor = problem.core.tensor.astype(np.int64)
    bits = (tensor & 1).astype(bool)
    indices = identification(bits, goal.seed)
    if indices is None:
        return
    layout = SymmetricLayout(tensor, indices, goal.seed)
    starts = _starts(bits[np.ix_(*indices)], np.random.default_rng(goal.seed))
    yield from shorter(problem, replace(goal, work=goal.work // _PART), layout, starts)


def _starts(bits: Mask, rng: np.random.Generator) -> Iterator[Words]:
    """Orbits of entries, and of fibers in random orders, of a tensor with the symmetry."""
    for turn in range(STARTS):
        words = expanded(orbits_of_fibers(bits, rng) if turn else orbits_of_entries(bits))
        if 0 < words.shape[1] <= _MOST_TERMS:
            yield words


def orbits_of_entries(bits: Mask) -> Words:
    """Return the entries that are the first of their orbits, as representatives."""
    places = np.argwhere(bits)
    turned = np.stack([np.roll(places, -turn, axis=1) for turn in range(3)])
    numbers = turned @ np.array([len(bits) ** 2, len(bits), 1])
    return np.uint64(1) << places[numbers.argmin(axis=0) == 0].astype(np.uint64)


def orbits_of_fibers(bits: Mask, rng: np.random.Generator) -> Words:
    """Return fibers of what is left, through random entries in random rotations, and all cubes."""
    rest, n = bits.copy(), np.arange(len(bits))
    cubes = n[bits[n, n, n]]
    rest[cubes, cubes, cubes] = False
    rows = [[1 << i] * 3 for i in cubes.tolist()]
    for place in rng.permutation(np.argwhere(rest)):
        i, j, k = np.roll(place, rng.integers(3)).tolist()
        if not rest[i, j, k]:
            continue
        # two entries of a fiber are in different orbits, for otherwise i = j = k
        fiber = np.flatnonzero(rest[i, j])
        rows.append([1 << i, 1 << j, int(packed(rest[i, j][None])[0, 0])])
        rest[i, j, fiber] = rest[j, fiber, i] = rest[fiber, i, j] = False
    return np.array(rows, np.uint64).reshape(-1, 3)


def _least_work(problem: Problem) -> int:
    shape = problem.core.tensor.shape
    if len(set(shape)) > 1 or shape[0] > _LONGEST:
        return _NEVER
    return _PART * least_work(BinaryLayout.cost_of_step(fewest_fibers(problem)))


SYMMETRIC_FLIPS = Method(
    "symmetric flip graph over F_2",
    symmetric_flips,
    sides=("upper",),
    limit="walks",
    cost=_least_work,
)
