"""Test whether tau has to grow with rank(L): the smallest scale, ranks of argmax and softmax.

    python -m experiments.facts.tau_rank --run     (ten minutes on two cores)
    python -m experiments.facts.tau_rank --plot

Wong 2025, section 5.2, expects that argmax and softmax increase ranks the more, the larger rank(L)
is, so that tau might have to be scaled with it. Fixed before the run: layers with d_model 2 to 32,
1 to 4 heads of d_head_qk = d_head_vo = 2; databases of three and of six triples for each unit of
equation (9), ten a cell; two recipes without early stop. Measured are the rank of L (singular
values above 1e-4 of the largest), the smallest c at which c L memorises at 0.99, and the ranks of
what argmax and softmax >= 0.95 say, over that of the forward pass. The hypothesis is that at a
fixed ratio of triples to (9) these grow with rank(L): six slopes, adjusted together (Holm). Each
database has one run and the widths were chosen, so that errors are clustered by the five widths.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.database import random_database
from capacity.layer import LayerConfig, Recipe, layer_rank_assumed
from capacity.sweep import Run
from experiments.common.conclusions import adjusted, slopes_of, with_mean
from experiments.common.harness import BEST, PLAIN, Tables, committed, main, measure
from experiments.facts.measured_ranks import THRESHOLD, ranks_of
from experiments.facts.tau_rank_plots import drawn

WIDTHS, HEADS, RATIOS = (2, 4, 8, 16, 32), (1, 2, 4), (3, 6)
KEPT = ["database_id", "layer_id", "n_triples", "d_model", "n_heads", "layer_rank_bound",
        "database_rank_bound", "status", "accuracy_argmax", "accuracy_p95", "accuracy_p99",
        "scale_p99", "ratio"]  # fmt: skip
# logarithms of the smallest scale at 0.99, and of ranks over that of the forward pass
SLOPES = ("log_scale", "log_argmax", "log_softmax")
RANKS = {
    "rank_of_L": f"L_lower_{THRESHOLD:g}",
    "rank_of_L_upper": f"L_upper_{THRESHOLD:g}",
    "rank_of_forward_pass": f"forward_upper_{THRESHOLD:g}",
    "rank_of_argmax": "said_argmax_lower",
    "rank_of_softmax": "said_0.95_lower",
}


def run(smoke: bool) -> Tables:
    """Layers of every cell, by two recipes, with their ranks."""
    tables: Tables = {}
    for kind, recipe in (("plain", PLAIN), ("best", BEST)):
        made = Recipe(**{**recipe, "stop_tau": 0, **({"epochs": 30} if smoke else {})})
        runs, ratios = zip(*_cells(made, smoke), strict=True)
        # certified ranks of what is said take most of the time
        ranks = partial(ranks_of, thresholds=(THRESHOLD,), taus=("argmax", 0.95))
        table = measure(list(runs), ranks).assign(ratio=ratios)
        tables[kind] = table[KEPT].assign(**{new: table[old] for new, old in RANKS.items()})
    return tables


def _cells(recipe: Recipe, smoke: bool) -> Iterator[tuple[Run, int]]:
    n = 1 if smoke else 10
    for d, heads, ratio in product(WIDTHS[: 2 if smoke else None], HEADS, RATIOS):
        config = LayerConfig(d, heads, 2, 2)
        triples = ratio * layer_rank_assumed(config)
        for i in range(n):
            rng = np.random.default_rng([40, d, heads, ratio, i])
            within = (max(4, round(0.9 * triples)), round(1.1 * triples))
            db = random_database(rng, triples=within)
            yield Run(f"tau-rank-{d}-{heads}-{ratio}-{i}", db, config, i, recipe), ratio


def numbers(tables: Tables) -> dict[str, Any]:
    """The scale and the ratios of ranks, by rank(L)."""
    found: dict[str, Any] = {
        "runs": {kind: len(table) for kind, table in tables.items()},
        "committed": {kind: _committed(kind) for kind in ("plain", "best")},
    }
    slopes: list[dict[str, Any]] = []
    for kind, table in tables.items():
        ready = _ready(table)
        found[kind] = {
            "by_d_model": {str(d): _of(part) for d, part in ready.groupby("d_model")},
            "slopes": {name: _slope(ready[np.isfinite(ready[name])], name) for name in SLOPES},
        }
        slopes += found[kind]["slopes"].values()
    adjusted([one for one in slopes if one["p"] is not None])
    return found


def _ready(table: pd.DataFrame) -> pd.DataFrame:
    done = table[table["status"] != "diverged"].reset_index(drop=True)
    return done.assign(
        log_rank=np.log(done["rank_of_L"].clip(lower=1)),
        log_scale=np.log(done["scale_p99"].where(np.isfinite(done["scale_p99"]))),
        log_argmax=np.log(done["rank_of_argmax"] / done["rank_of_forward_pass"]),
        # nothing may be said with a probability of 0.95
        log_softmax=np.log(
            done["rank_of_softmax"].where(done["rank_of_softmax"] > 0)
            / done["rank_of_forward_pass"]
        ),
    )


def _of(part: pd.DataFrame) -> dict[str, Any]:
    finite = np.isfinite(part["scale_p99"])
    return {
        "rank_of_L": with_mean(part["rank_of_L"], part),
        "scale_is_finite": with_mean(finite, part),
        "median_scale": part.loc[finite, "scale_p99"].median() if finite.any() else None,
        "argmax_over_forward_pass": with_mean(
            part["rank_of_argmax"] / part["rank_of_forward_pass"], part
        ),
        "softmax_0.95_over_forward_pass": with_mean(
            part["rank_of_softmax"] / part["rank_of_forward_pass"], part
        ),
    }


def _slope(table: pd.DataFrame, of: str) -> dict[str, Any]:
    """Change with the logarithm of rank(L), at a fixed ratio of triples to equation (9)."""
    if len(table) < 20:
        return {"slope": None, "interval": None, "p": None, "n_runs": len(table)}
    formula = f"{of} ~ log_rank + C(ratio)"
    return slopes_of(table, formula, ["log_rank"], clusters=["d_model"])["log_rank"]


def _committed(kind: str) -> dict[str, Any]:
    """Rank correlations in the runs of measured_ranks.py, which stop at 0.99."""
    table = committed("measured_ranks", kind)
    scale, rank = table["scale_p99"], table[RANKS["rank_of_L"]]
    finite = np.isfinite(scale)
    ratio = table[RANKS["rank_of_argmax"]] / table[RANKS["rank_of_forward_pass"]]
    return {
        "runs": len(table),
        "finite": int(finite.sum()),
        "spearman_of_scale_and_rank_of_L": scale[finite].corr(rank[finite], "spearman"),
        "spearman_of_argmax_over_forward_pass_and_rank_of_L": ratio.corr(rank, "spearman"),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """The scale and the ratios of ranks over rank(L)."""
    return {"ranks": drawn({kind: _ready(table) for kind, table in tables.items()}, found)}


if __name__ == "__main__":
    main("tau_rank", run, numbers, plot)
