"""The figures of Wong 2025, 2a to 4, and what section 4 says of them.

    python -m experiments.facts.figures --run     (seven minutes on two cores)
    python -m experiments.facts.figures --plot

Three repetitions, each with databases and pairs of its own, by two recipes: the plain one, the
defaults of `capacity.Recipe`, and the best that was found (`BEST`). Of the recipe the paper tells
2,000 epochs at most, and that earlier tokens are predicted, too; the rest is ours. Intervals are
over databases and layers; some pairs are trained from five starts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.database import random_database
from capacity.evaluator import (
    Threshold,
    accuracy_grid,
    cluster_bootstrap,
    memorised_runs,
    percentile_interval,
)
from capacity.rank import paper_bound
from experiments.common.conclusions import CLUSTERS, factor_of, with_mean
from experiments.common.harness import (
    BEST,
    PLAIN,
    REPLICATES,
    Tables,
    main,
    paper_plan,
    sweep,
)
from experiments.facts.figures_plots import drawn

TAUS: tuple[Threshold, ...] = ("argmax", 0.5, 0.75, 0.95, 0.99)
# a share of the facts (None: the mean accuracy), and the probability, or mean, that is asked
DEFINITIONS = {
    "half of the runs hold all facts": (1.0, 0.5),
    "half of the runs hold 95 % of the facts": (0.95, 0.5),
    "mean accuracy 0.95": (None, 0.95),
}
POOLS = ((0.1, 0.3), (0.2, 0.5), (0.4, 1.0), (0.8, 1.0))


def run(smoke: bool) -> Tables:
    """Three repetitions by both recipes, five starts of some pairs, databases of other pools."""
    few: dict[str, Any] = {"pairs": 60, "databases": 20, "epochs": 60} if smoke else {}
    replicates = REPLICATES[:1] if smoke else REPLICATES
    tables = {
        kind: pd.concat(sweep("figures", paper_plan(r, recipe, **few)).assign(replicate=r)
                        for r in replicates)
        for kind, recipe in (("plain", PLAIN), ("best", BEST))
    }  # fmt: skip
    plan = paper_plan(0, PLAIN, every=1 if smoke else 20, **few)
    seeded = tuple(replace(run, seed=seed) for run in plan.runs for seed in range(5))
    tables["seeds"] = sweep("figures-seeds", replace(plan, runs=seeded))
    rows = [
        {"pool": f"{pool[0]}-{pool[1]}", "n_triples": db.n_triples,
         "database_rank_bound": paper_bound(db)}
        for pool in POOLS
        for i in range(20 if smoke else 548)
        for db in [random_database(np.random.default_rng([0, i]), pool=pool, triples=(4, 200))]
    ]  # fmt: skip
    return {**tables, "pools": pd.DataFrame(rows)}


def numbers(tables: Tables) -> dict[str, Any]:
    """Claims of section 4, with intervals."""
    both = {kind: tables[kind] for kind in ("plain", "best")}
    layers = tables["plain"].drop_duplicates("layer_id")
    return {
        "plan": {
            "databases": tables["plain"]["database_id"].nunique(),
            "layers": len(layers),
            "repetitions": tables["plain"]["replicate"].nunique(),
            "runs": len(tables["plain"]),
        },
        "triples_a_unit_of_rank_bound": {
            str(pool): slope(table) for pool, table in tables["pools"].groupby("pool")
        },
        "r_squared_of_log_triples_and_log_rank_bound": _r_squared(tables["plain"]),
        "rank_correlation_of_parameters_and_bound": layers["n_parameters"].corr(
            layers["layer_rank_bound"], "spearman"
        ),
        "layers_of_bound_6_to_10_databases_of_bound_71_to_80": {
            kind: _cell(table) for kind, table in both.items()
        },
        "factors": {
            kind: {
                definition: {
                    str(tau): factor_of(table, tau, share=share, probability=probability)
                    for tau in TAUS
                }
                for definition, (share, probability) in DEFINITIONS.items()
            }
            for kind, table in both.items()
        },
        "memorised_where_10_holds": {
            kind: {str(tau): _where_10_holds(table, tau) for tau in TAUS}
            for kind, table in both.items()
        },
        "tau_just_above_half_against_argmax": {
            kind: with_mean(t["accuracy_argmax"] - t["accuracy_p50"], t) for kind, t in both.items()
        },
        "argmax_less_0.99_by_layer_bound": {kind: _by_bound(table) for kind, table in both.items()},
        "figure_4": {kind: _figure_4(table) for kind, table in both.items()},
        "steps_of_equation_9": {
            kind: {str(tau): _rising(table, tau) for tau in TAUS} for kind, table in both.items()
        },
        "ties": {kind: _ties(table) for kind, table in both.items()},
        "one_dimension": _one_dimension(both),
        "seeds_of_one_pair": _seeds(tables["seeds"]),
        "diverged": {kind: int((t["status"] == "diverged").sum()) for kind, t in both.items()},
    }


def slope(table: pd.DataFrame) -> dict[str, Any]:
    """Triples for a unit of the rank bound, by least squares through the origin."""
    x, y = (table[c].to_numpy(float) for c in ("database_rank_bound", "n_triples"))
    draws = [(w * x) @ y / ((w * x) @ x) for w in cluster_bootstrap(np.arange(len(x)), 1000)]
    fitted = x @ y / (x @ x) * x
    unexplained = ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return {
        "slope": x @ y / (x @ x),
        "interval": percentile_interval(draws),
        "r_squared": 1 - unexplained,
        "databases": len(x),
    }


def _r_squared(table: pd.DataFrame) -> float:
    """How far the two sizes of a database go together."""
    databases = table.drop_duplicates("database_id")
    sizes = np.log(databases[["n_triples", "database_rank_bound"]].to_numpy(float))
    return float(np.corrcoef(sizes.T)[0, 1] ** 2)


def _cell(table: pd.DataFrame) -> dict[str, Any]:
    chosen = table[table["layer_rank_bound"].between(6, 10)]
    chosen = chosen[chosen["database_rank_bound"].between(71, 80)]
    return {
        "accuracy_argmax": with_mean(chosen["accuracy_argmax"], chosen),
        "memorised_argmax": with_mean(memorised_runs(chosen, "argmax"), chosen),
    }


def _seeds(table: pd.DataFrame) -> dict[str, Any]:
    """Variation that comes from the seed of the weights alone."""
    pairs = table.groupby(["database_id", "layer_id"])
    done = pairs["accuracy_p95"].agg(lambda a: (a == 1).mean())
    return {
        "pairs": len(done),
        "seeds": int(pairs.size().iloc[0]),
        "sd_of_accuracy_0.95_within_a_pair": float(np.sqrt(pairs["accuracy_p95"].var().mean())),
        "sd_of_accuracy_0.95_between_runs": float(table["accuracy_p95"].std()),
        "pairs_that_some_seeds_memorise_and_others_not": float(((done > 0) & (done < 1)).mean()),
    }


def _where_10_holds(table: pd.DataFrame, tau: Threshold) -> dict[str, Any]:
    """Compute the share that memorises where (10) holds, and how well (10) tests memorising."""
    holds = table["database_rank_bound"] <= table["layer_rank_bound"]
    done = pd.Series(memorised_runs(table, tau), index=table.index)
    right = (holds[done].mean() + (~holds[~done]).mean()) / 2
    return {**with_mean(done[holds], table[holds]), "balanced_accuracy_of_the_test": right}


def _by_bound(table: pd.DataFrame) -> dict[str, Any]:
    """Accuracy by argmax less that at 0.99, over layers of similar bounds."""
    ends = np.ceil(table["layer_rank_bound"] / 5).astype(int) * 5
    loss = table["accuracy_argmax"] - table["accuracy_p99"]
    return {
        f"{end - 4}-{end}": {
            "argmax": with_mean(part["accuracy_argmax"], part),
            "0.99": with_mean(part["accuracy_p99"], part),
            "difference": with_mean(loss.loc[part.index], part),
            "memorised": {
                str(tau): with_mean(memorised_runs(part, tau), part) for tau in ("argmax", 0.99)
            },
        }
        for end in sorted(set(ends))
        for part in [table[ends == end]]
    }


def _ties(table: pd.DataFrame) -> dict[str, Any]:
    """Facts whose object shares the largest logit: (11) counts them, `argmax` doesn't."""
    return {
        "runs_with_ties": float((table["tied"] > 0).mean()),
        "largest_share_of_tied_facts": float(table["tied"].max()),
        "memorised": {
            tau: int(memorised_runs(table, tau).sum()) for tau in ("argmax", "argmax_paper")
        },
    }


def _one_dimension(both: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Runs with d_model = 1, where argmax names at most two tokens."""
    rows = pd.concat([table[table["d_model"] == 1] for table in both.values()])
    return {
        "runs": len(rows),
        "with_10": int((rows["database_rank_bound"] <= rows["layer_rank_bound"]).sum()),
        "memorised_argmax": int(memorised_runs(rows, "argmax").sum()),
    }


def _steps(table: pd.DataFrame, weights: np.ndarray) -> np.ndarray:
    """One more d_head_vo for one less d_head_qk: what it does to the cells of Figure 4."""
    at = tuple(table[name].to_numpy() - 1 for name in ("d_head_vo", "d_head_qk"))
    sums, counts = np.zeros((6, 6)), np.zeros((6, 6))
    np.add.at(sums, at, weights * table["accuracy_p95"].to_numpy())
    np.add.at(counts, at, weights)
    # of some cells no layer may be drawn
    means = sums / np.where(counts > 0, counts, np.nan)
    return (means[1:, :-1] - means[:-1, 1:]).ravel()


def _figure_4(table: pd.DataFrame) -> dict[str, Any]:
    """Means by d_head_vo and by d_head_qk, and how accuracy moves along the diagonals."""
    steps = _steps(table, np.ones(len(table)))
    shared = table[list(CLUSTERS)]
    resampled = [np.nanmean(_steps(table, w)) for w in cluster_bootstrap(shared, 200)]
    return {
        **{
            name: {str(v): with_mean(part["accuracy_p95"], part)
                   for v, part in table.groupby(name)}
            for name in ("d_head_vo", "d_head_qk")
        },
        "steps_from_qk_to_vo": len(steps),
        "steps_that_gain": int((steps > 0).sum()),
        "mean_step": {"value": float(steps.mean()), "interval": percentile_interval(resampled)},
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
    return drawn(tables, found, TAUS)


if __name__ == "__main__":
    main("figures", run, numbers, plot)
