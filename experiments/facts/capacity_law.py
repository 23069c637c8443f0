"""The capacity law, in rank and in bits, fitted on small sizes and asked about larger ones.

    python -m experiments.facts.capacity_law --run     (a minute on two cores)
    python -m experiments.facts.capacity_law --plot

Fitted on the runs of figures.py (d_model <= 6, at most 4 heads, 200 triples), by each pair of a
size and a capacity; then asked about databases of 201 to 339 triples and layers with d_model up to
8 and up to 8 heads. Beside them what others have proved or measured: n_heads d_head + d_model
associations held exactly (Dana, Pydi, Chevaleyre 2411.10115), which in this notation counts triples
against equation (9); and about a fact a parameter (Nichani, Lee, Bietti 2412.06538).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity import LayerConfig, Recipe
from capacity.database import random_database
from capacity.evaluator import Law, add_size_columns, capacity_factor, fit_law, memorised_runs
from capacity.sweep import Plan, Run
from experiments.common.conclusions import with_mean
from experiments.common.harness import BEST, PLAIN, Tables, committed, main, sweep
from experiments.facts import capacity_law_plots
from experiments.facts.layer_sizes import forms_of, matched_layers

TAUS = ("argmax", 0.75, 0.95, 0.99)
MEASURES = {
    "rank bound / eq. (9)": ("database_rank_bound", "layer_rank_bound"),
    "triples / eq. (9) (Dana et al.)": ("n_triples", "layer_rank_bound"),
    "triples / parameters (Nichani et al.)": ("n_triples", "n_parameters"),
    "triples / all parameters": ("n_triples", "n_all_parameters"),
    "bits / parameters": ("database_bits", "n_parameters"),
    "bits / all parameters": ("database_bits", "n_all_parameters"),
}
# in the figure
DRAWN = ("rank bound / eq. (9)", "triples / parameters (Nichani et al.)", "bits / all parameters")


def run(smoke: bool) -> Tables:
    """Larger layers on larger databases, by two recipes."""
    n = 20 if smoke else 600
    sizes = [LayerConfig(d, heads, qk, vo)
             for d, heads in product((4, 6, 7, 8), (1, 2, 4, 6, 8))
             for qk, vo in product((1, 2, 4, d), (1, 2, 4, d))]  # fmt: skip
    databases = [random_database(np.random.default_rng([20, i]), triples=(201, 500))
                 for i in range(n // 4)]  # fmt: skip
    chosen = np.random.default_rng(0).integers(len(sizes), size=n).tolist()
    tables: Tables = {}
    for kind, recipe in (("plain", PLAIN), ("best", BEST)):
        made = Recipe(**{**recipe, **({"epochs": 30} if smoke else {})})
        runs = tuple(
            Run(
                f"larger-20-{i // 4}",
                databases[i // 4],
                sizes[chosen[i]],
                i,
                made,
            )
            for i in range(n)
        )
        plan = Plan(runs, {"larger": n, "recipe": made.to_dict()})
        tables[f"{kind}-larger"] = sweep("capacity-law", plan)
    return tables


def numbers(tables: Tables) -> dict[str, Any]:
    """Factors at each tau, and how well each law tells what larger layers hold."""
    found: dict[str, Any] = {}
    for kind in ("plain", "best"):
        small = add_size_columns(committed("figures", kind))
        large = add_size_columns(tables[f"{kind}-larger"])
        found[kind] = {
            "larger_runs": len(large),
            "exponent_of_equation_9_at_fixed_d_model": {
                str(d): fit_law(part, 0.95).exponent
                for d in sorted(set(small["d_model"]) - {1})
                for part in [small[small["d_model"] == d]]
            },
            "databases_of_triples": [int(large["n_triples"].min()), int(large["n_triples"].max())],
            "forms_of_capacity": forms_of(small, large),
            "matched_layers": matched_layers(small),
            **{
                str(tau): {
                    name: _law(small, large, tau, *measures) for name, measures in MEASURES.items()
                }
                for tau in TAUS
            },
        }
    return found


def _law(
    small: pd.DataFrame, large: pd.DataFrame, tau: Any, size: str, capacity: str
) -> dict[str, Any]:
    f = capacity_factor(small, tau, size=size, capacity=capacity)
    law = fit_law(small, tau, size=size, capacity=capacity)
    return {
        "factor": {"value": f.factor, "interval": f.factor_interval},
        "exponent": {"value": f.exponent, "interval": f.exponent_interval},
        "steepness": law.steepness,
        "log_likelihood_where_fitted": law.log_likelihood(small, tau).mean(),
        "larger_databases": {
            "layers_as_large_as_those_fitted": _foretold(
                law, large[large["layer_rank_bound"] <= 30], tau
            ),
            "larger_layers": _foretold(law, large[large["layer_rank_bound"] > 30], tau),
        },
    }


def _foretold(law: Law, table: pd.DataFrame, tau: Any) -> dict[str, Any]:
    """Predictions of the law for unseen runs, beside a constant fitted to just these."""
    if table.empty:
        return {"runs": 0}
    done = memorised_runs(table, tau)
    share = np.clip(done.mean(), 1e-3, 1 - 1e-3)
    constant = np.log(np.where(done, share, 1 - share))
    return {
        "runs": len(table),
        "memorised": with_mean(done, table),
        "foretold_memorised": law.probability(table).mean(),
        "log_likelihood": law.log_likelihood(table, tau).mean(),
        "gain_over_their_own_mean": with_mean(law.log_likelihood(table, tau) - constant, table),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares memorised over size by capacity; exponents of a layer's sizes, and matched layers."""
    runs = {
        kind: (
            add_size_columns(committed("figures", kind)),
            add_size_columns(tables[f"{kind}-larger"]),
        )
        for kind in ("plain", "best")
    }
    return {
        "shares": capacity_law_plots.shares(runs, found, {name: MEASURES[name] for name in DRAWN}),
        "layers": capacity_law_plots.layers({kind: of[0] for kind, of in runs.items()}, found),
    }


if __name__ == "__main__":
    main("capacity_law", run, numbers, plot)
