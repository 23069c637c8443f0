"""Search a database's rank component by component, and keep the best of both sides.

Components are a direct sum. Upper bounds add. From below, unfoldings, independent sets and games
add, and one component may have a *strong* bound, by a flattening, a pencil or a diagonalization
(`capacity.rank.verifier` says why). A component is searched while its interval is open, if its
tensor is small; equal tensors are searched once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from capacity.database.facts import Database
from capacity.database.tensor import MODES
from capacity.rank.bounds import Bounds
from capacity.rank.cp.exact_fits import fits
from capacity.rank.effort import BUDGETS, Effort
from capacity.rank.lower.diagonalization import diagonalizations
from capacity.rank.lower.independent_sets import IndependentSets, independent_sets
from capacity.rank.lower.koszul import flattenings
from capacity.rank.lower.pencil import pencil_of
from capacity.rank.lower.substitution import annealed_games, greedy_games, rebased_games
from capacity.rank.lower.unfolding import as_unfolding
from capacity.rank.problem import Finding, Goal, Problem, Stage, also_peeled, if_dense, peelings
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.rank.reductions.subtensor import Part
from capacity.rank.search.explanation import TOO_LARGE, TOO_MANY, Methods, Open, explained
from capacity.rank.shares import OF_AN_END, OF_PENCILS, steps_above
from capacity.rank.types import Indices
from capacity.rank.upper.flip_search import flips
from capacity.rank.upper.slices import sliced
from capacity.rank.upper.spanning_tree import spanning_trees
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.pencil import Pencil
from capacity.rank.verifier.kinds.substitution import Substitution
from capacity.rank.verifier.kinds.unfolding import Unfolding

GAMES = {
    "substitution": also_peeled(greedy_games),
    "annealed substitution": also_peeled(annealed_games),
    "substitution in other bases": also_peeled(rebased_games),
}
# cheapest first, and explicit terms before arguments that only say that there are some; the pencil
# is no stage of one small tensor: it is feasible for large components too
STAGES: dict[str, Stage | None] = {
    "peeling": peelings,
    "spanning tree": if_dense(spanning_trees),
    "substitution": GAMES["substitution"],
    "pencil": None,
    "diagonalization": if_dense(diagonalizations),
    "Koszul flattening": if_dense(flattenings),
    "flip graph": also_peeled(flips),
    "least squares": also_peeled(fits, whole=False),
    "annealed substitution": GAMES["annealed substitution"],
    "substitution in other bases": GAMES["substitution in other bases"],
}
# told the interval so far, and what is tried next
Progress: TypeAlias = Callable[[int, int, str], None]


class Search:
    """The bounds of all components so far, and what they rest on.

    Attributes
    ----------
    lower, upper : ndarray of int64, shape (n_components,)
        `lower` without the strong bounds, so that both add up.
    """

    def __init__(
        self, db: Database, bounds: Bounds, effort: Effort, seed: int, progress: Progress | None
    ) -> None:
        self._db, self._bounds, self._seed = db, bounds, seed
        self._budget, self._progress = BUDGETS[effort], progress
        self._pencil_budget = CheckBudget(OF_PENCILS)
        self.lower = bounds.unfoldings_by_component.max(axis=1)
        self.upper = bounds.slices_by_component.min(axis=1)
        self._sets: IndependentSets | None = None
        self._games: dict[int, tuple[tuple[Unfolding | Substitution, ...], str]] = {}
        self._strong: dict[int, tuple[Argument, str]] = {}
        self._above: dict[int, tuple[Argument, str]] = {}
        # components that aren't searched, and why; those that flattenings look at
        self._left_out: dict[int, str] = {}
        self._dense: set[int] = set()

    def run(self) -> None:
        """Go through all stages, the cheapest first, for whatever is open then."""
        if not self._open().size:
            return
        self._say("independent sets")
        sets = independent_sets(self._db, self._bounds.component)
        # each of these replaces one object: an interrupt leaves a state that holds
        self._sets, self.lower = sets, np.maximum(self.lower, sets.values)
        order = np.argsort(self._bounds.component, kind="stable")
        counts = np.bincount(self._bounds.component)
        facts_of: list[Indices] = np.split(order, np.cumsum(counts)[:-1])
        parts, problems = self._small(facts_of)
        self._dense = {c for c, problem in problems.items() if problem.rest is None}
        for name, stage in STAGES.items():
            if stage is None:
                self._pencils(facts_of)
            else:
                self._stage(name, stage, parts, problems)

    def _small(self, facts_of: list[Indices]) -> tuple[dict[int, Part], dict[int, Problem]]:
        """The open components that are small enough, the smallest first, and their problems.

        Larger ones may be so without the slices of a single entry.
        """
        numbers: list[int] = self._open().tolist()
        open_ = {c: Part.of(self._db, facts_of[c]) for c in numbers}
        order = sorted((part.size, c) for c, part in open_.items())
        different: dict[tuple[bytes, tuple[int, ...]], Problem] = {}
        problems: dict[int, Problem] = {}
        for size, c in order:
            if size > self._budget.largest:
                part, largest = open_[c], self._budget.largest
                rest = peel_singles(part.places, part.shape, largest=largest)
                if rest is None:
                    self._left_out[c] = TOO_LARGE
                elif len(different) >= self._budget.problems:
                    self._left_out[c] = TOO_MANY
                else:
                    problems[c] = Problem.of_rest(rest)
                continue
            tensor = open_[c].tensor()
            key = tensor.tobytes(), tensor.shape
            if key in different or len(different) < self._budget.problems:
                problems[c] = different.setdefault(key, Problem(tensor))
            else:
                self._left_out[c] = TOO_MANY
        return {c: open_[c] for c in problems}, problems

    def _stage(
        self, name: str, stage: Stage, parts: dict[int, Part], problems: dict[int, Problem]
    ) -> None:
        # of bounds that don't add all but one need a game in their place
        adds = name in GAMES and len(self._strong) > 1
        todo = [c for c in parts if (self.lower[c] if adds else self._best(c)) < self.upper[c]]
        weights = {id(problems[c]): math.sqrt(parts[c].size) for c in todo}
        total = sum(weights.values())
        found: dict[tuple[int, Goal], list[Finding]] = {}
        for c in todo:
            work = int(self._budget.work * weights[id(problems[c])] / total)
            goal = Goal(self._best(c), int(self.upper[c]), work, self._budget.limits, self._seed)
            key = id(problems[c]), goal
            if key not in found:
                self._say(name)
                # what is found is kept at once: an interrupt may come before the next
                found[key] = []
                for one in stage(problems[c], goal):
                    found[key].append(one)
                    self._take(c, parts[c].relocated(one), name)
                continue
            for one in found[key]:
                self._take(c, parts[c].relocated(one), name)

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        best = max((a.value - int(self.lower[c]) for c, (a, _) in self._strong.items()), default=0)
        return int(self.lower.sum()) + max(0, best), int(self.upper.sum())

    def _below(self) -> tuple[Methods, dict[int, tuple[Argument, ...]]]:
        """What each component's lower bound rests on: in words, and arguments that were found."""
        unfoldings = self._bounds.unfoldings_by_component
        rests_on = np.full(len(self.lower), "unfolding", dtype=object)
        if self._sets is not None:
            rests_on[self._sets.values > unfoldings.max(axis=1)] = "independent sets"
        below: dict[int, tuple[tuple[Argument, ...], str]] = {**self._games}
        gains = [(a.value - int(self.lower[c]), c) for c, (a, _) in self._strong.items()]
        gain, c = max(gains, default=(0, 0))
        if gain > 0:
            below[c] = (self._strong[c][0],), self._strong[c][1]
        for c, (_, by) in below.items():
            rests_on[c] = by
        return rests_on, {c: arguments for c, (arguments, _) in below.items()}

    def lower_arguments(self) -> tuple[tuple[Argument, ...], str]:
        """What the lower bound rests on, and the methods in words."""
        unfoldings = self._bounds.unfoldings_by_component
        rests_on, below = self._below()
        arguments: list[Argument] = []
        if self._sets is not None:
            mine = rests_on == "independent sets"
            arguments += self._sets.arguments(self._db, mine)
        for mode in MODES:
            mine = (rests_on == "unfolding") & (unfoldings.argmax(axis=1) == mode)
            arguments += as_unfolding(self._db, mode, self._bounds.minors[mode].of_groups(mine))
        arguments += [argument for some in below.values() for argument in some]
        return tuple(arguments), _in_words(rests_on)

    def upper_arguments(self) -> tuple[tuple[Argument, ...], str]:
        """What the upper bound rests on, and the methods in words."""
        component = self._bounds.component
        rests_on = self._rests_on_above()
        box, terms = sliced(
            self._db,
            self._bounds.slices_by_component.argmin(axis=1),
            component,
            np.flatnonzero((rests_on == "slices")[component]),
        )
        arguments: list[Argument] = [Boxes(box)] if (box >= 0).any() else []
        for argument, _ in self._above.values():
            if isinstance(argument, Decomposition):
                terms += argument.terms
            else:
                arguments.append(argument)
        if terms:
            arguments.append(Decomposition(tuple(terms)))
        return tuple(arguments), _in_words(rests_on)

    def _rests_on_above(self) -> Methods:
        rests_on = np.full(len(self.upper), "slices", dtype=object)
        for c, (_, by) in self._above.items():
            rests_on[c] = by
        return rests_on

    def explanation(self) -> tuple[str, ...]:
        """What the bounds rest on, and what is left, in words."""
        rests_on, below = self._below()
        lower = self.lower.copy()
        for c, arguments in below.items():
            lower[c] = sum(argument.value for argument in arguments)
        gaps = self.upper - lower
        c = int(gaps.argmax())
        facts = np.flatnonzero(self._bounds.component == c)
        bounds = int(lower[c]), int(self.upper[c])
        notes = (self._left_out[c],) if c in self._left_out else ()
        if self._best(c) > lower[c]:
            argument, by = self._strong[c]
            notes += (f"at least {argument.value:,} alone, by {by}, which doesn't add",)
        widest = Open(len(facts), Part.of(self._db, facts).shape, *bounds, notes, c in self._dense)
        return explained(
            (lower, rests_on),
            (self.upper, self._rests_on_above()),
            widest if gaps[c] > 0 else None,
            int((gaps > 0).sum()),
            len(lower),
        )

    def _take(self, c: int, found: Finding | Pencil, by: str) -> None:
        """Keep what is better than what there is."""
        if isinstance(found, tuple | Substitution):
            game = found if isinstance(found, tuple) else (found,)
            value = sum(argument.value for argument in game)
            if value > self.lower[c]:
                self._games[c] = game, by
                self.lower[c] = value
            return
        value = found.value
        if "upper" in found.sides and value < self.upper[c] and self._checkable(c, found):
            self._above[c] = found, by
            self.upper[c] = value
        if "lower" in found.sides and value > self._best(c):
            self._strong[c] = found, by

    def _checkable(self, c: int, found: Argument) -> bool:
        """Check that what is found takes no more than a side's share of the checker's budget."""
        others = (a for d, (a, _) in self._above.items() if d != c)
        return steps_above((found, *others)) <= OF_AN_END

    def _best(self, c: int) -> int:
        """The lower bound of a component alone."""
        strong = self._strong[c][0].value if c in self._strong else 0
        return max(int(self.lower[c]), strong)

    def _open(self) -> Indices:
        return np.flatnonzero(self.lower < self.upper)

    def _pencils(self, facts_of: list[Indices]) -> None:
        """Solve the components whose slices of some mode span two dimensions."""
        spans = self._bounds.unfoldings_by_component
        two: list[int] = self._open()[(spans[self._open()] == 2).any(axis=1)].tolist()
        for c in two:
            self._say("pencil")
            for mode in np.flatnonzero(spans[c] == 2).tolist():
                argument = pencil_of(
                    self._db, facts_of[c], mode, self._budget.pencil, self._pencil_budget.spend
                )
                if argument is not None:
                    self._take(c, argument, "pencil")
                    break

    def _say(self, what: str) -> None:
        if self._progress is not None:
            self._progress(*self.value(), what)


def _in_words(methods: Iterable[str]) -> str:
    """The most advanced of the methods that take part."""
    return max(methods, key=["unfolding", "slices", "independent sets", *STAGES].index)
