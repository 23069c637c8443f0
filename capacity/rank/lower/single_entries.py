"""Slices of a single entry come off exactly: the answer, where nothing is left without them."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.reductions.subtensor import Finding


def peelings(problem: Problem, _: Goal) -> Iterable[Finding]:
    """Both ends, if nothing is left after peeling."""
    peeled = problem.peeled
    if peeled is not None and not peeled.tensor.size:
        yield (peeled.minor(),)
        yield (peeled.completed([]),)


PEELING = Method("peeling", peelings, dense=False, adds=True, effective="yes")
