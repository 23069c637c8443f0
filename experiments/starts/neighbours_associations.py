"""Conclusions of `neighbours` on the task of Dana, Pydi and Chevaleyre: exponents by starts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from experiments.common.conclusions import slopes_of, with_mean
from experiments.common.harness import committed
from experiments.size.associations import TOKENS

SATURATED, LOWER = 0.95, 0.25
SIZES = ("heads", "d_h", "d")


def associations_of(runs: pd.DataFrame) -> dict[str, Any]:
    """Shares by setting, exponents by way, and what freezing and starts change."""
    groups = ["is_frozen", "scaled", *SIZES, "layer_id", "database_id"]
    by = runs.groupby(groups)["share"]
    shares = by.agg(one="mean", best="max", spread="std").reset_index()
    inside = shares[
        (shares["one"] > 1.2 / TOKENS) & (shares["best"] < SATURATED)
    ].copy()  # fmt: skip
    for name in ("one", "best"):
        inside[f"log_{name}"] = np.log(inside[name] - 1 / TOKENS)
    inside["log_difference"] = inside["log_best"] - inside["log_one"]
    for name in SIZES:
        inside[f"log_{name}"] = np.log(inside[name])
    ways = {
        f"{'frozen' if frozen else 'trained'}, {'scaled' if scaled else 'as in the paper'}": part
        for (frozen, scaled), part in inside.groupby(["is_frozen", "scaled"])
    }
    theirs = committed("associations", "runs")
    wide = theirs[theirs["layer"] == "theirs"].pivot_table(
        index=["d", "heads", "d_h"], columns="database_id", values="share"
    )
    return {
        "shares": [_setting(key, part) for key, part in shares.groupby(groups[:5])],
        "exponents": {name: _exponents(part) for name, part in ways.items()},
        "spread_of_starts": with_mean(inside["spread"] / (inside["one"] - 1 / TOKENS), inside),
        "frozen_over_trained": _frozen_over_trained(inside),
        "their_layer": {
            # two databases, each from a start of its own
            "largest_relative_difference": (wide.max(axis=1) / wide.min(axis=1) - 1).max(),
        },
    }


def _setting(key: Any, part: pd.DataFrame) -> dict[str, Any]:
    frozen, scaled, *sizes = key
    return {
        "frozen": bool(frozen), "scaled": bool(scaled),
        **{name: int(size) for name, size in zip(SIZES, sizes, strict=True)},
        **{name: with_mean(part[name], part[["database_id"]]) for name in ("one", "best")},
    }  # fmt: skip


def _exponents(part: pd.DataFrame) -> dict[str, Any]:
    """Exponents over all settings, and of d_h alone with 20 heads, d = 8."""
    several = [f"log_{name}" for name in SIZES if part[name].nunique() > 1]
    alone = part[(part["heads"] == part["heads"].max()) & (part["d"] == part["d"].max())]
    columns = {"one start": "log_one", "best": "log_best", "best less one": "log_difference"}
    return {
        **{
            name: {
                term.removeprefix("log_"): slope
                for term, slope in slopes_of(part, f"{y} ~ {' + '.join(several)}", several).items()
            }
            for name, y in columns.items()
        },
        "d_h alone": {
            # of four layers, so that errors are clustered by databases alone
            name: slopes_of(alone, f"{y} ~ log_d_h", ["log_d_h"], clusters=["database_id"])[
                "log_d_h"
            ]
            for name, y in columns.items()
        },
    }


def _frozen_over_trained(shares: pd.DataFrame) -> dict[str, Any]:
    """Ratios of the shares above chance, frozen to trained, by heads (with the scale)."""
    keys = [*SIZES, "layer_id", "database_id"]
    wide = shares[shares["scaled"]].pivot_table(index=keys, columns="is_frozen", values="log_best")
    ratio = (wide[True] - wide[False]).dropna().apply(math.exp).rename("ratio").reset_index()
    return {
        str(heads): with_mean(part["ratio"], part) for heads, part in ratio.groupby("heads")
    }  # fmt: skip
