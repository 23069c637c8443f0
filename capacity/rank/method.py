"""Methods of search: the bounds that each finds, its cost, and the problems that it is given.

A problem is a small tensor, or sparse entries, with a goal. Methods need not be trusted:
`capacity.rank.verifier` can check every argument that they find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.exact.types import Indices, Mask, Term
from capacity.rank.options import Field, Limit, Limits
from capacity.rank.reductions.singleton_slices import Peeled, peel_singles
from capacity.rank.reductions.subtensor import Core, Finding, concise_core
from capacity.rank.reductions.unital_algebras import Algebra, algebras_of
from capacity.rank.verifier.argument import Side
from capacity.rank.verifier.kind import why_not_over
from capacity.rank.verifier.kinds import KINDS
from capacity.rank.verifier.procedures.kronecker_form import Spend
from capacity.tensor.sparse import SparseTensor


@briefly_shown
@dataclass(frozen=True)
class Goal:
    """A request to a method of search: the interval so far, and the work it may do.

    Attributes
    ----------
    lower, upper : int
        The interval so far. Lower bounds are sought up to `upper`, decompositions down to `lower`.
    work : int
        Work allowed, in units of about a nanosecond. A method converts it to a number of attempts,
        so that a seed yields the same result on any machine.
    limits : Limits
        Maximum numbers of attempts.
    seed : int
        Seed of the method's random choices.
    start : tuple of Term
        A known decomposition of the tensor to start from; may be empty.
    """

    lower: int
    upper: int
    work: int
    limits: Limits
    seed: int
    start: tuple[Term, ...] = ()


@briefly_shown
@dataclass(frozen=True)
class Component:
    """Entries of whole components, for methods that need no dense tensor.

    Attributes
    ----------
    tensor : SparseTensor
        The whole tensor; that of a database is ``Database.tensor()``.
    rows : ndarray of int64
        Row numbers of the component's entries in ``SparseTensor.indices``.
    unfoldings : tuple of int
        Ranks of the unfoldings of these entries.
    spend : callable
        Charges the steps and bytes that the verifier will need. Raises `MemoryBudgetError` once the
        bound's share of the verifier's budget is spent.
    """

    tensor: SparseTensor
    rows: Indices
    unfoldings: tuple[int, ...]
    spend: Spend


def all_indices(shape: tuple[int, ...]) -> tuple[Indices, ...]:
    """Return all indices of each mode."""
    return tuple(np.arange(n) for n in shape)


@briefly_shown
@dataclass(frozen=True)
class Problem:
    """A small tensor whose rank, or effective rank, is bounded.

    Attributes
    ----------
    tensor : integer ndarray
        The dense tensor, of any order; empty if `rest` is given.
    known : ndarray of bool, of the shape of the tensor, or None
        The entries of observed fibers, for the effective rank; None for the rank.
    rest : Peeled, optional
        The remainder after peeling, for a tensor that is too large to be dense.
    """

    tensor: NDArray[np.integer]
    known: Mask | None = None
    rest: Peeled | None = None

    @classmethod
    def of_rest(cls, rest: Peeled) -> Problem:
        """Make a problem from the peeled remainder of a tensor that is too large to be dense."""
        return cls(np.zeros((0, 0, 0), np.int8), rest=rest)

    @cached_property
    def core(self) -> Core:
        """The concise core of the tensor.

        Raises
        ------
        InvalidArgumentError
            If the problem is about the effective rank, which a core doesn't preserve.
        """
        if self.known is not None:
            raise InvalidArgumentError(
                "A core preserves the rank and not the effective rank: `known` must be None."
            )
        return concise_core(self.tensor)

    @cached_property
    def algebras(self) -> list[Algebra]:
        """The algebras, one for each mode, whose product the core is, in some bases."""
        return algebras_of(self.core.tensor.astype(np.int64)) if self.tensor.ndim == 3 else []

    @cached_property
    def peeled(self) -> Peeled | None:
        """The remainder without slices of a single entry; None if there are no such slices."""
        if self.rest is not None:
            return self.rest
        if self.tensor.ndim != 3:
            return None
        effective = self.known is not None
        places = np.argwhere(self.tensor)
        values = self.tensor[tuple(places.T)].astype(np.int64)
        return peel_singles(places, values, self.tensor.shape, effective=effective)

    @property
    def size(self) -> int:
        """Number of entries times number of slices: the cost of one pass over all slices."""
        return self.tensor.size * sum(self.tensor.shape)

    @cached_property
    def parts(self) -> list[tuple[Indices, ...]]:
        """Sub-tensors for the substitution method: the whole, and the core if that is smaller."""
        whole = all_indices(self.tensor.shape)
        if self.known is not None or self.core.tensor.shape == self.tensor.shape:
            return [whole]
        return [whole, self.core.chosen]

    def part(self, of: tuple[Indices, ...]) -> tuple[Indices, Mask]:
        """Return the sub-tensor of some indices, and the mask of its known entries."""
        tensor = self.tensor[np.ix_(*of)].astype(np.int64)
        known = np.ones(tensor.shape, bool) if self.known is None else self.known[np.ix_(*of)]
        return tensor, known


Find: TypeAlias = Callable[[Problem, Goal], Iterable[Finding]]
FindInEntries: TypeAlias = Callable[[Component, Goal], Iterable[Finding]]
Cost: TypeAlias = Callable[[Problem], int]

# names of bounds that need no search
BOUNDS = ("unfolding", "slices", "independent sets", "fiber cover")


@briefly_shown
@dataclass(frozen=True)
class Method:
    """A method of search for bounds, which `register_method` makes part of every search.

    `cost`, `dense` and `peeled` are about tensors and have no effect with `find_in_entries`.

    Attributes
    ----------
    name : str
        Name in certificates, explanations and ``--method``.
    find : callable, optional
        ``find(problem, goal)`` yields tuples of arguments about a small tensor, better ones later.
        Pass either this or `find_in_entries`.
    find_in_entries : callable, optional
        ``find_in_entries(component, goal)`` yields tuples of arguments about the whole tensor, for
        methods that need no dense one.
    sides : tuple of {'lower', 'upper'}
        Ends of an interval that the method can move.
    limit : str, optional
        Field of `Limits` that counts its attempts; where that is 0 the method isn't called.
    cost : callable, optional
        ``cost(problem)`` returns the least work with which the method can do anything, in the units
        of ``Goal.work``; with less it isn't called.
    times : int
        Factor of the work that the method has, for one that is alone on some tensors.
    fewest : int
        Entries that a component must have for `find_in_entries` to be called.
    dense : bool
        True if the method needs the dense tensor. Otherwise it is also called for tensors that are
        too large to be dense: ``problem.tensor`` is then empty, and ``problem.peeled`` holds the
        remainder without slices of a single entry.
    peeled : {'never', 'instead', 'also'}
        'instead' and 'also' call the method on the remainder without slices of a single entry, in
        place of the tensor or before it. The method must then accept tensors with unknown fibers
        and yield one `Substitution`, `Decomposition` or `Enclosure` at a time.
    adds : bool
        True if its lower bounds add over components.
    any_order : bool
        True if the method is for tensors of any order; otherwise it is called for those of order 3.
    effective : {'no', 'observed', 'yes', 'alone'}
        When the method also bounds the effective rank: never; from below, where all fibers are
        observed; always. 'alone' is for methods that bound the effective rank and not the rank.
    cites : bool
        True if its arguments rest on published theorems, which ``cited=False`` excludes.

    Raises
    ------
    InvalidArgumentError
        If both or neither of `find` and `find_in_entries` are given, the name is that of a bound
        that needs no search, `limit` or `sides` is unknown, or a method with `find_in_entries` is
        'observed'.

    Examples
    --------
    Remove the last slice of each mode, which proves that the W state has rank 3:

    >>> import numpy as np
    >>> from capacity import Database
    >>> from capacity.rank import Substitution, View, rank_interval, verify
    >>> def last_slices(problem, goal):
    ...     shape = problem.tensor.shape
    ...     removed = np.array([(mode, n - 1) for mode, n in enumerate(shape)])
    ...     yield (Substitution(View(tuple(map(np.arange, shape))), removed),)
    >>> method = Method("last slices", last_slices, sides=("lower",))
    >>> w = Database.from_triples([("a", "p", "y"), ("a", "q", "x"), ("b", "p", "x")])
    >>> lower = rank_interval(w, methods=[method]).certificates.lower
    >>> lower.value, lower.by, verify(lower, w).proved
    (3, 'last slices', True)
    """

    name: str
    find: Find | None = None
    find_in_entries: FindInEntries | None = None
    sides: tuple[Side, ...] = ("lower", "upper")
    limit: Limit | None = None
    cost: Cost | None = None
    times: int = 1
    fewest: int = 1
    dense: bool = True
    peeled: Literal["never", "instead", "also"] = "never"
    adds: bool = False
    any_order: bool = False
    effective: Literal["no", "observed", "yes", "alone"] = "no"
    cites: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sides", tuple(self.sides))
        if (self.find is None) == (self.find_in_entries is None):
            raise InvalidArgumentError(
                f"The method {self.name!r} must have either `find` or `find_in_entries`; got "
                f"{'neither' if self.find is None else 'both'}."
            )
        if self.name in BOUNDS:
            raise InvalidArgumentError(
                f"A method must have another name than {', '.join(BOUNDS)}, which name the bounds "
                f"that need no search; got {self.name!r}."
            )
        if self.limit is not None and self.limit not in get_args(Limit):
            raise InvalidArgumentError(
                f"`limit` of a method must be one of {', '.join(get_args(Limit))}, or None; got "
                f"{shown(self.limit)}."
            )
        if not self.sides or not {*self.sides} <= {*get_args(Side)}:
            raise InvalidArgumentError(
                f"`sides` of a method must be lower, upper or both; got {shown(self.sides)}."
            )
        if self.effective == "observed" and self.find is None:
            raise InvalidArgumentError(
                f"The method {self.name!r} has `find_in_entries`, so it doesn't receive which "
                "fibers are observed; its `effective` must be 'no', 'yes' or 'alone'."
            )


def applies(method: Method, problem: Problem, goal: Goal) -> bool:
    """Return True if a method can be called on a tensor, with the work that a goal allows."""
    if problem.rest is not None:
        return method.find is not None and not method.dense
    return method.cost is None or goal.work >= method.cost(problem)


def findings(method: Method, problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Call a method on a tensor, and on its remainder after peeling.

    A bound of the remainder yields one of the tensor, at a smaller size, but a random search may do
    better on either; a method that searches both has half the work for each.
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


def findings_in_entries(method: Method, component: Component, goal: Goal) -> Iterable[Finding]:
    """Call a method on sparse entries, as long as its share of the verifier's budget lasts."""
    if method.find_in_entries is None:
        return
    try:
        yield from _checked(method, method.find_in_entries(component, goal))
    except MemoryBudgetError:
        # nothing more that is found here can be verified
        return


def _asked(method: Method, problem: Problem, goal: Goal) -> Iterable[Finding]:
    if method.find is None or not applies(method, problem, goal):
        return ()
    return _checked(method, method.find(problem, goal))


def _checked(method: Method, found: Iterable[object]) -> Iterable[Finding]:
    """Refuse findings that aren't tuples of arguments of registered kinds."""
    for one in found:
        arguments = cast("tuple[Any, ...]", one) if isinstance(one, tuple) else ()
        kinds = {kind.argument for kind in KINDS.values()}
        if not arguments or not kinds.issuperset(map(type, arguments)):
            raise InvalidArgumentError(
                f"The method {method.name!r} must yield tuples of arguments of registered kinds, "
                f"which are {', '.join(sorted(KINDS))}; got {shown(cast('object', one))}."
            )
        yield arguments


def holds(found: Finding, side: Side, field: Field, *, border: bool = False) -> bool:
    """Return True if arguments prove a bound on a side, over a field."""
    kinds = [KINDS[one.kind] for one in found]
    return (
        all(side in one.sides for one in found)
        and why_not_over(found, kinds, side, field, border=border) is None
    )


def value_of(found: Finding) -> int:
    """Return the bound that arguments prove together, the sum of their values."""
    return sum(argument.value for argument in found)
