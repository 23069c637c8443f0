"""Search the effective rank, the lowest rank of a tensor that agrees with D on the observed fibers.

From below, on the whole:

    eff(D) >= rank of the observed fibers of all components but one + game on that one,

for any one component D_j, with its unobserved fibers unknown. The object slices of the others go
first; whatever is subtracted, nothing changes at the observed fibers of D_j, where they vanish. On
functional data the first number is sum over i != j of |V_i|. Bounds of two components don't add:
two copies of Example 2.2 of Wong (2025), of effective rank 5 each, have effective rank 9.

From above, the rank's decompositions, the tensors that merging gives
(`capacity.rank.upper.merging`), and walks in the flip graph from there, which ignore what they do
to unobserved fibers, and fits that do so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from capacity.database.facts import Database
from capacity.rank.bounds import Bounds
from capacity.rank.cp.exact_fits import fits
from capacity.rank.effort import BUDGETS, Effort
from capacity.rank.exact.sparse_terms import vector
from capacity.rank.lower.diagonalization import diagonalizations
from capacity.rank.lower.koszul import flattenings
from capacity.rank.lower.unfolding import as_unfolding
from capacity.rank.problem import Finding, Goal, Problem, Stage, also_peeled, peelings
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.rank.reductions.subtensor import Part
from capacity.rank.search.component_search import GAMES, Progress
from capacity.rank.search.explanation import AS_A_WHOLE, TOO_LARGE, Open, explained
from capacity.rank.shares import OF_AN_END, steps_above
from capacity.rank.types import Indices, Term
from capacity.rank.upper.flip_search import as_factors, flips
from capacity.rank.upper.merging import merged_arguments
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.kinds.unfolding import Unfolding

# for tensors of which every fiber is observed
COMPLETE: dict[str, Stage] = {
    "diagonalization": diagonalizations,
    "Koszul flattening": flattenings,
}


@dataclass(frozen=True)
class _Small:
    """Some facts, as a part of the database and as a problem."""

    facts: Indices
    part: Part
    problem: Problem


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
        self._of_rank = rank.value
        self._value = rank.value
        self._notes: tuple[str, ...] = ()
        # the facts that the best arguments are about, the arguments, and the method in words
        self._best: tuple[Indices, tuple[Argument, ...], str] | None = None

    def run(self) -> None:
        """Merge; bound each component, and the whole, from below; shorten the decomposition."""
        self._merge()
        parts = [one for facts in self._subsets() if (one := self._small(facts)) is not None]
        whole = next((p.problem for p in parts if len(p.facts) == self._db.n_triples), None)
        self._notes = () if whole else (AS_A_WHOLE if parts else TOO_LARGE,)
        first, *others = GAMES
        self._bound("peeling", peelings, parts)
        self._shorten("peeling", whole)
        self._bound(first, GAMES[first], parts)
        complete = [p for p in parts if p.problem.known is None and p.problem.rest is None]
        for name, stage in COMPLETE.items():
            self._bound(name, stage, complete)
        self._shorten("flip graph", whole)
        self._shorten("least squares", whole)
        for name in others:
            self._bound(name, GAMES[name], parts)

    def _small(self, facts: Indices) -> _Small | None:
        """Facts as a small problem, maybe without the slices of a single entry."""
        part = Part.of(self._db, facts)
        if part.size <= self._budget.largest:
            return _Small(facts, part, _masked(part))
        rest = peel_singles(part.places, part.shape, effective=True, largest=self._budget.largest)
        if rest is None:
            return None
        return _Small(facts, part, Problem.of_rest(rest))

    def _bound(self, name: str, stage: Stage, parts: list[_Small]) -> None:
        for one in parts:
            if not self._goes_on(name):
                return
            facts = one.facts
            others = int(self._fibers.sum()) - self._fibers_of(facts)
            goal = self._goal(others, len(parts))
            for found in stage(one.problem, goal):
                moved = one.part.relocated(found)
                below = moved if isinstance(moved, tuple) else (moved,)
                if "lower" not in below[-1].sides:
                    continue
                if others + sum(one.value for one in below) > self.value()[0]:
                    self._best = facts, below, name

    def _shorten(self, name: str, whole: Problem | None) -> None:
        """Look for shorter decompositions of the whole."""
        if whole is None or not self._goes_on(name):
            return
        for found in self._shorter(name, whole):
            if not isinstance(found, Decomposition | Enclosure) or found.value >= self._value:
                continue
            if steps_above((found,)) <= OF_AN_END:
                self.upper, self._value = ((found,), name), found.value

    def _shorter(self, name: str, whole: Problem) -> Iterable[Finding]:
        if name == "peeling":
            return peelings(whole, self._goal(0, 1))
        if name == "least squares":
            return also_peeled(fits, whole=False)(whole, self._goal(0, 1))
        if whole.rest is not None:
            return also_peeled(flips)(whole, self._goal(0, 1))
        start = as_factors(_terms(self.upper[0], self._db), self._db.shape)
        starts = [] if start is None else [start]
        if whole.peeled is None:
            return flips(whole, self._goal(0, 1), starts)
        goal = self._goal(0, 2)
        return chain(also_peeled(flips, whole=False)(whole, goal), flips(whole, goal, starts))

    def _goal(self, others: int, n: int) -> Goal:
        lower, upper = self.value()
        work = self._budget.work // n
        return Goal(lower - others, upper - others, work, self._budget.limits, self._seed)

    def _goes_on(self, what: str) -> bool:
        """Whether the interval is open still; say what comes next."""
        lower, upper = self.value()
        if lower < upper and self._progress is not None:
            self._progress(lower, upper, what)
        return lower < upper

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        if self._best is None:
            return int(self._fibers.sum()), self._value
        facts, below, _ = self._best
        others = int(self._fibers.sum()) - self._fibers_of(facts)
        return others + sum(one.value for one in below), self._value

    def lower_arguments(self) -> tuple[tuple[Argument, ...], str]:
        """What the lower bound rests on, and the methods in words."""
        others = np.ones(len(self._fibers), bool)
        if self._best is not None:
            others[self._component[self._best[0]]] = False
        first = as_unfolding(self._db, 2, self._minor.of_groups(others))
        if self._best is None:
            return first, "unfolding"
        _, below, by = self._best
        words = f"unfolding + {by}" if first else by
        if first and isinstance(below[0], Unfolding):
            # one unfolding has to do, whose slices go first
            return (_joined(below[0], first[0]), *below[1:]), words
        return (*first, *below), words

    def explanation(self) -> tuple[str, ...]:
        """What the bounds rest on, and what is left, in words."""
        facts, below, by = self._best or (np.zeros(0, np.int64), (), "")
        values = [int(self._fibers.sum()) - self._fibers_of(facts), sum(a.value for a in below)]
        methods = ["the observed fibers' rank", by]
        there = [n for n, value in enumerate(values) if value]
        values, methods = [values[n] for n in there], [methods[n] for n in there]
        lower, upper = self.value()
        above = self.upper[1] if upper < self._of_rank else f"the rank's terms ({self.upper[1]})"
        shape = Part.of(self._db, np.arange(self._db.n_triples)).shape
        left = Open(self._db.n_triples, shape, lower, upper, self._notes, flattened=False)
        return explained(
            (np.array(values), np.array(methods, object)),
            (np.array([upper]), np.array([above], object)),
            left if lower < upper else None,
        )

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
        if not self._db.is_functional or not self._goes_on("merging"):
            return
        rng = np.random.default_rng(self._seed)
        for _ in range(min(self._budget.limits.games, self._tries())):
            if self._value == self.value()[0]:
                return
            candidate = merged_arguments(self._db, rng)
            value = sum(argument.value for argument in candidate)
            if value < self._value and steps_above(candidate) <= OF_AN_END:
                self.upper, self._value = (candidate, "merging"), value

    def _tries(self) -> int:
        """How many mergers the work allows: each compares slices pair by pair."""
        k, q, _ = self._db.shape
        return self._budget.work // (100 * self._db.n_triples * (k + q))


def _joined(first: Unfolding, second: Unfolding) -> Unfolding:
    """Minors of different components, the first of pivots that are alone, as one."""
    # a complete part that peels in another mode is a matrix: its fibers say as much
    if first.mode != 2 or len(first.blocks):
        raise AssertionError("minors are joined by observed fibers, with single pivots first")
    return Unfolding(
        2,
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.columns, second.columns]),
        second.blocks,
        second.eliminated,
        second.prime,
    )


def _masked(part: Part) -> Problem:
    """The tensor of a part, of which the observed fibers are known.

    If that is all of it, there is nothing to complete, and the problem is that of the rank.
    """
    tensor = part.tensor()
    known = np.broadcast_to(tensor.any(axis=2, keepdims=True), tensor.shape)
    return Problem(tensor, None if known.all() else known)


def _terms(arguments: tuple[Argument, ...], db: Database) -> list[Term]:
    """What boxes and decompositions stand for."""
    found: list[Term] = []
    for argument in arguments:
        if isinstance(argument, Decomposition):
            found += argument.terms
        elif isinstance(argument, Boxes):
            for number in np.unique(argument.box[argument.box >= 0]):
                mine = db.triples[argument.box == number].astype(np.int64)
                k, q, v = (np.unique(mine[:, mode]).tolist() for mode in range(3))
                found.append(
                    (vector(k, [1] * len(k)), vector(q, [1] * len(q)), vector(v, [1] * len(v)))
                )
        else:
            # a pencil has no terms to start from: take the facts of all components
            return _terms((Boxes(np.arange(db.n_triples)),), db)
    return found
