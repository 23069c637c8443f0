"""The best bounds of the effective rank, the lowest rank of a tensor that represents the facts.

From below, for any one component D_j with its unobserved fibers unknown:

    eff(D) >= rank of the observed fibers of all other components
              + bound of D_j by the substitution method.

The object slices of the other components are removed first; whatever multiples of them are
subtracted, nothing changes at the observed fibers of D_j, where they vanish. On functional data the
first number is sum over i != j of |V_i|. Bounds of two components don't add: two copies of Example
2.2 of Wong (2025), of effective rank 5 each, have effective rank 9.

From above: the rank's decompositions, the tensors that merging yields (`capacity.rank.upper`), and
from there walks in the flip graph and numerical fits, both of which ignore the unobserved fibers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from capacity.exact.types import Indices, Term, vector
from capacity.rank.bounds import Bounds
from capacity.rank.method import Component, Goal, Method, Problem, holds, value_of
from capacity.rank.options import Budget, Field
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.rank.reductions.subtensor import Finding, Part
from capacity.rank.search.scheduler import AS_A_WHOLE, TOO_LARGE, Place
from capacity.rank.shares import OF_AN_END, OF_PENCILS, steps_above
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.sparse import SparseTensor


class EffectiveLedger:
    """The bounds of the effective rank so far, with their arguments.

    Attributes
    ----------
    fibers : ndarray of int64, shape (n_components,)
        Rank of the observed fibers of each component.
    below : tuple of (rows, arguments, str), or None
        Entries of whole components, the best arguments about them, and the method that found these.
    above : tuple of (arguments, str)
        The best arguments from above, and the method that found these.
    of_rank : int
        Upper bound of the rank.
    notes : tuple of str
        Reasons why the whole isn't searched.
    """

    quantity = "effective rank"

    def __init__(
        self, tensor: SparseTensor, bounds: Bounds, rank: Certificate, budget: Budget, seed: int
    ) -> None:
        self.tensor, self.bounds, self.budget, self._seed = tensor, bounds, budget, seed
        self._field: Field = rank.field
        self.fibers: Indices = bounds.unfoldings_by_component[:, -1]
        self.below: tuple[Indices, Finding, str] | None = None
        self.above: tuple[Finding, str] = rank.arguments, rank.by
        self.of_rank = rank.value
        self._upper = rank.value
        self.notes: tuple[str, ...] = ()
        self._places: list[Place] = []

    def begin(self, _say: Callable[[str], None]) -> None:
        """Choose the components with the most entries, and the whole, if they are small enough."""
        places: list[Place] = []
        for number, rows in enumerate(self._subsets()):
            part = Part.of(self.tensor, rows)
            problem = self._problem(part)
            if problem is not None:
                places.append(Place(number, rows, part, problem))
        self._places = places
        if not any(self._is_whole(place) for place in places):
            self.notes = (AS_A_WHOLE if places else TOO_LARGE,)

    def _subsets(self) -> list[Indices]:
        """Return the rows to search: the components with the most entries, then the whole."""
        everything = np.arange(self.tensor.n_entries)
        if len(self.fibers) == 1:
            return [everything]
        component = self.bounds.component
        counts = np.bincount(component)
        order = np.argsort(component, kind="stable")
        rows_of = np.split(order, np.cumsum(counts)[:-1])
        most = np.argsort(-counts, kind="stable")[: self.budget.problems]
        return [*(rows_of[c] for c in most if counts[c] > 1), everything]

    def _problem(self, part: Part) -> Problem | None:
        """Return the problem of a part, with its observed fibers known; None if it is too large.

        If all fibers are observed, the problem is that of the rank. A tensor that is too large may
        be small enough without its slices of a single entry.
        """
        if part.size > self.budget.largest:
            if self.tensor.order != 3:
                return None
            largest = self.budget.largest
            places = part.places, part.values, part.shape
            rest = peel_singles(*places, effective=True, largest=largest)
            return None if rest is None else Problem.of_rest(rest)
        tensor = part.tensor()
        known = np.broadcast_to(tensor.any(axis=-1, keepdims=True), tensor.shape)
        return Problem(tensor, None if known.all() else known)

    def goals(self, method: Method) -> Iterator[tuple[Place, Goal]]:
        """Yield places where the method may raise the lower bound, or lower the upper bound."""
        places = self._suiting(method)
        for place in places:
            lower, upper = self.value()
            if lower >= upper:
                return
            others = self._others(place.rows)
            yield (
                place,
                Goal(
                    lower - others,
                    upper - others,
                    method.times * self.budget.work // len(places),
                    self.budget.limits,
                    self._seed,
                    self._start(method, place),
                ),
            )

    def _suiting(self, method: Method) -> list[Place]:
        if method.effective == "no" or not (method.any_order or self.tensor.order == 3):
            return []
        if method.find_in_entries is not None:
            return [self._everything()]
        places = [
            place
            for place in self._places
            if place.problem is not None
            and (method.effective != "observed" or _is_observed(place.problem))
        ]
        if "lower" not in method.sides:
            return [place for place in places if self._is_whole(place)]
        return places

    def _everything(self) -> Place:
        rows = np.arange(self.tensor.n_entries)
        spend = CheckBudget(OF_PENCILS).spend
        component = Component(self.tensor, rows, self.bounds.unfoldings, spend)
        return Place(-1, rows, component=component)

    def take(self, place: Place, arguments: Finding, by: str) -> None:
        """Keep arguments that improve on the bounds so far; upper bounds only of the whole."""
        value = value_of(arguments)
        above, below = (holds(arguments, side, self._field) for side in ("upper", "lower"))
        if below and self._others(place.rows) + value > self.value()[0]:
            self.below = place.rows, arguments, by
        affordable = above and steps_above(arguments) <= OF_AN_END
        if affordable and self._is_whole(place) and value < self._upper:
            self.above, self._upper = (arguments, by), value

    def is_open(self, _place: Place) -> bool:
        """Return True if the interval of the whole is open."""
        lower, upper = self.value()
        return lower < upper

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        if self.below is None:
            return int(self.fibers.sum()), self._upper
        rows, found, _ = self.below
        return self._others(rows) + value_of(found), self._upper

    def _others(self, rows: Indices) -> int:
        """Return the rank of the observed fibers of all components but those of some entries."""
        components = np.unique(self.bounds.component[rows])
        return int(self.fibers.sum()) - int(self.fibers[components].sum())

    def _is_whole(self, place: Place) -> bool:
        return len(place.rows) == self.tensor.n_entries

    def _start(self, method: Method, place: Place) -> tuple[Term, ...]:
        """Return a decomposition to start from, for methods that look for shorter ones.

        It consists of the boxes and terms of the upper bound or, if that rests on other arguments,
        of one box per entry.
        """
        if "lower" in method.sides or place.problem is None or place.problem.rest is not None:
            return ()
        arguments = self.above[0]
        if not all(isinstance(one, Boxes | Decomposition) for one in arguments):
            arguments = (Boxes(np.arange(self.tensor.n_entries)),)
        terms: list[Term] = []
        for argument in arguments:
            if isinstance(argument, Decomposition):
                terms += argument.terms
            elif isinstance(argument, Boxes):
                terms += _box_terms(argument, self.tensor)
        return tuple(terms) if place.part is None else tuple(_within(terms, place.part))


def _within(terms: list[Term], part: Part) -> Iterator[Term]:
    """Convert terms to the indices of a part, which lacks those without an entry."""
    for term in terms:
        yield tuple(
            (tuple(np.searchsorted(of, indices).tolist()), values)
            for of, (indices, values) in zip(part.indices, term, strict=True)
        )


def _is_observed(problem: Problem) -> bool:
    """Return True if all entries of a dense tensor are known."""
    return problem.known is None and problem.rest is None


def _box_terms(argument: Boxes, tensor: SparseTensor) -> Iterator[Term]:
    """Yield the simple tensor of each box."""
    for number in np.unique(argument.box[argument.box >= 0]):
        mine = argument.box == number
        value = int(tensor.values[mine][0])
        sides = [np.unique(of).tolist() for of in tensor.indices[mine].T]
        *others, last = sides
        yield (*(vector(of, [1] * len(of)) for of in others), vector(last, [value] * len(last)))
