"""Answers of layers where their database has none, and the cost of having them say so.

    python -m experiments.facts.nonsense --run     (nine minutes on two cores)
    python -m experiments.facts.nonsense --plot

Every eighth of the paper's 3,947 pairs, where the database has 20 pairs without an object, with a
token "unknown" taught as the object of no, a tenth, half or nine tenths of these pairs. Asked are
the facts, and the pairs that stay untaught.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.evaluator import (
    accuracy_of_logits,
    nonsense_answers,
    nonsense_pairs,
    pair_logits,
    with_unknown,
)
from capacity.layer import AttentionLayer
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.rank import paper_bound
from capacity.sweep import Run
from experiments.common.conclusions import CLUSTERS, factor_of, with_mean
from experiments.common.drawing import KINDS, estimates, headline, percent
from experiments.common.harness import (
    BEST,
    PLAIN,
    Tables,
    main,
    measure,
    paper_plan,
)

TAU = 0.95
SHARES = (0.0, 0.1, 0.5, 0.9)
# what is drawn of the conclusions
DRAWN = {
    "nonsense_answered_otherwise_with_0.95": f"untaught pairs: another answer, p ≥ {TAU}",
    "unknown_said_to_untaught_nonsense": "untaught pairs: unknown, by argmax",
    "facts_argmax": "facts, by argmax",
    "facts_0.95": f"facts, p ≥ {TAU}",
}
# pairs without an object, so that some of each share stay untaught
LEAST = 20


def asked(run: Run, layer: AttentionLayer) -> dict[str, Any]:
    """Accuracy on the facts alone, and what is answered to untaught nonsense."""
    db, facts = run.database, run.database.token_triples
    said = nonsense_answers(layer, db, tau=TAU)
    found: dict[str, Any] = {
        "n_queries": said.n_queries, "answered": said.answered,
        "mean_confidence": said.mean_confidence, "mean_entropy": said.mean_entropy,
        "unknown_argmax": np.nan, "unknown": np.nan,
    }  # fmt: skip
    token = next((i for i, term in enumerate(db.tokens) if term.text == "unknown"), None)
    if token is not None:
        facts = facts[facts[:, 2] != token]
        z = pair_logits(layer, nonsense_pairs(db))
        if np.isfinite(z).all():
            unknown = accuracy_of_logits(z, np.full(len(z), token), [TAU])
            found |= {"unknown_argmax": unknown.argmax, "unknown": unknown.softmax[TAU]}
    scores = accuracy_of_logits(pair_logits(layer, facts[:, :2]), facts[:, 2], [TAU])
    return {**found, "facts_argmax": scores.argmax, "facts": scores.softmax[TAU]}


def run(smoke: bool) -> Tables:
    """The same pairs at each share, by two recipes."""
    few: dict[str, Any] = {"pairs": 16, "databases": 6, "epochs": 60} if smoke else {"every": 8}
    tables: Tables = {}
    for kind, recipe in (("plain", PLAIN), ("best", BEST)):
        plain = [run for run in paper_plan(0, recipe, **few).runs
                 if len(nonsense_pairs(run.database)) >= LEAST]  # fmt: skip
        runs = [_taught(run, share) for share in SHARES for run in plain]
        tables[kind] = measure(runs, asked)
        # the rank bound of the facts alone, at each share
        bounds = [paper_bound(run.database) for run in plain]
        tables[kind]["facts_rank_bound"] = np.tile(bounds, len(SHARES))
        tables[kind]["share"] = np.repeat(SHARES, len(plain))
    return tables


def _taught(run: Run, share: float) -> Run:
    return replace(run, database=with_unknown(run.database, share)) if share else run


def numbers(tables: Tables) -> dict[str, Any]:
    """By share that is taught: what is answered, and what the facts lose."""
    found: dict[str, Any] = {}
    for kind, table in tables.items():
        plain = table[table["share"] == 0]
        found[kind] = {
            f"{share:g}": _at_share(part, plain) for share, part in table.groupby("share")
        }
    return found


def _at_share(part: pd.DataFrame, plain: pd.DataFrame) -> dict[str, Any]:
    # tau > 1/2: an answer is the token, or another
    hallucinated = part["answered"] - part["unknown"].fillna(0)
    columns = {
        "nonsense_answered_otherwise_with_0.95": hallucinated,
        "mean_entropy_bits": part["mean_entropy"],
        "unknown_said_to_untaught_nonsense": part["unknown_argmax"],
        "unknown_said_with_0.95": part["unknown"],
        "facts_argmax": part["facts_argmax"],
        "facts_0.95": part["facts"],
        "facts_memorised_argmax": part["facts_argmax"] == 1,
        "facts_memorised_0.95": part["facts"] == 1,
        # pairs are in the same order
        "loss_of_facts_argmax": plain["facts_argmax"].to_numpy() - part["facts_argmax"],
        "loss_of_facts_0.95": plain["facts"].to_numpy() - part["facts"],
    }
    # taught databases have names of their own; the pairs are the same
    shared = plain[list(CLUSTERS)].reset_index(drop=True)
    found: dict[str, Any] = {}
    for name, column in columns.items():
        values = column.to_numpy(float)
        found[name] = with_mean(values[np.isfinite(values)], shared[np.isfinite(values)])
    # the same runs by the rank bound of their facts, whatever else they were taught
    renamed = part.assign(**{"database_rank_bound": part["facts_rank_bound"],
                             "accuracy_p95": part["facts"],
                             "accuracy_argmax": part["facts_argmax"]})  # fmt: skip
    found["added_facts_over_facts"] = with_mean(
        part["n_triples"].to_numpy() / plain["n_triples"].to_numpy() - 1, shared
    )
    found["capacity_factor_for_the_facts"] = {
        str(tau): factor_of(renamed, tau) for tau in ("argmax", TAU)
    }
    return found


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Answers to untaught nonsense, and the facts they cost, over the share taught."""
    figure = Figure(figsize=(WIDTH, 3.9))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, kind in zip(panels, KINDS, strict=True):
        of = found[kind]
        for number, (name, text) in enumerate(DRAWN.items()):
            some = {float(s): one[name] for s, one in of.items() if one[name]["mean"] is not None}
            estimates(
                axes, list(some), list(some.values()), colour=COLOURS[number],
                marker=MARKERS[number], line="-", label=text,
            )  # fmt: skip
        first, half = of["0"], of["0.5"]
        axes.set(
            title=f"{kind.capitalize()}: half taught, "
            f'{percent(half["unknown_said_to_untaught_nonsense"])} of the rest get\n"unknown"; '
            f"facts go from {percent(first['facts_0.95'])} to {percent(half['facts_0.95'])}",
            xlabel="share of pairs without object that is taught",
            ylim=(0, 1), xticks=SHARES,
        )  # fmt: skip
    panels[0].set_ylabel("share (mean over runs)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    runs = found[KINDS[0]]["0"]["facts_argmax"]["n_runs"]
    headline(
        figure,
        f'Taught the answer "unknown", layers use it where nothing was taught, and lose facts\n'
        f"({runs} runs at each share; intervals over databases and layers)",
    )
    return {"shares": figure}


if __name__ == "__main__":
    main("nonsense", run, numbers, plot)
