"""Which sizes of a layer decide what it memorises: other forms than equation (9).

In (9), d_model + n_heads d_head_vo, heads and d_head_vo enter as a product. Here

    logit P(memorised) = intercept - steepness log triples + sum of the logarithms of a form

is fitted for several forms of the capacity, and held out by databases and by layers. And layers are
compared that have the same d_model, the same (9) and as many parameters, but other numbers of
heads. The forms were chosen after the tables were seen: a fresh set of layers has to decide.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray

from capacity.evaluator import (
    cluster_bootstrap,
    memorised_runs,
    percentile_interval,
    simultaneous_intervals,
)
from experiments.common.conclusions import CLUSTERS, slopes_of, with_mean

SIZES = ("d_model", "n_heads", "d_head_vo", "d_head_qk")
# each is a list of columns of which products are taken
FORMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "equation (9)": (("layer_rank_bound",),),
    "parameters of the heads": (("n_parameters",),),
    "d_model, n_heads d_head_vo": (("d_model",), ("n_heads", "d_head_vo")),
    "d_model n_heads": (("d_model", "n_heads"),),
    "d_model, n_heads, d_head_vo, d_head_qk": tuple((size,) for size in SIZES),
}
EACH = "d_model, n_heads, d_head_vo, d_head_qk"
TAU = 0.95
FOLDS = 10
# runs of each of two layers that are compared
LEAST = 15
RESAMPLES = 300


def forms_of(small: pd.DataFrame, large: pd.DataFrame) -> dict[str, Any]:
    """Likelihoods of the forms, held out and on larger layers, and the exponents of each size."""
    larger = large[large["layer_rank_bound"] > 30]
    held_out = {name: {form: _held_out(small, form, name) for form in FORMS} for name in CLUSTERS}
    found: dict[str, Any] = {}
    for form in FORMS:
        found[form] = {
            f"held_out_by_{name}": {
                "log_likelihood": held_out[name][form].mean(),
                "gain_over_equation_9": with_mean(
                    held_out[name][form] - held_out[name]["equation (9)"], small
                ),
            }
            for name in CLUSTERS
        }
        if len(larger) > 1:
            found[form]["larger_layers"] = _on_larger(small, larger, form)
    return {"forms": found, "exponents": _exponents(small)}


def _design(table: pd.DataFrame, form: str) -> NDArray[np.float64]:
    columns = [-np.log(table["n_triples"])]
    columns += [np.log(table[list(product)].prod(axis=1)) for product in FORMS[form]]
    return np.column_stack([np.ones(len(table)), *columns])


def _fit(
    design: NDArray[np.float64],
    done: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    model = sm.GLM(done, design, family=sm.families.Binomial(), freq_weights=weights)
    return np.asarray(model.fit(start_params=start).params)


def _likelihood(
    design: NDArray[np.float64], done: NDArray[np.float64], by: NDArray[np.float64]
) -> NDArray[np.float64]:
    return -np.logaddexp(0, np.where(done > 0, -1, 1) * (design @ by))


def _done(table: pd.DataFrame) -> NDArray[np.float64]:
    return memorised_runs(table, TAU).astype(np.float64)


def _held_out(table: pd.DataFrame, form: str, name: str) -> NDArray[np.float64]:
    """Log-likelihood of each run by a fit to the runs of other databases, or of other layers."""
    of, groups = pd.factorize(table[name])
    fold = np.random.default_rng(0).permutation(len(groups))[of] % FOLDS
    design, done = _design(table, form), _done(table)
    found = np.zeros(len(table))
    for part in range(FOLDS):
        inside = fold == part
        by = _fit(design[~inside], done[~inside])
        found[inside] = _likelihood(design[inside], done[inside], by)
    return found


def _on_larger(small: pd.DataFrame, larger: pd.DataFrame, form: str) -> dict[str, Any]:
    """The law of the smaller layers on larger ones, beside a constant fitted to just these."""
    by = _fit(_design(small, form), _done(small))
    design, done = _design(larger, form), _done(larger)
    share = np.clip(done.mean(), 1e-3, 1 - 1e-3)
    constant = np.log(np.where(done > 0, share, 1 - share))
    return {
        "memorised": with_mean(done, larger),
        "foretold_memorised": float((1 / (1 + np.exp(-design @ by))).mean()),
        "gain_over_their_own_mean": with_mean(_likelihood(design, done, by) - constant, larger),
    }


def _exponents(table: pd.DataFrame) -> dict[str, Any]:
    """Triples that half of the runs memorise, as powers of the sizes, with intervals at once."""
    design, done = _design(table, EACH), _done(table)
    whole = _fit(design, done)
    shared = table[list(CLUSTERS)]
    draws = [
        _fit(design, done, weights, whole)
        for weights in cluster_bootstrap(shared, RESAMPLES)
        if 0 < done @ weights < weights.sum()
    ]
    ratios = np.array([by[2:] / by[1] for by in draws])
    values = whole[2:] / whole[1]
    ends = simultaneous_intervals(values, ratios)
    return {
        size: {"value": value, "interval": interval}
        for size, value, interval in zip(SIZES, values, ends, strict=True)
    }


def matched_layers(table: pd.DataFrame) -> dict[str, Any]:
    """Layers with the same d_model, (9) and parameters, and other numbers of heads."""
    table = table.reset_index(drop=True)
    done = _done(table)
    same = table.groupby(["d_model", "layer_rank_bound", "n_parameters"])["n_heads"]
    pairs: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
    for rows in same.groups.values():
        by_heads = [
            np.asarray(part.index)
            for _, part in table.loc[rows].groupby("n_heads")
            if len(part) >= LEAST
        ]
        pairs += list(combinations(by_heads, 2))
    if not pairs:
        return {"comparisons": 0}
    shared = table[list(CLUSTERS)]
    outcomes = {"accuracy_0.95": table["accuracy_p95"].fillna(0).to_numpy(), "memorised_0.95": done}
    return {
        "comparisons": len(pairs),
        **{name: _gains(pairs, values, shared) for name, values in outcomes.items()},
        "one_more_head_at_fixed_equation_9_and_d_model": _slope_of_heads(table, done),
        "example": _example(table, done),
    }


def _gains(
    pairs: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    values: NDArray[np.float64],
    shared: pd.DataFrame,
) -> dict[str, Any]:
    """Means of the layers with more heads less those with fewer."""

    def gains(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        few, many = np.array(
            [
                # a layer may not be drawn, and then its pairs aren't
                [weights[side] @ values[side] / (weights[side].sum() or np.nan) for side in pair]
                for pair in pairs
            ]
        ).T
        return many - few

    whole = gains(np.ones(len(values)))
    drawn = [np.nanmean(gains(weights)) for weights in cluster_bootstrap(shared, RESAMPLES)]
    return {
        "more_heads_are_better": int((whole > 0).sum()),
        "gain": {"value": whole.mean(), "interval": percentile_interval(drawn)},
    }


def _slope_of_heads(table: pd.DataFrame, done: NDArray[np.float64]) -> dict[str, Any]:
    ready = table.assign(done=done, size=np.log(table["n_triples"]))
    formula = "done ~ size + n_heads + C(layer_rank_bound):C(d_model)"
    return slopes_of(ready, formula, ["n_heads"])["n_heads"]


def _example(table: pd.DataFrame, done: NDArray[np.float64]) -> dict[str, Any]:
    """Two layers with d_model 6, (9) = 9 and 72 parameters."""
    return {
        name: with_mean(done[table["layer_id"] == name], table[table["layer_id"] == name])
        for name in ("d6-h1-qk3-vo3", "d6-h3-qk1-vo1")
    }
