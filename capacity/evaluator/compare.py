"""Which measures of size and capacity tell best what layers hold of databases not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.evaluator.bootstrap import cluster_bootstrap, percentile_interval
from capacity.evaluator.columns import Threshold
from capacity.evaluator.law import fit_law, require_columns
from capacity.limits import Seed, generator


def compare_measures(
    table: pd.DataFrame,
    measures: Sequence[tuple[str, str]],
    tau: Threshold = 0.95,
    *,
    share: float = 1.0,
    n_folds: int = 10,
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Which sizes and capacities tell best whether a run memorises, on databases not seen.

    Parameters
    ----------
    table : DataFrame
    measures : sequence of (str, str)
        Columns of a size and a capacity each.
    tau, share
        What memorising is.
    n_folds : int
        Databases are dealt into so many parts; the law is fitted on all parts but one, and asked
        about that one.
    n_resamples : int
        Of the databases, for the interval of the differences.
    seed : int or numpy.random.Generator

    Returns
    -------
    DataFrame
        One row a pair, the best first: ``size``, ``capacity``, ``log_likelihood``, the mean over
        all runs, each held out once, in nats; ``behind``, by how much the best exceeds it;
        ``behind_low`` and ``behind_high``, an interval of that difference.

    Raises
    ------
    ValueError
        As `fit_law` does, or for less databases than folds.
    """
    require_columns(table, "database_id")
    of, names = pd.factorize(table["database_id"])
    if not 2 <= n_folds <= len(names):
        raise InvalidArgumentError(
            f"`n_folds` must be at least 2 and at most the {len(names)} databases; got {n_folds}."
        )
    fold = generator(seed).permutation(len(names))[of] % n_folds
    scores = np.zeros((len(measures), len(table)))
    for i, (size, capacity) in enumerate(measures):
        for part in range(n_folds):
            law = fit_law(table[fold != part], tau, size=size, capacity=capacity, share=share)
            held_out = fold == part
            scores[i, held_out] = law.log_likelihood(table[held_out], tau, share=share)
    means = scores.mean(axis=1)
    best = int(means.argmax())
    drawn = np.array([scores @ w / w.sum() for w in cluster_bootstrap(of, n_resamples, seed)])
    behind = [percentile_interval(drawn[:, best] - column) for column in drawn.T]
    rows = [
        {"size": size, "capacity": capacity, "log_likelihood": mean, "behind": means[best] - mean,
         "behind_low": low, "behind_high": high}
        for (size, capacity), mean, (low, high) in zip(measures, means, behind, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows).sort_values("log_likelihood", ascending=False, ignore_index=True)
