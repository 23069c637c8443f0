"""Intervals over databases: runs of one database aren't independent, so they are drawn together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from capacity.limits import Seed, generator

Array = NDArray[np.float64]
LEVEL = 0.95


def cluster_bootstrap(groups: ArrayLike, n_resamples: int, seed: Seed = 0) -> Iterator[Array]:
    """Draw whole groups with replacement: how often each run counts, again and again.

    Parameters
    ----------
    groups : array_like, shape (n_runs,)
        Such as the ``database_id`` of each run.
    n_resamples : int
    seed : int or numpy.random.Generator

    Yields
    ------
    ndarray, shape (n_runs,)
    """
    of, names = pd.factorize(np.asarray(groups))
    rng = generator(seed)
    for _ in range(n_resamples):
        yield rng.multinomial(len(names), np.full(len(names), 1 / len(names)))[of].astype(float)


def percentile_interval(draws: ArrayLike) -> tuple[float, float]:
    """The middle 95 % of resampled values; NaN if there are none."""
    values = np.asarray(draws, dtype=np.float64)
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def mean_interval(
    values: ArrayLike, groups: ArrayLike, *, n_resamples: int = 1000, seed: Seed = 0
) -> tuple[float, float]:
    """Interval of the mean of runs, over the groups that they belong to.

    Examples
    --------
    Two databases say less than their eight runs seem to:

    >>> mean_interval([0, 0, 0, 0, 1, 1, 1, 1], list("aaaabbbb"))
    (0.0, 1.0)
    """
    v = np.asarray(values, dtype=np.float64)
    return percentile_interval(
        [float(v @ w / w.sum()) for w in cluster_bootstrap(groups, n_resamples, seed)]
    )
