"""The capacity law: how big a database may be before layers of some capacity fail to hold it.

A run *memorises* at tau if the share of its facts that pass is at least `share`: 1, as below
equation (14), unless said otherwise. Over many runs the probability of that falls with the size of
the database and grows with the capacity of the layer, both measured in any way that a table has a
column for. The *law* is

    logit P(memorised) = intercept + by_capacity log capacity - steepness log size,

so that half of the runs memorise where size = factor * capacity^exponent. With the exponent fixed
at 1, ``factor`` is the *capacity factor*: the paper reads 3 to 4 at tau = 0.75 off its Figure 3,
for the two rank bounds. With a free exponent the ratio of size to capacity depends on the capacity,
and a single factor is an average over the layers that there happen to be.

`capacity.evaluator.factor` gives both with intervals. Diverged runs have memorised nothing.

References
----------
Wong 2025, section 4. Dana, Pydi and Chevaleyre (2411.10115): n_heads d_head + d_model associations
are held exactly, in number of triples the same as equation (9) with d_head_vo for d_head. Nichani,
Lee and Bietti (2412.06538): as many facts as parameters, up to logarithms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import Threshold, accuracy_column, with_current_names

MAX_STEPS = 100
PENALTY = 1e-6


@briefly_shown
@dataclass(frozen=True)
class Law:
    """When runs memorise: logit P = intercept + by_capacity log capacity - steepness log size.

    Attributes
    ----------
    size, capacity : str
        Columns of the table.
    intercept, by_capacity, steepness : float
    """

    size: str
    capacity: str
    intercept: float
    by_capacity: float
    steepness: float

    @property
    def factor(self) -> float:
        """Size at which half of the runs memorise, where the capacity is 1."""
        return float(np.exp(self.intercept / self.steepness))

    @property
    def exponent(self) -> float:
        """Of the capacity, in that size."""
        return self.by_capacity / self.steepness

    def size_at(self, capacity: float, probability: float = 0.5) -> float:
        """Size at which runs of a capacity memorise with some probability."""
        odds = math.log(probability / (1 - probability))
        score = self.intercept + self.by_capacity * math.log(capacity) - odds
        # beyond all sizes
        with np.errstate(over="ignore"):
            return float(np.exp(score / self.steepness))

    def probability(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """That each run memorises, shape (n_runs,)."""
        by_size = self.steepness * logs(table, self.size)
        score = self.intercept + self.by_capacity * logs(table, self.capacity) - by_size
        return 1 / (1 + np.exp(-np.clip(score, -700, 700)))

    def log_likelihood(
        self, table: pd.DataFrame, tau: Threshold = 0.95, *, share: float = 1.0
    ) -> NDArray[np.float64]:
        """Of what each run did, in nats, shape (n_runs,)."""
        p = np.clip(self.probability(table), 1e-12, 1 - 1e-12)
        return np.log(np.where(memorised_runs(table, tau, share=share), p, 1 - p))


def memorised_runs(
    table: pd.DataFrame, tau: Threshold = 0.95, *, share: float = 1.0
) -> NDArray[np.bool_]:
    """Which runs memorise at tau.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``status`` and the accuracy column of tau (`accuracy_column`).
    tau : float, 'argmax' or 'argmax_paper'
    share : float
        Of the facts that must pass, above 0 and at most 1.

    Raises
    ------
    ValueError
        If a column is missing, or `share` is out of range.
    """
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"`share` must be above 0 and at most 1; got {share}.")
    table, column = with_current_names(table), accuracy_column(tau)
    require_columns(table, "status", column)
    return ((table[column] >= share) & (table["status"] != "diverged")).to_numpy()


def add_size_columns(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ``database_bits``: what it takes to name the objects of all facts.

    n_triples log2(n_objects), the logarithm of the number of databases with the same questions and
    objects, and one bit at least. Also ``n_all_parameters``, with those of the embeddings.
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
    """Fit the law to a table of runs by maximum likelihood.

    Parameters
    ----------
    table : DataFrame
    tau, share
        When a run memorises (`memorised_runs`). With `share` None the law is one of the mean
        accuracy, a fraction for each run.
    size, capacity : str
        Columns of positive numbers.
    exponent : float, optional
        Held fixed; free if left out.
    weights : ndarray, shape (n_runs,), optional
        How often each run counts.

    Raises
    ------
    ValueError
        If a column is missing or not positive, or if all runs memorise, or none.

    Notes
    -----
    Newton's method on the log-likelihood, which is concave; a penalty of 1e-6 on the squared
    coefficients holds them where sizes and capacities separate the runs and there is no maximum.

    Examples
    --------
    Layers that hold what is smaller than thrice their rank bound:

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
    w = np.ones(len(y)) if weights is None else weights
    intercept, by_capacity, steepness = start
    if exponent is None:
        design, beta = np.stack([np.ones(len(y)), -x, c]), [intercept, steepness, by_capacity]
    else:
        design, beta = np.stack([np.ones(len(y)), exponent * c - x]), [intercept, steepness]
    beta = np.array(beta)
    for _ in range(MAX_STEPS):
        p = 1 / (1 + np.exp(-np.clip(beta @ design, -30, 30)))
        slope = design @ (w * (y - p)) - PENALTY * beta
        curvature = (design * (w * p * (1 - p))) @ design.T + PENALTY * np.eye(len(beta))
        step = np.linalg.solve(curvature, slope)
        # from far away the quadratic is no guide
        beta += step * min(1.0, 5 / np.abs(step).max())
        if np.abs(step).max() < 1e-9:
            break
    intercept, steepness = float(beta[0]), float(beta[1])
    return intercept, float(beta[2]) if exponent is None else exponent * steepness, steepness


def outcomes(table: pd.DataFrame, tau: Threshold, share: float | None) -> NDArray[np.float64]:
    """Whether each run memorises, or its accuracy."""
    if share is None:
        table, column = with_current_names(table), accuracy_column(tau)
        require_columns(table, "status", column)
        y = table[column].where(table["status"] != "diverged", 0.0).to_numpy(float)
    else:
        y = memorised_runs(table, tau, share=share).astype(np.float64)
    if not 0 < y.sum() < len(y):
        raise InvalidArgumentError(
            f"The runs must be such that some memorise and some don't; of {len(y)}, "
            f"{'none' if y.sum() == 0 else 'all'} did at {tau}. Take other layers or databases."
        )
    return y


def logs(table: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Logarithms of a column of positive numbers."""
    require_columns(table, column)
    values = table[column].to_numpy(np.float64)
    if not (values > 0).all():
        raise InvalidArgumentError(
            f"`{column}` must be positive in every run, for the law takes its logarithm; the least "
            f"is {values.min()}."
        )
    return np.log(values)


def require_columns(table: pd.DataFrame, *columns: str) -> None:
    """Raise a ValueError unless the table has the columns."""
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise InvalidArgumentError(
            f"The table must have the columns {', '.join(columns)}; it lacks {', '.join(missing)}."
        )
