"""A unit tensor among the facts, greedily: facts that share nothing, with no other among them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.verifier.argument import Finding, View
from capacity.rank.verifier.kinds.unit_tensor import UnitTensor


def unit_tensors(problem: Problem, _goal: Goal) -> Iterable[Finding]:
    """Go through the facts once, and keep each that makes the unit tensor larger."""
    chosen = np.zeros((0, 3), np.int64)
    for place in np.argwhere(problem.tensor):
        longer = np.concatenate([chosen, place[None]])
        apart = all(len(np.unique(of)) == len(of) for of in longer.T)
        if apart and np.count_nonzero(problem.tensor[np.ix_(*longer.T)]) == len(longer):
            chosen = longer
    k, q, v = chosen.T
    yield (UnitTensor(View((k, q, v))),)


UNIT_TENSOR = Method(
    "unit tensor", unit_tensors, sides=("lower",), dense=True, effective="observed"
)
