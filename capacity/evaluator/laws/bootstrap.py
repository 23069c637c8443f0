"""Bootstrap intervals of runs that share databases, layers, or whatever else is drawn at random.

Runs on one database aren't independent, nor are runs of one layer. In the pigeonhole bootstrap
databases are drawn with replacement, and so are layers, independently; a run is drawn as many times
as its database times as its layer. Where groups are many, its variance isn't smaller than the truth
in expectation, and larger by little if each group has several runs (Owen 2007). With G groups it
falls short by a factor of (G - 1) / G, so that intervals over six groups are too narrow. A factor
whose groups have one run each is better omitted. With one factor it is the cluster bootstrap.

References
----------
A. B. Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1 (2007) 386-411. J. L. Montiel
Olea and M. Plagborg-Moller, Simultaneous confidence bands, Journal of Applied Econometrics 34
(2019) 1-17.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from capacity.checks import Seed, generator
from capacity.errors import InvalidArgumentError

LEVEL = 0.95
# columns of a runs table whose values several runs share
CLUSTERS = ("database_id", "layer_id")


def cluster_bootstrap(
    groups: ArrayLike | pd.DataFrame, n_resamples: int, seed: Seed = 0
) -> Iterator[NDArray[np.float64]]:
    """Draw whole groups with replacement, and yield the weights of the runs in each resample.

    Parameters
    ----------
    groups : array_like or DataFrame, shape (n_runs,) or (n_runs, n_factors)
        Group of each run, such as its ``database_id``; or a column for each factor, such as
        ``table[["database_id", "layer_id"]]``, whose groups are drawn independently.
    n_resamples : int
        Number of resamples.
    seed : int or numpy.random.Generator
        Seed of the draws.

    Yields
    ------
    ndarray, shape (n_runs,)
        Number of times that each run is drawn, the product over the factors; not all are 0.

    Raises
    ------
    InvalidArgumentError
        For groups of another shape, or a seed out of range.

    Examples
    --------
    >>> for weights in cluster_bootstrap(["a", "a", "b"], n_resamples=2, seed=3):
    ...     print(weights[0] == weights[1], weights[1] + weights[2])
    True 2.0
    True 2.0
    """
    table = groups if isinstance(groups, pd.DataFrame) else pd.DataFrame(np.asarray(groups))
    if not table.size:
        raise InvalidArgumentError(
            "`groups` must have a group for each run, shape (n_runs,) or (n_runs, n_factors); got "
            f"the shape {table.shape}."
        )
    factors = [(of, np.full(len(names), 1 / len(names)))
               for of, names in (pd.factorize(table[name]) for name in table)]  # fmt: skip
    rng = generator(seed)

    def drawn() -> NDArray[np.float64]:
        counts = [rng.multinomial(len(even), even).astype(np.float64)[of] for of, even in factors]
        return math.prod(counts[1:], start=counts[0])

    for _ in range(n_resamples):
        weights = drawn()
        # of few runs with several factors all may be missed
        while len(factors) > 1 and not weights.any():
            weights = drawn()
        yield weights


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
    values: ArrayLike,
    groups: ArrayLike | pd.DataFrame,
    *,
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> tuple[float, float]:
    """Compute a 95 % bootstrap interval of the mean over runs, drawn by groups.

    Parameters
    ----------
    values : array_like, shape (n_runs,)
        Value of each run.
    groups : array_like or DataFrame, shape (n_runs,) or (n_runs, n_factors)
        What each run shares with others, a column for each: ``table[["database_id", "layer_id"]]``.
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
        For groups of another shape, or a seed out of range.

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


def simultaneous_intervals(estimates: ArrayLike, draws: ArrayLike) -> list[tuple[float, float]]:
    """Compute intervals that contain all of several statistics at once with 95 % confidence.

    Each is as wide as the largest deviation of any statistic, in units of its standard error (the
    sup-t band of Montiel Olea and Plagborg-Moller 2019).

    Parameters
    ----------
    estimates : array_like, shape (n_statistics,)
        Values of the statistics.
    draws : array_like, shape (n_resamples, n_statistics)
        Their values on resamples.

    Returns
    -------
    list of (float, float)
        Ends of the interval of each statistic.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(1000, 20))
    >>> ends = simultaneous_intervals(np.zeros(20), draws)
    >>> all(2.5 < high < 3.5 for _, high in ends)
    True
    """
    middle, drawn = np.asarray(estimates, dtype=np.float64), np.asarray(draws, dtype=np.float64)
    errors = drawn.std(axis=0)
    # a statistic that doesn't vary deviates by nothing
    deviations = np.abs(drawn - middle) / np.where(errors > 0, errors, np.inf)
    half = np.quantile(deviations.max(axis=1, initial=0.0), LEVEL) * errors
    return list(zip((middle - half).tolist(), (middle + half).tolist(), strict=True))
