"""One search for both ranks: each method in turn looks wherever its ledger's interval is open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

from capacity.rank.effort import Budget
from capacity.rank.method import Method, findings
from capacity.rank.problem import Goal
from capacity.rank.search.places import Place
from capacity.rank.verifier.argument import Finding

# told the interval so far, and what is tried next
Progress: TypeAlias = Callable[[int, int, str], None]


class Ledger(Protocol):
    """The best bounds so far, and what they rest on; in a state that holds at any time."""

    @property
    def budget(self) -> Budget:
        """What the effort may cost."""
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
        """Whether the ends at a place haven't met."""
        ...

    def take(self, place: Place, found: Finding, by: str) -> None:
        """Keep arguments about the database if they are better than what there is."""
        ...


def search(ledger: Ledger, methods: Iterable[Method], progress: Progress | None) -> None:
    """Go through the methods, for whatever is open then; what is found is kept at once."""

    def say(what: str) -> None:
        if progress is not None:
            progress(*ledger.value(), what)

    ledger.begin(say)
    for method in methods:
        if method.limit is not None and not getattr(ledger.budget.limits, method.limit):
            continue
        # equal tensors with equal goals are searched once
        known: dict[tuple[int, Goal], list[Finding]] = {}
        for place, goal in ledger.goals(method):
            key = id(place.problem), goal
            if place.problem is not None and key in known:
                for found in known[key]:
                    ledger.take(place, place.relocated(found), method.name)
                continue
            say(method.name)
            known[key] = []
            for found in _found(method, place, goal):
                known[key].append(found)
                ledger.take(place, place.relocated(found), method.name)
                if place.problem is None and not ledger.is_open(place):
                    break


def _found(method: Method, place: Place, goal: Goal) -> Iterable[Finding]:
    if place.problem is not None:
        return findings(method, place.problem, goal)
    if place.component is not None and method.find_in_facts is not None:
        return method.find_in_facts(place.component, goal)
    return ()
