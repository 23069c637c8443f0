"""Means, factors and families of comparisons, with intervals, ready for JSON."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from numpy.typing import ArrayLike
from scipy import stats
from statsmodels.genmod.families import Binomial
from statsmodels.stats.multitest import multipletests

from capacity.errors import InvalidArgumentError
from capacity.evaluator import Threshold, capacity_factor, mean_interval
from capacity.evaluator.laws.bootstrap import CLUSTERS

__all__ = [
    "CAPACITIES",
    "CLUSTERS",
    "adjusted",
    "exact_interval",
    "factor_of",
    "over_few",
    "rounded",
    "slopes_of",
    "verdict",
    "with_mean",
]

# layer rank bounds at which capacity factors are told
CAPACITIES = (5, 10, 20, 30)


def with_mean(values: Iterable[Any], runs: pd.DataFrame) -> dict[str, Any]:
    """A mean over runs, its interval over what they share, and the number of runs.

    A factor whose groups have one run each adds nothing to what the runs share, and would be
    counted a second time. A share of runs that share nothing has the exact interval of Clopper and
    Pearson.
    """
    v = np.asarray(list(values), dtype=np.float64)
    if not len(v):
        return {"mean": None, "interval": None, "n_runs": 0}
    given = [name for name in CLUSTERS if name in runs]
    shared = [name for name in given if runs[name].nunique() < len(runs)]
    if shared or not np.isin(v, (0.0, 1.0)).all():
        interval = mean_interval(v, runs[shared or given])
    else:
        interval = exact_interval(int(v.sum()), len(v))
    return {"mean": v.mean(), "interval": interval, "n_runs": len(v)}


def exact_interval(count: int, of: int) -> tuple[float, float]:
    """Interval of a share of independent runs, by Clopper and Pearson."""
    ends = stats.binomtest(count, of).proportion_ci()
    return float(ends.low), float(ends.high)


def over_few(values: ArrayLike) -> dict[str, Any]:
    """A mean over few independent values, such as seeds, with Student's interval."""
    v = np.asarray(values, dtype=np.float64)
    half = stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v))
    return {"mean": v.mean(), "interval": (v.mean() - half, v.mean() + half), "n_runs": len(v)}


def verdict(holds: bool) -> str:
    """Return the verdict on a measured hypothesis, from the closed list."""
    return "holds here" if holds else "not seen here"


def slopes_of(
    table: pd.DataFrame,
    formula: str,
    names: Iterable[str],
    *,
    clusters: Sequence[str] = CLUSTERS,
    logistic: bool = False,
) -> dict[str, dict[str, Any]]:
    """Slopes of terms by least squares, or in log-odds, with errors clustered by columns.

    There are one or two such columns.

    Two ways as Cameron, Gelbach and Miller (2011); quantiles are Student's, of one degree of
    freedom less than the smaller number of clusters.
    """
    model = smf.glm(formula, table, family=Binomial()) if logistic else smf.ols(formula, table)
    groups = np.column_stack([pd.factorize(table[name])[0] for name in clusters])
    with warnings.catch_warnings():
        # terms that are held fixed may have no variance, or be collinear; those asked for don't
        warnings.simplefilter("ignore")
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": np.squeeze(groups)}, use_t=True)
        ends = fit.conf_int()
    return {
        name: {
            "slope": fit.params[name], "interval": ends.loc[name].tolist(),
            "p": fit.pvalues[name], "n_runs": len(table),
        }
        for name in names if name in fit.params
    }  # fmt: skip


def factor_of(
    table: pd.DataFrame, tau: Threshold, *, share: float | None = 1.0, probability: float = 0.5
) -> dict[str, Any]:
    """The capacity factor, the exponent, and the ratio at some capacities; None if none do."""
    try:
        f = capacity_factor(table, tau, share=share, probability=probability, at=CAPACITIES)
    except InvalidArgumentError:
        return dict.fromkeys(("mean", "factor", "exponent", "ratio_at_capacity"))
    largest = float(table["database_rank_bound"].max())
    return {
        "mean": f.memorised,
        "factor": {"value": f.factor, "interval": f.factor_interval},
        "exponent": {"value": f.exponent, "interval": f.exponent_interval},
        "ratio_at_capacity": {
            # no more than there are databases for
            str(c): {"value": f.ratios[c], "interval": f.ratio_intervals[c]}
            if f.ratios[c] * c <= largest
            else {"above": largest / c}
            for c in CAPACITIES
        },
    }


def adjusted(family: Sequence[dict[str, Any]]) -> None:
    """Add to each comparison of a family its p-value after Holm, and the size of the family."""
    values = [one["p"] for one in family]
    after: list[float] = np.asarray(multipletests(values, method="holm")[1]).tolist()
    for one, p in zip(family, after, strict=True):
        one |= {"p_holm": p, "comparisons": len(values)}


def rounded(data: Any) -> Any:
    """Ready for JSON, which knows no NaN, with six significant digits."""
    if isinstance(data, Mapping):
        return {str(key): rounded(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [rounded(value) for value in data]
    if isinstance(data, np.generic):
        return rounded(data.item())
    if isinstance(data, float):
        return float(f"{data:.6g}") if math.isfinite(data) else None
    return data
