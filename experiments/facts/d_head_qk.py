"""Effect of d_head_qk where nothing else changes: the open question of the paper's section 5.2.

    python -m experiments.facts.d_head_qk --run     (three minutes on two cores)
    python -m experiments.facts.d_head_qk --plot

Figure 4 averages over d_model, and d_head_qk = 6 needs d_model = 6: its columns differ in d_model.
Here slopes of the accuracy at tau = 0.95, and of memorising there, are taken with d_model left
free, as in the figure; held fixed, at 3 to 6; with the number of parameters held fixed; and with
equation (9) held fixed. All are by least squares, with errors clustered by database, and the
logarithm of the database rank bound beside them. Runs are those of figures.py, and as many again
with d_model 4 and 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import statsmodels.formula.api as smf
from matplotlib.figure import Figure

from experiments.common.harness import BEST, PAPER, Tables, committed, main, papers, sweep

HEADS = range(1, 7)
WIDTHS = (3, 4, 5, 6)
COLUMNS = ["database_id", "database_rank_bound", "layer_rank_bound", "d_model", "n_heads",
           "d_head_qk", "d_head_vo", "accuracy_p95", "status"]  # fmt: skip


def run(smoke: bool) -> Tables:
    """Layers with d_model 4 and 6 alone, by two recipes."""
    few: dict[str, Any] = (
        {"pairs": 300, "databases": 20, "epochs": 60} if smoke else {"pairs": 3000}
    )
    tables: Tables = {}
    for kind, recipe in (("paper", PAPER), ("best", BEST)):
        parts = [
            sweep("d-head-qk", papers(10 + d, recipe, layers={"d_model": [d]}, **few))
            for d in (4, 6)
        ]
        tables[kind] = pd.concat(parts)[COLUMNS]
    return tables


def numbers(tables: Tables) -> dict[str, Any]:
    """Slopes for one more dimension."""
    found: dict[str, Any] = {}
    for kind in ("paper", "best"):
        figures = _ready(committed("figures", kind)[COLUMNS])
        every = pd.concat([figures, _ready(tables[kind])], ignore_index=True)
        found[kind] = {
            "as_in_figure_4": _slopes(figures, "qk + vo"),
            "as_in_figure_4_by_d_head_vo": {
                str(vo): _slopes(figures[figures["vo"] == vo], "qk") for vo in HEADS
            },
            "at_fixed_d_model_and_n_heads": _slopes(every, "qk + vo + C(d_model):C(n_heads)"),
            "at_each_d_model": {str(d): _at(every[every["d_model"] == d]) for d in WIDTHS},
            "one_more_vo_for_one_less_qk_at_fixed_d_model_n_heads_parameters": _slopes(
                every, "vo + C(d_model):C(n_heads):C(both)", names=("vo",)
            ),
            "at_fixed_layer_rank_bound": _slopes(figures, "qk + C(bound)", names=("qk",)),
            "at_fixed_layer_rank_bound_and_d_model": _slopes(
                every, "qk + C(bound):C(d_model)", names=("qk",)
            ),
        }
    return found


def _at(table: pd.DataFrame) -> dict[str, Any]:
    """Slopes at one d_model: over all, how that of qk changes with vo, and at each vo."""
    dims = range(1, int(table["vo"].max()) + 1)
    return {
        "accuracy": _slopes(table, "qk + vo + C(n_heads)"),
        "memorised": _slopes(table, "qk + vo + C(n_heads)", of="memorised"),
        "change_of_the_qk_slope_with_one_more_vo": _slopes(
            table, "qk * vo + C(n_heads)", names=("qk:vo",)
        ),
        "one_head": _slopes(table[table["n_heads"] == 1], "qk + vo"),
        "by_d_head_vo": {
            str(vo): _slopes(table[table["vo"] == vo], "qk + C(n_heads)") for vo in dims
        },
    }


def _ready(table: pd.DataFrame) -> pd.DataFrame:
    names = {"d_head_qk": "qk", "d_head_vo": "vo", "accuracy_p95": "accuracy",
             "layer_rank_bound": "bound"}  # fmt: skip
    renamed = table[table["status"] != "diverged"].rename(columns=names).reset_index(drop=True)
    return renamed.assign(
        both=renamed["qk"] + renamed["vo"],
        size=np.log(renamed["database_rank_bound"]),
        memorised=(renamed["accuracy"] == 1).astype(float),
    )


def _slopes(
    table: pd.DataFrame,
    terms: str,
    *,
    names: tuple[str, ...] = ("qk", "vo"),
    of: str = "accuracy",
) -> dict[str, Any]:
    model = smf.ols(f"{of} ~ size + {terms}", table)
    clusters = pd.factorize(table["database_id"])[0]
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": clusters})
    bounds = fit.conf_int()
    return {
        **{name: {"slope": fit.params[name], "interval": bounds.loc[name].tolist()}
           for name in names if name in fit.params},
        "n_runs": len(table),
    }  # fmt: skip


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Slopes of d_head_qk at each d_head_vo: with d_model free, and at each d_model."""
    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("paper", "best"), strict=True):
        of = found[kind]
        ways = {"d_model free, as in Figure 4": of["as_in_figure_4_by_d_head_vo"]}
        ways |= {f"d_model = {d}": of["at_each_d_model"][str(d)]["by_d_head_vo"] for d in (4, 6)}
        for shift, (name, by_vo) in enumerate(ways.items()):
            slopes = [one["qk"] for one in by_vo.values()]
            middle = np.array([s["slope"] for s in slopes])
            low, high = np.array([s["interval"] for s in slopes]).T
            places = np.array([int(vo) for vo in by_vo]) + 0.12 * (shift - 1)
            axes.errorbar(places, middle, yerr=[middle - low, high - middle], fmt="o", capsize=3,
                          label=name, color=sns.color_palette("colorblind")[shift])  # fmt: skip
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set(title=f"{kind} recipe", xlabel="d_head_vo")
    first = figure.axes[0]
    first.set_ylabel("accuracy at 0.95 for one more d_head_qk")
    first.legend(frameon=False)
    return {"slopes": figure}


if __name__ == "__main__":
    main("d_head_qk", run, numbers, plot)
