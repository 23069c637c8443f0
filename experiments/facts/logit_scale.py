"""tau is a logit scale: what recipe, training time and a factor on W_U do to the accuracy grids.

    python -m experiments.facts.logit_scale --run     (three minutes on two cores)
    python -m experiments.facts.logit_scale --plot

Every fourth of the paper's 3,947 pairs, from the same weights, by several recipes, none of which
stops early. The smallest scale at tau is the least c with which c W_U tau-memorises
(`capacity.evaluator.scale`); it needs no new training, and no rank depends on c.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from capacity.evaluator import accuracy_column, accuracy_grid, memorised_runs
from capacity.plots import plot_accuracy_grids
from experiments.common.harness import BEST, Tables, factor_of, main, papers, sweep, with_mean

RECIPES: dict[str, dict[str, Any]] = {
    "Adam 1e-3, 500 epochs": {"epochs": 500},
    "Adam 1e-3, 2,000 epochs (paper)": {},
    "Adam 1e-3, 5,000 epochs": {"epochs": 5000},
    "Adam 1e-3, 20,000 epochs": {"epochs": 20_000},
    "Adam 5e-4": {"learning_rate": 5e-4},
    "Adam 1e-2": {"learning_rate": 1e-2},
    "AdamW 1e-2, decay 0.1": {"learning_rate": 1e-2, "optimizer": "adamw", "weight_decay": 0.1},
    "Adam 3e-2, cosine, beta2 0.9 (best)": BEST,
    "best, object position alone": {**BEST, "positions": "object"},
}
TAUS = (0.75, 0.95, 0.99)
SCALES = (1, 2, 4, 8, 16)
# whose grids are drawn
CHOSEN = (0, 1, 3, 5, 7)


def run(smoke: bool) -> Tables:
    """One sweep a recipe, over the same pairs."""
    few: dict[str, Any] = {"pairs": 60, "databases": 20, "epochs": 60} if smoke else {"every": 4}
    return {
        "runs": pd.concat(
            sweep("logit-scale", papers(0, {**recipe, "stop_tau": 0}, **few)).assign(by=name)
            for name, recipe in RECIPES.items()
        )
    }


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares memorised and capacity factors, by recipe and by scale."""
    table = tables["runs"]
    return {"recipes": {str(n): _of_recipe(part) for n, part in table.groupby("by", sort=False)}}


def _of_recipe(table: pd.DataFrame) -> dict[str, Any]:
    groups = table["database_id"]
    inside = table[table["database_rank_bound"] <= table["layer_rank_bound"]]
    taus = ("argmax", *TAUS)
    return {
        "mean_accuracy": {
            str(tau): with_mean(table[accuracy_column(tau)].fillna(0), groups) for tau in taus
        },
        "memorised": {str(tau): with_mean(memorised_runs(table, tau), groups) for tau in taus},
        "memorised_of_runs_whose_database_bound_is_below_their_layer_bound": {
            str(tau): with_mean(memorised_runs(inside, tau), inside["database_id"]) for tau in taus
        },
        "memorised_at_0.99_with_c_times_W_U": {
            str(c): with_mean(table["scale_p99"] <= c, groups) for c in SCALES
        },
        "median_smallest_scale_at_0.99_where_argmax_is_right": table.loc[
            np.isfinite(table["scale_p99"]), "scale_p99"
        ].median(),
        "capacity_factor": {str(tau): factor_of(table, tau) for tau in taus},
        "diverged": int((table["status"] == "diverged").sum()),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares memorised by tau and recipe and by scale, and the grids at 0.99."""
    table = tables["runs"]
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    shares = pd.DataFrame(
        {"by": name, "tau": tau, "memorised": one["mean"]}
        for name, of in found["recipes"].items()
        for tau, one in of["memorised"].items()
    )
    sns.lineplot(shares, x="tau", y="memorised", hue="by", marker="o", ax=left, legend=False)
    left.set(title="as trained", ylabel="share of runs that memorise", ylim=(0, 1))
    scales = pd.DataFrame(
        {"by": name, "c": int(c), "memorised": one["mean"]}
        for name, of in found["recipes"].items()
        for c, one in of["memorised_at_0.99_with_c_times_W_U"].items()
    )
    sns.lineplot(scales, x="c", y="memorised", hue="by", marker="o", ax=right)
    right.set_xscale("log", base=2)
    right.set(title="at 0.99, with W_U multiplied by c", ylabel="", ylim=(0, 1))
    sns.move_legend(right, "center left", bbox_to_anchor=(1, 0.5), frameon=False, title="")
    names = list(RECIPES)
    grids = {
        name: accuracy_grid(table[table["by"] == name], 0.99) for name in [names[i] for i in CHOSEN]
    }
    # the share of runs that memorise at 0.99, once W_U is multiplied
    papers_own = table[table["by"] == names[1]]
    scaled = {
        f"{names[1]}, W_U times {c}": accuracy_grid(
            papers_own.assign(accuracy_p99=(papers_own["scale_p99"] <= c).astype(float)),
            0.99,
        )
        for c in (1, 2, 4)
    }
    scaled["any c"] = accuracy_grid(
        papers_own.assign(accuracy_p99=np.isfinite(papers_own["scale_p99"]).astype(float)),
        0.99,
    )
    return {
        "shares": figure,
        "grids-0.99": plot_accuracy_grids(grids),
        "grids-scaled": plot_accuracy_grids(scaled, of="share of runs that memorise at 0.99"),
    }


if __name__ == "__main__":
    main("logit_scale", run, numbers, plot)
