"""Recall of facts by terms of a layer's logits, and what the output tells of its attention.

    python -m experiments.facts.additive_motif --run     (four minutes on two cores)
    python -m experiments.facts.additive_motif --plot

After the sentence (k, q) the logits are a sum of an embedding term E, and of the heads' subject and
predicate terms (`capacity.evaluator.logit_terms`). Every eighth of the paper's 3,947 pairs,
by two recipes, is trained, and each sum of terms is asked for the facts; so are layers with
d_model = 4 and two heads, where d_head_qk and d_head_vo vary alone. Of each layer it is told as
well how much of the logits each term is, where its heads' attention can be read off the output,
how much of it is effective, and in how many directions queries and keys are free of the facts.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.database import Database
from capacity.evaluator import attention_of_pairs, layer_terms, query_key_freedom, term_accuracy
from capacity.layer import AttentionLayer
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.sweep import Run
from experiments.common.conclusions import with_mean
from experiments.common.drawing import estimates, told, value_of
from experiments.common.harness import BEST, PLAIN, Tables, main, measure, paper_plan

TERMS = ("embedding", "subject", "predicate")
TAU = 0.95
KEPT = ["database_id", "layer_id", "database_rank_bound", "layer_rank_bound", "d_model", "n_heads",
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
        "plain": paper_plan(0, PLAIN, **some),
        "best": paper_plan(0, BEST, **some),
        "grid": paper_plan(30, BEST, layers={"d_model": [4], "n_heads": [2]}, **grid),
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
    guesses = {run.database_id: _most_frequent(run.database)
               for run in paper_plan(0, PLAIN, every=8).runs}  # fmt: skip
    for kind in ("plain", "best"):
        table = _finite(tables[kind])
        # a smoke run has other databases
        table["argmax of a constant for each predicate"] = table["database_id"].map(guesses)
        found[kind] = {
            "all": _means(table),
            "memorising_at_0.95": _means(table[table["accuracy_p95"] == 1]),
            "one_term_alone_recalls_all_at_argmax": with_mean(
                table[[f"argmax of {term}" for term in TERMS]].max(axis=1) == 1,
                table,
            ),
            "identifiable_by_heads_beyond_d_model": {
                str(beyond): with_mean(part["identifiable"], part)
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
    found["layers_of_the_grid"] = len(grid)
    columns = ["accuracy_p95", "argmax of subject+predicate", "free", "ineffective"]
    columns += [f"{what} of {term}" for what in ("argmax", "importance") for term in TERMS]
    found["d_model_4_two_heads"] = {
        size: {column: _by(grid, size, column) for column in columns}
        for size in ("d_head_qk", "d_head_vo")
    }
    return found


def _most_frequent(db: Database) -> float:
    """Share of the facts that the most frequent object of their predicate gives."""
    facts = pd.DataFrame(db.triples[:, 1:], columns=["q", "v"])
    return float(facts.groupby("q")["v"].agg(lambda v: v.value_counts().iloc[0]).sum() / len(facts))


def _finite(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["status"] != "diverged") & table["identifiable"].notna()].copy()


def _by(table: pd.DataFrame, size: str, column: str) -> dict[str, Any]:
    return {str(value): with_mean(part[column], part) for value, part in table.groupby(size)}


def _means(table: pd.DataFrame) -> dict[str, Any]:
    kinds = ("argmax of", "0.95 of", "importance of")
    columns = [name for name in map(str, table) if name.startswith(kinds)]
    return {column: with_mean(table[column], table) for column in columns}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Accuracies of the seven sums; how terms' importance goes with the heads' dimensions."""
    figure = Figure(figsize=(WIDTH, 4.3))
    left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
    of = found["best"]
    sums = [f"argmax of {'+'.join(some)}" for n in range(1, len(TERMS) + 1)
            for some in combinations(TERMS, n)][::-1]  # fmt: skip
    for number, (which, text) in enumerate(
        {"all": "all layers", "memorising_at_0.95": "layers that memorise"}.items()
    ):
        colour, n = COLOURS[number], of[which][sums[0]]["n_runs"]
        for second, how in enumerate(("argmax of", "0.95 of")):
            estimates(
                left, np.arange(len(sums)) + 0.16 * (1.5 - 2 * number - second),
                [of[which][name.replace("argmax of", how)] for name in sums],
                colour=colour, marker=MARKERS[number], hollow=second > 0, across=True,
                label=f"{text} ({n}), {f'p ≥ {TAU}' if second else 'largest logit'}",
            )  # fmt: skip
        constant = of[which]["argmax of a constant for each predicate"]
        left.axvline(
            value_of(constant), color=colour, linewidth=1, linestyle="--",
            label=f"{text}: a constant for each predicate, {told(constant)}",
        )  # fmt: skip
    both = of["all"]["argmax of subject+predicate"]
    alone = max((of["all"][f"argmax of {term}"] for term in TERMS), key=value_of)
    left.set(
        title=f"No term alone beats a constant ({told(alone)} against\n"
        f"{told(of['all']['argmax of a constant for each predicate'])}); "
        f"subject and predicate recall {told(both)}",
        xlabel="share of facts recalled (best recipe)", xlim=(-0.02, 1.03),
        yticks=range(len(sums)),
        yticklabels=[name.removeprefix("argmax of ").replace("+", "\n+ ") for name in sums],
    )  # fmt: skip
    by = found["d_model_4_two_heads"]["d_head_vo"]
    for number, term in enumerate(TERMS):
        sizes = by[f"importance of {term}"]
        estimates(
            right, [int(v) + 0.08 * (number - 1) for v in sizes], list(sizes.values()),
            colour=COLOURS[number + 2], marker=MARKERS[number + 2], line="-", label=term,
        )  # fmt: skip
    sizes = list(by["importance of predicate"].values())
    runs = sum(one["n_runs"] for one in sizes)
    right.set(
        title="Importance of the predicate's\nterm: "
        f"{told(sizes[0])} to {told(sizes[-1])} ({runs} runs)",
        xlabel="d_head_vo (d_model 4, two heads)", ylabel="importance in the logits",
        xticks=range(1, len(sizes) + 1), ylim=(0, 1),
    )  # fmt: skip
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    right.legend(loc="upper left")
    return {"sums": figure}


if __name__ == "__main__":
    main("additive_motif", run, numbers, plot)
