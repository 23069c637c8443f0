"""The substitution method: greedy, annealed, in other bases, with and without unobserved fibers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import Substitution, View
from capacity.rank.lower.substitution.annealed import annealed_removals
from capacity.rank.lower.substitution.dense import (
    annealed_orders,
    greedy_orders,
    rebased_orders,
    sparser,
)
from capacity.rank.lower.substitution.greedy import greedy_removals
from capacity.rank.method import Find, Goal, Problem, value_of
from capacity.rank.options import BUDGETS
from capacity.rank.verifier.checker import verify
from capacity.testing import databases
from tests.second_checker import claim, second_checker
from tests.tiers import examples


def masked(db: Database, effective: bool) -> tuple[np.ndarray, np.ndarray]:
    tensor = db.to_numpy().astype(np.int64)
    known = np.ones(tensor.shape, bool)
    if effective:
        known &= tensor.any(axis=2, keepdims=True)
    return tensor, known


def proved(db: Database, removals: np.ndarray, effective: bool, **view) -> None:
    k, q, v = (np.arange(n) for n in db.shape)
    quantity = "effective_rank" if effective else "rank"
    certificate = claim(db, Substitution(View((k, q, v), **view), removals), quantity=quantity)
    assert verify(certificate, db).reason is None
    assert second_checker(certificate, db)


@given(databases(max_triples=30), st.booleans(), st.integers(0, 9))
@settings(max_examples=examples(150))
def test_annealed_games_are_proved_and_no_shorter(db: Database, effective: bool, seed: int) -> None:
    tensor, known = masked(db, effective)
    greedy = greedy_removals(tensor != 0, known, orders=1, seed=seed)
    removals = annealed_removals(tensor != 0, known, greedy, steps=200, seed=seed, target=99)
    assert len(removals) >= len(greedy)
    proved(db, removals, effective)


@given(databases(max_triples=30), st.booleans(), st.integers(0, 9))
@settings(max_examples=examples(150))
def test_games_in_sparser_bases_are_proved(db: Database, effective: bool, seed: int) -> None:
    tensor, known = masked(db, effective)
    X, sure, bases = sparser(tensor, known, np.random.default_rng(seed))
    assert (np.einsum("ai,bj,ck,ijk->abc", *bases, tensor) == X).all()
    assert all(abs(round(np.linalg.det(P))) == 1 for P in bases)
    assert ((X != 0) | ~sure).sum() <= ((tensor != 0) | ~known).sum()
    proved(db, greedy_removals(X != 0, sure, orders=2, seed=seed), effective, bases=bases)


def test_an_annealed_game_is_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((8, 5, 70)) < 0.1
    known = np.ones(values.shape, bool)
    start = greedy_removals(values, known, orders=1, seed=0)
    a, b = (annealed_removals(values, known, start, steps=500, seed=3, target=99) for _ in range(2))
    assert (a == b).all()


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_more_than_a_word_of_slices_in_any_mode(longest: int) -> None:
    # a diagonal of 130: as many slices can be removed as there are entries
    values = np.zeros((3, 3, 130), bool)
    values[np.arange(130) % 3, np.arange(130) // 44, np.arange(130)] = True
    values = np.moveaxis(values, 2, longest)
    nothing = np.zeros((0, 2), np.int64)
    known = np.ones(values.shape, bool)
    removals = annealed_removals(values, known, nothing, steps=0, seed=0, target=999)
    # each removal is valid by the definition of the method
    sure, alive = known.copy(), [np.ones(n, bool) for n in values.shape]
    for mode, index in removals.tolist():
        assert alive[mode][index]
        alive[mode][index] = False
        taken = values.take(index, mode), sure.take(index, mode)
        others = [alive[m] for m in range(3) if m != mode]
        assert (taken[0] & taken[1] & others[0][:, None] & others[1][None]).any()
        sure &= ~np.expand_dims(taken[0] | ~taken[1], mode)
    # each of the other six slices is known to be nonzero until it goes, or is hidden, whole
    assert len(removals) >= 6


def test_annealing_goes_further_than_greed_and_other_bases_further_still() -> None:
    limits = BUDGETS["standard"].limits

    def longest(stage: Find, seed: int) -> int:
        tensor = (np.random.default_rng(seed).random((5, 5, 5)) < 0.3).astype(int)
        found = stage(Problem(tensor), Goal(0, 99, 10**9, limits, 0))
        return max(value_of(one) for one in found)

    assert longest(annealed_orders, 0) > longest(greedy_orders, 0)
    assert longest(rebased_orders, 1) > longest(annealed_orders, 1) == longest(greedy_orders, 1)
