"""The steps of a search on one small tensor, each a function from a problem to what it finds.

A step is given the interval so far and how much work it may do, in units of about a nanosecond on a
machine of 2025; it turns that into a number of tries, so that the same seed finds the same on any
machine. What it finds is an argument about the problem's own indices: a lower bound, or simple
tensors. Nothing found is believed; `capacity.rank.verifier` can check all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.rank.effort import Limits
from capacity.rank.reductions.concise_core import Core, concise_core
from capacity.rank.reductions.singleton_slices import Peeled, peel_singles
from capacity.rank.types import Indices, Mask
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.diagonalization import Diagonalization
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.kinds.koszul import Koszul
from capacity.rank.verifier.kinds.substitution import Substitution
from capacity.rank.verifier.kinds.unfolding import Unfolding

# a pair is a minor, and the game that follows it
Finding: TypeAlias = (
    Substitution
    | tuple[Unfolding]
    | tuple[Unfolding, Substitution]
    | Koszul
    | Diagonalization
    | Decomposition
    | Enclosure
)


@dataclass(frozen=True)
class Goal:
    """What a step is asked for.

    Attributes
    ----------
    lower, upper : int
        The interval so far. Games stop at `upper`.
    work : int
        In units of about a nanosecond.
    limits : Limits
    seed : int
    """

    lower: int
    upper: int
    work: int
    limits: Limits
    seed: int


def all_indices(shape: tuple[int, ...]) -> tuple[Indices, Indices, Indices]:
    """All indices of three modes."""
    a, b, c = shape
    return np.arange(a), np.arange(b), np.arange(c)


@dataclass(frozen=True)
class Problem:
    """A small tensor whose rank, or effective rank, is bounded.

    Attributes
    ----------
    tensor : integer ndarray, shape (n0, n1, n2)
    known : ndarray of bool, shape (n0, n1, n2), or None
        The entries of observed fibers, for the effective rank; None for the rank.
    rest : Peeled, optional
        If the tensor is too large to be dense: what is left of it. It is then empty itself.
    """

    tensor: NDArray[np.integer]
    known: Mask | None = None
    rest: Peeled | None = None

    @classmethod
    def of_rest(cls, rest: Peeled) -> Problem:
        """What is left of a tensor that is too large to be dense."""
        return cls(np.zeros((0, 0, 0), np.int8), rest=rest)

    @cached_property
    def core(self) -> Core:
        """The concise core; there is none for the effective rank."""
        if self.known is not None:
            raise InvalidArgumentError("A core has the rank of the tensor, not its effective rank.")
        return concise_core(self.tensor)

    @cached_property
    def peeled(self) -> Peeled | None:
        """What is left without slices of a single entry; None if there are none."""
        if self.rest is not None:
            return self.rest
        effective = self.known is not None
        return peel_singles(np.argwhere(self.tensor), self.tensor.shape, effective=effective)

    @property
    def size(self) -> int:
        """Entries times slices: what one look at all slices costs."""
        return self.tensor.size * sum(self.tensor.shape)

    @cached_property
    def parts(self) -> list[tuple[Indices, Indices, Indices]]:
        """Sub-tensors to play on: the whole, and the core where that is smaller."""
        whole = all_indices(self.tensor.shape)
        if self.known is not None or self.core.tensor.shape == self.tensor.shape:
            return [whole]
        return [whole, self.core.chosen]

    def part(self, of: tuple[Indices, Indices, Indices]) -> tuple[Indices, Mask]:
        """The sub-tensor of some indices, and which of its entries are known."""
        tensor = self.tensor[np.ix_(*of)].astype(np.int64)
        known = np.ones(tensor.shape, bool) if self.known is None else self.known[np.ix_(*of)]
        return tensor, known


Stage: TypeAlias = Callable[[Problem, Goal], Iterable[Finding]]


def peelings(problem: Problem, _: Goal) -> Iterable[Finding]:
    """The answer, if nothing is left after peeling."""
    peeled = problem.peeled
    if peeled is not None and not peeled.tensor.size:
        yield (peeled.minor(),)
        yield peeled.completed([])


def also_peeled(stage: Stage, *, whole: bool = True) -> Stage:
    """A stage of games, or of decompositions, that looks at what is left after peeling.

    It looks at the `whole` as well, if asked to: what is left has the same answer, and is smaller,
    but luck differs.
    """

    def both(problem: Problem, goal: Goal) -> Iterable[Finding]:
        peeled = problem.peeled
        if peeled is None:
            yield from stage(problem, goal)
            return
        n, upper = len(peeled.taken), goal.upper
        twice = whole and problem.rest is None
        work = goal.work // 2 if twice else goal.work
        if not peeled.tensor.size:
            return
        smaller = Problem(peeled.tensor, peeled.known)
        shifted = Goal(goal.lower - n, goal.upper - n, work, goal.limits, goal.seed)
        for found in stage(smaller, shifted):
            if isinstance(found, Substitution):
                yield (peeled.minor(), peeled.raised(found))
            elif isinstance(found, Decomposition | Enclosure):
                if isinstance(found, Decomposition):
                    completed = peeled.completed(found.terms)
                else:
                    completed = peeled.enclosed(found)
                upper = min(upper, completed.value)
                yield completed
        if twice:
            yield from stage(problem, Goal(goal.lower, upper, work, goal.limits, goal.seed))

    return both


def if_dense(stage: Stage) -> Stage:
    """A stage that needs the tensor itself."""

    def dense(problem: Problem, goal: Goal) -> Iterable[Finding]:
        return stage(problem, goal) if problem.rest is None else ()

    return dense
