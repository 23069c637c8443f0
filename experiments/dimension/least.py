"""The least dimension at which training fits a graph, beside what is proved and what rules say.

    python -m experiments.dimension.least --run     (a quarter of an hour on two cores)
    python -m experiments.dimension.least --plot

Nations, Kinships and UMLS, their shuffles, the countries of the examples and their shuffles, and
twenty random graphs; four families, three seeds. `capacity.dimension` bounds each and looks for a
witness; it is checked by `verify_dimension` in integers. Graphs, families, seeds and rules were
fixed before the run. It goes on where it was stopped.
"""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity import dimension, effective_rank_interval, rank_interval
from capacity.embedding import QueryGraph, verify_dimension
from capacity.plots.theme import COLOURS, WIDTH
from capacity.progress import bar
from capacity.rank import unfolding_rank
from experiments.common.harness import REPLICATES, Tables, main, rows_of
from experiments.dimension import rules
from experiments.dimension.graphs import graph, names

MODELS = ("linear", "CP", "ComplEx", "TuckER")


def run(smoke: bool) -> Tables:
    """A row for each graph, family and seed."""
    tasks = [(name, model, seed) for name in names() for model in MODELS for seed in REPLICATES]
    if smoke:
        tasks = [("random 5", model, 0) for model in ("CP", "linear")]
    with bar() as tell:
        rows = rows_of("dimension_least", row_of, tasks, tell, in_process=smoke)
    return {"runs": pd.DataFrame(rows)}


def row_of(task: tuple[str, str, int]) -> dict[str, Any]:
    """Bounds and a witness of one family for one graph."""
    name, model, seed = task
    db = graph(name, seed)
    of = QueryGraph.of(db)
    start = time.perf_counter()
    found = dimension(db, model, seed=seed)
    seconds = time.perf_counter() - start
    if not verify_dimension(found, db):
        raise RuntimeError(f"{task} isn't proved")
    rank, effective = rank_interval(db), effective_rank_interval(db)
    closed = min(one.value for one in found.reasons if one.side == "sufficient")
    numbers = dimension(db, "CP", witness=False).estimate
    assert numbers is not None
    return {
        "graph": name, "model": model, "seed": seed, "seconds": round(seconds, 1),
        "entities": of.places[0] if found.shared else of.n_entities,
        "subjects": of.shape[0], "relations": of.shape[1], "objects": of.shape[2],
        "facts": of.n_facts, "queries": of.n_queries, "answers": int(of.answers.max()),
        "shared": found.shared, "bits": numbers.bits, "estimate": numbers.dimension,
        "parameters": sum(of.shape) - 2,
        "rank_lower": rank.lower, "rank_upper": rank.upper,
        "effective_rank_lower": effective.lower,
        "effective_rank_upper": effective.upper,
        "object_rank": unfolding_rank(db, 2),
        "necessary": found.necessary, "closed_form": closed, "sufficient": found.sufficient,
        "witness": None if found.witness is None else found.witness.dimension,
        "notes": "; ".join(found.notes),
    }  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """The least dimension found, by graph and family; for each rule its ratio to that of CP."""
    runs = tables["runs"]
    runs = runs.assign(fits=runs.witness.fillna(runs.sufficient))
    graphs: dict[str, Any] = {
        str(name): {
            **_sizes(of),
            "models": {model: _found(rows) for model, rows in of.groupby("model", sort=False)},
        }
        for name, of in runs.groupby("graph", sort=False)
    }
    cp = runs[runs.model == "CP"]
    return {"graphs": graphs, "rules": rules.fits(cp),
            "sources": {name: source for name, (source, _) in rules.RULES.items()}}  # fmt: skip


def _sizes(rows: pd.DataFrame) -> dict[str, Any]:
    """Sizes, and the outermost ends of the certified ranks over the shuffles."""
    first = rows.iloc[0]
    same = ("entities", "subjects", "relations", "objects", "facts", "queries", "answers")
    return {
        **{name: int(first[name]) for name in same},
        "estimate": None if pd.isna(first.estimate) else int(first.estimate),
        "rank_lower": int(rows.rank_lower.min()), "rank_upper": int(rows.rank_upper.max()),
        "effective_rank_lower": int(rows.effective_rank_lower.min()),
        "effective_rank_upper": int(rows.effective_rank_upper.max()),
    }  # fmt: skip


def _found(rows: pd.DataFrame) -> dict[str, Any]:
    """The least and the largest over the seeds, each of which has its own shuffle."""
    ends = {name: [int(rows[name].min()), int(rows[name].max())]
            for name in ("necessary", "fits", "closed_form")}  # fmt: skip
    return {**ends, "witnesses": int(rows.witness.notna().sum())}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """The least dimension of CP beside what is proved, the estimate, and the exact rank."""
    graphs = found["graphs"]
    figure = Figure(figsize=(WIDTH, 0.75 * WIDTH), layout="constrained")
    ax = figure.subplots()
    for at, of in enumerate(graphs.values()):
        cp = of["models"].get("CP")
        if cp is None:
            continue
        proved = cp["necessary"][0], cp["closed_form"][1]
        marks = (
            ("proved: necessary, enough", proved, "|-", COLOURS[0]),
            ("least found, three seeds", cp["fits"], "o", COLOURS[1]),
            ("estimate", (of["estimate"],), "x", COLOURS[2]),
            ("certified rank, lower end", (of["rank_lower"],), "d", COLOURS[3]),
        )
        for label, values, marker, colour in marks:
            ax.plot([x for x in values if x], [at] * sum(x is not None for x in values), marker,
                    color=colour, label=label if not at else None, ms=4, lw=1)  # fmt: skip
    ax.set_xscale("log")
    ax.set_yticks(range(len(graphs)), list(graphs), fontsize=6)
    ax.invert_yaxis()
    ax.set_xlabel("dimension")
    ax.set_title("CP: what ranks every fact of a graph")
    ax.legend(frameon=False, fontsize=7)
    return {"cp": figure}


if __name__ == "__main__":
    main("dimension_least", run, numbers, plot)
