"""Facts written by hand, and what training needs to hold the same.

    python experiments/by_hand.py --run     (ten minutes on two cores)
    python experiments/by_hand.py --plot

Both constructions of `capacity.layer.construct` for all 548 databases of the paper's experiment, in
float32 and float64. Then layers of just those sizes are trained from random weights, and wider ones
with the same heads, by the best recipe.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import seaborn as sns
import torch
from experiment import BEST, PAPER, Tables, main, papers, with_mean
from matplotlib.figure import Figure

from capacity import Database, LayerConfig, Recipe
from capacity.cli.output import bar
from capacity.evaluator import memorised, memorises
from capacity.layer import (
    AttentionLayer,
    layer_rank_bound,
    layer_rank_upper,
    store_in_query_key,
    store_in_value_output,
)
from capacity.rank import paper_bound
from capacity.sweep import Run, make_plan, measure_runs

TAU = 0.99
WAYS = {"query-key": store_in_query_key, "value-output": store_in_value_output}
WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0)


def run(smoke: bool) -> Tables:
    """Constructions for all databases, and training of the same sizes for some."""
    plan = make_plan(papers(0, PAPER, **({"pairs": 20, "databases": 6} if smoke else {})))
    databases = {run.database_id: run.database for run in plan.runs}
    written = [row for name, db in databases.items() for row in _written(name, db)]
    few = dict(list(databases.items())[:: 3 if smoke else 12])
    recipe = Recipe(**{**BEST, **({"epochs": 30} if smoke else {})})
    runs, labels = [], []
    for name, db in few.items():
        for way in WAYS:
            exact = _config(db, way)
            for width in WIDTHS[: 1 if smoke else None]:
                layer = replace(exact, d_model=round(width * exact.d_model))
                runs.append(Run(name, db, layer, 0, recipe))
                labels.append({"way": way, "width": width})
    with bar() as tell:
        trained = measure_runs(runs, _nothing, workers=2, progress=partial(tell, "runs"))
    return {
        "written": pd.DataFrame(written),
        "trained": pd.concat([trained, pd.DataFrame(labels)], axis=1),
    }


def _config(db: Database, way: str) -> LayerConfig:
    return WAYS[way](db, TAU).config


def _nothing(_run: Run, _layer: AttentionLayer) -> dict[str, Any]:
    return {}


def _written(name: str, db: Database) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for way, write in WAYS.items():
        layers = {kind: write(db, TAU, dtype=kind) for kind in (torch.float32, torch.float64)}
        config = layers[torch.float64].config
        rows.append(
            {
                "database_id": name, "way": way, "n_triples": db.n_triples,
                "n_objects": len(db.object_ids), "n_predicates": len(db.predicate_ids),
                "database_rank_bound": paper_bound(db),
                "layer_rank_bound": layer_rank_bound(config),
                "layer_rank_upper": layer_rank_upper(config, *db.shape),
                "d_model": config.d_model, "n_heads": config.n_heads,
                "d_head_qk": config.d_head_qk, "n_parameters": config.n_parameters,
                "n_embedding_parameters": config.n_embedding_parameters(db.n_tokens),
                "float32": memorises(layers[torch.float32], db, TAU),
                "float64": memorises(layers[torch.float64], db, TAU),
            }
        )  # fmt: skip
    return rows


def numbers(tables: Tables) -> dict[str, Any]:
    """How many databases are held, by which sizes, and what training makes of these."""
    written, trained = tables["written"], tables["trained"]
    found: dict[str, Any] = {}
    for way, part in written.groupby("way"):
        groups = part["database_id"]
        learnt = trained[trained["way"] == way]
        found[str(way)] = {
            "databases": len(part),
            "memorised_float32": int(part["float32"].sum()),
            "memorised_float64": int(part["float64"].sum()),
            "mean_d_model": part["d_model"].mean(),
            "mean_n_parameters": part["n_parameters"].mean(),
            "database_rank_bound_over_equation_9": with_mean(
                part["database_rank_bound"] / part["layer_rank_bound"], groups
            ),
            "database_rank_bound_exceeds_equation_9": with_mean(
                part["database_rank_bound"] > part["layer_rank_bound"], groups
            ),
            "trained_to_memorise_by_width": {
                f"{width:g}": {
                    str(tau): with_mean(memorised(runs, tau), runs["database_id"])
                    for tau in ("argmax", TAU)
                }
                for width, runs in learnt.groupby("width")
            },
        }
    return found


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes of databases over equation (9), written; shares memorised by width, trained."""
    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    sns.scatterplot(tables["written"], x="layer_rank_bound", y="database_rank_bound", hue="way",
                    s=8, linewidth=0, ax=left)  # fmt: skip
    top = int(tables["written"]["layer_rank_bound"].max())
    left.plot([0, top], [0, top], color="crimson", linewidth=1)
    left.set(xlabel="layer rank bound (eq. 9) of the layer written by hand",
             ylabel="database rank bound (Prop. 2.1)", title="all memorised at 0.99")  # fmt: skip
    rows = [
        {"way": way, "width": float(width), "tau": tau, "memorised": one["mean"]}
        for way, of in found.items()
        if isinstance(of, dict)
        for width, by in of["trained_to_memorise_by_width"].items()
        for tau, one in by.items()
    ]
    sns.lineplot(pd.DataFrame(rows), x="width", y="memorised", hue="way", style="tau",
                 markers=True, ax=right)  # fmt: skip
    right.set(xlabel="d_model, in units of the construction's", ylim=(0, 1),
              ylabel="share of databases memorised", title="the same heads, trained")  # fmt: skip
    return {"sizes": figure}


if __name__ == "__main__":
    main("by_hand", run, numbers, plot)
