"""The search for either rank: each method in turn is tried wherever the interval is open.

The places where it is tried are entries with their small tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from capacity.exact.types import Indices
from capacity.progress import Progress
from capacity.rank.method import (
    Component,
    Goal,
    Method,
    Problem,
    applies,
    findings,
    findings_in_entries,
)
from capacity.rank.options import Budget
from capacity.rank.reductions.subtensor import Finding, Part

# reasons, for explanations, why components or the whole aren't searched
TOO_LARGE = "too large to search at this effort: only bounds that need no search apply"
NOT_DENSE = "too large at this effort for the methods that need a dense tensor"
AS_A_WHOLE = "too large to search as a whole: its components are searched one by one"
TOO_MANY = "not searched: more components are open than this effort searches"


@dataclass(frozen=True)
class Place:
    """Entries of whole components, as a problem for methods of either kind.

    Attributes
    ----------
    number : int
        Number of the place in its ledger.
    rows : ndarray of int64
        Row numbers of the entries.
    part : Part or None
        The entries as a small tensor; None for methods that need none.
    problem : Problem or None
        The problem that this tensor poses; None for methods that need none.
    component : Component or None
        The entries themselves, for methods that need no dense tensor.
    """

    number: int
    rows: Indices
    part: Part | None = None
    problem: Problem | None = None
    component: Component | None = None

    def relocated(self, found: Finding) -> Finding:
        """Translate arguments that a method found here to indices of the whole."""
        return found if self.part is None else self.part.relocated(found)


# first words of the message of progress that names what will be tried
PLAN = "will try"


class Ledger(Protocol):
    """The best bounds so far, with their arguments.

    An interrupt can come at any time, so each update must leave a valid state.
    """

    # name of the rank that is searched for, in messages of progress
    quantity: str

    @property
    def budget(self) -> Budget:
        """The work that the effort allows."""
        ...

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        ...

    def begin(self, say: Callable[[str], None], /) -> None:
        """Find the bounds that need no search, and choose the tensors that are small enough."""
        ...

    def goals(self, method: Method) -> Iterator[tuple[Place, Goal]]:
        """Yield the places where a method may improve the interval, each with its goal."""
        ...

    def is_open(self, place: Place, /) -> bool:
        """Return True if the interval at a place is open."""
        ...

    def take(self, place: Place, arguments: Finding, by: str) -> None:
        """Keep arguments about the whole if they improve on the bounds so far."""
        ...


def search(ledger: Ledger, methods: Sequence[Method], progress: Progress | None) -> None:
    """Try the methods in order on all open places; improvements are kept at once.

    `progress` receives the interval so far with the name of the next method, and the number of
    methods tried. Before the first, it receives the names of all that will be tried, with the most
    work that they may take.
    """
    tried = 0

    def say(what: str) -> None:
        if progress is not None:
            lower, upper = ledger.value()
            what = f"{ledger.quantity} in [{lower}, {upper}]: {what}"
            progress(what, tried, len(methods), None)

    ledger.begin(say)
    methods = [m for m in methods if m.limit is None or getattr(ledger.budget.limits, m.limit)]
    if progress is not None:
        say(_plan(ledger, methods))
    for tried, method in enumerate(methods):  # noqa: B007  `say` counts them
        if method.find_in_entries is None:
            _search_tensors(ledger, method, say)
        else:
            _search_entries(ledger, method, say)
    tried = len(methods)
    say("done")


def _plan(ledger: Ledger, methods: Sequence[Method]) -> str:
    """Name the methods that will be tried, at present, and the most work they may take."""
    works = {
        method.name: sum(
            goal.work
            for place, goal in ledger.goals(method)
            if place.problem is None or applies(method, place.problem, goal)
        )
        for method in methods
    }
    names = [name for name, work in works.items() if work]
    if not names:
        return "nothing to try"
    return f"{PLAN} {', '.join(names)}; at most about {sum(works.values()) / 1e9:.0f} s of CPU"


def _search_tensors(ledger: Ledger, method: Method, say: Callable[[str], None]) -> None:
    # equal tensors with equal goals are searched once
    known: dict[tuple[int, Goal], list[Finding]] = {}
    for place, goal in ledger.goals(method):
        if place.problem is None:
            continue
        key = id(place.problem), goal
        if key in known:
            for found in known[key]:
                ledger.take(place, place.relocated(found), method.name)
            continue
        say(method.name)
        known[key] = []
        for found in findings(method, place.problem, goal):
            known[key].append(found)
            ledger.take(place, place.relocated(found), method.name)


def _search_entries(ledger: Ledger, method: Method, say: Callable[[str], None]) -> None:
    told = False
    for place, goal in ledger.goals(method):
        if not told:
            say(method.name)
            told = True
        if place.component is None:
            continue
        for found in findings_in_entries(method, place.component, goal):
            ledger.take(place, found, method.name)
            if not ledger.is_open(place):
                break
