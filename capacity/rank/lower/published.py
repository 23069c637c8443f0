"""Lower bounds by published theorems, for tensors that are named ones in another order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.rank.method import Finding, Goal, Method, Problem, all_indices
from capacity.rank.reductions.relabelling import relabelling
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.published import Published
from capacity.rank.verifier.procedures.theorems import named, published
from capacity.tensor.dense import from_dense
from capacity.tensor.names import named_tensor


def published_bounds(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Look for a named tensor of the tensor's shape, or of its core's, that is the same."""
    whole = all_indices(problem.tensor.shape)
    parts = [(whole, problem.tensor)]
    if problem.known is None and problem.tensor.ndim == 3:
        core = problem.core
        if core.tensor.shape != problem.tensor.shape:
            parts.append((core.chosen, core.tensor))
    for chosen, T in parts:
        for name in named(T.shape):
            known = published(name)
            if known is None or known[1].value <= goal.lower:
                continue
            found = relabelling(from_dense(T), named_tensor(name))
            if found is None:
                continue
            indices = tuple(of[mine] for of, mine in zip(chosen, found.indices, strict=True))
            bases = tuple(None if (s > 0).all() else np.diag(s) for s in found.signs)
            yield (Published(name, View(indices, bases), known[1].value),)


PUBLISHED = Method(
    "published theorem",
    published_bounds,
    sides=("lower",),
    any_order=True,
    effective="observed",
    cites=True,
)
