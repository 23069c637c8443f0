"""Walks in the flip graph over F_2, whose decompositions are lifted to the rationals.

They begin at `capacity.rank.upper.walk_starts` modulo 2, and at the current decomposition
(`capacity.rank.upper.walk_search`, `capacity.rank.upper.lifting`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from capacity.exact.types import Indices, Mask, Term
from capacity.exact.words import Words, packed, unpacked
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.upper.lifting import ORDERS, rational_lift, work_of_lift
from capacity.rank.upper.walk_search import (
    PATIENCE,
    SLACK,
    fewest_fibers,
    least_work,
    shorter,
    walked_in,
)
from capacity.rank.upper.walk_starts import starts_modulo


@dataclass
class BinaryLayout:
    """A tensor over F_2, whose factors are words.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor.
    observed : ndarray of bool, shape (n_0, n_1), or None
        Observed fibers of the last mode, for the effective rank.
    seed : int
        Seed of the walks.
    """

    tensor: Indices
    observed: Mask | None
    seed: int
    hashes: Words = field(init=False)
    masks: Words = field(init=False)

    def __post_init__(self) -> None:
        self.shape = self.tensor.shape
        longest = max(self.shape)
        self.n_words = (longest + 63) // 64
        self.dims = np.array(self.shape, np.int64)
        if self.n_words == 1:
            one = np.uint64(1) << np.arange(longest, dtype=np.uint64)
            self.hashes = np.tile(one, (3, 1))
        else:
            rng = np.random.default_rng(0)
            self.hashes = rng.integers(1, 2**64, (3, longest), dtype=np.uint64)
        self.masks = np.zeros((0, 0, 0), np.uint64)
        if self.observed is not None:
            self.masks = np.zeros((2, longest, self.n_words), np.uint64)
            for m, rows in enumerate((self.observed, self.observed.T)):
                of_mode = packed(rows)
                self.masks[m, : len(rows), : of_mode.shape[1]] = of_mode

    def words(self, factors: list[Mask]) -> Words:
        """Words of all factors, of shape (3, rank, n_words)."""
        found = np.zeros((3, len(factors[0]), self.n_words), np.uint64)
        for m, f in enumerate(factors):
            of_mode = packed(f)
            found[m, :, : of_mode.shape[1]] = of_mode
        return found

    def factors(self, words: Words) -> list[Mask]:
        """Factors as bits, of shapes (rank, n_m)."""
        return [unpacked(words[m], n) for m, n in enumerate(self.shape)]

    def keys(self, words: Words) -> Words:
        """Keys of all factors, of shape (3, rank)."""
        if self.n_words == 1:
            return words[:, :, 0].copy()
        keys = [
            np.bitwise_xor.reduce(np.where(f, self.hashes[m, : f.shape[1]], np.uint64(0)), axis=1)
            for m, f in enumerate(self.factors(words))
        ]
        return np.stack(keys)

    def walked(self, words: Words, steps: int, target: int, seed: int) -> tuple[Words, int]:
        """The shortest decomposition that a walk meets, and its steps."""
        from capacity.rank.upper.binary_walk import walk

        rank = words.shape[1]
        room = np.zeros((3, rank + SLACK + 2, self.n_words), np.uint64)
        room[:, :rank] = words
        keys = np.zeros(room.shape[:2], np.uint64)
        keys[:, :rank] = self.keys(words)
        state = np.random.default_rng([self.seed, seed]).integers(1, 2**64, 1, dtype=np.uint64)
        return walk(
            room, keys, self.hashes, self.dims, rank, steps, state, target, PATIENCE, SLACK,
            self.masks,
        )  # fmt: skip

    def lifted(self, words: Words) -> list[Term] | None:
        """Terms over the rationals that are a decomposition modulo 2; None if none are found."""
        return rational_lift(self.tensor, self.factors(words), self.observed)

    @staticmethod
    def cost_of_step(n_terms: int) -> int:
        """Nanoseconds of one step, most of which look for terms with a common factor."""
        return 60 + 3 * n_terms

    def cost_of_lift(self, n_terms: int) -> tuple[int, int]:
        """Nanoseconds of a lift, and of one that fails."""
        work = work_of_lift(n_terms, self.shape)
        return work, ORDERS * work


def binary_flips(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Walk over F_2; yield each decomposition that is shorter than those before and lifts.

    For the rank the walks are on the core, and for the effective rank on the tensor itself.
    """
    tensor = walked_in(problem)
    observed = None if problem.known is None else problem.known[:, :, 0]
    layout = BinaryLayout(tensor, observed, goal.seed)
    starts = (
        layout.words([f.astype(bool) for f in factors])
        for factors in starts_modulo(2, tensor, problem, goal)
    )
    yield from shorter(problem, goal, layout, starts)


def _least_work(problem: Problem) -> int:
    return least_work(BinaryLayout.cost_of_step(fewest_fibers(problem)))


BINARY_FLIPS = Method(
    "flip graph over F_2",
    binary_flips,
    sides=("upper",),
    limit="walks",
    cost=_least_work,
    dense=False,
    peeled="also",
    effective="yes",
)
