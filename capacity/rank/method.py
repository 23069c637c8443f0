"""Methods of search: what each finds, what it costs and what it needs.

Nothing that a method finds is believed: `capacity.rank.verifier` can check all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.limits import shown
from capacity.rank.effort import Limit
from capacity.rank.problem import Component, Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import Side
from capacity.rank.verifier.kinds import KINDS

Find: TypeAlias = Callable[[Problem, Goal], Iterable[Finding]]
FindInFacts: TypeAlias = Callable[[Component, Goal], Iterable[Finding]]
Cost: TypeAlias = Callable[[Problem], int]

# bounds that need no search, in words
BOUNDS = ("unfolding", "slices", "independent sets")


@dataclass(frozen=True)
class Method:
    """A method of search, registered by `capacity.rank.search.methods.register_method`.

    Attributes
    ----------
    name : str
        As certificates, explanations and ``--methods`` say it.
    find : callable, optional
        ``find(problem, goal)`` yields arguments about a small tensor, the better ones later.
    find_in_facts : callable, optional
        ``find_in_facts(component, goal)``, in its place, for what needs no dense tensor. The
        arguments are about the database.
    sides : tuple of {'lower', 'upper'}
        Which ends of an interval it can move.
    limit : str, optional
        The field of `Limits` that counts its tries; where that is 0 it isn't called.
    cost : callable, optional
        ``cost(problem)``: the work with which it begins to do anything, in the units of
        ``Goal.work``; with less it isn't called.
    dense : bool
        It needs the tensor itself. If not, it is asked about tensors that are too large to be made
        as well, of which only what is left without slices of a single entry is there
        (``problem.peeled``); the tensor is empty then.
    peeled : {'never', 'instead', 'also'}
        Whether it looks at what is left without slices of a single entry, in place of the tensor or
        before it. It must then take tensors of which fibers are unknown, and find games,
        decompositions or enclosures.
    adds : bool
        Its lower bounds add to those of other components.
    effective : {'no', 'observed', 'yes', 'alone'}
        Whether it bounds the effective rank: not at all; from below, where all fibers are observed;
        wherever it bounds the rank; or that alone.

    `cost`, `dense` and `peeled` are about tensors: with `find_in_facts` they mean nothing.
    """

    name: str
    find: Find | None = None
    find_in_facts: FindInFacts | None = None
    sides: tuple[Side, ...] = ("lower", "upper")
    limit: Limit | None = None
    cost: Cost | None = None
    dense: bool = True
    peeled: Literal["never", "instead", "also"] = "never"
    adds: bool = False
    effective: Literal["no", "observed", "yes", "alone"] = "no"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sides", tuple(self.sides))
        if (self.find is None) == (self.find_in_facts is None):
            raise InvalidArgumentError(
                f"The method {self.name!r} must have one of `find` and `find_in_facts`."
            )
        if self.name in BOUNDS:
            raise InvalidArgumentError(
                f"A method must have another name than {', '.join(BOUNDS)}, which stand for bounds "
                f"without a search; got {self.name!r}."
            )
        if self.limit is not None and self.limit not in get_args(Limit):
            raise InvalidArgumentError(
                f"`limit` of a method must be one of {', '.join(get_args(Limit))}, or None; got "
                f"{shown(self.limit)}."
            )
        if not self.sides or not {*self.sides} <= {*get_args(Side)}:
            raise InvalidArgumentError(
                f"`sides` of a method must be some of lower and upper; got {shown(self.sides)}."
            )
        if self.effective == "observed" and self.find is None:
            raise InvalidArgumentError(
                f"The method {self.name!r} isn't told which fibers are observed, for it has "
                "`find_in_facts`: its `effective` can't be 'observed'."
            )


def findings(method: Method, problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Ask a method about a tensor, and about what is left of it after peeling.

    What is left has the same answer, and is smaller, but luck differs: a method that looks at both
    has half the work for each.
    """
    if method.dense and problem.rest is not None:
        return
    peeled = problem.peeled if method.peeled != "never" else None
    if peeled is None:
        yield from _asked(method, problem, goal)
        return
    if not peeled.tensor.size:
        return
    twice = method.peeled == "also" and problem.rest is None
    work = goal.work // 2 if twice else goal.work
    n, upper = len(peeled.taken), goal.upper
    smaller = Problem(peeled.tensor, peeled.known)
    shifted = Goal(goal.lower - n, goal.upper - n, work, goal.limits, goal.seed)
    for found in _asked(method, smaller, shifted):
        of_whole = peeled.of_whole(found)
        if "upper" in of_whole[0].sides:
            upper = min(upper, value_of(of_whole))
        yield of_whole
    if twice:
        yield from _asked(method, problem, replace(goal, upper=upper, work=work))


def findings_in_facts(method: Method, component: Component, goal: Goal) -> Iterable[Finding]:
    """Ask a method about facts, as long as its share of the verifier's budget lasts."""
    if method.find_in_facts is None:
        return
    try:
        yield from _checked(method, method.find_in_facts(component, goal))
    except MemoryBudgetError:
        # nothing more that is found here can be verified
        return


def _asked(method: Method, problem: Problem, goal: Goal) -> Iterable[Finding]:
    if method.find is None or (method.cost is not None and goal.work < method.cost(problem)):
        return ()
    return _checked(method, method.find(problem, goal))


def _checked(method: Method, found: Iterable[object]) -> Iterable[Finding]:
    """Refuse what is no tuple of arguments of registered kinds."""
    for one in found:
        arguments = cast("tuple[Any, ...]", one) if isinstance(one, tuple) else ()
        kinds = {kind.argument for kind in KINDS.values()}
        if not arguments or not kinds.issuperset(map(type, arguments)):
            raise InvalidArgumentError(
                f"The method {method.name!r} must yield tuples of arguments of registered kinds, "
                f"which are {', '.join(sorted(KINDS))}; got {shown(one)}."
            )
        yield arguments


def value_of(found: Finding) -> int:
    """The bound that arguments give together."""
    return sum(argument.value for argument in found)
