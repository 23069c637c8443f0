"""Searches by walks in the flip graph over a finite field, whose decompositions are lifted.

Over F_p there may be shorter decompositions than over the rationals, and many have no lift. So
there are two kinds of turns. A walk from a decomposition that lifts looks for one that is a term
shorter, as often as that succeeds, since neighbours of one that lifts often lift, too. Otherwise a
walk from the shortest decompositions goes down as far as it can; of a length that has `MOST_LIFTS`
without a lift no more are looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from capacity.exact.types import Indices, Term
from capacity.exact.words import Words
from capacity.rank.method import Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.kinds.decomposition import Decomposition

# steps per compiled call, so that Ctrl-C is noticed in between; the fewest that are worth one; and
# calls that a search has at least
STRIDE, FEWEST, PARTS = 2_000_000, 5_000, 16
# without a shorter decomposition until a plus transition, and terms that these may add
PATIENCE, SLACK = 50_000, 3
# decompositions of one length that are lifted, and that are kept to go on from
MOST_LIFTS, MOST_KEPT = 20, 200
# steps without a shorter decomposition after which a search ends, by the square of its length
STEPS_A_SQUARE = 50_000


class Layout(Protocol):
    """A tensor over a finite field, and the layout of decompositions as words."""

    seed: int

    def walked(self, words: Words, steps: int, target: int, seed: int) -> tuple[Words, int]:
        """Return the shortest decomposition that a walk meets, and its steps."""
        ...

    def lifted(self, words: Words) -> list[Term] | None:
        """Return terms over the rationals that are the decomposition modulo p; None if none are."""
        ...

    def cost_of_step(self, n_terms: int) -> int:
        """Estimate the nanoseconds of a step."""
        ...

    def cost_of_lift(self, n_terms: int) -> tuple[int, int]:
        """Estimate the nanoseconds of a lift, and of one that fails."""
        ...


def walked_in(problem: Problem) -> Indices:
    """Return the tensor that walks decompose: the core, or for the effective rank the tensor."""
    return (problem.core.tensor if problem.known is None else problem.tensor).astype(np.int64)


def shorter(
    problem: Problem, goal: Goal, layout: Layout, starts: Iterable[Words]
) -> Iterator[Finding]:
    """Walk from some starts; yield each decomposition that is shorter than those before and lifts.

    Parameters
    ----------
    problem : Problem
        The tensor; its core is that of `layout`, or itself for the effective rank.
    goal : Goal
        Bounds, work and limits.
    layout : Layout
        The field, and how decompositions over it are written.
    starts : iterable of ndarray of uint64
        Decompositions that lift.
    """
    first = sorted(starts, key=_length)
    if not first:
        return
    budget = min(goal.limits.walks, goal.work // layout.cost_of_step(_length(first[0])))
    shortest = goal.upper
    for rank, terms in _Search(layout, first, budget, goal.lower).found():
        if rank < shortest:
            shortest = rank
            mine = terms if problem.known is not None else problem.core.lifted(terms)
            yield (Decomposition(tuple(mine)),)


def least_work(cost_of_step: int) -> int:
    """Estimate the least work that allows a search, by the nanoseconds of a step."""
    return PARTS * FEWEST * cost_of_step


def fewest_fibers(problem: Problem) -> int:
    """Return the number of fibers of the mode that has the fewest, a start of all walks."""
    tensor = problem.tensor if problem.known is not None else problem.core.tensor
    return min(int(np.count_nonzero(tensor.any(axis=mode))) for mode in range(3))


def _length(words: Words) -> int:
    return words.shape[1]


class _Search:
    """Walks over the field, and the lifts of what they meet."""

    def __init__(self, layout: Layout, starts: Sequence[Words], budget: int, lower: int) -> None:
        self.layout, self.starts = layout, starts
        self.left, self.floor = budget, lower
        self.since = self.near = self.far = 0
        shortest = _length(starts[0])
        patience = self._patience(shortest)
        self.stride = min(STRIDE, budget // PARTS, max(FEWEST, patience // PARTS))
        # the shortest that lift, which the starts do
        self.exact = [words for words in starts if _length(words) == shortest]
        self.short = list(self.exact)
        self.lifts: Counter[int] = Counter()
        self.turn = 0
        self.choose = np.random.default_rng(layout.seed)
        unit = layout.cost_of_step(shortest)
        self.cost_of_lift, self.cost_of_failure = (
            cost // unit for cost in layout.cost_of_lift(shortest)
        )

    def found(self) -> Iterator[tuple[int, list[Term]]]:
        """Yield lengths and terms of decompositions over the rationals, each shorter."""
        lower = self.floor
        succeeds = False
        while self.stride >= FEWEST and self.left >= self.stride:
            best = _length(self.exact[0])
            if best <= lower or self.since > self._patience(best):
                return
            near = succeeds or (self.turn >= len(self.starts) and self.near <= self.far)
            words = self._near() if near else self._far()
            rank = _length(words)
            if not near and self.lifts[rank] >= MOST_LIFTS:
                self._give_up(rank)
                continue
            if rank > best or (rank == best and not near):
                succeeds = False
                continue
            terms = self._lift(words)
            succeeds = terms is not None and rank < best
            if terms is None:
                continue
            if rank < best:
                self.exact, self.since = [], 0
                yield rank, terms
            self.exact = [*self.exact, words][-MOST_KEPT:]

    @staticmethod
    def _patience(rank: int) -> int:
        """Steps without a shorter decomposition after which the search ends."""
        return STEPS_A_SQUARE * rank**2

    def _near(self) -> Words:
        """A walk from one that lifts to one that is shorter, or as short."""
        words = self.exact[self.choose.integers(len(self.exact))]
        before = self.left
        found = self._walked(words, max(FEWEST, self.stride // 8), _length(words) - 1)
        self.near += before - self.left
        return found

    def _far(self) -> Words:
        """A walk from one of the shortest, as far as it goes."""
        if self.turn < len(self.starts):
            words = self.starts[self.turn]
        else:
            words = self.short[self.choose.integers(len(self.short))]
        before = self.left
        found = self._walked(words, self.stride, self.floor)
        self.far += before - self.left
        if _length(found) < _length(self.short[0]):
            self.short, self.since = [], 0
        if not self.short or _length(found) == _length(self.short[0]):
            self.short = [*self.short, found][-MOST_KEPT:]
        return found

    def _walked(self, words: Words, steps: int, target: int) -> Words:
        found, done = self.layout.walked(words, steps, target, self.turn)
        # one that can't move at all costs its call
        done = max(done, FEWEST)
        self.turn += 1
        self.left -= done
        self.since += done
        return found

    def _lift(self, words: Words) -> list[Term] | None:
        terms = self.layout.lifted(words)
        self.left -= self.cost_of_lift if terms else self.cost_of_failure
        self.lifts[_length(words)] += 1
        return terms

    def _give_up(self, rank: int) -> None:
        """Look for longer ones from now on, from the shortest that lift."""
        self.floor = max(self.floor, rank + 1)
        self.short = [w for w in self.short if _length(w) >= self.floor] or list(self.exact)
