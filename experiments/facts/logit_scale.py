"""tau is a logit scale: what recipe, training time and a factor on W_U do to the accuracy grids.

    python -m experiments.facts.logit_scale --run     (three minutes on two cores)
    python -m experiments.facts.logit_scale --plot

Every fourth of the paper's 3,947 pairs, from the same weights, by several recipes, none of which
stops early. The smallest scale at tau is the least c with which c W_U tau-memorises
(`capacity.evaluator.accuracy`); it needs no new training, and no rank depends on c.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.evaluator import accuracy_column, accuracy_grid, memorised_runs
from capacity.plots import plot_accuracy_grids
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.conclusions import factor_of, with_mean
from experiments.common.drawing import estimates, headline, percent
from experiments.common.harness import BEST, Tables, main, paper_plan, sweep

RECIPES: dict[str, dict[str, Any]] = {
    "Adam 1e-3, 500 epochs": {"epochs": 500},
    "Adam 1e-3, 2,000 epochs (plain)": {},
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
NAMES = tuple(RECIPES)
CHOSEN = (0, 1, 3, 5, 7)


def run(smoke: bool) -> Tables:
    """One sweep a recipe, over the same pairs."""
    few: dict[str, Any] = {"pairs": 60, "databases": 20, "epochs": 60} if smoke else {"every": 4}
    return {
        "runs": pd.concat(
            sweep("logit-scale", paper_plan(0, {**recipe, "stop_tau": 0}, **few)).assign(by=name)
            for name, recipe in RECIPES.items()
        )
    }


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares memorised and capacity factors, by recipe and by scale."""
    table = tables["runs"]
    return {
        "runs_of_each_recipe": len(table) // len(RECIPES),
        "recipes": {str(n): _of_recipe(part) for n, part in table.groupby("by", sort=False)},
    }


def _of_recipe(table: pd.DataFrame) -> dict[str, Any]:
    finite = np.isfinite(table["scale_p99"])
    inside = table[table["database_rank_bound"] <= table["layer_rank_bound"]]
    taus = ("argmax", *TAUS)
    return {
        "mean_accuracy": {
            str(tau): with_mean(table[accuracy_column(tau)].fillna(0), table) for tau in taus
        },
        "memorised": {str(tau): with_mean(memorised_runs(table, tau), table) for tau in taus},
        "memorised_of_runs_whose_database_bound_is_below_their_layer_bound": {
            str(tau): with_mean(memorised_runs(inside, tau), inside) for tau in taus
        },
        "memorised_at_0.99_with_c_times_W_U": {
            str(c): with_mean(table["scale_p99"] <= c, table) for c in SCALES
        },
        "smallest_scale_at_0.99": {
            "finite": with_mean(finite, table),
            "n_finite": int(finite.sum()),
            "median_of_the_finite": table.loc[finite, "scale_p99"].median(),
            "above_10": int((table.loc[finite, "scale_p99"] > 10).sum()),
            "largest": table.loc[finite, "scale_p99"].max(),
        },
        "capacity_factor": {str(tau): factor_of(table, tau) for tau in taus},
        "diverged": int((table["status"] == "diverged").sum()),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares memorised by tau and recipe and by scale, and the grids at 0.99."""
    # recipes in their order, by the names that they have now
    conclusions = dict(zip(RECIPES, found["recipes"].values(), strict=True))
    parts = (part for _, part in tables["runs"].groupby("by", sort=False))
    runs = dict(zip(RECIPES, parts, strict=True))
    return {
        "shares": _shares(conclusions),
        "grids-0.99": _grids_of_recipes(runs),
        "grids-scaled": _grids_of_scales(runs[NAMES[1]]),
    }


def _shares(of: dict[str, Any]) -> Figure:
    """Shares memorised, a row for each recipe: by tau, and by the factor on W_U."""
    figure = Figure(figsize=(WIDTH, 4.9))
    left, right = figure.subplots(1, 2, sharey=True, sharex=True)
    rows = np.arange(len(of))[::-1]
    taus = ("argmax", *map(str, TAUS))
    for number, tau in enumerate(taus):
        estimates(
            left, rows + 0.15 * (1.5 - number), [one["memorised"][tau] for one in of.values()],
            colour=COLOURS[number], marker=MARKERS[number], across=True,
            label=tau if tau == "argmax" else f"tau = {tau}",
        )  # fmt: skip
    for number, c in enumerate(SCALES):
        estimates(
            right, rows + 0.13 * (2 - number),
            [one["memorised_at_0.99_with_c_times_W_U"][str(c)] for one in of.values()],
            # c = 1 is 0.99 as trained
            colour=COLOURS[number + 3], marker=MARKERS[number + 3], across=True, label=f"c = {c}",
        )  # fmt: skip
    line: dict[str, Any] = {"marker": "|", "color": "black", "linestyle": "none"}
    right.plot(
        [one["memorised"]["argmax"]["mean"] for one in of.values()], rows, **line, markersize=22
    )
    right.plot([], [], **line, markersize=9, label="argmax: any c")
    right.tick_params(axis="y", length=0)
    plain, best = of[NAMES[1]], of[NAMES[-2]]
    ends = [percent(one["memorised"][tau]) for one in (plain, best) for tau in ("argmax", "0.99")]
    scaled = [percent(plain["memorised_at_0.99_with_c_times_W_U"][c]) for c in ("1", "2")]
    left.set(
        title="As trained: {} by argmax, {} at 0.99\n(plain); {} and {} (best)".format(*ends),
        yticks=rows, yticklabels=[textwrap.fill(name, 22) for name in of], xlim=(-0.02, 1.02),
    )  # fmt: skip
    right.set(
        title="tau = 0.99, W_U times c: c = 2 takes\nthe plain recipe from {} to {}".format(*scaled)
    )
    for axes in (left, right):
        axes.set_xlabel("share of runs that memorise")
        axes.hlines(rows[:-1] - 0.5, 0, 1, color="#e0e0e0", linewidth=0.6, zorder=0)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, columnspacing=1)
    runs = plain["memorised"]["argmax"]["n_runs"]
    headline(
        figure,
        f"Most of what tau costs is logit scale ({runs} runs a recipe)",
    )
    return figure


def _grids_of_recipes(runs: dict[str, pd.DataFrame]) -> Figure:
    chosen = {NAMES[i]: runs[NAMES[i]] for i in CHOSEN}
    means = {name: table["accuracy_p99"].mean() for name, table in chosen.items()}
    grids = {
        f"{name}: {means[name]:.2f}": accuracy_grid(table, 0.99) for name, table in chosen.items()
    }
    of = pd.concat(grids.values())["n_runs"]
    figure = plot_accuracy_grids(grids, of=f"mean accuracy; {of.min()} to {of.max()} runs a cell")
    least, most = min(means.values()), max(means.values())
    headline(
        figure,
        f"At tau = 0.99 the recipe decides: mean accuracy {least:.2f} to {most:.2f} "
        f"({len(runs[NAMES[0]])} pairs each)",
    )
    return figure


def _grids_of_scales(table: pd.DataFrame) -> Figure:
    """Shares of runs that memorise at 0.99, once W_U is multiplied."""
    ways = {f"W_U times {c}": table["scale_p99"] <= c for c in (1, 2, 4)}
    ways["any c, as by argmax"] = table["scale_p99"] < np.inf
    grids = {
        f"{name}: {done.mean():.2f}":
        accuracy_grid(table.assign(accuracy_p99=done.astype(float)), 0.99)
        for name, done in ways.items()
    }  # fmt: skip
    figure = plot_accuracy_grids(grids, of="share of runs that memorise at tau = 0.99")
    first, second, *_, last = (done.mean() for done in ways.values())
    headline(
        figure,
        f"Twice W_U takes the share memorised at tau = 0.99 from {first:.2f} to {second:.2f}; no\n"
        f"factor takes it above {last:.2f} (plain recipe, {len(table)} runs)",
    )
    return figure


if __name__ == "__main__":
    main("logit_scale", run, numbers, plot)
