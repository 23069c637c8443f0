"""Upper bounds of small cores by theorems about the largest rank of their format."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.maximal_rank import MaximalRank, maximal_rank


def formats(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Bound the rank of the core by the largest rank of its format, if that is smaller."""
    largest = maximal_rank(problem.core.tensor.shape)
    if largest is not None and largest < goal.upper:
        yield (MaximalRank(View(problem.core.chosen), largest),)


MAXIMAL_RANK = Method("maximal rank of the format", formats, sides=("upper",), cites=True)
