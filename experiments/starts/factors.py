"""Capacity or trainability: what the sizes of a layer decide once starts are counted.

    python -m experiments.starts.factors --run
    python -m experiments.starts.factors --plot

A layer reaches a database if some of several random starts holds it (tau = 0.95, every fact), and
its reliability is the share of starts that do. Training may fail for reasons that have nothing to
do with capacity, so that laws over one start mix both. Fixed before the run:

* the pairs: those of the paper's plan, drawn anew (`REPLICATES`), so that neither databases nor
  pairs are those of `figures`; each from `STARTS` starts, by the best recipe, in four ways: W_Q and
  W_K trained, or frozen as they were drawn, each with attention scaled by 1 / sqrt(d_head_qk) and
  without, as in the paper. Trained and frozen starts of a pair are the same draws;
* H1: over reach, the exponent of n_heads is within `WITHIN` of that of d_head_vo (layers of
  d_model >= 2, attention as in the paper, each draw trained and frozen: a pair is reached if a
  start of either holds it);
* H2: with the scale, the slope of the accuracy at 0.95 a dimension of d_head_qk is within
  `SLOPE`, by each recipe, at d_model 6 with the layers of `SLOPE_LAYERS` and fresh databases, one
  start each. A pilot of 54 of these layers had intervals as wide as the limits, whatever the slope,
  so that all 144 are trained;
* H3: where (10) holds and d_model >= 2, some start holds the database by argmax: up to `MOST` of
  them, W_Q and W_K trained, and then as many with both frozen.

A hypothesis *holds here* if the whole interval lies within its limits, and for H3 if no pair is
left. Intervals are over databases and layers. Beside them:

* every `EVERY`-th pair of the first replicate by both recipes for `LONG` epochs, where 2,000 may be
  too few for the plain one to converge;
* the pairs of `figures` (`OLD`) trained and frozen, so that what its page says of one start stands
  beside what several say of the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

REPLICATES, OLD, STARTS, MOST = (3, 4, 5), (0, 1, 2), 8, 32
EVERY, LONG = 24, 20_000
TAU, WITHIN, SLOPE = 0.95, 0.25, 0.003
QUERY_KEY = ("W_Q", "W_K")
PAIR = ("database_id", "layer_id")
SIZES = ("d_model", "n_heads", "d_head_vo", "d_head_qk")
SLOPE_LAYERS = [
    LayerConfig(6, heads, qk, vo)
    for heads, vo, qk in product((1, 2, 3, 4), range(1, 7), range(1, 7))
]
SLOPE_DATABASES = 48
RECIPES = {"best": BEST, "plain": PLAIN}
COLUMNS = [
    "database_id", "layer_id", *SIZES, "n_triples", "database_rank_bound", "layer_rank_bound",
    "status", "accuracy_argmax", "accuracy_p95", "starts", "until", "held_at", "start",
    "starts_tried", "held_by_any", "share_of_starts", "scaled", "is_frozen", "kind",
]  # fmt: skip


def run(smoke: bool) -> Tables:
    """The pairs, the slopes of d_head_qk, and the pairs where (10) holds."""
    few: dict[str, Any] = {"pairs": 60, "databases": 20, "epochs": 500} if smoke else {}
    fresh, old = (
        {n: paper_plan(n, BEST, **few).runs for n in (numbers[:1] if smoke else numbers)}
        for numbers in (REPLICATES, OLD)
    )
    starts = Starts(2 if smoke else STARTS, held_at=TAU)
    long = [
        replace(run, recipe=Recipe(**{**recipe, "epochs": few.get("epochs", LONG)}))
        for recipe in RECIPES.values()
        for run in fresh[REPLICATES[0]][::EVERY]
    ]
    return {
        "pairs": _each("starts-pairs", fresh, lambda runs: _in_ways(runs, starts, (False, True))),
        "old": _each("starts-old", old, lambda runs: _in_ways(runs, starts, (False,))),
        "long": _swept("starts-long", _in_ways(long, starts, (False, True))),
        "slopes": _slopes_of_d_head_qk(smoke),
        "ten": pd.concat(
            [_where_10_holds(n, runs, smoke) for n, runs in {**fresh, **old}.items()],
            ignore_index=True,
        ),
    }


def _each(
    name: str, plans: Mapping[int, Sequence[Run]], ways: Callable[[Sequence[Run]], list[Run]]
) -> pd.DataFrame:
    """Rows of each replicate, with its number."""
    tables = [_swept(f"{name}-{n}", ways(runs)).assign(replicate=n) for n, runs in plans.items()]
    return pd.concat(tables, ignore_index=True)


def _in_ways(runs: Sequence[Run], starts: Starts, scales: tuple[bool, ...]) -> list[Run]:
    """Runs trained and frozen, with each scale."""
    return [
        replace(
            run, starts=starts, layer=replace(run.layer, scale=scaled),
            recipe=replace(run.recipe, frozen=frozen),
        )
        for run in runs
        for scaled, frozen in product(scales, ((), QUERY_KEY))
    ]  # fmt: skip


def _swept(name: str, runs: Sequence[Run]) -> pd.DataFrame:
    """Rows of some runs, with a layer's name without its scale."""
    table = sweep(name, Plan(runs=tuple(runs), config={"experiment": name}))
    frozen = table["recipe_frozen"] != ""
    plain = table["layer_id"].str.removesuffix("-scale")
    kind = np.where(table["recipe_learning_rate"] == BEST["learning_rate"], "best", "plain")
    return table.assign(scaled=table["scale"], is_frozen=frozen, layer_id=plain, kind=kind)[COLUMNS]


def _slopes_of_d_head_qk(smoke: bool) -> pd.DataFrame:
    """One start of each layer on each of some fresh databases, with the scale and without."""
    databases = [
        random_database(np.random.default_rng([54, seed]), triples=(60, 200))
        for seed in range(3 if smoke else SLOPE_DATABASES)
    ]
    runs = [
        Run(
            f"slopes-{number}", db, replace(layer, scale=scaled), number,
            Recipe(**{**recipe, **({"epochs": 60} if smoke else {})}),
        )
        for recipe in RECIPES.values()
        for number, db in enumerate(databases)
        for layer in SLOPE_LAYERS[:: 13 if smoke else 1]
        for scaled in (False, True)
    ]  # fmt: skip
    return _swept("starts-slopes", runs)


def _where_10_holds(replicate: int, runs: Sequence[Run], smoke: bool) -> pd.DataFrame:
    """Pairs of d_model >= 2 where (10) holds, until a start holds by argmax."""
    starts = Starts(3 if smoke else MOST, "held", "argmax")
    name = f"starts-ten-{replicate}"
    asked = [
        replace(run, starts=starts)
        for run in runs
        if run.layer.d_model > 1 and paper_bound(run.database) <= layer_rank_assumed(run.layer)
    ]
    trained = _swept(name, asked)
    failed = trained[~trained["held_by_any"]]
    pairs = set(zip(failed["database_id"], failed["layer_id"], strict=True))
    left = [
        replace(run, recipe=replace(run.recipe, frozen=QUERY_KEY))
        for run in asked
        if (run.database_id, run.layer.name) in pairs
    ]
    tables = [trained, *([_swept(f"{name}-frozen", left)] if left else [])]
    return pd.concat(tables).assign(replicate=replicate)


def numbers(tables: Tables) -> dict[str, Any]:
    """The four ways, and a verdict for each hypothesis."""
    found = _ways(tables["pairs"])
    slopes = {
        kind: {
            "scaled" if scaled else "as in the paper": _slope(part)
            for scaled, part in of_kind.groupby("scaled")
        }
        for kind, of_kind in tables["slopes"].groupby("kind")
    }
    is_old = tables["ten"]["replicate"].isin(OLD)
    ten = _ten(tables["ten"][~is_old])
    difference = found["either, as in the paper"]["reach"]["n_heads_less_d_head_vo"]
    return {
        "ways": found,
        "old": _ways(tables["old"]),
        "long": {
            str(kind): {name: _shares(part) for name, part in _parts(of_kind).items()}
            for kind, of_kind in tables["long"].groupby("kind")
        },
        "slopes_of_d_head_qk": slopes,
        "where_10_holds": {"fresh": ten, "old": _ten(tables["ten"][is_old])},
        "hypotheses": {
            "H1": _verdict(difference["interval"], WITHIN),
            "H2": {kind: _verdict(of["scaled"]["interval"], SLOPE) for kind, of in slopes.items()},
            "H3": "holds here" if ten["left"] == 0 else "not seen here",
        },
    }


def _parts(pairs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Pairs of d_model >= 2 by the ways that they were trained in."""
    wide = pairs[pairs["d_model"] > 1]
    ways = {
        f"{'frozen' if frozen else 'trained'}, {'scaled' if scaled else 'as in the paper'}": part
        for (frozen, scaled), part in wide.groupby(["is_frozen", "scaled"])
    }
    return {**ways, "either, as in the paper": either(wide[~wide["scaled"]])}


def _ways(pairs: pd.DataFrame) -> dict[str, Any]:
    return {name: _way(part) for name, part in _parts(pairs).items()}


def either(table: pd.DataFrame) -> pd.DataFrame:
    """Draws of a pair, each trained with and without W_Q and W_K, as starts of one run.

    Two of a draw aren't independent, so that only the reach of all of them is an estimate.
    """
    return pooled_starts(table, TAU, pair=PAIR)


def _way(table: pd.DataFrame) -> dict[str, Any]:
    return {
        **_shares(table),
        "reach": {**_exponents(table, "reach"), **factor_of(table, TAU)},
        "one start": _exponents(table, "reliability"),
    }


def _shares(table: pd.DataFrame) -> dict[str, Any]:
    found = reach_and_reliability(table, TAU, pair=PAIR)
    return {
        "reached": {"mean": found.reach, "interval": found.reach_interval, "starts": found.of},
        "reliability": {"mean": found.reliability, "interval": found.reliability_interval},
        "pairs": found.n_pairs,
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
