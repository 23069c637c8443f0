"""The law of several sizes of a layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError
from capacity.evaluator import fit_law, fit_size_law, half_size
from tests.tiers import examples


def runs_of_a_known_law(seed: int = 0, n: int = 4000) -> pd.DataFrame:
    """Runs that memorise with logit P = 3 (1 + 2 log d + 1.5 log h - 0.5 log qk - log n)."""
    rng = np.random.default_rng(seed)
    layers = rng.integers(60, size=n)
    sizes = rng.choice([1, 2, 4, 8], size=(60, 4))[layers]
    database = rng.integers(200, size=n)
    triples = np.round(np.exp(rng.uniform(0, 7, size=200)))[database]
    d, h, vo, qk = sizes.T
    logit = 3 * (1 + 2 * np.log(d) + 1.5 * np.log(h) - 0.5 * np.log(qk) - np.log(triples))
    done = rng.random(n) < 1 / (1 + np.exp(-logit))
    return pd.DataFrame({
        "d_model": d, "n_heads": h, "d_head_vo": vo, "d_head_qk": qk, "n_triples": triples,
        "status": "completed", "accuracy_p95": done.astype(float), "database_id": database,
        "layer_id": layers,
    })  # fmt: skip


def test_a_known_law_lies_in_the_intervals_of_its_fit() -> None:
    found = fit_size_law(runs_of_a_known_law(), n_resamples=100)
    true = {"d_model": 2.0, "n_heads": 1.5, "d_head_vo": 0.0, "d_head_qk": -0.5}
    for name, (low, high) in found.exponent_intervals().items():
        assert low <= true[name] <= high
        assert high - low < 0.5
    layer = {"d_model": 4.0, "n_heads": 2.0, "d_head_vo": 1.0, "d_head_qk": 4.0}
    # e 4^2 2^1.5 4^-0.5
    low, high = found.size_interval(layer)
    assert low <= np.e * 16 * 2**1.5 / 2 <= high
    assert low <= found.law.size_at(layer) <= high
    assert found.law.size_at(layer, 0.9) < found.law.size_at(layer) < found.law.size_at(layer, 0.1)


def test_one_column_gives_the_law_of_one_capacity() -> None:
    table = runs_of_a_known_law()
    one = fit_law(table, size="n_triples", capacity="d_model")
    law = fit_size_law(table, ["d_model"], n_resamples=0).law
    assert law.exponents["d_model"] == pytest.approx(one.exponent)
    assert law.probability(table) == pytest.approx(one.probability(table))
    assert law.log_likelihood(table) == pytest.approx(one.log_likelihood(table))


@pytest.mark.parametrize("values", [{}, {"d_model": 0.0}])
def test_a_size_is_asked_for_with_a_positive_number_for_each_column(values: Any) -> None:
    law = fit_size_law(runs_of_a_known_law(n=500), ["d_model"], n_resamples=0).law
    with pytest.raises(InvalidArgumentError, match="positive number for d_model"):
        law.size_at(values)


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=40, unique=True).map(sorted),
    st.floats(0.5, 20_000),
)
@settings(max_examples=examples(50))
def test_the_size_lies_between_the_last_that_half_memorise_and_the_next(
    sizes: list[int], threshold: float
) -> None:
    asked: list[int] = []

    def share_at(size: int) -> float:
        asked.append(size)
        return 1 / (1 + (size / threshold) ** 3)

    found = half_size(share_at, sizes)
    assert found.above == max((s for s in sizes if s <= threshold), default=None)
    assert found.below == min((s for s in sizes if s > threshold), default=None)
    if found.above is not None and found.below is not None:
        assert found.above <= found.size <= found.below
    else:
        assert math.isnan(found.size)
    # a bisection of n places has n + 1 outcomes
    assert len(asked) == len(set(asked)) <= math.ceil(math.log2(len(sizes) + 1))
    assert list(found.shares) == sorted(asked)


def test_the_size_is_interpolated_in_its_logarithm() -> None:
    # 0.75 at 100 and 0.25 at 400: one half is midway, at the geometric mean
    found = half_size({100: 0.75, 400: 0.25}.__getitem__, [100, 400])
    assert found.size == pytest.approx(200)


@pytest.mark.parametrize("sizes", [[], [0, 1], [2, 2], [3, 1]])
def test_sizes_must_be_positive_and_increase(sizes: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match="`sizes` must be positive numbers"):
        half_size(lambda _size: 1.0, sizes)


def test_a_share_must_be_a_share() -> None:
    with pytest.raises(InvalidArgumentError, match="`share_at` must return shares"):
        half_size(lambda _size: 20.0, [10])
