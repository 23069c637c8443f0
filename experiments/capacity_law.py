"""The capacity law, in rank and in bits, fitted on small sizes and asked about larger ones.

    python experiments/capacity_law.py --run     (six minutes on two cores)
    python experiments/capacity_law.py --plot

Fitted on the runs of figures.py (d_model <= 6, at most 4 heads, 200 triples), by each pair of a
size and a capacity; then asked about layers with d_model 7 and 8 and up to 8 heads on databases of
up to 500 triples. Beside them what others have proved or measured: n_heads d_head + d_model
associations held exactly (Dana, Pydi, Chevaleyre 2411.10115), which in this notation counts triples
against equation (9); and about a fact a parameter (Nichani, Lee, Bietti 2412.06538).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from experiment import BEST, PAPER, Tables, committed, main, papers, sweep
from matplotlib.figure import Figure

from capacity.evaluator import capacity_factor, fit_law, interval, memorised, resampled, with_bits

TAUS = ("argmax", 0.75, 0.95, 0.99)
MEASURES = {
    "rank bound / eq. (9)": ("database_rank_bound", "layer_rank_bound"),
    "triples / eq. (9) (Dana et al.)": ("n_triples", "layer_rank_bound"),
    "triples / parameters (Nichani et al.)": ("n_triples", "n_parameters"),
    "triples / all parameters": ("n_triples", "n_all_parameters"),
    "bits / parameters": ("database_bits", "n_parameters"),
    "bits / all parameters": ("database_bits", "n_all_parameters"),
}


def run(smoke: bool) -> Tables:
    """Runs of larger layers on larger databases, by two recipes."""
    few = {"pairs": 40, "databases": 20, "epochs": 30} if smoke else {"pairs": 700}
    tables: Tables = {}
    for kind, recipe in (("paper", PAPER), ("best", BEST)):
        config = papers(20, recipe, **few)
        config["databases"]["synthetic"]["max_triples"] = 500
        sizes = {"d_model": [7, 8], "n_heads": [2, 4, 6, 8], "d_head_qk": [1, 2, 4, 8],
                 "d_head_vo": [1, 2, 4, 8]}  # fmt: skip
        tables[f"{kind}-larger"] = sweep("capacity-law", {**config, "layers": sizes})
    return tables


def numbers(tables: Tables) -> dict[str, Any]:
    """Factors at each tau, and how well each law tells what larger layers hold."""
    found: dict[str, Any] = {}
    for kind in ("paper", "best"):
        small = with_bits(committed(f"figures-{kind}"))
        large = with_bits(tables[f"{kind}-larger"])
        found[kind] = {
            str(tau): {
                name: _law(small, large, tau, *measures) for name, measures in MEASURES.items()
            }
            for tau in TAUS
        }
    return found


def _law(
    small: pd.DataFrame, large: pd.DataFrame, tau: Any, size: str, capacity: str
) -> dict[str, Any]:
    f = capacity_factor(small, tau, size=size, capacity=capacity, n_resamples=100)
    law = fit_law(small, tau, size=size, capacity=capacity)
    proportional = fit_law(small, tau, size=size, capacity=capacity, exponent=1.0)
    done = memorised(large, tau)
    score = law.log_likelihood(large, tau)
    # what says nothing but how often small layers memorise
    share = memorised(small, tau).mean()
    naive = np.log(np.where(done, share, 1 - share))
    groups = large["database_id"]
    gains = [w @ (score - naive) / w.sum() for w in resampled(groups, 500)]
    return {
        "factor": f.factor, "interval": f.factor_interval,
        "exponent": f.exponent, "exponent_interval": f.exponent_interval,
        "steepness": law.steepness,
        "larger": {
            "memorised": done.mean(),
            "foretold_memorised": law.probability(large).mean(),
            "log_likelihood": score.mean(),
            "log_likelihood_with_exponent_1": proportional.log_likelihood(large, tau).mean(),
            "gain_over_a_constant": (score - naive).mean(), "gain_interval": interval(gains),
        },
    }  # fmt: skip


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares memorised over size by capacity, on small and larger sizes, with the fits."""
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    for row, kind in zip(figure.subplots(2, 3, sharey=True), ("paper", "best"), strict=True):
        small = with_bits(committed(f"figures-{kind}"))
        large = with_bits(tables[f"{kind}-larger"])
        names = ("rank bound / eq. (9)", "triples / parameters (Nichani et al.)",
                 "bits / all parameters")  # fmt: skip
        for axes, name in zip(row, names, strict=True):
            size, capacity = MEASURES[name]
            for sizes, table in (("fitted", small), ("larger, not seen", large)):
                ratio = (table[size] / table[capacity]).to_numpy(np.float64)
                shares = pd.DataFrame({"x": np.log2(ratio), "y": memorised(table, 0.95)})
                # about as many runs at each point
                at = (
                    shares.sort_values("x")
                    .groupby(np.arange(len(shares)) * 15 // len(shares))
                    .mean()
                )
                axes.plot(at["x"], at["y"], "o-", markersize=3, label=sizes)
            axes.axvline(np.log2(found[kind]["0.95"][name]["factor"]), color="grey", linewidth=0.8)
            axes.set(xlabel=f"log2 of {name}", title=f"{kind} recipe, tau 0.95")
        row[0].set_ylabel("share of runs that memorise")
    figure.axes[0].legend(frameon=False)
    sns.despine(figure)
    return {"shares": figure}


if __name__ == "__main__":
    main("capacity_law", run, numbers, plot)
