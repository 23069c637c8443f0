"""What d_head_qk does where nothing else changes: the open question of the paper's section 5.2.

    python experiments/d_head_qk.py --run     (five minutes on two cores)
    python experiments/d_head_qk.py --plot

Figure 4 averages over d_model, and d_head_qk = 6 needs d_model = 6: its columns differ in d_model.
Here slopes of the accuracy at tau = 0.95 are taken with d_model left free, as in the figure; held
fixed; with the number of parameters held fixed; and with equation (9) held fixed. All are by least
squares, with errors clustered by database, and the logarithm of the database rank bound beside
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import statsmodels.formula.api as smf
from experiment import BEST, PAPER, Tables, committed, main, papers, sweep
from matplotlib.figure import Figure

HEADS = range(1, 7)


def run(smoke: bool) -> Tables:
    """Layers with d_model = 6 alone, by two recipes; the paper's layers are those of figures.py."""
    few = {"pairs": 200, "databases": 20, "epochs": 60} if smoke else {}
    tables: Tables = {}
    for kind, recipe in (("paper", PAPER), ("best", BEST)):
        config = papers(10, recipe, **few)
        wide = {**config, "layers": {**config["layers"], "d_model": [6]}}
        tables[f"{kind}-6"] = _slim(sweep("d-head-qk", wide))
    return tables


def _slim(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["database_id", "database_rank_bound", "layer_rank_bound", "d_model",
               "n_heads", "d_head_qk", "d_head_vo", "accuracy_0.95", "status"]  # fmt: skip
    return table[columns]


def numbers(tables: Tables) -> dict[str, Any]:
    """Slopes of the accuracy at 0.95, for one more dimension."""
    found: dict[str, Any] = {}
    for kind in ("paper", "best"):
        every, wide = _ready(committed(f"figures-{kind}")), _ready(tables[f"{kind}-6"])
        found[kind] = {
            "as_in_figure_4": _slopes(every, "qk + vo"),
            "as_in_figure_4_by_d_head_vo": {
                vo: _slopes(every[every["vo"] == vo], "qk") for vo in HEADS
            },
            "at_fixed_d_model_and_n_heads": _slopes(every, "qk + vo + C(d_model):C(n_heads)"),
            "at_d_model_6": _slopes(wide, "qk + vo + C(n_heads)"),
            "at_d_model_6_by_d_head_vo": {
                vo: _slopes(wide[wide["vo"] == vo], "qk + C(n_heads)") for vo in HEADS
            },
            "one_more_vo_for_one_less_qk_at_fixed_d_model_n_heads_parameters": _slopes(
                every, "vo + C(d_model):C(n_heads):C(both)", names=("vo",)
            ),
            "at_fixed_layer_rank_bound": _slopes(every, "qk + C(bound)", names=("qk",)),
            "at_fixed_layer_rank_bound_and_d_model": _slopes(
                every, "qk + C(bound):C(d_model)", names=("qk",)
            ),
        }
    return found


def _ready(table: pd.DataFrame) -> pd.DataFrame:
    names = {"d_head_qk": "qk", "d_head_vo": "vo", "accuracy_0.95": "accuracy",
             "layer_rank_bound": "bound"}  # fmt: skip
    renamed = table[table["status"] != "diverged"].rename(columns=names).reset_index(drop=True)
    return renamed.assign(
        both=renamed["qk"] + renamed["vo"], size=np.log(renamed["database_rank_bound"])
    )


def _slopes(
    table: pd.DataFrame, terms: str, *, names: tuple[str, ...] = ("qk", "vo")
) -> dict[str, Any]:
    model = smf.ols(f"accuracy ~ size + {terms}", table)
    clusters = pd.factorize(table["database_id"])[0]
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": clusters})
    bounds = fit.conf_int()
    return {
        **{name: {"slope": fit.params[name], "interval": bounds.loc[name].tolist()}
           for name in names if name in fit.params},
        "n_runs": len(table),
    }  # fmt: skip


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Slopes of d_head_qk at each d_head_vo, confounded and not."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, (kind, of) in zip(figure.subplots(1, 2, sharey=True), found.items(), strict=False):
        for shift, (name, key) in enumerate(
            (("d_model free, as in Figure 4", "as_in_figure_4_by_d_head_vo"),
             ("d_model = 6", "at_d_model_6_by_d_head_vo"))
        ):  # fmt: skip
            slopes = [of[key][vo]["qk"] for vo in HEADS]
            middle = [s["slope"] for s in slopes]
            error = [
                [m - s["interval"][0] for m, s in zip(middle, slopes, strict=True)],
                [s["interval"][1] - m for m, s in zip(middle, slopes, strict=True)],
            ]
            places = [vo + 0.12 * shift for vo in HEADS]
            axes.errorbar(places, middle, yerr=error, fmt="o", capsize=3, label=name,
                          color=sns.color_palette("colorblind")[shift])  # fmt: skip
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set(title=f"{kind} recipe", xlabel="d_head_vo")
    first = figure.axes[0]
    first.set_ylabel("accuracy at 0.95 for one more d_head_qk")
    first.legend(frameon=False)
    return {"slopes": figure}


if __name__ == "__main__":
    main("d_head_qk", run, numbers, plot)
