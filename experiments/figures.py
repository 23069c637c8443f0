"""The figures of the capacity paper, 2a to 4, and its four claims about them.

    python experiments/figures.py --run     (five minutes on two cores)
    python experiments/figures.py --plot

Three repetitions, each with databases and pairs of its own, by the paper's recipe as far as the
paper tells it (Adam, 2,000 epochs; 1e-3 is ours) and one by the best recipe of
``research/sweep-engine``. Intervals are over databases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from experiment import BEST, PAPER, REPLICATES, Tables, main, papers, sweep, with_mean
from matplotlib.figure import Figure

from capacity import random_database
from capacity.evaluator import (
    accuracy_grid,
    capacity_factor,
    interval,
    memorised,
    resampled,
)
from capacity.evaluator.grid import Threshold
from capacity.plots import plot_accuracy_grids
from capacity.rank import paper_bound

TAUS: tuple[Threshold, ...] = ("argmax", 0.5, 0.75, 0.95, 0.99)
POOLS = ((0.1, 0.3), (0.2, 0.5), (0.4, 1.0), (0.8, 1.0))


def run(smoke: bool) -> Tables:
    """Three repetitions by the paper's recipe, one by the best, and databases of other pools."""
    few = {"pairs": 60, "databases": 20, "epochs": 60} if smoke else {}

    def repeated(recipe: dict[str, Any], replicates: tuple[int, ...]) -> pd.DataFrame:
        configs = {r: papers(r, recipe, **few) for r in replicates}
        return pd.concat(sweep("figures", c).assign(replicate=r) for r, c in configs.items())

    rows = [
        {"pool": f"{pool[0]}-{pool[1]}", "n_triples": db.n_triples,
         "database_rank_bound": paper_bound(db)}
        for pool in POOLS
        for i in range(20 if smoke else 548)
        for db in [random_database(np.random.default_rng([0, i]), pool=pool, triples=(4, 200))]
    ]  # fmt: skip
    return {
        "paper": repeated(PAPER, REPLICATES[:1] if smoke else REPLICATES),
        "best": repeated(BEST, REPLICATES[:1]),
        "pools": pd.DataFrame(rows),
    }


def numbers(tables: Tables) -> dict[str, Any]:
    """Claims (i) to (iv), with intervals."""
    paper, best, pools = tables["paper"], tables["best"], tables["pools"]
    return {
        "claim_i_triples_a_unit_of_rank_bound": {
            str(pool): slope(table) for pool, table in pools.groupby("pool")
        },
        "figure_2b_rank_correlation_of_parameters_and_bound": _layers(paper)["n_parameters"].corr(
            _layers(paper)["layer_rank_bound"], "spearman"
        ),
        "claim_ii_argmax_accuracy_layers_to_10_databases_70_to_80": {
            kind: _cell(table) for kind, table in (("paper", paper), ("best", best))
        },
        "claim_iii_factors": [
            {"recipe": kind, "definition": definition, **_factor(table, tau, share)}
            for kind, table in (("paper", paper), ("best", best))
            for definition, share in (("all facts", 1.0), ("95 % of the facts", 0.95))
            for tau in TAUS
        ],
        "claim_iii_memorised_of_runs_whose_database_bound_is_below_their_layer_bound": {
            kind: {str(tau): _below(table, tau) for tau in TAUS}
            for kind, table in (("paper", paper), ("best", best))
        },
        "tau_just_above_half_against_argmax": {
            kind: with_mean(t["accuracy_argmax"] - t["accuracy_0.50"], t["database_id"])
            for kind, t in (("paper", paper), ("best", best))
        },
        "claim_iv_figure_4": {
            kind: _figure_4(table) for kind, table in (("paper", paper), ("best", best))
        },
        "accuracy_rises_with_layer_rank_bound": {str(tau): _rising(paper, tau) for tau in TAUS},
        "diverged": int((paper["status"] == "diverged").sum()),
    }


def slope(table: pd.DataFrame) -> dict[str, Any]:
    """Triples for a unit of the rank bound, by least squares through the origin."""
    x, y = (table[c].to_numpy(float) for c in ("database_rank_bound", "n_triples"))
    draws = [(w * x) @ y / ((w * x) @ x) for w in resampled(np.arange(len(x)), 1000)]
    fitted = x @ y / (x @ x) * x
    unexplained = ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return {"slope": x @ y / (x @ x), "interval": interval(draws), "r_squared": 1 - unexplained,
            "databases": len(x)}  # fmt: skip


def _layers(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop_duplicates("layer_id")


def _cell(table: pd.DataFrame) -> dict[str, Any]:
    chosen = table[(table["layer_rank_bound"] <= 10) & table["database_rank_bound"].between(71, 80)]
    return with_mean(chosen["accuracy_argmax"], chosen["database_id"])


def _factor(table: pd.DataFrame, tau: Threshold, share: float) -> dict[str, Any]:
    done = memorised(table, tau, share=share)
    if done.all() or not done.any():
        return {"tau": tau, "memorised": float(done.mean()), "factor": None}
    f = capacity_factor(table, tau, share=share, n_resamples=200)
    return {"tau": tau, "memorised": f.memorised, "factor": f.factor, "interval": f.factor_interval,
            "exponent": f.exponent, "exponent_interval": f.exponent_interval}  # fmt: skip


def _below(table: pd.DataFrame, tau: Threshold) -> dict[str, Any]:
    chosen = table[table["database_rank_bound"] <= table["layer_rank_bound"]]
    return with_mean(memorised(chosen, tau), chosen["database_id"])


def _means_by_head(table: pd.DataFrame) -> pd.DataFrame:
    return table.pivot_table("accuracy_0.95", "d_head_vo", "d_head_qk")


def _figure_4(table: pd.DataFrame) -> dict[str, Any]:
    """Means by d_head_vo and by d_head_qk, and how accuracy moves along the diagonals."""
    means = _means_by_head(table).to_numpy()
    # one more d_head_vo, one less d_head_qk
    steps = (means[1:, :-1] - means[:-1, 1:]).ravel()
    return {
        **{
            name: {str(v): with_mean(part["accuracy_0.95"], part["database_id"])
                   for v, part in table.groupby(name)}
            for name in ("d_head_vo", "d_head_qk")
        },
        "steps_from_qk_to_vo": len(steps),
        "steps_that_gain": int((steps > 0).sum()),
        "mean_step": float(steps.mean()),
    }  # fmt: skip


def _rising(table: pd.DataFrame, tau: Threshold) -> dict[str, Any]:
    """Steps to the right between neighbouring cells of the grid that gain accuracy."""
    grid = accuracy_grid(table, tau)
    enough = grid[grid["n_runs"] >= 20]
    wide = enough.pivot(index="database_rank_bin", columns="layer_rank_bin", values="accuracy")
    steps = wide.diff(axis=1).to_numpy()
    steps = steps[np.isfinite(steps)]
    return {
        "steps": len(steps),
        "gain": int((steps > 0).sum()),
        "lose_over_0.02": int((steps < -0.02).sum()),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 2, 3 and 4."""
    paper, best = tables["paper"], tables["best"]
    figure_2 = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure_2.subplots(1, 2)
    databases = paper.drop_duplicates(["replicate", "database_id"])
    sns.scatterplot(databases, x="database_rank_bound", y="n_triples", s=6, linewidth=0, ax=left)
    line = found["claim_i_triples_a_unit_of_rank_bound"]["0.4-1.0"]["slope"]
    top = int(databases["database_rank_bound"].max())
    left.plot([0, top], [0, line * top], color="crimson", label=f"{line:.2f} a unit of the bound")
    left.legend(frameon=False)
    left.set(xlabel="database rank bound (Prop. 2.1)", ylabel="triples", title="2a")
    sns.scatterplot(_layers(paper), x="layer_rank_bound", y="n_parameters", hue="d_model", s=12,
                    linewidth=0, palette="viridis", ax=right)  # fmt: skip
    right.set(xlabel="layer rank bound (eq. 9)", ylabel="non-embedding parameters", title="2b")
    grids = {f"{kind}, {_name(tau)}": accuracy_grid(table, tau)
             for kind, table in (("paper's recipe", paper), ("best recipe", best))
             for tau in TAUS}  # fmt: skip
    names = list(grids)
    figure_4 = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, (kind, table) in zip(
        figure_4.subplots(1, 2), (("paper's recipe", paper), ("best recipe", best)), strict=True
    ):
        means = _means_by_head(table).iloc[::-1]
        sns.heatmap(means, annot=True, fmt=".2f", cmap="viridis", ax=axes, vmin=0, vmax=1)
        axes.set_title(f"4, {kind}: mean accuracy, softmax ≥ 0.95")
    return {
        "2": figure_2,
        "3": plot_accuracy_grids({name: grids[name] for name in names[:5]}),
        "3-best-recipe": plot_accuracy_grids({name: grids[name] for name in names[5:]}),
        "4": figure_4,
    }


def _name(tau: Threshold) -> str:
    if isinstance(tau, str):
        return tau
    return f"softmax {'>' if tau == 0.5 else '≥'} {tau}"


if __name__ == "__main__":
    main("figures", run, numbers, plot)
