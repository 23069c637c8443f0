"""The capacity factor and the exponent of the law, with intervals.

Intervals are percentiles over databases drawn again with replacement, all runs of a database
together, for these are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.evaluator.bootstrap import cluster_bootstrap, percentile_interval
from capacity.evaluator.columns import Threshold
from capacity.evaluator.law import Law, coefficients, logs, outcomes, require_columns
from capacity.limits import Seed


@briefly_shown
@dataclass(frozen=True)
class CapacityFactor:
    """Size over capacity at which half of the runs memorise, with an interval.

    Attributes
    ----------
    size, capacity, tau, share, probability
        As they were asked for.
    factor : float
        With exponent 1.
    exponent : float
        If it is free.
    ratios : mapping of float to float
        With a free exponent: size over capacity, at each capacity that was asked for.
    factor_interval, exponent_interval, ratio_intervals
        (low, high) of level 95 %.
    n_runs, n_databases : int
    memorised : float
        Share of the runs; or, if `share` is None, the mean share of facts.
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
    n_databases: int
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
    n_resamples: int = 500,
    seed: Seed = 0,
) -> CapacityFactor:
    """Measure the capacity factor and the exponent of the law, with intervals.

    Parameters
    ----------
    table, tau, size, capacity, share
        As in `fit_law`, and ``database_id``.
    probability : float
        Instead of one half; of memorising, or with `share` None the mean accuracy.
    at : sequence of float
        Capacities at which the ratio of size to capacity is told.
    n_resamples : int
        Of the databases, for the intervals.
    seed : int or numpy.random.Generator

    Raises
    ------
    ValueError
        As `fit_law` does.
    """
    require_columns(table, "database_id")
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
        for weights in cluster_bootstrap(table["database_id"], n_resamples, seed)
        # none of these databases, or all, say nothing of where half are
        if 0 < y @ weights < weights.sum()
    ]
    between = [percentile_interval(column) for column in np.array(draws).reshape(-1, len(whole)).T]
    return CapacityFactor(
        size, capacity, tau, share, probability,
        factor=whole[0], factor_interval=between[0],
        exponent=whole[1], exponent_interval=between[1],
        ratios=dict(zip(at, whole[2:], strict=True)),
        ratio_intervals=dict(zip(at, between[2:], strict=True)),
        n_runs=len(table), n_databases=table["database_id"].nunique(), memorised=float(y.mean()),
    )  # fmt: skip
