"""Comparison of measures of size and capacity by how well they predict which runs memorise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from capacity.checks import Seed, generator
from capacity.errors import InvalidArgumentError
from capacity.evaluator.laws.bootstrap import CLUSTERS, cluster_bootstrap, simultaneous_intervals
from capacity.evaluator.laws.law import fit_law, require_columns
from capacity.layer.recall import Threshold


def compare_measures(
    table: pd.DataFrame,
    measures: Sequence[tuple[str, str]],
    tau: Threshold = 0.95,
    *,
    share: float = 1.0,
    n_folds: int = 10,
    clusters: Sequence[str] = CLUSTERS,
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Compare how well sizes and capacities predict memorisation, by cross-validation.

    The databases are divided into folds. For each fold the law (`fit_law`) is fitted to the runs
    of the other databases, and its log-likelihood is taken of the runs of that fold.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``database_id``, ``status``, the accuracy column of `tau`, the columns of the
        measures and those of `clusters`.
    measures : sequence of (str, str)
        Pairs of columns, a size and a capacity.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold at which a fact counts as recalled.
    share : float
        Share of the facts that a run must recall to memorise, above 0 and at most 1.
    n_folds : int
        Number of folds, at least 2 and at most the number of databases.
    clusters : sequence of str
        Columns whose values runs share; each is drawn independently.
    n_resamples : int
        Number of bootstrap resamples, for the intervals.
    seed : int or numpy.random.Generator
        Seed of the folds and the resamples.

    Returns
    -------
    DataFrame
        One row per pair, the best first: ``size``, ``capacity``, ``log_likelihood``, the mean over
        all runs, each held out once, in nats; ``behind``, the difference from the best; and
        ``behind_low`` and ``behind_high``, the ends of its interval. The intervals of the
        differences of all pairs of measures hold at once with 95 % confidence, so that those from
        the best hold although it was chosen by the same runs.

    Raises
    ------
    InvalidArgumentError
        If a column is missing or not positive, `n_folds` or `share` is out of range, or all or
        none of the runs of the other folds memorise.

    Examples
    --------
    >>> size = np.tile(np.arange(1, 31), 10)
    >>> bound = np.repeat(np.arange(1, 11), 30)
    >>> runs = pd.DataFrame({"size": size, "noise": size[::-1] % 7 + 1, "bound": bound,
    ...     "database_id": size, "layer_id": bound, "status": "completed",
    ...     "accuracy_p95": (size < 3 * bound).astype(float)})
    >>> measures = [("noise", "bound"), ("size", "bound")]
    >>> compare_measures(runs, measures, n_resamples=10)["size"].tolist()
    ['size', 'noise']
    """
    require_columns(table, "database_id", *clusters)
    of, names = pd.factorize(table["database_id"])
    if not 2 <= n_folds <= len(names):
        raise InvalidArgumentError(
            f"`n_folds` must be at least 2 and at most {len(names)}, the number of databases; got "
            f"{n_folds}."
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
    drawn = np.array(
        [scores @ w / w.sum() for w in cluster_bootstrap(table[list(clusters)], n_resamples, seed)]
    )
    pairs = [(i, j) for i in range(len(means)) for j in range(len(means))]
    differences = drawn[:, [i for i, _ in pairs]] - drawn[:, [j for _, j in pairs]]
    every = simultaneous_intervals([means[i] - means[j] for i, j in pairs], differences)
    behind = [ends for (i, _), ends in zip(pairs, every, strict=True) if i == best]
    rows = [
        {"size": size, "capacity": capacity, "log_likelihood": mean, "behind": means[best] - mean,
         "behind_low": low, "behind_high": high}
        for (size, capacity), mean, (low, high) in zip(measures, means, behind, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows).sort_values("log_likelihood", ascending=False, ignore_index=True)


def auroc(positive: ArrayLike, negative: ArrayLike) -> float:
    """Compute the area under the ROC curve of a score.

    It is the probability that the score of a positive drawn at random exceeds that of a negative,
    ties counted half: the statistic U of Mann and Whitney over the number of pairs.

    Parameters
    ----------
    positive, negative : array_like, shapes (n,) and (m,)
        Scores of both groups.

    Returns
    -------
    float
        From 0 to 1, and 1/2 for a constant score; NaN if a group is empty or a score is NaN.

    Raises
    ------
    InvalidArgumentError
        For scores of another shape.

    Examples
    --------
    >>> auroc([0.9, 0.8], [0.1, 0.8]), auroc([1, 1], [1, 1, 1])
    (0.875, 0.5)
    """
    from scipy.stats import mannwhitneyu

    scores = [np.asarray(group, dtype=np.float64) for group in (positive, negative)]
    for name, group in zip(("positive", "negative"), scores, strict=True):
        if group.ndim != 1:
            raise InvalidArgumentError(
                f"`{name}` must be scores in a row, shape (n,); got the shape {group.shape}. "
                "Flatten it with .ravel()."
            )
    if not all(len(group) for group in scores) or any(np.isnan(group).any() for group in scores):
        return math.nan
    above, below = scores
    found = mannwhitneyu(above, below, method="asymptotic")
    return float(found.statistic) / (len(above) * len(below))
