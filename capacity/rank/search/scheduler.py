"""One search for both ranks: each method in turn looks wherever its ledger's interval is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from capacity.progress import Progress
from capacity.rank.effort import Budget
from capacity.rank.method import Method, findings, findings_in_facts
from capacity.rank.problem import Goal
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.search.places import Place


class Ledger(Protocol):
    """The best bounds so far, and what they rest on; in a state that holds at any time."""

    # the rank that is searched for, as progress names it
    quantity: str

    @property
    def budget(self) -> Budget:
        """The work that the effort allows."""
        ...

    def value(self) -> tuple[int, int]:
        """The interval so far."""
        ...

    def begin(self, say: Callable[[str], None], /) -> None:
        """Look at what scales, and choose what is small enough for the methods."""
        ...

    def goals(self, method: Method) -> Iterator[tuple[Place, Goal]]:
        """Places where a method may gain something, each with what it is asked for."""
        ...

    def is_open(self, place: Place, /) -> bool:
        """Return True if the ends at a place haven't met."""
        ...

    def take(self, place: Place, found: Finding, by: str) -> None:
        """Keep arguments about the database if they are better than what there is."""
        ...


def search(ledger: Ledger, methods: Sequence[Method], progress: Progress | None) -> None:
    """Go through the methods, for whatever is open then; what is found is kept at once.

    Progress is told the interval so far with the next method, and counts methods.
    """
    tried = 0

    def say(what: str) -> None:
        if progress is not None:
            lower, upper = ledger.value()
            what = f"{ledger.quantity} in [{lower}, {upper}]: {what}"
            progress(what, tried, len(methods), None)

    ledger.begin(say)
    for tried, method in enumerate(methods):  # noqa: B007  `say` counts them
        if method.limit is not None and not getattr(ledger.budget.limits, method.limit):
            continue
        if method.find_in_facts is None:
            _search_tensors(ledger, method, say)
        else:
            _search_facts(ledger, method, say)


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


def _search_facts(ledger: Ledger, method: Method, say: Callable[[str], None]) -> None:
    told = False
    for place, goal in ledger.goals(method):
        if not told:
            say(method.name)
            told = True
        if place.component is None:
            continue
        for found in findings_in_facts(method, place.component, goal):
            ledger.take(place, found, method.name)
            if not ledger.is_open(place):
                break
