"""Searches by walks in the flip graph over F_2, whose decompositions are lifted to the rationals.

Walks begin at the starts that those over the integers have, modulo 2, and at the current
decomposition. Over F_2 there may be shorter decompositions than over the rationals, and many have
no lift (`capacity.rank.upper.lifting`). So there are two kinds of turns. A walk from a
decomposition that lifts looks for one that is a term shorter, as often as that succeeds, since
neighbours of one that lifts often lift, too. Otherwise a walk from the shortest decompositions goes
down as far as it can; of a length that has `MOST_LIFTS` without a lift no more are looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from capacity.exact.binary import Words, packed, unpacked
from capacity.exact.types import Indices, IntegerFactors, Mask, Term
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.upper.flip_search import first_decompositions, start_of
from capacity.rank.upper.lifting import ORDERS, rational_lift, work_of_lift
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
# most terms of a start, whose pairs may be as many as their square
MOST_TERMS = 700


@dataclass
class _Layout:
    """The layout of factors of a shape as words."""

    shape: tuple[int, ...]
    observed: Mask | None
    seed: int
    hashes: Words = field(init=False)
    masks: Words = field(init=False)

    def __post_init__(self) -> None:
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


def binary_flips(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Walk over F_2; yield each decomposition that is shorter than those before and lifts.

    For the rank the walks are on the core, and for the effective rank on the tensor itself.
    """
    whole = problem.known is not None
    tensor = (problem.tensor if whole else problem.core.tensor).astype(np.int64)
    observed = None if problem.known is None else problem.known[:, :, 0]
    layout = _Layout(tensor.shape, observed, goal.seed)
    starts = [layout.words(of) for of in _starts(tensor, problem, goal)]
    starts.sort(key=_length)
    if not starts:
        return
    budget = min(goal.limits.walks, goal.work // cost_of_step(_length(starts[0])))
    shortest = goal.upper
    for rank, terms in _Search(layout, tensor, starts, budget, goal.lower).found():
        if rank < shortest:
            shortest = rank
            yield (Decomposition(tuple(terms if whole else problem.core.lifted(terms))),)


def _length(words: Words) -> int:
    return words.shape[1]


class _Search:
    """Walks over F_2, and the lifts of what they meet."""

    def __init__(
        self, layout: _Layout, tensor: Indices, starts: list[Words], budget: int, lower: int
    ) -> None:
        self.layout, self.tensor, self.starts = layout, tensor, starts
        self.left, self.floor = budget, lower
        self.since = self.near = self.far = 0
        patience = self._patience(_length(starts[0]))
        self.stride = min(STRIDE, budget // PARTS, max(FEWEST, patience // PARTS))
        # the shortest that lift, which the starts do: their coefficients are whole numbers
        self.exact = [words for words in starts if _length(words) == _length(starts[0])]
        self.short = list(self.exact)
        self.lifts: Counter[int] = Counter()
        self.turn = 0
        self.choose = np.random.default_rng(layout.seed)
        unit = cost_of_step(_length(starts[0]))
        self.cost_of_lift = work_of_lift(_length(starts[0]), tensor.shape) // unit

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
        layout = self.layout
        terms = rational_lift(self.tensor, layout.factors(words), layout.observed)
        self.left -= self.cost_of_lift * (1 if terms else ORDERS)
        self.lifts[_length(words)] += 1
        return terms

    def _give_up(self, rank: int) -> None:
        """Look for longer ones from now on, from the shortest that lift."""
        self.floor = max(self.floor, rank + 1)
        self.short = [w for w in self.short if _length(w) >= self.floor] or list(self.exact)


def _starts(tensor: Indices, problem: Problem, goal: Goal) -> Iterator[list[Mask]]:
    """Starts modulo 2, without terms that vanish."""
    first = first_decompositions(tensor, np.random.default_rng(goal.seed), work=3 * goal.work)
    given = [_modulo_2(start_of(problem, goal), tensor.shape)]
    for factors in (*given, *map(_bits, first)):
        if factors is None:
            continue
        left = np.logical_and.reduce([f.any(axis=1) for f in factors])
        if 0 < left.sum() <= MOST_TERMS:
            yield [f[left] for f in factors]


def _bits(factors: IntegerFactors) -> list[Mask]:
    return [(f & 1).astype(bool) for f in factors]


def _modulo_2(terms: Sequence[Term], shape: tuple[int, ...]) -> list[Mask] | None:
    """Terms modulo 2; None if a denominator is even."""
    factors = [np.zeros((len(terms), n), bool) for n in shape]
    for r, term in enumerate(terms):
        for m, (indices, values) in enumerate(term):
            if any(x.denominator % 2 == 0 for x in values):
                return None
            factors[m][r, list(indices)] = [x.numerator % 2 == 1 for x in values]
    return factors


def cost_of_step(n_terms: int) -> int:
    """Estimate the nanoseconds of one step, most of which look for terms with a common factor."""
    return 60 + 3 * n_terms


def _least_work(problem: Problem) -> int:
    tensor = problem.tensor if problem.known is not None else problem.core.tensor
    fewest = min(int(np.count_nonzero(tensor.any(axis=mode))) for mode in range(3))
    return PARTS * FEWEST * cost_of_step(fewest)


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
