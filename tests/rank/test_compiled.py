"""Kernels compute the same compiled and in Python, and are compiled once that pays."""

import sys
from pathlib import Path

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import kept_code
from capacity.exact import compiled_rank, modular_rank
from capacity.exact.modular_rank import PRIME, rank_modulo, ranks_of_differences
from capacity.exact.ranks import matrix_rank
from capacity.kept_code import MOST_STEPS, MOST_STEPS_UNKEPT, is_kept, kept, pays_to_compile
from capacity.rank.lower.substitution.greedy import greedy_removals
from tests.tiers import examples


def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modular_rank, "pays_to_compile", lambda *_: False)
    monkeypatch.setattr(kept_code, "pays_to_compile", lambda *_: False)


@pytest.fixture(autouse=True)
def many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the process had done so many steps that all others are compiled."""
    monkeypatch.setattr(kept_code._Interpreted, "steps", 10**12)


def by_flint(matrix: np.ndarray) -> int:
    m, n = matrix.shape
    entries = [int(x) % PRIME for x in matrix.ravel()]
    return flint.nmod_mat(m, n, entries, PRIME).rank()


def drawn(seed: int) -> np.ndarray:
    """A matrix of any size and rank; a third of them have entries near the ends of 64 bits."""
    rng = np.random.default_rng(seed)
    m, n, r = rng.integers(1, 12, 3).tolist()
    largest = (2, 10**5, 2**62)[seed % 3]
    matrix = rng.integers(-1, 2, (m, r)) @ rng.integers(-largest // (2 * r), largest // r, (r, n))
    # multiples of the prime, and what is next to them, are the residues that are easily wrong
    at = rng.random((m, n)) < 0.2
    return np.where(at, PRIME * rng.integers(-2, 3, (m, n)) + rng.integers(-1, 2, (m, n)), matrix)


@given(st.integers(0, 10**6))
@settings(max_examples=examples(300))
def test_a_rank_modulo_the_prime_is_that_of_flint(seed: int) -> None:
    matrix = drawn(seed)
    given_ = matrix.copy()
    rank = by_flint(matrix)
    assert rank_modulo(matrix) == rank
    for limit in range(rank + 2):
        found = rank_modulo(matrix, above=limit)
        assert found == rank if rank > limit else found <= rank
        found = rank_modulo(matrix, enough=limit)
        assert found == rank if rank < limit else limit <= found <= rank
    assert (matrix == given_).all()


def test_the_kernel_and_its_caller_mean_the_same_prime() -> None:
    assert compiled_rank.PRIME == PRIME
    assert flint.fmpz(PRIME).is_prime()


@pytest.mark.parametrize("seed", range(5))
def test_ranks_of_differences_are_those_over_the_rationals(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # minors of such matrices are far below the prime
    matrices = np.random.default_rng(seed).integers(-2, 3, (5, 3, 4))
    found = ranks_of_differences(matrices)
    nodes = [np.zeros((3, 4), int), *matrices]
    for j in range(6):
        for i in range(j):
            assert found[i, j] == matrix_rank(nodes[j] - nodes[i])
    in_python(monkeypatch)
    assert (ranks_of_differences(matrices) == found).all()


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5), (2, 3, 2, 4), (2, 2, 3, 2, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_a_greedy_order_is_valid_in_any_order_of_tensors_and_the_same_in_python(
    shape: tuple[int, ...], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    values, known = rng.random(shape) < 0.3, rng.random(shape) < 0.9
    removals = greedy_removals(values, known, orders=3, seed=seed)
    # by the definition of the method
    sure, alive = known.copy(), np.ones(shape, bool)
    for mode, index in removals.tolist():
        here = (slice(None),) * mode + (index,)
        assert (values & sure & alive)[here].any()
        hides = alive[here] & (values | ~sure)[here]
        sure &= ~np.expand_dims(hides, mode)
        alive[here] = False
    # the greedy order ends when nothing can be removed
    assert len(removals) or not (values & known).any()
    in_python(monkeypatch)
    assert (greedy_removals(values, known, orders=3, seed=seed) == removals).all()


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_the_game_shows_the_rank_of_w_states(order: int) -> None:
    # the sum of the n tensors with one factor e_1 and others e_0 has rank n: Chen et al. 2010
    w = np.zeros((2,) * order, bool)
    for mode in range(order):
        w[tuple(int(m == mode) for m in range(order))] = True
    assert len(greedy_removals(w, np.ones(w.shape, bool), orders=8, seed=0)) == order


def _next(x: int) -> int:
    return x + 1


def test_a_process_compiles_once_its_steps_add_up_and_takes_what_is_kept_sooner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from numba.core import config

    def pays(steps: int) -> bool:
        return pays_to_compile(steps, Path(__file__), "_next")

    def begin() -> None:
        monkeypatch.setattr(kept_code._Interpreted, "steps", 0)
        kept_code._was_kept.cache_clear()

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    begin()
    assert not pays(MOST_STEPS_UNKEPT // 2)
    assert kept(_next)(1) == 2
    assert is_kept(Path(__file__), "_next")
    # whether code was kept is asked once in a process
    assert not pays(MOST_STEPS_UNKEPT // 2)
    assert pays(1)
    begin()
    assert pays(1)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "numba")
        assert not pays(MOST_STEPS // 2)
        assert not pays(MOST_STEPS // 2)
        assert pays(1)
    next(tmp_path.rglob("*.nbi")).unlink()
    begin()
    assert not pays(MOST_STEPS_UNKEPT)
