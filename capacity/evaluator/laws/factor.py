"""Capacity factor and exponent of the capacity law, with bootstrap intervals.

Intervals are percentiles over resamples of the databases and of the layers
(`capacity.evaluator.laws.bootstrap`), because runs that share either are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import Seed
from capacity.display import briefly_shown
from capacity.evaluator.laws.bootstrap import CLUSTERS, cluster_bootstrap, percentile_interval
from capacity.evaluator.laws.law import Law, coefficients, logs, outcomes, require_columns
from capacity.layer.recall.threshold import Threshold


@briefly_shown
@dataclass(frozen=True)
class CapacityFactor:
    """Ratio of size to capacity at which half of the runs memorise, with an interval.

    Attributes
    ----------
    size, capacity : str
        Columns of the table.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold at which a fact counts as recalled.
    share : float or None
        Share of the facts that a run must recall to memorise; None if the law is one of the mean
        accuracy.
    probability : float
        Probability of memorising at which the ratio is taken.
    factor : float
        Size over capacity, with the exponent fixed at 1.
    factor_interval : (float, float)
        Ends of its 95 % interval.
    exponent : float
        Exponent of the capacity, fitted.
    exponent_interval : (float, float)
        Ends of its 95 % interval.
    ratios : mapping of float to float
        Size over capacity with the fitted exponent, for each capacity in `at`.
    ratio_intervals : mapping of float to (float, float)
        Ends of their 95 % intervals.
    n_runs : int
        Number of runs.
    n_clusters : mapping of str to int
        Number of databases and of layers, by the column that was drawn by.
    memorised : float
        Share of the runs that memorise, or, if `share` is None, the mean accuracy.
    """

    size: str
    capacity: str
    tau: Threshold
    share: float | None
    probability: float
    factor: float
    factor_interval: tuple[float, float]
    exponent: float
    exponent_interval: tuple[float, float]
    ratios: Mapping[float, float]
    ratio_intervals: Mapping[float, tuple[float, float]]
    n_runs: int
    n_clusters: Mapping[str, int]
    memorised: float


def capacity_factor(
    table: pd.DataFrame,
    tau: Threshold = 0.95,
    *,
    size: str = "database_rank_bound",
    capacity: str = "layer_rank_bound",
    share: float | None = 1.0,
    probability: float = 0.5,
    at: Sequence[float] = (),
    clusters: Sequence[str] = CLUSTERS,
    n_resamples: int = 500,
    seed: Seed = 0,
) -> CapacityFactor:
    """Estimate the capacity factor and the exponent of the law, with bootstrap intervals.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``status``, the accuracy column of `tau`, the columns of size and capacity, and
        those of `clusters`.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold at which a fact counts as recalled.
    size, capacity : str
        Columns of positive numbers.
    share : float or None
        Share of the facts that a run must recall to memorise, above 0 and at most 1. None fits the
        mean accuracy instead.
    probability : float
        Probability of memorising, or mean accuracy if `share` is None, at which the size is taken.
    at : sequence of float
        Capacities at which the ratio of size to capacity is computed with a free exponent.
    clusters : sequence of str
        Columns whose values runs share; each is drawn independently.
    n_resamples : int
        Number of bootstrap resamples.
    seed : int or numpy.random.Generator
        Seed of the resamples.

    Returns
    -------
    CapacityFactor
        Estimates and their 95 % intervals.

    Raises
    ------
    InvalidArgumentError
        If a column is missing or not positive, `share` is out of range, or all or none of the runs
        memorise.

    Examples
    --------
    Layers that hold databases smaller than three times their rank bound:

    >>> size = np.tile(np.arange(1, 31), 10)
    >>> bound = np.repeat(np.arange(1, 11), 30)
    >>> runs = pd.DataFrame({"database_rank_bound": size, "layer_rank_bound": bound,
    ...     "database_id": size, "layer_id": bound, "status": "completed",
    ...     "accuracy_p95": (size < 3 * bound).astype(float)})
    >>> found = capacity_factor(runs, n_resamples=20)
    >>> round(found.factor), found.n_clusters
    (3, {'database_id': 30, 'layer_id': 10})
    """
    require_columns(table, *clusters)
    y, x, c = outcomes(table, tau, share), logs(table, size), logs(table, capacity)

    exponents = (1.0, None)
    # where Newton's method begins
    wholes = [coefficients(y, x, c, exponent) for exponent in exponents]

    def measured(weights: NDArray[np.float64] | None) -> list[float]:
        one, free = (
            Law(size, capacity, *coefficients(y, x, c, exponent, weights, start))
            for exponent, start in zip(exponents, wholes, strict=True)
        )
        ratios = [free.size_at(value, probability) / value for value in at]
        return [one.size_at(1.0, probability), free.exponent, *ratios]

    whole = measured(None)
    draws = [
        measured(weights)
        for weights in cluster_bootstrap(table[list(clusters)], n_resamples, seed)
        # a resample in which all or none memorise has no size at which half do
        if 0 < y @ weights < weights.sum()
    ]
    between = [percentile_interval(column) for column in np.array(draws).reshape(-1, len(whole)).T]
    return CapacityFactor(
        size, capacity, tau, share, probability,
        factor=whole[0], factor_interval=between[0],
        exponent=whole[1], exponent_interval=between[1],
        ratios=dict(zip(at, whole[2:], strict=True)),
        ratio_intervals=dict(zip(at, between[2:], strict=True)),
        n_runs=len(table), n_clusters={name: table[name].nunique() for name in clusters},
        memorised=float(y.mean()),
    )  # fmt: skip
