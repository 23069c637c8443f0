"""Databases that are made against (10), to find one for which it doesn't suffice.

    python -m experiments.starts.patterns --run
    python -m experiments.starts.patterns --plot

With d_model of two or more no proof is known that Wong's (10), Proposition 2.1 at most
d_model + n_heads d_head_vo, suffices. Random databases don't search for a counterexample; these do.
In the database of p *patterns* each of p predicates has two objects of its own, and there is a
subject for each of the 2^p ways to answer. Its bound by Proposition 2.1 is 2 p, so that a layer
with n_heads d_head_vo = 2 p - d_model has (10) with equality, while each subject's p answers have
to be read out of its d_model numbers.

Fixed before the run, after a pilot with eight starts: p from 2 to `MOST`, the layers of `LAYERS`
(d_head_qk = 2), W_Q and W_K trained and frozen, and up to `STARTS` starts of `EPOCHS` epochs by the
best recipe, until one holds the database by argmax. That none does is no proof that none can.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity import Database, LayerConfig, Recipe
from capacity.layer import AttentionLayer, Starts, layer_rank_assumed, train_many
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.rank import paper_bound
from experiments.common.drawing import REFERENCE, headline
from experiments.common.harness import BEST, Tables, main, rows_of

MOST, EPOCHS = 7, 4000
STARTS = Starts(64, "held", "argmax")
# (d_model, d_head_vo); heads follow from p
LAYERS = ((2, 1), (2, 2), (3, 1), (4, 1), (4, 2))
WAYS: dict[str, tuple[str, ...]] = {"trained": (), "frozen": ("W_Q", "W_K")}


def patterns(p: int) -> Database:
    """The database of p predicates with two objects each, and a subject for each way to answer."""
    return Database.from_triples(
        (f"s{i}", f"p{q}", f"o{q}.{answer}")
        for i, answers in enumerate(product((0, 1), repeat=p))
        for q, answer in enumerate(answers)
    )


def layer_of(p: int, d_model: int, d_head_vo: int) -> LayerConfig | None:
    """The layer for which (10) holds with equality, if there is one."""
    heads, left = divmod(2 * p - d_model, d_head_vo)
    return LayerConfig(d_model, heads, 2, d_head_vo) if heads > 0 and not left else None


def run(smoke: bool) -> Tables:
    """A row for each database, layer and way."""
    tasks = [
        (p, d, vo, way, 20 if smoke else EPOCHS)
        for p, (d, vo), way in product(range(2, 4 if smoke else MOST + 1), LAYERS, WAYS)
        if layer_of(p, d, vo) is not None
    ]
    with bar() as tell:
        rows = rows_of("patterns", row_of, tasks, tell, in_process=smoke, cost=lambda t: t[0])
    return {"cells": pd.DataFrame(rows)}


def row_of(task: tuple[int, int, int, str, int]) -> dict[str, Any]:
    """The starts of one layer on one database."""
    p, d, vo, way, epochs = task
    db, config = patterns(p), layer_of(p, d, vo)
    assert config is not None
    assert paper_bound(db) == layer_rank_assumed(config) == 2 * p
    layer = AttentionLayer(config, db.n_tokens, seed=p)
    recipe = Recipe(**{**BEST, "epochs": epochs, "frozen": WAYS[way]})
    (training,) = train_many(
        [(layer, db)], recipe, seeds=[p], starts=STARTS.most, until=STARTS.until,
        held_at=STARTS.held_at,
    )  # fmt: skip
    tried = training.starts
    assert tried is not None
    return {
        "p": p, "layer_id": config.name, "d_model": d, "n_heads": config.n_heads, "d_head_vo": vo,
        "way": way, "n_triples": db.n_triples, "starts_tried": tried.tried,
        "held_by_any": tried.held > 0, "recalled": tried.recalled,
    }  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Count what is held, by the number of patterns and the layer."""
    cells = tables["cells"]
    by_layer = {
        f"d_model {d}, d_head_vo {vo}": [
            {
                "p": int(part["p"].iloc[0]),
                "triples": int(part["n_triples"].iloc[0]),
                "heads": int(part["n_heads"].iloc[0]),
                "held": sorted(part[part["held_by_any"]]["way"]),
                "starts": int(part["starts_tried"].sum()),
                "most_recalled": part["recalled"].max(),
            }
            for _, part in of.groupby("p")
        ]
        for (d, vo), of in cells.groupby(["d_model", "d_head_vo"])
    }
    pairs = cells.groupby(["p", "layer_id"])["held_by_any"].any()
    return {
        "layers": by_layer,
        "pairs": len(pairs),
        "held": int(pairs.sum()),
        # (10) suffices for all of these databases
        "verdict": "holds here" if pairs.all() else "not seen here",
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Facts that the best start recalls, by the number of patterns."""
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    for (name, rows), colour, marker in zip(
        found["layers"].items(), COLOURS, MARKERS, strict=False
    ):
        shares = [row["most_recalled"] for row in rows]
        axes.plot([row["p"] for row in rows], shares, f"{marker}-", color=colour, label=name)
    axes.axhline(1, color=REFERENCE, linewidth=0.8, label="all facts")
    axes.set(
        xlabel="predicates p, each with two objects, for 2^p subjects",
        ylabel="facts recalled by argmax,\nby the best start",
    )
    axes.legend()
    headline(
        figure,
        "Layers for which (10) holds with equality, on databases of all patterns:\n"
        f"{found['held']} of {found['pairs']} are held by some start",
    )
    return {"recalled": figure}


if __name__ == "__main__":
    main("patterns", run, numbers, plot)
