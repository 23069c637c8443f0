"""Conclusions of real stores: errors of the law, what explains them, and missing pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.evaluator import cluster_bootstrap, percentile_interval
from experiments.common.conclusions import with_mean
from experiments.size.measures_numbers import MEASURES

# an error within this factor is small
FACTOR, RESAMPLES = 1.5, 2000
# what isn't foretold by a measure: the mean over the other stores
CONSTANT = "no measure, a constant"
RANKS = {
    "rank": ("database_rank_lower", "database_rank_upper"),
    "effective rank": ("effective_rank_lower", "effective_rank_upper"),
}
Floats = NDArray[np.float64]


def conclusions(runs: pd.DataFrame, databases: pd.DataFrame) -> dict[str, Any]:
    """What the runs of each recipe say."""
    found = found_sizes(runs).merge(databases, on="database_id", validate="many_to_one")
    found["error"] = np.log(found["size"] / found["n_triples"])
    return {
        "runs": len(runs), "databases": len(databases),
        **{str(kind): _of_recipe(part) for kind, part in found.groupby("kind")},
    }  # fmt: skip


def found_sizes(runs: pd.DataFrame) -> pd.DataFrame:
    """The found size of each database by each recipe; NaN beyond either end of the ladder."""
    rows: list[dict[str, Any]] = []
    for (name, kind), part in runs.groupby(["database_id", "kind"]):
        held = part["memorised"].astype(bool)
        above, below = part.loc[held, "foretold"].min(), part.loc[~held, "foretold"].max()
        rows.append({"database_id": name, "kind": kind, "size": np.sqrt(above * below)})
    return pd.DataFrame(rows)


def paired(found: pd.DataFrame) -> pd.DataFrame:
    """Parts with a size and one of each control, with the controls' means.

    ``left`` is the error of a part less the mean of its controls'; of each measure, ``log:`` is the
    logarithm of the part's over the mean of its controls'.
    """
    controls = found[found["what"] == "control"].groupby("of")
    parts = found[(found["what"] == "part") & found["size"].notna()].set_index("of")
    # a mean of controls without those beyond the ladder would be biased
    parts = parts[parts.index.isin(controls["size"].count()[lambda n: n == controls.size()].index)]
    rows = parts.assign(
        controls=controls["error"].mean().reindex(parts.index),
        **{
            f"log: {name}": np.log(
                parts[column] / controls[column].mean().reindex(parts.index)
            )
            for name, column in MEASURES.items()
        },
    )  # fmt: skip
    return rows.assign(left=rows["error"] - rows["controls"]).reset_index()


def _of_recipe(found: pd.DataFrame) -> dict[str, Any]:
    parts, missing = paired(found), found[(found["what"] == "missing") & found["size"].notna()]
    asked = (found["what"] == "part").sum()
    return {
        "parts_asked": int(asked), "parts": len(parts),
        "all": _errors(parts, "store"),
        "stores": {str(name): _errors(of, "database_id") for name, of in parts.groupby("store")},
        "sizes": {str(n): _errors(of, "store") for n, of in parts.groupby("n_triples")},
        "left": _explained(parts),
        "missing": _missing(missing),
    }  # fmt: skip


def _errors(parts: pd.DataFrame, cluster: str) -> dict[str, Any]:
    """Mean errors in nats of parts and of controls, and whether they are within the factor."""
    found: dict[str, Any] = {"parts": len(parts)}
    shared = pd.DataFrame({"database_id": parts[cluster].to_numpy()})
    for name, column in (("error", "error"), ("controls", "controls"), ("left", "left")):
        one = with_mean(parts[column], shared)
        found[name] = one
        if one["interval"] is not None:
            mean, low, high = (float(np.exp(at)) for at in (one["mean"], *one["interval"]))
            found[f"{name}_factor"] = {"mean": mean, "interval": [low, high]}
            found[f"{name}_within"] = bool(max(1 / low, high) <= FACTOR)
    found["mean_absolute_error"] = float(np.abs(parts["error"]).mean()) if len(parts) else None
    return found


def _explained(parts: pd.DataFrame) -> dict[str, Any]:
    """What each measure, fitted to other stores, explains of what is left; and what a constant."""
    left = parts["left"].to_numpy(float)
    columns = {CONSTANT: np.ones(len(left))}
    columns |= {name: parts[f"log: {name}"].to_numpy(float) for name in MEASURES}
    explained: dict[str, Any] = {}
    for name, values in columns.items():
        if parts["store"].nunique() < 2 or not values.any():
            explained[name] = {"slope": None, "value": None, "interval": None}
            continue
        residuals = np.zeros(len(left))
        for store in parts["store"].unique():
            held = (parts["store"] == store).to_numpy()
            residuals[held] = left[held] - _slope(values[~held], left[~held]) * values[held]
        drawn = [
            1 - weights @ residuals**2 / (weights @ left**2)
            for weights in cluster_bootstrap(parts[["store"]], RESAMPLES)
        ]
        explained[name] = {
            "slope": _slope(values, left),
            "value": 1 - (residuals**2).sum() / (left**2).sum(),
            "interval": percentile_interval(drawn),
        }
    return explained


def _slope(x: Floats, y: Floats) -> float:
    return float(x @ y / (x @ x)) if x.any() else 0.0


def _missing(found: pd.DataFrame) -> dict[str, Any]:
    """Log sizes on log rank and log effective rank together, within stores, and each alone."""
    logs = {name: np.log(found[list(ends)].mean(axis=1)) for name, ends in RANKS.items()}
    table = found.assign(**logs, logarithm=np.log(found["size"]))
    cells = [
        {
            "share": share, "databases": len(of),
            **{name: of[list(ends)].mean(axis=1).mean() for name, ends in RANKS.items()},
            "size": with_mean(of["size"], of[["database_id"]]),
        }
        for share, of in table.groupby("share")
    ]  # fmt: skip
    columns = [*RANKS, "logarithm"]
    within = table[columns] - table.groupby("store")[columns].transform("mean")
    if len(within) <= len(RANKS) + 1:
        return {"databases": len(found), "cells": cells}
    values = {name: within[name].to_numpy(float) for name in columns}

    def numbers(weights: Floats) -> list[float]:
        root = np.sqrt(weights)
        x = np.column_stack([values[name] for name in RANKS]) * root[:, None]
        y = values["logarithm"] * root
        slopes = np.linalg.lstsq(x, y, rcond=None)[0].tolist()
        alone = [_slope(column, y) for column in x.T]
        total = max(y @ y, 1e-300)
        r2 = [
            1 - ((y - slope * column) ** 2).sum() / total
            for slope, column in zip(alone, x.T, strict=True)
        ]
        return [*slopes, *alone, *r2, r2[0] - r2[1]]

    whole = numbers(np.ones(len(within)))
    drawn = [numbers(weights) for weights in cluster_bootstrap(table[["database_id"]], RESAMPLES)]
    told = [
        {"value": value, "interval": percentile_interval(values)}
        for value, values in zip(whole, np.array(drawn).T, strict=True)
    ]
    return {
        "databases": len(found), "cells": cells,
        "slopes_together": dict(zip(RANKS, told[:2], strict=True)),
        "slopes_alone": dict(zip(RANKS, told[2:4], strict=True)),
        "r2_alone": dict(zip(RANKS, told[4:6], strict=True)),
        "r2_of_rank_less_of_effective": told[6],
    }  # fmt: skip
