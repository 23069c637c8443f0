"""The least rank of L among layers that hold their database, beside Proposition 2.1.

    python -m experiments.held_layers.least_rank --run     (ten minutes on one core)
    python -m experiments.held_layers.least_rank --plot

Wong 2025, section 2.1, expects that Proposition 2.1 over-estimates by much the rank that a layer
needs, since layers seek low-rank representations of D. From below, every tensor whose argmax is the
fact at each pair has at least the rank that `capacity.dimension` proves for CP. From above, for
each database:

* *by hand*: `store_in_query_key` holds it with rank(L) <= min(|K|, |Q|) + 1, a proof;
* *CP*: the least dimension found whose scores put each fact first, integers, checked (both are
  in the committed table of `argmax_rank`);
* *trained*: of the layers of `GRID`, each from `STARTS` starts until one holds the database (tau =
  0.95, best recipe), the least upper end of rank(L): singular values above `THRESHOLD` of the
  largest, or the proved `layer_rank_upper` if that is less;
* *truncated*: the same layers with W_U projected to the directions in which the logits at the facts
  are largest, as few as still put every fact first: a layer again, whose L is measured;
* *penalised*: the same layers trained further with a penalty, each of `PENALTIES`, on the singular
  values of the K x Q slices that L is made of, as many as d_model, whose ranks bound rank(L) by
  their sum; of those that still put every fact first, truncated, the least;
* *kept*: as few of these singular values as still put every fact first. The others are far from
  zero in no layer that attends softly; without them it is a tensor of that rank beside a layer's
  L, and no layer's. Of the layers as trained, and as penalised.

Fixed before the run: every `EVERY`th of the databases of `figures` (replicate 0). A database that
no layer of the grid holds has no trained rank, and is counted.

* H1: the least rank trained or truncated is below half of Proposition 2.1, in the mean ratio;
* H2: it is below the certified lower end of rank(D) in more than half of the databases;
* H3: with the penalty the rank of what is kept is at most `LOWERED` times that without, in the mean
  ratio over databases of the least of each. A pilot on four layers of two other databases had some
  half of it.

A hypothesis *holds here* if the whole interval lies on its side; intervals are over databases.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity import Database, Recipe
from capacity.evaluator import memorises
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    Starts,
)
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.rank import paper_bound
from capacity.sweep import Run
from experiments.common.bisections import trained_without_search
from experiments.common.conclusions import verdict, with_mean
from experiments.common.drawing import REFERENCE, headline, told
from experiments.common.harness import BEST, PLAIN, Tables, committed, main, paper_plan
from experiments.held_layers.layers import STARTS, TAU
from experiments.held_layers.ranks import kept_rank, penalised_layer, rank_upper, truncated_layer

EVERY = 11
PENALTIES, LOWERED = (0.1, 1.0), 0.9
FURTHER = 300
# in order of d_model, with heads enough to reach it
GRID = [LayerConfig(d, heads, 2, min(2, d)) for d in (2, 3, 4, 6) for heads in (2, 4)]
WAYS = {
    "by_hand": "by hand", "cp": "CP", "least": "trained, or truncated",
    "kept_penalised": "kept, with a penalty",
}  # fmt: skip
MEASURED = ["rank", "rank_truncated", "rank_penalised", "kept", "kept_penalised"]


def run(smoke: bool) -> Tables:
    """A row for each database and layer of the grid."""
    some: dict[str, Any] = {"pairs": 60, "databases": 5} if smoke else {}
    databases = {run.database_id: run.database for run in paper_plan(0, PLAIN, **some).runs}
    recipe = Recipe(**{**BEST, **({"epochs": 400} if smoke else {})})
    starts = Starts(2 if smoke else STARTS, "held", TAU)
    tasks = [
        Run(name, db, layer, 0, recipe, starts=starts)
        for name, db in list(databases.items())[:: 2 if smoke else EVERY]
        for layer in (GRID[-2:] if smoke else GRID)
    ]
    rows: list[dict[str, Any]] = []
    with bar() as tell:
        for number, each in enumerate(tasks, start=1):
            rows.append(row_of(each))
            tell("least_rank", number, len(tasks))
    return {"layers": pd.DataFrame(rows)}


def row_of(run: Run) -> dict[str, Any]:
    """One layer on one database, with the rank of its tensor if it holds it."""
    row, layer = trained_without_search(run)
    db = run.database
    found: dict[str, Any] = {
        "database_id": run.database_id, "layer_id": run.layer.name, "d_model": run.layer.d_model,
        "n_heads": run.layer.n_heads, "d_head_qk": run.layer.d_head_qk,
        "d_head_vo": run.layer.d_head_vo, "n_triples": db.n_triples,
        "database_rank_bound": paper_bound(db), "least_side": min(db.shape[:2]),
        "held_by_any": row["held_by_any"],
    }  # fmt: skip
    if row["held_by_any"]:
        with torch.no_grad():
            trained = layer.double()
            truncated, directions = truncated_layer(trained, db)
            found |= {
                "rank": rank_upper(trained, run.layer.d_model, db),
                "rank_truncated": rank_upper(truncated, directions, db),
                "directions": directions,
            }
            found["kept"] = kept_rank(trained, db)
        found |= penalised(trained, db, min(FURTHER, run.recipe.epochs))
    return found


def penalised(layer: AttentionLayer, db: Database, epochs: int) -> dict[str, float]:
    """Least ranks of the layer trained further with a penalty; NaN if it always forgets."""
    ranks: list[tuple[int, int]] = []
    for penalty in PENALTIES:
        made = penalised_layer(layer, db, penalty, epochs)
        if memorises(made, db, "argmax"):
            with torch.no_grad():
                truncated, directions = truncated_layer(made, db)
                ranks.append((rank_upper(truncated, directions, db), kept_rank(made, db)))
    least = np.min(ranks, axis=0) if ranks else (math.nan, math.nan)
    return dict(zip(("rank_penalised", "kept_penalised"), map(float, least), strict=True))


def numbers(tables: Tables) -> dict[str, Any]:
    """The least ranks over Proposition 2.1, and a verdict for each hypothesis."""
    least = _least(tables["layers"])
    of = least[least["least"].notna()].reset_index(drop=True)
    bound = of["database_rank_bound"]
    shared = of[["database_id"]]
    below = with_mean(of["least"] < of["database_rank_lower"], shared)
    ratio = with_mean(of["least"] / bound, shared)
    # a layer that the penalty makes forget its facts is left as it was
    lowered = {
        name: with_mean(of[[name, f"{name}_penalised"]].min(axis=1) / of[name], shared)
        for name in ("rank", "kept")
    }
    every = tables["layers"]
    every = every[every["held_by_any"]]
    return {
        "databases": len(least),
        "held": len(of),
        "layers_that_hold": len(every),
        "layers_that_truncation_lowers": with_mean(every["rank_truncated"] < every["rank"], every),
        "over_proposition_2_1": {
            "certified from below": with_mean(of["argmax_necessary"] / bound, shared),
            **{name: with_mean(of[key] / bound, shared) for key, name in WAYS.items()},
            "trained": with_mean(of["rank"] / bound, shared),
            "kept": with_mean(of["kept"] / bound, shared),
        },
        "by_hand_below_proposition_2_1": with_mean(
            least["by_hand"] < least["database_rank_bound"], least[["database_id"]]
        ),
        "least_below_the_rank_of_D": below,
        "least_over_equation_9": with_mean(of["least"] / of["layer_rank_bound"], shared),
        "truncated_below_trained": with_mean(of["rank_truncated"] < of["rank"], shared),
        "penalty_lowers": lowered,
        "layers_that_forget": int(every["rank_penalised"].isna().sum()),
        "hypotheses": {
            "H1": verdict(ratio["interval"][1] < 0.5),
            "H2": verdict(below["interval"][0] > 0.5),
            "H3": verdict(lowered["kept"]["interval"][1] < LOWERED),
        },
    }


def _least(layers: pd.DataFrame) -> pd.DataFrame:
    """A row for each database, with the least rank of each kind."""
    known = committed("argmax_rank", "databases").merge(
        committed("figures", "plain").drop_duplicates("database_id")[
            ["database_id", "database_rank_lower"]
        ],
        on="database_id",
    )
    ready = layers.assign(
        layer_rank_bound=layers["d_model"] + layers["n_heads"] * layers["d_head_vo"]
    )
    columns = ["n_triples", "database_rank_bound", "least_side"]
    by = ready.groupby("database_id", sort=False)
    least = by[columns].first().join(by[MEASURED].min())
    smallest = ready[ready["held_by_any"]].groupby("database_id")["layer_rank_bound"].min()
    return (
        least.join(smallest)
        .reset_index()
        .merge(known, on="database_id", how="left")
        .assign(
            least=lambda of: of[["rank", "rank_truncated"]].min(axis=1),
            by_hand=lambda of: of["least_side"] + 1,
            cp=lambda of: of["argmax_rank"],
        )
    )


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Least ranks over the bound of Proposition 2.1, a point for each database."""
    least = _least(tables["layers"])
    figure = Figure(figsize=(WIDTH, 3.6))
    axes = figure.subplots()
    for (key, name), colour, marker in zip(WAYS.items(), COLOURS, MARKERS, strict=False):
        axes.plot(
            least["database_rank_bound"], least[key], marker, ms=3, color=colour, alpha=0.8,
            label=name,
        )  # fmt: skip
    axes.plot(
        least["database_rank_bound"], least["argmax_necessary"], "_", color=REFERENCE,
        label="certified from below",
    )  # fmt: skip
    most = least["database_rank_bound"].max()
    axes.plot([0, most], [0, most], color="0.7", lw=0.8, label="equal")
    axes.set(xlabel="bound of Proposition 2.1", ylabel="rank that holds the database")
    axes.legend()
    ratios = found["over_proposition_2_1"]
    headline(
        figure,
        f"Trained layers hold databases with {told(ratios['trained, or truncated'])} times the "
        f"rank of Proposition 2.1,\nlayers by hand with {told(ratios['by hand'])} times",
    )
    return {"ranks": figure}


if __name__ == "__main__":
    main("least_rank", run, numbers, plot)
