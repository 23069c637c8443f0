"""The substitution method entry by entry says what it says with a dense mask of known entries."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import MemoryBudgetError
from capacity.rank import Substitution, View
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.procedures.sparse_removals import (
    Group,
    cost_of_sparse_removals,
    require_sparse_removals,
)
from capacity.tensor import SparseTensor
from tests.second_checker import claim
from tests.second_checker.views import rational_rank
from tests.tiers import examples

# slices of a mode that are removed together, and for several the columns of their minor
Step = tuple[int, list[int], list[tuple[int, ...]] | None]
PRIME = 2**31 - 1


def by_masks(tensor: np.ndarray, known: np.ndarray, steps: list[Step]) -> bool:
    """The definition: removed slices hide the fibers across their unknown and nonzero entries."""
    state = {p: (int(tensor[p]), bool(known[p])) for p in np.ndindex(tensor.shape)}
    for mode, rows, columns in steps:
        mine = {p: s for p, s in state.items() if p[mode] in rows}
        if columns is None:
            if not any(value and certain for value, certain in mine.values()):
                return False
        else:
            minor = [
                [mine.get((*c[:mode], i, *c[mode:]), (0, False)) for c in columns] for i in rows
            ]
            if not all(certain for row in minor for _, certain in row):
                return False
            if rational_rank([[Fraction(x) for x, _ in row] for row in minor]) < len(rows):
                return False
        state = {p: s for p, s in state.items() if p[mode] not in rows}
        for p, (value, _) in state.items():
            if any(mine.get((*p[:mode], i, *p[mode + 1 :])) != (0, True) for i in rows):
                state[p] = value, False
    return True


def removals_of(steps: list[Step], order: int) -> tuple[np.ndarray, tuple[Group, ...]]:
    removals = [(mode, i) for mode, rows, _ in steps for i in rows]
    first = np.cumsum([0, *(len(rows) for _, rows, _ in steps)]).tolist()
    groups = tuple(
        Group(at, np.array(columns).reshape(len(rows), order - 1), 0, PRIME)
        for at, (_, rows, columns) in zip(first, steps, strict=False)
        if columns is not None
    )
    return np.array(removals), groups


def by_entries(tensor: np.ndarray, fibers: tuple[int, np.ndarray], steps: list[Step]) -> bool:
    removals, groups = removals_of(steps, tensor.ndim)
    places = np.argwhere(tensor)
    values = tensor[tuple(places.T)]
    try:
        require_sparse_removals(
            places, values, tensor.shape, fibers, removals, CheckBudget(), groups
        )
    except Refuted:
        return False
    return True


def a_group(tensor: np.ndarray, rng: np.random.Generator) -> Step:
    """Some slices and as many places, which may be anything."""
    mode = int(rng.integers(tensor.ndim))
    n = int(rng.integers(1, 1 + min(3, tensor.shape[mode])))
    sides = np.delete(tensor.shape, mode)
    columns = [tuple(rng.integers(sides).tolist()) for _ in range(n)]
    return mode, rng.choice(tensor.shape[mode], n, replace=False).tolist(), columns


@pytest.mark.slow
@given(st.integers(0, 10**9), st.integers(2, 4), st.booleans())
@settings(max_examples=examples(600), deadline=None)
def test_orders_are_accepted_as_by_masks(seed: int, order: int, hidden: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, order).tolist())
    tensor = rng.integers(-2, 3, shape) * (rng.random(shape) < rng.uniform(0.05, 0.9))
    mode = int(rng.integers(order))
    across = rng.random(np.delete(shape, mode)) < (0.2 if hidden else 0)
    known = np.broadcast_to(~np.expand_dims(across, mode), shape)
    fibers = mode, np.argwhere(across)
    slices: list[Step] = [(m, [i], None) for m, n in enumerate(shape) for i in range(n)]
    so_far: list[Step] = []
    # each slice in turn is kept if it can be removed, and so are groups; the first again at the end
    for one in [*(slices[i] for i in rng.permutation(len(slices))), slices[0]]:
        for step in (a_group(tensor, rng), one):
            tried = [*so_far, step]
            accepted = by_masks(tensor, known, tried)
            assert by_entries(tensor, fibers, tried) is accepted
            so_far = tried if accepted else so_far


def chains(n: int) -> SparseTensor:
    """A direct sum of n W states, each of rank 3, of which no dense tensor fits in memory."""
    w = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    places = np.concatenate([w + 2 * i for i in range(n)])
    return SparseTensor(places, np.ones(3 * n, np.int64), (2 * n,) * 3)


@pytest.mark.slow
def test_a_certificate_may_be_about_a_tensor_that_does_not_fit_in_memory() -> None:
    tensor = chains(20_000)
    everything = tuple(map(np.arange, tensor.shape))
    numbers = np.arange(20_000)[:, None]
    steps = np.stack(np.broadcast_arrays([0, 1, 2], 2 * numbers + 1), axis=2)
    removals = steps.reshape(-1, 2)
    certificate = claim(tensor, Substitution(View(everything), removals))
    assert certificate.value == 60_000
    assert verify(certificate, tensor).proved
    # one slice more can't be removed
    more = np.concatenate([removals, [(0, 0)]])
    argument = Substitution(View(everything), more)
    refuted = replace(certificate, value=60_001, arguments=(argument,))
    assert verify(refuted, tensor).reason == (
        "substitution step 60000, slice 0 of mode 0: it isn't known to be nonzero"
    )


def test_the_work_is_charged_before_it_is_done() -> None:
    tensor = chains(2_000)
    places, removals = tensor.indices, np.zeros((0, 2), np.int64)
    none = 2, np.zeros((0, 2), np.int64)
    steps, memory = cost_of_sparse_removals(len(places), 3, 0, 0)
    with pytest.raises(MemoryBudgetError, match="steps"):
        require_sparse_removals(
            places, tensor.values, tensor.shape, none, removals, CheckBudget(steps - 1)
        )
    small = CheckBudget(steps, memory - 1)
    with pytest.raises(MemoryBudgetError, match="bytes"):
        require_sparse_removals(places, tensor.values, tensor.shape, none, removals, small)
