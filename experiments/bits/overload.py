"""Bits a parameter: layers that are given more facts than they hold.

    python -m experiments.bits.overload --run     (five minutes on two cores)
    python -m experiments.bits.overload --plot

A layer that memorises everything stores as many bits as there are, which says nothing of its limit.
Here tables of n subjects and n predicates with 16 objects, drawn evenly for each pair, grow to some
twenty times what a layer recalls in full, and what it stores is counted as Allen-Zhu and Li
(2404.05405) and as Morris et al. (2505.24832) do (`capacity.evaluator.stored_bits`), over all
parameters and over those of the heads, after 500 to 20,000 epochs by the best recipe; then with the
weights rounded to 8 and 4 bits. Layers, sizes and epochs were fixed before the run; lines at 2 and
3.6 bits a parameter are what these authors measured in language models. Intervals are over
databases, each of which has a start of its own.

Added after a first run: what the second convention, which counts no fact below zero, gives the same
layer for other facts at the same pairs, which it never saw.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity import LayerConfig, Recipe
from capacity.database import Database, structured_database
from capacity.evaluator import evaluate, stored_bits
from capacity.layer import AttentionLayer, round_weights, train
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.rank import paper_bound
from experiments.common.conclusions import with_mean
from experiments.common.drawing import estimates
from experiments.common.harness import BEST, Tables, main, rows_of

LAYERS = {each.name: each for each in (LayerConfig(4, 3, 2, 2), LayerConfig(8, 4, 2, 2))}
# subjects, and as many predicates
SIDES = (8, 12, 17, 24, 34, 48, 68)
OBJECTS, DATABASES = 16, 5
EPOCHS = (500, 2000, 8000, 20_000)
LONGEST = EPOCHS[-1]
FORMATS = ("float32", "int8", "int4")
CONVENTIONS = {"averaged": "Allen-Zhu and Li", "clipped": "Morris et al."}


def run(smoke: bool) -> Tables:
    """A row for each training and format."""
    sides, epochs, count = (SIDES[:2], (20,), 2) if smoke else (SIDES, EPOCHS, DATABASES)
    tasks = list(product(LAYERS, sides, epochs, range(count)))
    with bar() as tell:
        found = rows_of("overload", rows_of_task, tasks, tell, in_process=smoke)
    return {"runs": pd.DataFrame([row for each in found for row in each["rows"]])}


def rows_of_task(task: tuple[str, int, int, int]) -> dict[str, Any]:
    """One training, and what it stores in each format."""
    name, side, epochs, i = task
    torch.set_num_threads(1)
    db, other = database_of(side, i), database_of(side, DATABASES + i)
    layer = AttentionLayer(LAYERS[name], db.n_tokens, seed=i)
    train(layer, db, Recipe(**{**BEST, "epochs": epochs, "stop_tau": 0}))
    rows: list[dict[str, Any]] = []
    for kind in FORMATS:
        rounded = round_weights(layer, kind)
        rows.append({
            "database_id": f"{side}-{i}", "layer_id": name, "side": side, "n_triples": db.n_triples,
            "trained_for": epochs, "format": kind, "database_rank_bound": paper_bound(db),
            **stored_bits(rounded, db).to_row(),
            # of facts that it was never taught: what a convention gives for nothing
            "bits_clipped_redrawn": stored_bits(rounded, other).clipped,
            "accuracy_argmax": evaluate(rounded, db).argmax,
        })  # fmt: skip
    return {"rows": rows}


def database_of(side: int, i: int) -> Database:
    """A table without structure."""
    return structured_database(
        2_850_000 + 100 * side + i, "same", 0.0, subjects=side, predicates=side, objects=OBJECTS
    )


def numbers(tables: Tables) -> dict[str, Any]:
    """Bits a parameter by size, epochs and format; the most of each; the largest table recalled."""
    runs = tables["runs"]
    longest = int(runs["trained_for"].max())
    return {
        str(name): {
            "parameters_of_heads": int(of["n_parameters"].iloc[0]),
            "sizes": [_size(part) for _, part in of.groupby("side")],
            "recalled_in_full": _largest(
                of[(of["format"] == "float32") & (of["trained_for"] == longest)]
            ),
            "most_bits_a_parameter": {
                convention: _most(of[of["trained_for"] == longest], convention)
                for convention in CONVENTIONS
            },
        }
        for name, of in runs.groupby("layer_id")
    }  # fmt: skip


def _size(part: pd.DataFrame) -> dict[str, Any]:
    first = part.iloc[0]
    return {
        "triples": int(first["n_triples"]), "content": first["bits_content"],
        "all_parameters": int(first["n_all_parameters"]),
        "database_rank_bound": part["database_rank_bound"].mean(),
        "stored": {
            str(epochs): {
                str(kind): {
                    "recalled": with_mean(of["accuracy_argmax"], of[["database_id"]]),
                    **{
                        f"{convention}_{over}": with_mean(
                            of[f"bits_{convention}_per_{over}"], of[["database_id"]]
                        )
                        for convention in CONVENTIONS
                        for over in ("parameter", "head_parameter")
                    },
                    "redrawn_parameter": with_mean(
                        of["bits_clipped_redrawn"] / of["n_all_parameters"], of[["database_id"]]
                    ),
                }
                for kind, of in by_epochs.groupby("format", sort=False)
            }
            for epochs, by_epochs in part.groupby("trained_for")
        },
    }  # fmt: skip


def _largest(part: pd.DataFrame) -> dict[str, Any]:
    """The largest size of which every table is recalled in full, and the largest size tried."""
    least = part.groupby("n_triples")["accuracy_argmax"].min()
    full = least.index[least == 1]
    return {"triples": int(max(full)) if len(full) else 0, "of": int(max(least.index))}


def _most(part: pd.DataFrame, convention: str) -> dict[str, Any]:
    """The largest mean over databases, by format, and the number of triples that it has."""
    found: dict[str, Any] = {}
    for kind, of in part.groupby("format", sort=False):
        column = f"bits_{convention}_per_parameter"
        means = of.groupby("n_triples")[column].mean()
        best = of[of["n_triples"] == means.idxmax()]
        triples = int(best["n_triples"].iloc[0])
        found[str(kind)] = {"triples": triples, **with_mean(best[column], best[["database_id"]])}
    return found


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Bits a parameter over the size of the table, by epochs and by format."""
    figure = Figure(figsize=(WIDTH, 0.75 * WIDTH), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey="row")
    layers = {name: of for name, of in found.items() if name in LAYERS}
    for column, (name, of) in zip(axes.T, layers.items(), strict=False):
        sizes = of["sizes"]
        triples = [size["triples"] for size in sizes]
        every = list(sizes[0]["stored"])
        for epochs, colour, marker in zip(every, COLOURS, MARKERS, strict=False):
            stored = [size["stored"][epochs]["float32"]["clipped_parameter"] for size in sizes]
            estimates(column[0], triples, stored, colour=colour, marker=marker, line="-",
                      label=f"{int(epochs):,} epochs")  # fmt: skip
        for kind, colour, marker in zip(FORMATS, COLOURS, MARKERS, strict=False):
            stored = [size["stored"][every[-1]][kind]["clipped_parameter"] for size in sizes]
            estimates(
                column[1], triples, stored, colour=colour, marker=marker, line="-", label=kind
            )
        column[0].set_title(name)
        column[1].set_title(f"after {int(every[-1]):,} epochs")
        column[1].set_xlabel("triples")
    for ax in axes.flat:
        ax.set_xscale("log")
        for bits, style in ((2.0, ":"), (3.6, "--")):
            ax.axhline(bits, color="0.6", lw=0.8, ls=style, label=f"{bits:g} bits")
    for ax in axes[:, 0]:
        ax.set_ylabel("bits stored a parameter")
        # between the two lines
        ax.legend(frameon=False, fontsize="small", ncols=2, loc="upper left",
                  bbox_to_anchor=(0, 0.93))  # fmt: skip
    return {"bits": figure}


if __name__ == "__main__":
    main("overload", run, numbers, plot)
