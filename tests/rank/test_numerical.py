import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.rank import numerical_rank_estimates
from tests.tiers import examples


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(50))
def test_sums_of_few_simple_tensors_are_told_exactly(rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (rng.normal(size=(rank, n)) for n in (7, 6, 8))
    T = np.einsum("ri,rj,rk->ijk", a, b, c)
    lower, upper = numerical_rank_estimates(T, threshold=1e-9)
    # independent factors: each unfolding has the rank of the tensor
    assert lower == rank
    assert upper >= rank
    # noise below the threshold, and above it
    noise = rng.normal(size=T.shape) / 1e3 * np.abs(T).max()
    assert numerical_rank_estimates(T + noise / 1e6, threshold=1e-5)[0] == rank
    assert numerical_rank_estimates(T + noise, threshold=1e-9)[0] == 8


def test_matrix_multiplication_stays_open() -> None:
    # <2, 2, 2>: unfoldings of rank 4, rank 7, slices of rank 2 in each of 4
    T = np.zeros((4, 4, 4))
    for i, j, k in np.ndindex(2, 2, 2):
        T[2 * i + j, 2 * j + k, 2 * k + i] = 1
    assert numerical_rank_estimates(T) == (4, 8)


def test_entries_about_the_threshold_leave_an_interval() -> None:
    T = np.zeros((4, 2, 2))
    # below the threshold in each slice, and above it in the unfoldings
    T[0, 0, 0], T[:, 1, 1] = 1, 0.8e-6
    assert numerical_rank_estimates(T, threshold=1e-6) == (2, 2)


def test_zero_has_rank_zero() -> None:
    assert numerical_rank_estimates(np.zeros((2, 3, 4))) == (0, 0)


@pytest.mark.parametrize("wrong", [np.zeros((2, 2)), np.full((1, 1, 1), np.nan)])
def test_what_is_no_tensor_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ValueError, match="three modes and finite entries"):
        numerical_rank_estimates(wrong)
