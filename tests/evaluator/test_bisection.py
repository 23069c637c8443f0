"""Bisection of the size that half of the runs memorise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError
from capacity.evaluator import half_size
from tests.tiers import examples


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
