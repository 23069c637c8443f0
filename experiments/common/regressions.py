"""Logistic regressions of counts, such as runs of a database that memorise of all that were tried.

A design has a row for each count and a column for each coefficient. A tiny penalty keeps those
finite that the counts don't determine (`capacity.evaluator.laws.law.maximum_likelihood`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from capacity.evaluator import cluster_bootstrap
from capacity.evaluator.laws.law import maximum_likelihood

FOLDS = 10
Floats = NDArray[np.float64]


def fit_counts(design: Floats, done: Floats, tried: Floats, start: Floats | None = None) -> Floats:
    """Coefficients; rows with none tried, as of databases that are not drawn, do not count."""
    begin = [0.0] * design.shape[1] if start is None else start.tolist()
    return np.array(maximum_likelihood(design.T, done / np.maximum(tried, 1), begin, tried))


def resampled_coefficients(
    design: Floats, done: Floats, tried: Floats, databases: pd.Series[Any], n_resamples: int
) -> tuple[Floats, Floats]:
    """Coefficients, and those of resamples of the databases, shape (n_resamples, n_columns)."""
    whole = fit_counts(design, done, tried)
    drawn = [
        fit_counts(design, done * weights, tried * weights, whole)
        for weights in cluster_bootstrap(databases.to_frame(), n_resamples)
    ]
    return whole, np.array(drawn)


def held_out_scores(
    design: Floats, done: Floats, tried: Floats, databases: pd.Series[Any]
) -> Floats:
    """Log-likelihood of each row in nats, by fits to the databases of other folds."""
    of, names = pd.factorize(databases)
    fold = np.random.default_rng(0).permutation(len(names))[of] % FOLDS
    scores = np.zeros(len(done))
    for number in range(FOLDS):
        inside = fold == number
        beta = fit_counts(design[~inside], done[~inside], tried[~inside])
        p = np.clip(expit(design[inside] @ beta), 1e-9, 1 - 1e-9)
        scores[inside] = done[inside] * np.log(p) + (tried - done)[inside] * np.log(1 - p)
    return scores
