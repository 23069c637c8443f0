"""Lower bounds by published theorems, for tensors that are named ones in another order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import prod

import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.types import Indices
from capacity.rank.method import Component, Finding, Goal, Method, Problem, all_indices
from capacity.rank.reductions.relabelling import relabelling
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.published import Published
from capacity.rank.verifier.procedures.theorems import named, published
from capacity.tensor.dense import from_coo, from_dense
from capacity.tensor.names import named_tensor
from capacity.tensor.sparse import SparseTensor

# places of a component, which the verifier makes dense, and its steps for each of them and mode
LARGEST, STEPS = 2**21, 20


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
            found = _cited(name, from_dense(T), chosen, goal)
            if found is not None:
                yield (found,)


def published_of_entries(component: Component, goal: Goal) -> Iterable[Finding]:
    """Look for a named tensor that a component is, which may be too large for other methods."""
    tensor = component.tensor
    at, values = tensor.indices[component.rows], tensor.values[component.rows]
    chosen, places = zip(*(np.unique(of, return_inverse=True) for of in at.T), strict=True)
    shape = tuple(map(len, chosen))
    size = prod(shape)
    if size > LARGEST:
        return
    part = from_coo(np.stack(places, axis=1), values, shape)
    for name in named(shape):
        found = _cited(name, part, chosen, goal)
        if found is not None:
            with suppress(MemoryBudgetError):
                component.spend(STEPS * size * tensor.order, STEPS * size)
                yield (found,)


def _cited(
    name: str, tensor: SparseTensor, chosen: Sequence[Indices], goal: Goal
) -> Published | None:
    """The theorem about a named tensor, if it proves more and a tensor is that one."""
    known = published(name)
    if known is None or known[1].value <= goal.lower:
        return None
    found = relabelling(tensor, named_tensor(name))
    if found is None:
        return None
    indices = tuple(of[mine] for of, mine in zip(chosen, found.indices, strict=True))
    bases = tuple(None if (s > 0).all() else np.diag(s) for s in found.signs)
    return Published(name, View(indices, bases), known[1].value)


PUBLISHED = Method(
    "published theorem",
    published_bounds,
    sides=("lower",),
    any_order=True,
    effective="observed",
    cites=True,
)

PUBLISHED_OF_ENTRIES = Method(
    "published theorem on sparse entries",
    find_in_entries=published_of_entries,
    sides=("lower",),
    any_order=True,
    cites=True,
)
