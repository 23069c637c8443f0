"""The substitution method entry by entry says what it says with a dense mask of known entries."""

from dataclasses import replace

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
    cost_of_sparse_removals,
    require_sparse_removals,
)
from capacity.tensor import SparseTensor
from tests.second_checker import claim
from tests.tiers import examples


def by_masks(nonzero: np.ndarray, known: np.ndarray, removals: list[tuple[int, int]]) -> bool:
    """The definition: a removed slice hides the fibers across its unknown and nonzero entries."""
    state = {p: (bool(nonzero[p]), bool(known[p])) for p in np.ndindex(nonzero.shape)}
    for mode, index in removals:
        mine = {p: s for p, s in state.items() if p[mode] == index}
        if (True, True) not in mine.values():
            return False
        state = {p: s for p, s in state.items() if p[mode] != index}
        for p, (value, _) in state.items():
            if mine[(*p[:mode], index, *p[mode + 1 :])] != (False, True):
                state[p] = value, False
    return True


def by_entries(nonzero: np.ndarray, fibers: tuple[int, np.ndarray], removals: np.ndarray) -> bool:
    try:
        require_sparse_removals(
            np.argwhere(nonzero), nonzero.shape, fibers, removals, CheckBudget()
        )
    except Refuted:
        return False
    return True


@given(st.integers(0, 10**9), st.integers(2, 4), st.booleans())
@settings(max_examples=examples(600), deadline=None)
def test_orders_are_accepted_as_by_masks(seed: int, order: int, hidden: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, order).tolist())
    nonzero = rng.random(shape) < rng.uniform(0.05, 0.7)
    mode = int(rng.integers(order))
    across = rng.random(np.delete(shape, mode)) < (0.2 if hidden else 0)
    known = np.broadcast_to(~np.expand_dims(across, mode), shape)
    fibers = mode, np.argwhere(across)
    slices = [(m, i) for m, n in enumerate(shape) for i in range(n)]
    order_so_far: list[tuple[int, int]] = []
    # each slice in turn is kept if it can be removed; the first again at the end
    for one in [*(slices[i] for i in rng.permutation(len(slices))), slices[0]]:
        tried = [*order_so_far, one]
        accepted = by_masks(nonzero, known, tried)
        assert by_entries(nonzero, fibers, np.array(tried)) is accepted
        order_so_far = tried if accepted else order_so_far


def chains(n: int) -> SparseTensor:
    """A direct sum of n W states, each of rank 3, of which no dense tensor fits in memory."""
    w = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    places = np.concatenate([w + 2 * i for i in range(n)])
    return SparseTensor(places, np.ones(3 * n, np.int64), (2 * n,) * 3)


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
        require_sparse_removals(places, tensor.shape, none, removals, CheckBudget(steps - 1))
    small = CheckBudget(steps, memory - 1)
    with pytest.raises(MemoryBudgetError, match="bytes"):
        require_sparse_removals(places, tensor.shape, none, removals, small)
