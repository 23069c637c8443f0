"""Where facts are: training with some weights frozen at random, or taken from another database.

    python -m experiments.size.frozen --run     (twelve minutes on two cores)
    python -m experiments.size.frozen --plot

The groups are W_E, (W_Q, W_K), (W_V, W_O), W_U and the direct path E (Wong 2025, equation (5)).
None, each one, and each pair of them is held at its random start while the rest is trained. Then
W_E alone is trained on heads and unembedding that were trained on another database.

Fixed before the run, after a pilot with other seeds that chose the sizes: `SHAPES`, `RECIPES`, 40
databases a cell, and the five questions of `QUESTIONS`, each decided in the four cells of a shape
and a recipe at the shape's size in `DECIDES`, by the mean difference of the share of facts that are
recalled by argmax, with intervals over databases that hold at once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from capacity import Database, LayerConfig, Recipe
from capacity.database import structured_database
from capacity.evaluator import cluster_bootstrap, simultaneous_intervals
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from experiments.common.conclusions import with_mean
from experiments.common.drawing import KINDS
from experiments.common.harness import BEST, PLAIN, Tables, main, rows_of
from experiments.size.frozen_training import (
    DIRECT,
    drawn_weights,
    recalled,
    train_layers,
    train_tables,
)
from experiments.size.frozen_training import Tables as FactTables

GROUPS: dict[str, tuple[str, ...]] = {
    "W_E": ("W_E",),
    "W_Q, W_K": ("W_Q", "W_K"),
    "W_V, W_O": ("W_V", "W_O"),
    "W_U": ("W_U",),
    "E": (DIRECT,),
}
HEADS = ("W_Q, W_K", "W_V, W_O")
# what is frozen, 16 rows, and one row more: all but W_E
FROZEN = [(), *((each,) for each in GROUPS), *combinations(GROUPS, 2)]
ALL_BUT_W_E = (*HEADS, "W_U")
# weights that come from another database -> what is trained beside W_E
TRANSPLANTS = {"heads": ("W_E", "W_U"), "heads, W_U": ("W_E",)}
RECIPES = {"plain": PLAIN, "best": BEST}
DATABASES, TAU, RESAMPLES = 40, 0.95, 2000


@dataclass(frozen=True)
class Shape:
    """A layer, and databases of growing size: 12 subjects, and some predicates."""

    layer: LayerConfig
    predicates: tuple[int, ...]
    decides: int
    own_objects: bool


SHAPES = {
    # many more tokens than dimensions: heads have 96 of 640 parameters at 8 predicates
    "own objects": Shape(LayerConfig(4, 3, 2, 2), (2, 4, 8, 12), 8, own_objects=True),
    # few tokens: heads have 384 of 864 parameters at 16 predicates
    "shared objects": Shape(LayerConfig(6, 8, 2, 2), (4, 8, 16, 24), 16, own_objects=False),
}
# question -> the two rows whose difference answers it, the first less the second
QUESTIONS = {
    "values matter more than queries and keys": ("W_Q, W_K", "W_V, W_O"),
    "training the heads gains something": ("none", "W_Q, W_K + W_V, W_O"),
    "embeddings matter more than all heads": ("W_Q, W_K + W_V, W_O", "W_E"),
    "heads and W_U of another database help W_E": ("from another: heads, W_U", "all but W_E"),
    "learning the direct path gains something": ("none", "E"),
}
NAMED: dict[str, tuple[str, ...]] = {"all but W_E": ALL_BUT_W_E}


def row_name(frozen: tuple[str, ...]) -> str:
    """Name of a row of the table."""
    named = {groups: name for name, groups in NAMED.items()}
    return named.get(frozen, " + ".join(frozen) or "none")


def run(smoke: bool) -> Tables:
    """A row for each database, shape, recipe and row of the table."""
    count, epochs = (4, 10) if smoke else (DATABASES, 2000)
    rows_of_table = [row_name(frozen) for frozen in (*FROZEN, ALL_BUT_W_E)]
    rows_of_table += [f"from another: {what}" for what in TRANSPLANTS]
    tasks = [
        (name, predicates, recipe, row, count, epochs)
        for name, shape in SHAPES.items()
        for predicates in ((shape.decides,) if smoke else shape.predicates)
        for recipe, row in product(RECIPES, rows_of_table)
    ]
    with bar() as tell:
        found = rows_of("frozen", rows_of_task, tasks, tell, in_process=smoke, cost=_cost_of)
    return {"runs": pd.concat([pd.DataFrame(each) for each in found], ignore_index=True)}


def _cost_of(task: tuple[str, int, str, str, int, int]) -> float:
    """Rough cost of a row: a held direct path is trained by torch, about ten times as slowly."""
    _, predicates, _, row, _, _ = task
    return predicates * (10 if "E" in row.split(" + ") else 1)


def rows_of_task(task: tuple[str, int, str, str, int, int]) -> dict[str, Any]:
    """Train one row of the table on all databases of a size."""
    name, predicates, kind, row, count, epochs = task
    torch.set_num_threads(1)
    shape = SHAPES[name]
    databases = databases_of(name, predicates, count)
    facts = FactTables(databases)
    recipe = Recipe(**{**RECIPES[kind], "stop_tau": 0, "epochs": epochs})
    n_tokens = databases[0].n_tokens
    drawn = drawn_weights(shape.layer, n_tokens, range(count))
    direct: Tensor | None = None
    if row.startswith("from another: "):
        trained = train_layers(shape.layer, drawn, databases, recipe)
        moved = TRANSPLANTS[row.removeprefix("from another: ")]
        fresh = drawn_weights(shape.layer, n_tokens, range(count, 2 * count))
        # database i gets what was trained on database i + 1
        given = {n: fresh[n] if n in moved else value.roll(-1, 0) for n, value in trained.items()}
        still = given.keys() - set(moved)
        weights = train_layers(shape.layer, given, databases, recipe, still)
    else:
        groups = NAMED.get(row, tuple(row.split(" + ")) if row != "none" else ())
        frozen = {weight for group in groups for weight in GROUPS[group]}
        if DIRECT in frozen:
            direct = drawn["W_E"] @ drawn["W_U"]
            weights = train_tables(drawn, facts, recipe, frozen, direct=direct)
        else:
            weights = train_layers(shape.layer, drawn, databases, recipe, frozen)
    first, likely = recalled(weights, facts, TAU, direct)
    return {
        "database_id": [f"{name}-{predicates}-{i}" for i in range(count)],
        "shape": [name] * count, "n_predicates": [predicates] * count, "kind": [kind] * count,
        "row": [row] * count, "n_triples": [facts.objects.shape[1]] * count,
        "accuracy_argmax": first.mean(1).tolist(), "memorised_argmax": first.all(1).tolist(),
        "memorised_p95": likely.all(1).tolist(),
    }  # fmt: skip


@cache
def databases_of(name: str, predicates: int, count: int) -> list[Database]:
    """Databases without structure: each predicate's objects are drawn by themselves."""
    shape = SHAPES[name]
    sizes = {"subjects": 12, "predicates": predicates}
    return [
        structured_database(2_840_000 + 1000 * predicates + i, "relabelled", 0.0,
                            objects=6 * predicates if shape.own_objects else 12,
                            own_objects=shape.own_objects, **sizes)
        for i in range(count)
    ]  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares recalled of each row, the five questions, and sizes at which half memorise."""
    runs = tables["runs"]
    cells: dict[str, Any] = {}
    for (name, kind), part in runs.groupby(["shape", "kind"]):
        deciding = part[part["n_predicates"] == SHAPES[str(name)].decides]
        cells[f"{name}, {kind}"] = {
            str(row): {
                "accuracy": with_mean(each["accuracy_argmax"], each),
                "memorised": with_mean(each["memorised_argmax"], each),
                "memorised_0.95": with_mean(each["memorised_p95"], each),
                "half_memorise_up_to": _largest(part[part["row"] == row]),
            }
            for row, each in deciding.groupby("row", sort=False)
        }
    sizes = runs.groupby(["shape", "n_predicates"])["database_id"].nunique()
    return {
        "databases_a_cell": int(sizes.min()),
        "trainings": len(runs), "cells": cells, "questions": _questions(runs),
    }  # fmt: skip


def _largest(part: pd.DataFrame) -> int | None:
    """Number of triples of the largest size at which at least half memorise; None if none."""
    half = part.groupby("n_triples")["memorised_argmax"].mean() >= 0.5
    return int(max(half.index[half])) if half.any() else None


def _questions(runs: pd.DataFrame) -> dict[str, Any]:
    """Differences of two rows in each cell, with intervals of all of them at once."""
    names: list[tuple[str, str]] = []
    columns: list[np.ndarray[Any, Any]] = []
    for (name, kind), part in runs.groupby(["shape", "kind"]):
        deciding = part[part["n_predicates"] == SHAPES[str(name)].decides]
        wide = deciding.pivot_table(index="database_id", columns="row", values="accuracy_argmax")
        for question, (one, other) in QUESTIONS.items():
            names.append((question, f"{name}, {kind}"))
            columns.append((wide[one] - wide[other]).to_numpy())
    table = np.array(columns)
    # cells of a shape share databases; those of two shapes don't
    draws = [
        table @ weights / weights.sum()
        for weights in cluster_bootstrap(np.arange(table.shape[1]), RESAMPLES)
    ]
    ends = simultaneous_intervals(table.mean(axis=1), np.array(draws))
    found: dict[str, Any] = {question: {} for question in QUESTIONS}
    for (question, cell), mean, interval in zip(names, table.mean(axis=1), ends, strict=True):
        found[question][cell] = {"mean": mean, "interval": interval}
    for of in found.values():
        cells = list(of.values())
        of["above_zero_in"] = sum(cell["interval"][0] > 0 for cell in cells)
        of["below_zero_in"] = sum(cell["interval"][1] < 0 for cell in cells)
        of["of"] = len(cells)
    return found


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Facts recalled by number of triples, with each group frozen, in each cell."""
    runs = tables["runs"]
    rows = ["none", *GROUPS, "W_Q, W_K + W_V, W_O"]
    figure = Figure(figsize=(WIDTH, 0.72 * WIDTH), layout="constrained")
    axes = figure.subplots(2, 2, sharey=True)
    for ax, (kind, name) in zip(axes.flat, product(KINDS, SHAPES), strict=True):
        part = runs[(runs["shape"] == name) & (runs["kind"] == kind)]
        for row, colour, marker in zip(rows, (*COLOURS, "0.4"), (*MARKERS, "x"), strict=False):
            mean = part[part["row"] == row].groupby("n_triples")["accuracy_argmax"].mean()
            ax.plot(mean.index, mean.to_numpy(), color=colour, marker=marker, ms=4, label=row)
        ax.set_title(f"{name}, {kind}")
        ax.set_xlabel("triples")
    for ax in axes[:, 0]:
        ax.set_ylabel("facts recalled by argmax")
    axes[0, 1].legend(title="frozen at random", fontsize="small")
    return {"rows": figure}


if __name__ == "__main__":
    main("frozen", run, numbers, plot)
