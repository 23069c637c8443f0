"""Recall of facts by terms of a layer's logits, and what the output tells of its attention.

    python -m experiments.facts.additive_motif --run     (four minutes on two cores)
    python -m experiments.facts.additive_motif --plot

After the sentence (k, q) the logits are a sum of an embedding term E, and of the heads' subject and
predicate terms (`capacity.evaluator.logit_terms`). Every eighth of the paper's 3,947 pairs, by two
recipes, is trained, and each sum of terms is asked for the facts; so are layers with d_model = 4
and two heads, where d_head_qk and d_head_vo vary alone. Of each layer it is told as well how much
of the logits each term is, where its heads' attention can be read off the output, how much of it is
effective, and in how many directions queries and keys are free of the facts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from capacity.evaluator import attention_of_pairs, layer_terms, query_key_freedom, term_accuracy
from capacity.layer import AttentionLayer
from capacity.sweep import Run
from experiments.common.harness import BEST, PAPER, Tables, main, measure, papers, with_mean

TERMS = ("embedding", "subject", "predicate")
TAU = 0.95
KEPT = ["database_id", "database_rank_bound", "layer_rank_bound", "d_model", "n_heads",
        "d_head_qk", "d_head_vo", "accuracy_argmax", "accuracy_p95", "status"]  # fmt: skip


def asked(run: Run, layer: AttentionLayer) -> dict[str, Any]:
    """Recall of the sums of terms, and what the facts say of attention."""
    db = run.database
    if not all(bool(weights.isfinite().all()) for weights in layer.parameters()):
        return {}
    found: dict[str, Any] = {}
    for row in term_accuracy(layer, db, taus=[TAU]).to_dict("records"):
        name = "+".join(term for term in TERMS if row[term])
        found |= {
            f"argmax of {name}": row["accuracy_argmax"],
            f"0.95 of {name}": row["accuracy_p95"],
        }
    found |= _importance(layer, run)
    pairs = attention_of_pairs(layer, db)
    change = np.hypot(
        pairs["effective_to_subject"] - pairs["to_subject"],
        pairs["effective_to_predicate"] - (1 - pairs["to_subject"]),
    )
    free = query_key_freedom(layer, db)
    return {
        **found,
        "identifiable": pairs["identifiable"].mean(),
        "ineffective": change.mean(),
        "free": free["free"].mean(),
        "free_share": (free["free"] / free["rank_of_pairs"]).mean(),
    }


def _importance(layer: AttentionLayer, run: Run) -> dict[str, float]:
    """Importance u . z / |z|^2 of terms u in logits z, means over tokens left out."""
    terms = layer_terms(layer, run.database.token_triples[:, :2]).named()
    centred = {name: u - u.mean(axis=1, keepdims=True) for name, u in terms.items()}
    z = np.sum(list(centred.values()), axis=0)
    return {
        f"importance of {name}": float(((u * z).sum(1) / (z * z).sum(1)).mean())
        for name, u in centred.items()
    }


def run(smoke: bool) -> Tables:
    """Some of the paper's pairs by two recipes, and layers of one size but for their heads'."""
    few: dict[str, Any] = {"pairs": 12, "databases": 4, "epochs": 60} if smoke else {}
    some = few or {"every": 8}
    grid = few or {"pairs": 800}
    plans = {
        "paper": papers(0, PAPER, **some),
        "best": papers(0, BEST, **some),
        "grid": papers(30, BEST, layers={"d_model": [4], "n_heads": [2]}, **grid),
    }
    tables: Tables = {}
    for name, plan in plans.items():
        table = measure(plan.runs, asked)
        new = [name for name in map(str, table) if " of " in name or name in ATTENTION]
        tables[name] = table[KEPT + new]
    return tables


ATTENTION = ("identifiable", "ineffective", "free", "free_share")


def numbers(tables: Tables) -> dict[str, Any]:
    """Means over databases: all layers, those that memorise, and by the heads' dimensions."""
    found: dict[str, Any] = {}
    for kind in ("paper", "best"):
        table = _finite(tables[kind])
        found[kind] = {
            "all": _means(table),
            "memorising_at_0.95": _means(table[table["accuracy_p95"] == 1]),
            "one_term_alone_recalls_all_at_argmax": with_mean(
                table[[f"argmax of {term}" for term in TERMS]].max(axis=1) == 1,
                table["database_id"],
            ),
            "identifiable_by_heads_beyond_d_model": {
                str(beyond): with_mean(part["identifiable"], part["database_id"])
                for beyond, part in table.groupby(
                    (table["n_heads"] - table["d_model"])
                    .clip(-1, 1)
                    .map({-1: "fewer heads than d_model", 0: "as many", 1: "more"})
                )
            },
            "ineffective_by_d_head_vo": _by(table, "d_head_vo", "ineffective"),
            "free_by_d_head_qk": _by(table, "d_head_qk", "free_share"),
            "correlation_of_importance_with_accuracy_0.95": {
                term: float(
                    table[f"importance of {term}"].corr(table["accuracy_p95"], method="spearman")
                )
                for term in TERMS
            },
        }
    grid = _finite(tables["grid"])
    columns = ["accuracy_p95", "argmax of subject+predicate", "free", "ineffective"]
    columns += [f"{what} of {term}" for what in ("argmax", "importance") for term in TERMS]
    found["d_model_4_two_heads"] = {
        size: {column: _by(grid, size, column) for column in columns}
        for size in ("d_head_qk", "d_head_vo")
    }
    return found


def _finite(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["status"] != "diverged") & table["identifiable"].notna()]


def _by(table: pd.DataFrame, size: str, column: str) -> dict[str, Any]:
    return {
        str(value): with_mean(part[column], part["database_id"])
        for value, part in table.groupby(size)
    }


def _means(table: pd.DataFrame) -> dict[str, Any]:
    kinds = ("argmax of", "0.95 of", "importance of")
    columns = [name for name in map(str, table) if name.startswith(kinds)]
    return {column: with_mean(table[column], table["database_id"]) for column in columns}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Accuracies of the seven sums; how terms' importance goes with the heads' dimensions."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    colours = sns.color_palette("colorblind")
    sums = [name.removeprefix("argmax of ") for name in found["best"]["all"]
            if name.startswith("argmax of")]  # fmt: skip
    ways = {
        ("all", "argmax of"): "all layers, largest logit",
        ("all", "0.95 of"): "all layers, p >= 0.95",
        ("memorising_at_0.95", "argmax of"): "layers that memorise, largest logit",
        ("memorising_at_0.95", "0.95 of"): "layers that memorise, p >= 0.95",
    }
    for shift, ((which, how), label) in enumerate(ways.items()):
        of = [found["best"][which][f"{how} {name}"] for name in sums]
        _points(left, np.arange(len(sums)) + 0.16 * (shift - 1.5), of, colours[shift], label)
    left.set_xticks(range(len(sums)), [name.replace("+", "\n+ ") for name in sums], fontsize=8)
    left.set(
        ylabel="share of facts recalled", ylim=(-0.02, 1.02), title="sums of terms, best recipe"
    )
    left.legend(frameon=False, fontsize=8)
    by = found["d_model_4_two_heads"]["d_head_vo"]
    for number, term in enumerate(TERMS):
        sizes = by[f"importance of {term}"]
        places = np.array([int(v) for v in sizes]) + 0.08 * (number - 1)
        _points(right, places, list(sizes.values()), colours[number + 5], term)
    right.set(xlabel="d_head_vo", ylabel="importance in the logits",
              title="d_model 4, two heads")  # fmt: skip
    right.set_xticks(range(1, 5))
    right.legend(frameon=False, fontsize=8)
    return {"sums": figure}


def _points(
    axes: Any, places: np.ndarray, of: list[dict[str, Any]], colour: Any, label: str
) -> None:
    middle = np.array([one["mean"] for one in of], dtype=float)
    low, high = np.array([one["interval"] or (np.nan, np.nan) for one in of], dtype=float).T
    axes.errorbar(places, middle, yerr=[middle - low, high - middle], fmt="o", capsize=3,
                  color=colour, label=label, markersize=4)  # fmt: skip


if __name__ == "__main__":
    main("additive_motif", run, numbers, plot)
