"""Conclusions of the law of layers: exponents, forecasts and matched layers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.evaluator import (
    Law,
    SizeLaw,
    SizeLawEstimate,
    fit_law,
    fit_size_law,
    half_size,
    percentile_interval,
)
from experiments.common.conclusions import with_mean

TAU = 0.95
# laws are fitted to databases of fewer triples, and to layers with a smaller d_model
SPLIT, LARGEST = 500, 16
SIZES = ("d_model", "n_heads", "d_head_vo", "d_head_qk")
# found in the tables of `figures`, after the fact
BEFORE = {"plain": (1.62, 1.58, 0.51, -0.07), "best": (1.91, 2.14, 0.79, -0.61)}
EACH = "d_model, n_heads, d_head_vo, d_head_qk"
NINE = "equation (9)"
# form -> (capacity of a run, exponent; None if it is fitted)
Capacity = Callable[[pd.DataFrame], "pd.Series[float]"]
FORMS: dict[str, tuple[Capacity, float | None]] = {
    NINE: (lambda t: t["layer_rank_bound"], None),
    "equation (9), in proportion": (lambda t: t["layer_rank_bound"], 1.0),
    "n_heads min(2, d_head_vo), in proportion": (
        lambda t: t["n_heads"] * t["d_head_vo"].clip(upper=2), 1.0),
    "n_heads d_model d_head_vo^2, in proportion": (
        lambda t: t["n_heads"] * t["d_model"] * t["d_head_vo"] ** 2, 1.0),
    "parameters of the heads, in proportion": (lambda t: t["n_parameters"], 1.0),
    "all parameters, in proportion": (
        lambda t: t["n_parameters"] + t["n_embedding_parameters"], 1.0),
    "parameters of the heads": (lambda t: t["n_parameters"], None),
    "all parameters": (lambda t: t["n_parameters"] + t["n_embedding_parameters"], None),
}  # fmt: skip


def conclusions(runs: pd.DataFrame) -> dict[str, Any]:
    """What the runs of each recipe say."""
    return {str(kind): _of_recipe(str(kind), part) for kind, part in runs.groupby("kind")}


def sizes_of(runs: pd.DataFrame) -> pd.DataFrame:
    """The size that half memorise of each layer, with its own sizes; NaN if it wasn't bracketed."""
    rows: list[dict[str, Any]] = []
    done = runs.assign(done=runs["accuracy_p95"] == 1)
    for name, part in done.groupby("layer_id"):
        means = part.groupby("n_asked")["done"].mean()
        shares = dict(zip(means.index.astype(int).tolist(), means.tolist(), strict=True))
        # what the bisection asked is enough to say where it ended
        above = max((size for size, share in shares.items() if share >= 0.5), default=None)
        below = min((size for size, share in shares.items() if share < 0.5), default=None)
        size = np.nan
        if above is not None and below is not None:
            size = half_size(shares.__getitem__, [above, below]).size
        first = part.iloc[0]
        sizes = {key: int(first[key]) for key in (*SIZES, "layer_rank_bound", "n_parameters")}
        rows.append({"layer_id": name, "size": size, "above": above, "below": below, **sizes})
    return pd.DataFrame(rows)


def _of_recipe(kind: str, runs: pd.DataFrame) -> dict[str, Any]:
    runs = runs.reset_index(drop=True)
    sizes = sizes_of(runs)
    small = runs[runs["d_model"] < LARGEST]
    below = small[small["n_asked"] < SPLIT]
    if not 0 < (below["accuracy_p95"] == 1).mean() < 1:
        # as in the tests' few runs
        return {"runs": len(runs), "layers": len(sizes)}
    whole, part = (fit_size_law(of, SIZES, TAU) for of in (small, below))
    found = sizes.dropna(subset="size")
    errors = np.log(found["size"] / [whole.law.size_at(row) for row in rows_of_sizes(found)])
    inside = found["d_model"] < LARGEST
    return {
        "runs": len(runs), "layers": len(sizes), "layers_with_a_size": len(found),
        "least_size": found["size"].min(), "largest_size": found["size"].max(),
        "exponents": _exponents(whole, BEFORE[kind]),
        "exponents_below": _exponents(part, BEFORE[kind]),
        "by_d_model": {str(d): _at_width(of) for d, of in small.groupby("d_model")},
        "of_one_doubling_of_heads_at_equal_9": _doubling(whole),
        "forecasts": _forecasts(kind, below, runs, sizes),
        "matched_layers": _matched(sizes),
        "law": {
            "intercept": whole.law.intercept, "weights": list(whole.law.weights),
            "steepness": whole.law.steepness,
            "ranges": {
                name: [int(small[column].min()), int(small[column].max())]
                for name, column in (*zip(SIZES, SIZES, strict=True), ("triples", "n_triples"))
            },
            "errors_in_nats": percentile_interval(errors[inside]),
            "standard_deviation_in_nats": float(errors[inside].std()),
            "largest_d_model_in_nats": errors[~inside].tolist(),
        },
    }  # fmt: skip


def rows_of_sizes(sizes: pd.DataFrame) -> list[dict[str, float]]:
    """The sizes of each layer, by name."""
    return sizes[list(SIZES)].astype(float).to_dict("records")  # type: ignore[return-value]


def _exponents(estimate: SizeLawEstimate, before: tuple[float, ...]) -> dict[str, Any]:
    ends = estimate.exponent_intervals()
    return {
        name: {"value": value, "interval": ends[name], "before": earlier,
               "before_is_inside": ends[name][0] <= earlier <= ends[name][1]}
        for (name, value), earlier in zip(estimate.law.exponents.items(), before, strict=True)
    }  # fmt: skip


def _at_width(runs: pd.DataFrame) -> dict[str, Any]:
    """The exponent of heads at one d_model; None if all or none of the runs memorise."""
    done = int((runs["accuracy_p95"] == 1).sum())
    heads = None
    if 0 < done < len(runs):
        heads = fit_size_law(runs, SIZES[1:], TAU, n_resamples=0).law.exponents["n_heads"]
    return {"runs": len(runs), "memorised": done, "n_heads": heads}


def _doubling(estimate: SizeLawEstimate) -> dict[str, Any]:
    """Factor of the size for twice the heads of half the queries, keys and values."""

    def factor(law: SizeLaw) -> float:
        of = law.exponents
        return float(2 ** (of["n_heads"] - of["d_head_vo"] - of["d_head_qk"]))

    drawn = [factor(law) for law in estimate.resampled]
    return {"value": factor(estimate.law), "interval": percentile_interval(drawn)}


def _forecasts(
    kind: str, below: pd.DataFrame, runs: pd.DataFrame, sizes: pd.DataFrame
) -> dict[str, Any]:
    """Each form, fitted to small databases and layers, on the runs of larger ones."""
    ready, asked = _with_forms(kind, below), _with_forms(kind, runs)
    above = asked[(asked["n_asked"] >= SPLIT) | (asked["d_model"] == LARGEST)]
    found = sizes[(sizes["size"] >= SPLIT) | (sizes["d_model"] == LARGEST)].dropna(subset="size")
    of_layer = asked.drop_duplicates("layer_id").set_index("layer_id")
    laws: dict[str, Law | SizeLaw] = {
        form: fit_law(ready, TAU, size="n_triples", capacity=form, exponent=exponent)
        for form, exponent in _exponents_of_forms().items()
    }
    laws[EACH] = fit_size_law(ready, SIZES, TAU, n_resamples=0).law
    base = laws[NINE].log_likelihood(above, TAU)
    rows: dict[str, Any] = {}
    for form, law in laws.items():
        scores = law.log_likelihood(above, TAU)
        foretold = [
            law.size_at(dict(row)) if isinstance(law, SizeLaw)
            else law.size_at(float(of_layer.loc[name, form]))  # type: ignore[arg-type]
            for name, row in zip(found["layer_id"], rows_of_sizes(found), strict=True)
        ]  # fmt: skip
        errors = np.log(found["size"].to_numpy() / np.array(foretold))
        rows[form] = {
            "log_likelihood": with_mean(scores, above),
            "gain_over_equation_9": with_mean(scores - base, above),
            "foretold_memorised": law.probability(above).mean(),
            "layers": len(found),
            "median_error_in_nats": float(np.median(np.abs(errors))) if len(errors) else None,
            "mean_log_ratio": with_mean(errors, found),
        }
    memorised = with_mean(above["accuracy_p95"] == 1, above)
    return {"runs_fitted": len(below), "runs_asked": len(above), "memorised": memorised,
            "forms": rows}  # fmt: skip


def _exponents_of_forms() -> dict[str, float | None]:
    return {
        **{form: exponent for form, (_, exponent) in FORMS.items()},
        "exponents found before": 1.0,
    }


def _with_forms(kind: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Runs with the capacity of each form as a column."""
    before = np.prod([runs[name] ** power for name, power in zip(SIZES, BEFORE[kind], strict=True)],
                     axis=0)  # fmt: skip
    columns = {form: capacity(runs) for form, (capacity, _) in FORMS.items()}
    return runs.assign(**columns, **{"exponents found before": before})


def _matched(sizes: pd.DataFrame) -> dict[str, Any]:
    """Layers of one d_model, one (9) and one number of parameters: more heads against fewer."""
    pairs: list[dict[str, Any]] = []
    for _, part in sizes.groupby(["d_model", "layer_rank_bound", "n_parameters"]):
        by_heads = part.sort_values("n_heads")
        for (_, few), (_, many) in combinations(by_heads.iterrows(), 2):
            if few["n_heads"] == many["n_heads"]:
                continue
            doublings = np.log2(many["n_heads"] / few["n_heads"])
            gain = np.log2(many["size"] / few["size"]) / doublings
            pairs.append({"few": few["layer_id"], "many": many["layer_id"], "gain": gain,
                          "larger": _larger(few, many)})  # fmt: skip
    told = [pair for pair in pairs if pair["larger"] is not None]
    gains = np.array([pair["gain"] for pair in told])
    gains = gains[np.isfinite(gains)]
    return {
        "pairs": len(pairs), "told": len(told),
        "more_heads_are_better": sum(pair["larger"] for pair in told),
        "median_factor_a_doubling": float(2 ** np.median(gains)) if len(gains) else None,
    }  # fmt: skip


def _larger(few: pd.Series[Any], many: pd.Series[Any]) -> bool | None:
    """Whether the size of `many` is larger; None if the bisections don't say."""
    if np.isfinite(few["size"]) and np.isfinite(many["size"]):
        return bool(many["size"] > few["size"])
    low: NDArray[np.float64] = np.array([few["above"] or 0, many["above"] or 0], dtype=float)
    high = np.array([few["below"] or np.inf, many["below"] or np.inf], dtype=float)
    low, high = np.nan_to_num(low), np.where(np.isnan(high), np.inf, high)
    if low[1] >= high[0]:
        return True
    return False if low[0] >= high[1] else None
