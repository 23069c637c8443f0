"""Search the effective rank, the lowest rank of a tensor that agrees with D on the observed fibers.

From below, on the whole:

    eff(D) >= rank of the observed fibers of all components but one + game on that one,

for any one component D_j, with its unobserved fibers unknown. The object slices of the others go
first; whatever is subtracted, nothing changes at the observed fibers of D_j, where they vanish. On
functional data the first number is sum over i != j of |V_i|. Bounds of two components don't add:
two copies of Example 2.2 of Wong (2025), of effective rank 5 each, have effective rank 9.

From above, the rank's decompositions, and the tensors that merging gives (`capacity.rank.merging`).
"""

from __future__ import annotations

import numpy as np

from capacity.database.facts import Database
from capacity.rank.bounds import Bounds, as_unfolding
from capacity.rank.certificate import Argument, Certificate, Indices, Substitution
from capacity.rank.effort import BUDGETS, Effort
from capacity.rank.merging import merged_arguments
from capacity.rank.part import Part
from capacity.rank.search import Progress
from capacity.rank.stages import GAMES, Goal, Problem


class EffectiveSearch:
    """The bounds of the effective rank so far, and what they rest on.

    Attributes
    ----------
    upper : tuple of (arguments, str)
        What the upper bound rests on, and the method in words.
    """

    def __init__(
        self,
        db: Database,
        bounds: Bounds,
        rank: Certificate,
        effort: Effort,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self._db, self._seed, self._progress = db, seed, progress
        self._component, self._budget = bounds.component, BUDGETS[effort]
        self._minor = bounds.minors[2]
        self._fibers: Indices = bounds.unfoldings_by_component[:, 2]
        self.upper: tuple[tuple[Argument, ...], str] = rank.arguments, rank.by
        self._value = rank.value
        # the facts that the best game is about, the game, and the method in words
        self._best: tuple[Indices, Substitution, str] | None = None

    def run(self) -> None:
        """Merge, then play on each component, and on the whole."""
        self._merge()
        parts = [(facts, Part.of(self._db, facts)) for facts in self._subsets()]
        parts = [(facts, part) for facts, part in parts if part.size <= self._budget.largest]
        for name, stage in GAMES.items():
            for facts, part in parts:
                lower, upper = self.value()
                if lower == upper:
                    return
                if self._progress is not None:
                    self._progress(lower, upper, name)
                others = int(self._fibers.sum() - self._fibers_of(facts))
                tensor = part.tensor()
                known = np.broadcast_to(tensor.any(axis=2, keepdims=True), tensor.shape)
                goal = Goal(
                    lower - others,
                    upper - others,
                    self._budget.work // len(parts),
                    self._budget.limits,
                    self._seed,
                )
                for found in stage(Problem(tensor, known), goal):
                    game = part.relocated(found)
                    assert isinstance(game, Substitution)
                    if others + game.value > self.value()[0]:
                        self._best = facts, game, name

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        if self._best is None:
            return int(self._fibers.sum()), self._value
        facts, game, _ = self._best
        return int(self._fibers.sum()) - self._fibers_of(facts) + game.value, self._value

    def lower_arguments(self) -> tuple[tuple[Argument, ...], str]:
        """What the lower bound rests on, and the methods in words."""
        others = np.ones(len(self._fibers), bool)
        if self._best is not None:
            others[self._component[self._best[0]]] = False
        first = as_unfolding(self._db, 2, self._minor.of_groups(others))
        if self._best is None:
            return first, "unfolding"
        _, game, by = self._best
        return (*first, game), f"unfolding + {by}" if first else by

    def _fibers_of(self, facts: Indices) -> int:
        """The rank of the observed fibers of whole components."""
        return int(self._fibers[np.unique(self._component[facts])].sum())

    def _subsets(self) -> list[Indices]:
        """Facts to play on: the components with the most facts, and then all."""
        everything = np.arange(self._db.n_triples)
        if len(self._fibers) == 1:
            return [everything]
        counts = np.bincount(self._component)
        order = np.argsort(self._component, kind="stable")
        facts_of = np.split(order, np.cumsum(counts)[:-1])
        most = np.argsort(-counts, kind="stable")[: self._budget.problems]
        return [*(facts_of[c] for c in most if counts[c] > 1), everything]

    def _merge(self) -> None:
        if not self._db.is_functional:
            return
        rng = np.random.default_rng(self._seed)
        for _ in range(min(self._budget.limits.games, self._tries())):
            lower, upper = self.value()
            if lower == upper:
                return
            if self._progress is not None:
                self._progress(lower, upper, "merging")
            candidate = merged_arguments(self._db, rng)
            value = sum(argument.value for argument in candidate)
            if value < upper:
                self.upper, self._value = (candidate, "merging"), value

    def _tries(self) -> int:
        """How many mergers the work allows: each compares slices pair by pair."""
        k, q, _ = self._db.shape
        return self._budget.work // (100 * self._db.n_triples * (k + q))
