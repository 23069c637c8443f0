"""Peeling of slices with a single entry: the exact rank, if nothing remains after it."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.kinds.decomposition import Decomposition


def peelings(problem: Problem, _: Goal) -> Iterable[Finding]:
    """Yield both ends of the interval, if nothing remains after peeling."""
    peeled = problem.peeled
    if peeled is not None and not peeled.tensor.size:
        yield (peeled.minor(),)
        yield (peeled.completed(Decomposition(())),)


PEELING = Method("peeling", peelings, dense=False, adds=True, effective="yes")
