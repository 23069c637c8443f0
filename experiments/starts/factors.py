"""Capacity or trainability: what the sizes of a layer decide once starts are counted.

    python -m experiments.starts.factors --run
    python -m experiments.starts.factors --plot

A layer reaches a database if some of several random starts holds it (tau = 0.95, every fact), and
its reliability is the share of starts that do. Training may fail for reasons that have nothing to
do with capacity, so that laws over one start mix both. Fixed before the run:

* the pairs: those of the paper's plan, drawn anew (`REPLICATES`), so that neither databases nor
  pairs are those of `figures`; each from `STARTS` starts, by the best recipe, in four ways: W_Q and
  W_K trained, or frozen as they were drawn, each with attention scaled by 1 / sqrt(d_head_qk) and
  without, as in the paper;
* H1: over reach, the exponent of n_heads is within `WITHIN` of that of d_head_vo (layers of
  d_model >= 2, attention as in the paper, either trained or frozen: a pair is reached if a start of
  either holds it);
* H2: with the scale, the slope of the accuracy at 0.95 a dimension of d_head_qk is within
  `SLOPE`, by each recipe, at d_model 6 with the layers of `SLOPE_LAYERS` and fresh databases, one
  start each;
* H3: where (10) holds and d_model >= 2, some start holds the database by argmax: up to `MOST` of
  them, W_Q and W_K trained, and then as many with both frozen.

A hypothesis *holds here* if the whole interval lies within its limits, and for H3 if no pair is
left. Intervals are over databases and layers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.database import random_database
from capacity.evaluator import (
    fit_size_law,
    percentile_interval,
    pooled_starts,
    reach_and_reliability,
)
from capacity.layer import LayerConfig, Recipe, Starts, layer_rank_assumed
from capacity.rank import paper_bound
from capacity.sweep import Plan, Run
from experiments.common.conclusions import factor_of, slopes_of, with_mean
from experiments.common.harness import BEST, PLAIN, Tables, main, paper_plan, sweep
from experiments.starts.factors_plots import drawn

REPLICATES, STARTS, MOST = (3, 4, 5), 8, 32
TAU, WITHIN, SLOPE = 0.95, 0.25, 0.003
QUERY_KEY = ("W_Q", "W_K")
PAIR = ("database_id", "layer_id")
SIZES = ("d_model", "n_heads", "d_head_vo", "d_head_qk")
SLOPE_LAYERS = [
    LayerConfig(6, heads, qk, vo)
    for heads, vo, qk in product((1, 2, 4), (1, 3, 5), (1, 2, 3, 4, 5, 6))
]
SLOPE_DATABASES = 32
RECIPES = {"best": BEST, "plain": PLAIN}
COLUMNS = [
    "database_id", "layer_id", *SIZES, "n_triples", "database_rank_bound", "layer_rank_bound",
    "status", "accuracy_argmax", "accuracy_p95", "starts", "until", "held_at", "start",
    "starts_tried", "held_by_any", "share_of_starts", "scaled", "is_frozen",
]  # fmt: skip


def run(smoke: bool) -> Tables:
    """The pairs in four ways, the slopes of d_head_qk, and the pairs where (10) holds."""
    few: dict[str, Any] = {"pairs": 60, "databases": 20, "epochs": 500} if smoke else {}
    starts = Starts(2 if smoke else STARTS, held_at=TAU)
    replicates = REPLICATES[:1] if smoke else REPLICATES
    plans = [paper_plan(replicate, BEST, **few) for replicate in replicates]
    tables = [
        _swept("starts-pairs", plan, _in_four_ways(plan, starts)).assign(replicate=replicate)
        for replicate, plan in zip(replicates, plans, strict=True)
    ]
    return {
        "pairs": pd.concat(tables, ignore_index=True),
        "slopes": _slopes_of_d_head_qk(plans[0], smoke),
        "ten": pd.concat([_where_10_holds(plan, smoke) for plan in plans], ignore_index=True),
    }


def _in_four_ways(plan: Plan, starts: Starts) -> list[Run]:
    return [
        replace(
            run, starts=starts, layer=replace(run.layer, scale=scaled),
            recipe=replace(run.recipe, frozen=frozen),
        )
        for run in plan.runs
        for scaled, frozen in product((False, True), ((), QUERY_KEY))
    ]  # fmt: skip


def _swept(name: str, plan: Plan, runs: list[Run]) -> pd.DataFrame:
    """Rows of some runs, with a layer's name without its scale."""
    table = sweep(name, replace(plan, runs=tuple(runs)))
    frozen = table["recipe_frozen"] != ""
    plain = table["layer_id"].str.removesuffix("-scale")
    return table.assign(scaled=table["scale"], is_frozen=frozen, layer_id=plain)[COLUMNS]


def _slopes_of_d_head_qk(plan: Plan, smoke: bool) -> pd.DataFrame:
    """One start of each layer on each of some fresh databases, with the scale and without."""
    databases = [
        random_database(np.random.default_rng([54, seed]), triples=(60, 200))
        for seed in range(3 if smoke else SLOPE_DATABASES)
    ]
    tables = []
    for kind, recipe in RECIPES.items():
        chosen = Recipe(**{**recipe, **({"epochs": 60} if smoke else {})})
        runs = [
            Run(f"slopes-{number}", db, replace(layer, scale=scaled), number, chosen)
            for number, db in enumerate(databases)
            for layer in SLOPE_LAYERS[:: 5 if smoke else 1]
            for scaled in (False, True)
        ]
        tables.append(_swept("starts-slopes", plan, runs).assign(kind=kind))
    return pd.concat(tables, ignore_index=True)


def _where_10_holds(plan: Plan, smoke: bool) -> pd.DataFrame:
    """Pairs of d_model >= 2 where (10) holds, until a start holds by argmax."""
    starts = Starts(3 if smoke else MOST, "held", "argmax")
    runs = [
        replace(run, starts=starts)
        for run in plan.runs
        if run.layer.d_model > 1 and paper_bound(run.database) <= layer_rank_assumed(run.layer)
    ]
    trained = _swept("starts-ten", plan, runs)
    failed = trained[~trained["held_by_any"]]
    pairs = set(zip(failed["database_id"], failed["layer_id"], strict=True))
    left = [
        replace(run, recipe=replace(run.recipe, frozen=QUERY_KEY))
        for run in runs
        if (run.database_id, run.layer.name) in pairs
    ]
    return pd.concat([trained, *([_swept("starts-ten", plan, left)] if left else [])])


def numbers(tables: Tables) -> dict[str, Any]:
    """The four ways, and a verdict for each hypothesis."""
    pairs = tables["pairs"]
    wide = pairs[pairs["d_model"] > 1]
    ways = {
        f"{'frozen' if frozen else 'trained'}, {'scaled' if scaled else 'as in the paper'}": part
        for (frozen, scaled), part in wide.groupby(["is_frozen", "scaled"])
    }
    ways["either, as in the paper"] = either(wide[~wide["scaled"]])
    found = {name: _way(part) for name, part in ways.items()}
    slopes = {
        kind: {
            "scaled" if scaled else "as in the paper": _slope(part)
            for scaled, part in of_kind.groupby("scaled")
        }
        for kind, of_kind in tables["slopes"].groupby("kind")
    }
    ten = _ten(tables["ten"])
    difference = found["either, as in the paper"]["reach"]["n_heads_less_d_head_vo"]
    return {
        "ways": found,
        "slopes_of_d_head_qk": slopes,
        "where_10_holds": ten,
        "hypotheses": {
            "H1": _verdict(difference["interval"], WITHIN),
            "H2": {kind: _verdict(of["scaled"]["interval"], SLOPE) for kind, of in slopes.items()},
            "H3": "holds here" if ten["left"] == 0 else "not seen here",
        },
    }


def either(table: pd.DataFrame) -> pd.DataFrame:
    """Runs of a pair with W_Q and W_K trained, and with both frozen, as starts of one run."""
    return pooled_starts(table, TAU, pair=PAIR)


def _way(table: pd.DataFrame) -> dict[str, Any]:
    found = reach_and_reliability(table, TAU, pair=PAIR)
    return {
        "reached": {"mean": found.reach, "interval": found.reach_interval, "starts": found.of},
        "reliability": {"mean": found.reliability, "interval": found.reliability_interval},
        "pairs": found.n_pairs,
        "reach": {**_exponents(table, "reach"), **factor_of(table, TAU)},
        "one start": _exponents(table, "reliability"),
    }


def _exponents(table: pd.DataFrame, by: Any) -> dict[str, Any]:
    """Exponents of the sizes in the triples that are held half of the time."""
    law = fit_size_law(table, SIZES, TAU, by=by)
    ends = law.exponent_intervals()
    drawn = [each.exponents["n_heads"] - each.exponents["d_head_vo"] for each in law.resampled]
    exponents = law.law.exponents
    return {
        "exponents": {
            name: {"value": value, "interval": ends[name]} for name, value in exponents.items()
        },
        "n_heads_less_d_head_vo": {
            "value": exponents["n_heads"] - exponents["d_head_vo"],
            "interval": percentile_interval(drawn),
        },
    }


def _slope(table: pd.DataFrame) -> dict[str, Any]:
    """Accuracy at 0.95 for one more dimension of d_head_qk."""
    ready = table.assign(
        qk=table["d_head_qk"], size=np.log(table["n_triples"]),
        accuracy=table["accuracy_p95"].fillna(0.0),
    )  # fmt: skip
    return slopes_of(ready, "accuracy ~ size + qk + C(d_head_vo):C(n_heads)", ["qk"])["qk"]


def _ten(table: pd.DataFrame) -> dict[str, Any]:
    trained, frozen = (table[table["is_frozen"] == is_frozen] for is_frozen in (False, True))
    first = trained["held_by_any"] & (trained["starts_tried"] == 1)
    return {
        "pairs": len(trained),
        "held_by_the_first_start": with_mean(first, trained),
        "held_by_some_trained_start": int(trained["held_by_any"].sum()),
        "held_by_some_frozen_start_alone": int(frozen["held_by_any"].sum()),
        "left": int(len(trained) - trained["held_by_any"].sum() - frozen["held_by_any"].sum()),
        "most_starts": int(trained["starts_tried"].max()),
    }


def _verdict(interval: tuple[float, float], within: float) -> str:
    low, high = interval
    return "holds here" if -within <= low and high <= within else "not seen here"


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Reach beside reliability."""
    return drawn(tables["pairs"], found)


if __name__ == "__main__":
    main("starts", run, numbers, plot)
