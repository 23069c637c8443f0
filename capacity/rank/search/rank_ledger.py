"""The best bounds of the rank of each component.

The tensor is the direct sum of its components. Upper bounds add. Lower bounds by unfoldings,
independent sets and the substitution method add, and one component may have a *strong* bound
instead, by a flattening, a pencil or a diagonalization (proof in `capacity.rank.verifier.checker`).
A component is searched while its interval is open, if its tensor is small; equal tensors are
searched once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.types import Indices, Mask, Term
from capacity.rank.bounds import Bounds
from capacity.rank.lower.independent_sets import IndependentSets, independent_sets
from capacity.rank.method import Component, Goal, Method, Problem, holds, value_of
from capacity.rank.options import Budget, Field
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.rank.reductions.subtensor import Finding, Part, relocated, restricted
from capacity.rank.search.scheduler import NOT_DENSE, TOO_LARGE, TOO_MANY, Place
from capacity.rank.shares import OF_AN_END, OF_PENCILS, steps_above
from capacity.rank.upper.fiber_cover import FiberCover, fiber_cover
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds import KINDS
from capacity.rank.verifier.kinds.decomposition import PRODUCT, Decomposition, products_of_terms
from capacity.tensor.sparse import SparseTensor

# in certificates and explanations, of a decomposition that was given
START = "the given start"
# entries of a component for which a cover pays, and nanoseconds for each
FEWEST_COVERED, A_COVERED_ENTRY = 300, 20_000


class RankLedger:
    """The bounds of all components so far, with their arguments.

    Attributes
    ----------
    field : {'R', 'Q', 'C'}
        Field over which the rank is bounded.
    border : bool
        Whether the border rank is bounded. Its bounds add over components for unfoldings of one
        mode alone (`capacity.rank.verifier.kind`); all others are strong.
    modes : ndarray of int64, shape (n_components,)
        For each component the mode of the unfolding that bounds it.
    lower, upper : ndarray of int64, shape (n_components,)
        Bounds that add over components; `lower` is without the strong bounds.
    sets : IndependentSets or None
        Bounds by independent sets, once they are computed.
    cover : FiberCover or None
        Bounds by covers of the larger components, once they are computed.
    additive : dict
        For each component the best lower bound found that adds: arguments and method.
    strong : dict
        For each component the best lower bound found that doesn't add: arguments and method.
    above : dict
        For each component the best upper bound found: arguments and method.
    left_out : dict
        For each component that isn't searched the reason.
    dense : set of int
        Components whose whole tensor is searched.
    """

    quantity = "rank"

    def __init__(
        self,
        tensor: SparseTensor,
        bounds: Bounds,
        budget: Budget,
        seed: int,
        start: Sequence[Term] = (),
        *,
        field: Field = "R",
        border: bool = False,
    ) -> None:
        self.tensor, self.bounds, self.budget, self._seed = tensor, bounds, budget, seed
        self.field: Field = field
        self.border = border
        self._checks: dict[str, CheckBudget] = {}
        unfoldings = bounds.unfoldings_by_component
        self.modes = unfoldings.argmax(axis=1)
        if border:
            # those of different modes don't add
            self.modes[:] = unfoldings.sum(axis=0).argmax()
        self.lower = np.take_along_axis(unfoldings, self.modes[:, None], axis=1)[:, 0]
        self.upper = bounds.slices_by_component.min(axis=1)
        self.sets: IndependentSets | None = None
        self.cover: FiberCover | None = None
        self.additive: dict[int, tuple[Finding, str]] = {}
        self.strong: dict[int, tuple[Finding, str]] = {}
        self.above: dict[int, tuple[Finding, str]] = {}
        self.left_out: dict[int, str] = {}
        self.dense: set[int] = set()
        self._rows_of: list[Indices] = []
        self._small: list[Place] = []
        self._start_from(start)

    def _start_from(self, terms: Sequence[Term]) -> None:
        """Keep a decomposition of the tensor as one of each component, where it is no longer."""
        for c in np.flatnonzero(self.lower < self.upper).tolist() if terms else ():
            mine = self.tensor.indices[self.bounds.component == c]
            indices = tuple(np.unique(of) for of in mine.T)
            part = Decomposition(tuple(restricted(terms, indices)))
            if part.value <= self.upper[c]:
                self.upper[c], self.above[c] = part.value, ((relocated(part, indices),), START)

    def begin(self, say: Callable[[str], None]) -> None:
        """Look for independent sets and covers, and choose components that are small enough."""
        if not self._open().size:
            return
        if self.tensor.order == 3 and not self.border:
            say("independent sets")
            sets = independent_sets(self.tensor, self.bounds.component)
            # each of these replaces one object: an interrupt leaves a valid state
            self.sets, self.lower = sets, np.maximum(self.lower, sets.values)
        counts = np.bincount(self.bounds.component)
        which = (self.lower < self.upper) & (counts >= FEWEST_COVERED)
        affordable = A_COVERED_ENTRY * counts[which].sum() <= self.budget.work
        if self.tensor.order == 3 and which.any() and affordable:
            say("fiber cover")
            self._cover_with_fibers(which)
        order = np.argsort(self.bounds.component, kind="stable")
        self._rows_of = np.split(order, np.cumsum(counts)[:-1])
        self._small = self._chosen()
        self.dense = {p.number for p in self._small if p.problem and p.problem.rest is None}

    def _cover_with_fibers(self, which: Mask) -> None:
        """Cover some components, and keep the bounds if the verifier can afford their terms."""
        # pairs of slices are for efforts that search such tensors at all
        steps = OF_PENCILS // 2 if self.budget.limits.evolved and self.field != "Q" else 0
        try:
            cover = fiber_cover(self.tensor, self.bounds.component, which, steps=steps)
        except MemoryBudgetError:
            # a rank of merged slices needs too large a block; those of slices are known
            return
        _, terms, _ = cover.decomposed(self.bounds.component, cover.values < self.upper)
        if PRODUCT * products_of_terms(terms) <= OF_AN_END:
            self.cover, self.upper = cover, np.minimum(self.upper, cover.values)

    def _chosen(self) -> list[Place]:
        """Return the open components that are small enough, the smallest first.

        A larger one may be small enough without its slices of a single entry.
        """
        numbers: list[int] = self._open().tolist()
        open_ = {c: Part.of(self.tensor, self._rows_of[c]) for c in numbers}
        different: dict[tuple[bytes, tuple[int, ...]], Problem] = {}
        problems: dict[int, Problem] = {}
        for size, c in sorted((part.size, c) for c, part in open_.items()):
            if size > self.budget.largest:
                part, largest = open_[c], self.budget.largest
                rest = (
                    peel_singles(part.places, part.values, part.shape, largest=largest)
                    if self.tensor.order == 3
                    else None
                )
                if rest is None:
                    sparsely = self.tensor.order == 3 and self.budget.limits.evolved
                    self.left_out[c] = NOT_DENSE if sparsely else TOO_LARGE
                elif len(different) >= self.budget.problems:
                    self.left_out[c] = TOO_MANY
                else:
                    problems[c] = Problem.of_rest(rest)
                continue
            tensor = open_[c].tensor()
            key = tensor.tobytes(), tensor.shape
            if key in different or len(different) < self.budget.problems:
                problems[c] = different.setdefault(key, Problem(tensor))
            else:
                self.left_out[c] = TOO_MANY
        return [Place(c, self._rows_of[c], open_[c], of) for c, of in problems.items()]

    def goals(self, method: Method) -> Iterator[tuple[Place, Goal]]:
        """Yield the open components, with shares of the work that grow with their tensors."""
        if method.effective == "alone" or not (method.any_order or self.tensor.order == 3):
            return
        if method.find_in_entries is not None:
            yield from self._goals_in_entries(method)
            return
        # only one strong bound counts: the other components need a bound that adds in its place
        adds = method.adds and len(self.strong) > 1
        todo = [
            (place, place.problem, place.part.size)
            for place in self._small
            if place.problem is not None
            and place.part is not None
            and (self.lower[place.number] if adds else self.best(place.number))
            < self.upper[place.number]
        ]
        weights = {id(problem): math.sqrt(size) for _, problem, size in todo}
        total = sum(weights.values())
        for place, problem, _ in todo:
            work = int(method.times * self.budget.work * weights[id(problem)] / total)
            yield place, replace(self._goal(place.number, work), start=self._at_hand(place))

    def _goals_in_entries(self, method: Method) -> Iterator[tuple[Place, Goal]]:
        open_: list[int] = self._open().tolist() if self._rows_of else []
        open_ = [c for c in open_ if len(self._rows_of[c]) >= method.fewest]
        # effort goes where the interval is wide
        gaps = {c: int(self.upper[c] - self.lower[c]) for c in open_}
        total = sum(gaps.values())
        spend = self._checks.setdefault(method.name, CheckBudget(OF_PENCILS)).spend
        for c in open_:
            rows = self._rows_of[c]
            unfoldings = tuple(self.bounds.unfoldings_by_component[c].tolist())
            component = Component(self.tensor, rows, unfoldings, spend)
            work = method.times * self.budget.work * gaps[c] // total
            yield Place(c, rows, component=component), self._goal(c, work)

    def _at_hand(self, place: Place) -> tuple[Term, ...]:
        """The shortest explicit decomposition of a component, for efforts that walk from one."""
        found, _ = self.above.get(place.number, ((), ""))
        explicit = [a for a in found if isinstance(a, Decomposition)]
        if place.part is None or not self.budget.limits.walks or len(explicit) < len(found):
            return ()
        terms = [term for argument in explicit for term in argument.terms]
        return tuple(restricted(terms, place.part.indices))

    def _goal(self, c: int, work: int) -> Goal:
        return Goal(self.best(c), int(self.upper[c]), work, self.budget.limits, self._seed)

    def take(self, place: Place, arguments: Finding, by: str) -> None:
        """Keep arguments that improve on the bounds so far."""
        c, value = place.number, value_of(arguments)
        above, below = (
            holds(arguments, side, self.field, border=self.border) for side in ("upper", "lower")
        )
        adds = not self.border and all(KINDS[argument.kind].adds for argument in arguments)
        if below and adds and value > self.lower[c]:
            self.additive[c] = arguments, by
            self.lower[c] = value
        if above and value < self.upper[c] and self._checkable(c, arguments):
            self.above[c] = arguments, by
            self.upper[c] = value
        if below and not adds and value > self.best(c):
            self.strong[c] = arguments, by

    def _checkable(self, c: int, arguments: Finding) -> bool:
        """Return True if the upper end, with these arguments, stays within its budget."""
        others: list[Argument] = [a for d, (some, _) in self.above.items() if d != c for a in some]
        return steps_above((*arguments, *others)) <= OF_AN_END

    def best(self, c: int) -> int:
        """Return the best lower bound of a single component, strong or not."""
        strong = value_of(self.strong[c][0]) if c in self.strong else 0
        return max(int(self.lower[c]), strong)

    def is_open(self, place: Place) -> bool:
        """Return True if the interval of a component is open."""
        return self.best(place.number) < self.upper[place.number]

    def strongest(self) -> int | None:
        """Return the component whose strong bound gains most; None if none gains."""
        total = int(self.lower.sum())
        gains = [
            (value_of(a) - (total if self.border else int(self.lower[c])), c)
            for c, (a, _) in self.strong.items()
        ]
        gain, c = max(gains, default=(0, 0))
        return c if gain > 0 else None

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        c, total = self.strongest(), int(self.lower.sum())
        if c is not None:
            total = self.best(c) + (0 if self.border else total - int(self.lower[c]))
        return total, int(self.upper.sum())

    def _open(self) -> Indices:
        return np.flatnonzero(self.lower < self.upper)
