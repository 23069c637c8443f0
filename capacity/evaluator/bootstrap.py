"""Bootstrap intervals over databases, whose runs are not independent and are drawn together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from capacity.limits import Seed, generator

LEVEL = 0.95


def cluster_bootstrap(
    groups: ArrayLike, n_resamples: int, seed: Seed = 0
) -> Iterator[NDArray[np.float64]]:
    """Draw whole groups with replacement, and yield the weights of the runs in each resample.

    Parameters
    ----------
    groups : array_like, shape (n_runs,)
        Group of each run, such as its ``database_id``.
    n_resamples : int
        Number of resamples.
    seed : int or numpy.random.Generator
        Seed of the draws.

    Yields
    ------
    ndarray, shape (n_runs,)
        Number of times that each run is drawn.

    Raises
    ------
    InvalidArgumentError
        For a seed out of range.

    Examples
    --------
    >>> for weights in cluster_bootstrap(["a", "a", "b"], n_resamples=2, seed=3):
    ...     print(weights[0] == weights[1], weights[1] + weights[2])
    True 2.0
    True 2.0
    """
    of, names = pd.factorize(np.asarray(groups))
    rng = generator(seed)
    for _ in range(n_resamples):
        yield rng.multinomial(len(names), np.full(len(names), 1 / len(names)))[of].astype(float)


def percentile_interval(draws: ArrayLike) -> tuple[float, float]:
    """Compute the interval of the middle 95 % of resampled values.

    Parameters
    ----------
    draws : array_like, shape (n_resamples,)
        Values of a statistic on resamples.

    Returns
    -------
    low, high : float
        The 2.5 % and 97.5 % quantiles; NaN if there are no values.

    Examples
    --------
    >>> low, high = percentile_interval(range(41))
    >>> round(low, 6), round(high, 6)
    (1.0, 39.0)
    """
    values = np.asarray(draws, dtype=np.float64)
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def mean_interval(
    values: ArrayLike, groups: ArrayLike, *, n_resamples: int = 1000, seed: Seed = 0
) -> tuple[float, float]:
    """Compute a 95 % bootstrap interval of the mean over runs, drawn by groups.

    Parameters
    ----------
    values : array_like, shape (n_runs,)
        Value of each run.
    groups : array_like, shape (n_runs,)
        Group of each run, such as its ``database_id``.
    n_resamples : int
        Number of resamples.
    seed : int or numpy.random.Generator
        Seed of the draws.

    Returns
    -------
    low, high : float
        The 2.5 % and 97.5 % quantiles of the resampled means.

    Raises
    ------
    InvalidArgumentError
        For a seed out of range.

    Examples
    --------
    Eight runs of two databases that disagree determine the mean no better than two would:

    >>> mean_interval([0, 0, 0, 0, 1, 1, 1, 1], list("aaaabbbb"))
    (0.0, 1.0)
    """
    v = np.asarray(values, dtype=np.float64)
    return percentile_interval(
        [float(v @ w / w.sum()) for w in cluster_bootstrap(groups, n_resamples, seed)]
    )
