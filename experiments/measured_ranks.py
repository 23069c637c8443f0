"""Ranks measured, not bounded: of trained layers, of what they say, and of their databases.

    python experiments/measured_ranks.py --run     (ten minutes on two cores)
    python experiments/measured_ranks.py --plot

L is built by equations (5) to (8) and its rank estimated from both sides, singular values above
1e-4 of the largest (`numerical_rank_interval`); argmax(L) and softmax>=tau(L) are 0/1, so their
ranks are certified intervals, on the domain and over all pairs. Then: which measures of database
and layer predict best, on databases held out, whether a run memorises?
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from experiment import (
    BEST,
    PAPER,
    Tables,
    committed,
    main,
    measure,
    papers,
    with_mean,
)
from matplotlib.figure import Figure

from capacity import effective_rank_interval, rank_interval
from capacity.evaluator import compare_measures, said_facts, with_bits
from capacity.layer import AttentionLayer, proposition_3_5
from capacity.layer.layer_tensor import layer_tensor
from capacity.rank import numerical_rank_interval
from capacity.sweep import Run, make_plan

THRESHOLD = 1e-4
TAUS = (0.75, 0.95, 0.99)
SIZES = ("n_triples", "database_rank_bound", "rank_middle", "effective_middle", "database_bits")
CAPACITIES = ("layer_rank_bound", "n_parameters", "n_all_parameters", "layer_rank_upper")


def ranks_of(run: Run, layer: AttentionLayer) -> dict[str, Any]:
    """Ranks of L and of what the layer says."""
    db = run.database
    L = layer_tensor(layer.double(), db).L.numpy()
    lower, upper = numerical_rank_interval(L, threshold=THRESHOLD)
    found: dict[str, Any] = {
        "L_lower": lower,
        "L_upper": min(upper, proposition_3_5(run.layer, len(db.predicate_ids))),
        "proposition_3_5": proposition_3_5(run.layer, len(db.predicate_ids)),
    }
    for where, nonsense in (("domain", False), ("all", True)):
        for tau in ("argmax", *TAUS):
            said = said_facts(layer, db, tau, nonsense=nonsense)
            interval = None if said is None else rank_interval(said, effort="quick")
            ends = (0, 0) if interval is None else (interval.lower.value, interval.upper.value)
            found[f"{where}_{tau}_lower"], found[f"{where}_{tau}_upper"] = ends
    return found


def run(smoke: bool) -> Tables:
    """Layers with their ranks, and the effective ranks of the databases of figures.py."""
    few = {"pairs": 6, "databases": 5, "epochs": 60} if smoke else {"pairs": 200}
    tables: Tables = {}
    for kind, recipe in (("paper", PAPER), ("best", BEST)):
        tables[f"ranks-{kind}"] = measure(papers(0, recipe, **few), ranks_of)
    databases = make_plan(papers(0, PAPER, **({"pairs": 6, "databases": 5} if smoke else {})))
    names = {run.database_id: run.database for run in databases.runs}
    rows: list[dict[str, Any]] = []
    for name, db in names.items():
        interval = effective_rank_interval(db, effort="quick")
        ends = {"effective_lower": interval.lower.value, "effective_upper": interval.upper.value}
        rows.append({"database_id": name, **ends})
    return {**tables, "effective": pd.DataFrame(rows)}


def numbers(tables: Tables) -> dict[str, Any]:
    """How the ranks compare, and which measures predict best."""
    found: dict[str, Any] = {"threshold": THRESHOLD}
    for kind in ("paper", "best"):
        found[kind] = _compared(tables[f"ranks-{kind}"])
    for kind in ("paper", "best"):
        ready = _with_effective(committed(f"figures-{kind}"), tables["effective"])
        if ready["database_id"].nunique() < 50:
            continue
        found[f"{kind}_which_measures_predict_memorising_at_0.95"] = {
            "runs": len(ready),
            "memorised": float((ready["accuracy_0.95"] == 1).mean()),
            "held_out_log_likelihood": compare_measures(
                ready, list(product(SIZES, CAPACITIES)), 0.95
            ).to_dict("records"),
        }
    return found


def _compared(table: pd.DataFrame) -> dict[str, Any]:
    groups = table["database_id"]
    # (9) says that rank(L) is at least the bound
    done = table["accuracy_0.95"] == 1
    return {
        "runs": len(table),
        "rank_of_L_certainly_below_equation_9": with_mean(
            table["L_upper"] < table["layer_rank_bound"], groups
        ),
        "rank_of_L_reaches_equation_9": with_mean(
            table["L_lower"] >= table["layer_rank_bound"], groups
        ),
        "rank_of_L_reaches_the_sharper_bound": with_mean(
            table["L_lower"] >= table["layer_rank_upper"], groups
        ),
        "L_upper_over_sharper_bound": with_mean(
            table["L_upper"] / table["layer_rank_upper"], groups
        ),
        "sharper_bound_over_proposition_3_5": with_mean(
            table["layer_rank_upper"] / table["proposition_3_5"], groups
        ),
        "memorised_at_0.95": with_mean(done, groups),
        "memorised_though_rank_of_D_exceeds_rank_of_L": with_mean(
            (table["database_rank_lower"] > table["L_upper"])[done], groups[done]
        ),
        "rank_of_what_is_said_over_rank_of_L": {
            f"{where}, {tau}": with_mean(table[f"{where}_{tau}_lower"] / table["L_upper"], groups)
            for where in ("domain", "all")
            for tau in ("argmax", *TAUS)
        },
    }


def _with_effective(table: pd.DataFrame, effective: pd.DataFrame) -> pd.DataFrame:
    """Runs with all measures; an interval's is its middle, in logarithms."""
    ready = with_bits(table.merge(effective, on="database_id"))
    return ready.assign(
        rank_middle=np.sqrt(ready["database_rank_lower"] * ready["database_rank_upper"]),
        effective_middle=np.sqrt(ready["effective_lower"] * ready["effective_upper"]),
    )


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Ranks of L and of what is said, over equation (9)."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots(1, 3)
    both = pd.concat(tables[f"ranks-{kind}"].assign(recipe=kind) for kind in ("paper", "best"))
    sns.scatterplot(both, x="layer_rank_bound", y="L_upper", hue="recipe", s=12, ax=axes[0])
    top = int(both["layer_rank_bound"].max())
    axes[0].plot([0, top], [0, top], color="crimson", linewidth=1)
    axes[0].set(xlabel="layer rank bound (eq. 9)", ylabel="rank of L, at most (measured)")
    sns.scatterplot(both, x="L_upper", y="all_argmax_lower", hue="recipe", s=12, ax=axes[1],
                    legend=False)  # fmt: skip
    sns.scatterplot(both, x="L_upper", y="all_0.95_lower", hue="recipe", s=12, ax=axes[2],
                    legend=False)  # fmt: skip
    for panel, name in ((axes[1], "argmax(L)"), (axes[2], "softmax ≥ 0.95 (L)")):
        panel.plot([0, 60], [0, 60], color="crimson", linewidth=1)
        panel.set(xlabel="rank of L, at most (measured)", ylabel=f"rank of {name}, at least")
    return {"ranks": figure}


if __name__ == "__main__":
    main("measured_ranks", run, numbers, plot)
