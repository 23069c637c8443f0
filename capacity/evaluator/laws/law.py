"""The capacity law: the largest database that layers of a given capacity memorise.

A run *memorises* at tau if the share of its facts that pass is at least `share`; by default this is
1, as below equation (14). Over many runs the probability of memorising falls with the size of the
database and grows with the capacity of the layer. Any columns of the runs table can measure these
two. The *law* is

    logit P(memorised) = intercept + by_capacity log capacity - steepness log size,

so that half of the runs memorise where size = factor * capacity^exponent. With the exponent fixed
at 1, ``factor`` is the *capacity factor*: for the two rank bounds the paper reads 3 to 4 at tau =
0.75 off its Figure 3. With a free exponent the ratio of size to capacity depends on the capacity,
and a single factor is an average over the layers in the table.

`capacity_factor` estimates both with intervals, the percentiles over resamples of the databases and
of the layers (`capacity.evaluator.laws.bootstrap`), because runs that share either are not
independent. Diverged runs count as not memorised.

References
----------
Wong 2025, section 4. Dana, Pydi and Chevaleyre (2411.10115): n_heads d_head + d_model associations
are held exactly, in number of triples the same as equation (9) with d_head_vo for d_head. Nichani,
Lee and Bietti (2412.06538): as many facts as parameters, up to logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import Seed
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import accuracy_column, with_current_names
from capacity.evaluator.laws.bootstrap import CLUSTERS, cluster_bootstrap, percentile_interval
from capacity.layer.recall import Threshold

MAX_STEPS = 100
PENALTY = 1e-6


@briefly_shown
@dataclass(frozen=True)
class Law:
    """Law of memorising: logit P = intercept + by_capacity log capacity - steepness log size.

    Attributes
    ----------
    size, capacity : str
        Columns of the table.
    intercept, by_capacity, steepness : float
        Coefficients, for natural logarithms.
    """

    size: str
    capacity: str
    intercept: float
    by_capacity: float
    steepness: float

    @property
    def factor(self) -> float:
        """Size at which half of the runs of capacity 1 memorise."""
        return float(np.exp(self.intercept / self.steepness))

    @property
    def exponent(self) -> float:
        """Exponent of the capacity in the size at which half of the runs memorise."""
        return self.by_capacity / self.steepness

    def size_at(self, capacity: float, probability: float = 0.5) -> float:
        """Size at which runs of the given capacity memorise with the given probability."""
        odds = math.log(probability / (1 - probability))
        score = self.intercept + self.by_capacity * math.log(capacity) - odds
        # an overflow to infinity means that every size is memorised
        with np.errstate(over="ignore"):
            return float(np.exp(score / self.steepness))

    def probability(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Probability that each run memorises, shape (n_runs,)."""
        by_size = self.steepness * logs(table, self.size)
        score = self.intercept + self.by_capacity * logs(table, self.capacity) - by_size
        return 1 / (1 + np.exp(-np.clip(score, -700, 700)))

    def log_likelihood(
        self, table: pd.DataFrame, tau: Threshold = 0.95, *, share: float = 1.0
    ) -> NDArray[np.float64]:
        """Log-likelihood of each run in nats, shape (n_runs,)."""
        p = np.clip(self.probability(table), 1e-12, 1 - 1e-12)
        return np.log(np.where(memorised_runs(table, tau, share=share), p, 1 - p))


def memorised_runs(
    table: pd.DataFrame, tau: Threshold = 0.95, *, share: float = 1.0
) -> NDArray[np.bool_]:
    """Mark the runs that memorise at tau.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``status`` and the accuracy column of `tau` (`accuracy_column`).
    tau : float, 'argmax' or 'argmax_paper'
        Threshold at which a fact counts as recalled.
    share : float
        Share of the facts that a run must recall to memorise, above 0 and at most 1.

    Returns
    -------
    ndarray of bool, shape (n_runs,)
        True for the runs that memorise; False for diverged runs.

    Raises
    ------
    InvalidArgumentError
        If a column is missing, or `tau` or `share` is out of range.

    Examples
    --------
    >>> runs = pd.DataFrame({"status": "completed", "accuracy_p95": [1.0, 0.9, 0.8]})
    >>> memorised_runs(runs).tolist(), memorised_runs(runs, share=0.9).tolist()
    ([True, False, False], [True, True, False])
    """
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"`share` must be above 0 and at most 1; got {share}.")
    table, column = with_current_names(table), accuracy_column(tau)
    require_columns(table, "status", column)
    return ((table[column] >= share) & (table["status"] != "diverged")).to_numpy()


def add_size_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Add the columns ``database_bits`` and ``n_all_parameters`` to a table of runs.

    ``database_bits`` is n_triples log2(n_objects), at least 1: the logarithm of the number of
    databases with the same (subject, predicate) pairs and objects. ``n_all_parameters`` is the
    number of parameters with those of the embeddings.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``n_triples``, ``n_objects``, ``n_parameters`` and ``n_embedding_parameters``.

    Returns
    -------
    DataFrame
        A copy of the table with the two columns.

    Raises
    ------
    InvalidArgumentError
        If a column is missing.

    Examples
    --------
    >>> runs = pd.DataFrame({"n_triples": [6], "n_objects": [4], "n_parameters": [24],
    ...     "n_embedding_parameters": [40]})
    >>> add_size_columns(runs)[["database_bits", "n_all_parameters"]].values.tolist()
    [[12.0, 64.0]]
    """
    require_columns(table, "n_triples", "n_objects", "n_parameters", "n_embedding_parameters")
    bits = table["n_triples"] * np.log2(table["n_objects"])
    every = table["n_parameters"] + table["n_embedding_parameters"]
    return table.assign(database_bits=bits.clip(lower=1.0), n_all_parameters=every)


def fit_law(
    table: pd.DataFrame,
    tau: Threshold = 0.95,
    *,
    size: str = "database_rank_bound",
    capacity: str = "layer_rank_bound",
    share: float | None = 1.0,
    exponent: float | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Law:
    """Fit the capacity law to a table of runs by maximum likelihood.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``status``, the accuracy column of `tau` and the columns of size and capacity.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold at which a fact counts as recalled.
    size, capacity : str
        Columns of positive numbers.
    share : float or None
        Share of the facts that a run must recall to memorise, above 0 and at most 1. None fits the
        mean accuracy of the runs instead.
    exponent : float, optional
        Fixed exponent of the capacity; by default it is fitted.
    weights : ndarray, shape (n_runs,), optional
        Weight of each run; by default 1.

    Returns
    -------
    Law
        The fitted coefficients.

    Raises
    ------
    InvalidArgumentError
        If a column is missing or not positive, `tau` or `share` is out of range, or all or none of
        the runs memorise.

    Notes
    -----
    Newton's method maximises the log-likelihood, which is concave. A penalty of 1e-6 on the squared
    coefficients keeps them finite where sizes and capacities separate the runs that memorise from
    the others, so that the likelihood has no maximum.

    Examples
    --------
    Layers that hold databases smaller than three times their rank bound:

    >>> size = np.tile(np.arange(1, 61), 20)
    >>> bound = np.repeat(np.arange(1, 21), 60)
    >>> runs = pd.DataFrame({"database_rank_bound": size, "layer_rank_bound": bound,
    ...     "status": "completed", "accuracy_p95": (size < 3 * bound).astype(float)})
    >>> round(fit_law(runs, 0.95, exponent=1.0).factor, 1)
    3.0
    """
    y, x, c = outcomes(table, tau, share), logs(table, size), logs(table, capacity)
    return Law(size, capacity, *coefficients(y, x, c, exponent, weights))


def coefficients(
    y: NDArray[np.float64],
    x: NDArray[np.float64],
    c: NDArray[np.float64],
    exponent: float | None,
    weights: NDArray[np.float64] | None = None,
    start: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> tuple[float, float, float]:
    """Fit intercept, by_capacity and steepness to logarithms x of sizes and c of capacities."""
    intercept, by_capacity, steepness = start
    if exponent is None:
        design, beta = np.stack([np.ones(len(y)), -x, c]), [intercept, steepness, by_capacity]
    else:
        design, beta = np.stack([np.ones(len(y)), exponent * c - x]), [intercept, steepness]
    intercept, steepness, *free = maximum_likelihood(design, y, beta, weights)
    return intercept, free[0] if exponent is None else exponent * steepness, steepness


def maximum_likelihood(
    design: NDArray[np.float64],
    y: NDArray[np.float64],
    start: Sequence[float],
    weights: NDArray[np.float64] | None = None,
) -> list[float]:
    """Coefficients of a logistic regression on the rows of `design`, by Newton's method."""
    w, beta = np.ones(len(y)) if weights is None else weights, np.array(start, dtype=np.float64)
    for _ in range(MAX_STEPS):
        p = 1 / (1 + np.exp(-np.clip(beta @ design, -30, 30)))
        slope = design @ (w * (y - p)) - PENALTY * beta
        curvature = (design * (w * p * (1 - p))) @ design.T + PENALTY * np.eye(len(beta))
        step = np.linalg.solve(curvature, slope)
        # far from the maximum the quadratic model is poor: limit the step
        beta += step * min(1.0, 5 / np.abs(step).max())
        if np.abs(step).max() < 1e-9:
            break
    return beta.tolist()


def outcomes(table: pd.DataFrame, tau: Threshold, share: float | None) -> NDArray[np.float64]:
    """1 for each run that memorises and 0 for the others; if `share` is None, the accuracies."""
    if share is None:
        table, column = with_current_names(table), accuracy_column(tau)
        require_columns(table, "status", column)
        y = table[column].where(table["status"] != "diverged", 0.0).to_numpy(float)
    else:
        y = memorised_runs(table, tau, share=share).astype(np.float64)
    require_both(y, np.ones_like(y), tau)
    return y


def require_both(held: NDArray[np.float64], tried: NDArray[np.float64], tau: Threshold) -> None:
    """Raise an InvalidArgumentError unless some memorise and some don't."""
    if not 0 < held.sum() < tried.sum():
        raise InvalidArgumentError(
            f"Some runs must memorise, and some must not; of {len(held)}, "
            f"{'none' if held.sum() == 0 else 'all'} did at {tau}. Take other layers or databases."
        )


def logs(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Logarithms of a column of positive numbers."""
    require_columns(table, column)
    values = table[column].to_numpy(np.float64)
    if not (values > 0).all():
        raise InvalidArgumentError(
            f"`{column}` must be positive in every run, because the law uses its logarithm; its "
            f"smallest value is {values.min()}."
        )
    return np.log(values)


def require_columns(table: pd.DataFrame, *columns: str) -> None:
    """Raise an InvalidArgumentError unless the table has the columns."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InvalidArgumentError(
            f"The table must have the columns {', '.join(columns)}; it lacks {', '.join(missing)}."
        )


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
