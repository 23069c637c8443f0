"""Walks in the flip graph over F_3, whose decompositions are lifted to the rationals.

They begin at `capacity.rank.upper.walk_starts` modulo 3, and at the current decomposition
(`capacity.rank.upper.walk_search`). Many decompositions have halves, and so none
modulo 2. Tensors with a mode of more than 64 indices are left to the other walks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from capacity.exact.types import Indices, Mask, Term
from capacity.exact.words import Words, packed, packed_ternary, unpacked_ternary
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.upper.lifting import ORDERS
from capacity.rank.upper.ternary.lifting import ternary_lift, work_of_ternary_lift
from capacity.rank.upper.walk_search import (
    PATIENCE,
    SLACK,
    fewest_fibers,
    least_work,
    shorter,
    walked_in,
)
from capacity.rank.upper.walk_starts import starts_modulo

# coefficients of a factor, one for each bit, and the part of the work that these walks take
_LONGEST, _PART = 64, 3


class TernaryLayout:
    """A tensor over F_3, whose factors are pairs of words.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor; n_m is at most 64.
    observed : ndarray of bool, shape (n_0, n_1), or None
        Observed fibers of the last mode, for the effective rank.
    seed : int
        Seed of the walks.
    """

    def __init__(self, tensor: Indices, observed: Mask | None, seed: int) -> None:
        self.tensor, self.observed, self.seed = tensor, observed, seed
        self.shape = tensor.shape
        self.dims = np.array(self.shape, np.int64)
        self.masks = np.zeros((0, 0), np.uint64)
        if observed is not None:
            self.masks = np.zeros((2, max(self.shape)), np.uint64)
            for m, rows in enumerate((observed, observed.T)):
                self.masks[m, : len(rows)] = packed(rows)[:, 0]

    @staticmethod
    def words(factors: Sequence[Indices]) -> Words:
        """Words of all factors, of shape (3, rank, 2)."""
        return np.stack([packed_ternary(f)[:, 0] for f in factors])

    def factors(self, words: Words) -> list[Indices]:
        """Factors with coefficients -1, 0 and 1, of shapes (rank, n_m)."""
        return [unpacked_ternary(words[m][:, None], n) for m, n in enumerate(self.shape)]

    def walked(self, words: Words, steps: int, target: int, seed: int) -> tuple[Words, int]:
        """The shortest decomposition that a walk meets, and its steps."""
        from capacity.rank.upper.ternary.walk import walk

        rank = words.shape[1]
        room = np.zeros((3, rank + SLACK + 2, 2), np.uint64)
        room[:, :rank] = words
        keys = np.zeros(room.shape[:2], np.uint64)
        state = np.random.default_rng([self.seed, seed]).integers(1, 2**64, 1, dtype=np.uint64)
        return walk(
            room, keys, self.dims, rank, steps, state, target, PATIENCE, SLACK, self.masks
        )  # fmt: skip

    def lifted(self, words: Words) -> list[Term] | None:
        """Terms over the rationals that are a decomposition modulo 3; None if none are found."""
        return ternary_lift(self.tensor, self.factors(words), self.observed)

    @staticmethod
    def cost_of_step(n_terms: int) -> int:
        """Nanoseconds of one step, most of which look for terms with a common factor."""
        return 70 + 3 * n_terms

    def cost_of_lift(self, n_terms: int) -> tuple[int, int]:
        """Nanoseconds of a lift, and of one that fails."""
        work = work_of_ternary_lift(n_terms, self.shape)
        return work, ORDERS * work


def ternary_flips(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Walk over F_3; yield each decomposition that is shorter than those before and lifts.

    For the rank the walks are on the core, and for the effective rank on the tensor itself.
    """
    tensor = walked_in(problem)
    if max(tensor.shape) > _LONGEST:
        return
    observed = None if problem.known is None else problem.known[:, :, 0]
    layout = TernaryLayout(tensor, observed, goal.seed)
    starts = map(layout.words, starts_modulo(3, tensor, problem, goal))
    yield from shorter(problem, replace(goal, work=goal.work // _PART), layout, starts)


def _least_work(problem: Problem) -> int:
    return _PART * least_work(TernaryLayout.cost_of_step(fewest_fibers(problem)))


TERNARY_FLIPS = Method(
    "flip graph over F_3",
    ternary_flips,
    sides=("upper",),
    limit="walks",
    cost=_least_work,
    dense=False,
    peeled="also",
    effective="yes",
)
