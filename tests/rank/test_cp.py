"""Decompositions by optimization, and the numerical methods that they rest on."""

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorly.cp_tensor import CPTensor, cp_to_tensor

from capacity.errors import MissingExtraError
from capacity.rank import cp_decompose, cp_estimate, numerical_rank_estimates
from capacity.rank.cp.estimate import _fit
from tests.oracles import KNOWN_RANKS, database, figure_1, w_tensor
from tests.tiers import examples


@pytest.mark.parametrize(
    "name", ["Example 2.2", "Example 2.4", "W", "Z/2 (XOR)", "Z/3", "polynomials 2 x 2"]
)
def test_small_known_ranks_are_estimated(name: str) -> None:
    make, rank = KNOWN_RANKS[name]
    fit = cp_estimate(make())
    assert fit.rank == rank
    assert fit.residual <= 1e-6


def test_the_estimate_comes_with_its_decomposition() -> None:
    db = figure_1()
    fit = cp_estimate(db)
    assert isinstance(fit.cp, CPTensor)
    assert all(
        factor.shape == (n, fit.rank) for factor, n in zip(fit.cp.factors, db.shape, strict=True)
    )
    dense = db.to_numpy(np.float64)
    gap = np.linalg.norm(dense - np.asarray(cp_to_tensor(fit.cp))) / np.linalg.norm(dense)
    assert gap == pytest.approx(fit.residual, abs=1e-12)


def test_border_rank_is_not_taken_for_rank() -> None:
    # W is a limit of tensors of rank 2: fits at 2 come close, by terms that cancel
    assert _fit(w_tensor().to_numpy(np.float64), 2, 4, 1000, 1e-6, 0) is None


def test_large_tensors_are_fitted_by_als_and_singular_starts_are_survived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tensorly.decomposition as decomposition

    calls = []

    def singular_at_first(*args: Any, **options: Any) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise np.linalg.LinAlgError("Singular matrix")
        return parafac(*args, **options)

    parafac = decomposition.parafac
    monkeypatch.setattr(decomposition, "parafac", singular_at_first)
    monkeypatch.setattr("capacity.rank.cp.estimate.MOST_UNKNOWNS", 10)
    fit = cp_estimate(figure_1())
    assert fit.rank == 5
    assert len(calls) > 1


@pytest.mark.parametrize("method", ["lm", "als"])
def test_decompositions_come_as_tensorly_has_them(method: Any) -> None:
    db = figure_1()
    cp = cp_decompose(db, 5, method=method, max_iterations=2000, tolerance=1e-7)
    assert isinstance(cp, CPTensor)
    assert [f.shape for f in cp.factors] == [(5, 5), (3, 5), (4, 5)]
    assert np.allclose(np.asarray(cp_to_tensor(cp)), db.to_numpy(np.float64), atol=1e-5)


def test_bad_decompositions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        cp_decompose(figure_1(), 0)
    with pytest.raises(ValueError, match="one of lm, als, lbfgs"):
        cp_decompose(figure_1(), 1, method="svd")  # type: ignore[arg-type]
    options = {"n_starts": 0, "max_iterations": 0, "tolerance": -1.0, "seed": -1}
    for name, value in options.items():
        for fit in (partial(cp_decompose, figure_1(), 3), partial(cp_estimate, figure_1())):
            with pytest.raises(ValueError, match=f"`{name}` must be"):
                fit(**{name: value})
    with pytest.raises(ValueError, match="`rank` must be an integer"):
        cp_decompose(figure_1(), 1.5)  # type: ignore[arg-type]
    for scale in (1e200, 1e-200):
        with pytest.raises(ValueError, match="Scale it"):
            cp_decompose(scale * figure_1().to_numpy(), 5)
    monkeypatch.setitem(sys.modules, "pyttb", None)
    with pytest.raises(MissingExtraError, match=r"knowledge-capacity\[pyttb\]"):
        cp_decompose(figure_1(), 1, method="lbfgs")


def test_arrays_of_any_numbers_are_taken_and_others_refused() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(size=(n, 3)) for n in (5, 4, 6))
    assert cp_estimate(np.einsum("ir,jr,kr->ijk", a, b, c)).rank == 3
    for bad in (np.zeros((2, 2, 2)), np.ones(2), np.full((2, 2, 2), np.nan)):
        with pytest.raises(ValueError, match="finite, nonzero, and of order 2"):
            cp_estimate(bad)


def test_fits_that_would_take_days_are_not_begun() -> None:
    n = 100
    db = database([(i, i, i) for i in range(n)])
    with pytest.raises(ValueError, match=r"at most 3e\+12 multiplications.*\(100, 100, 100\)"):
        cp_estimate(db, max_iterations=3000)


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
