"""Layers that hold their database: some start of each is trained until it does.

What is measured of first starts is measured in part of starts that failed. Here a layer counts once
a start of it recalls every fact with a probability of `TAU`, by the best recipe; a pair of a layer
and a database that no start of `STARTS` holds is counted, and not measured. Pairs are those of the
paper's plan, drawn anew: their databases are none of those of `figures` and `starts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from capacity.layer import AttentionLayer, Starts
from capacity.progress import bar
from capacity.sweep import Run
from experiments.common.bisections import trained_without_search
from experiments.common.harness import BEST, paper_plan

TAU, STARTS = 0.95, 8
# replicates of the paper's plan that no other experiment has; every so many of its 3,947 pairs
REPLICATE, SMOKE, EVERY = 7, 6, 16
KEPT = (
    "database_id", "layer_id", "d_model", "n_heads", "d_head_qk", "d_head_vo", "n_triples",
    "n_subjects", "n_predicates", "n_objects", "database_rank_bound", "layer_rank_bound",
    "starts_tried", "held_by_any",
)  # fmt: skip


def fresh_pairs(smoke: bool) -> list[Run]:
    """Pairs of the paper's kind with d_model of two or more."""
    some: dict[str, Any] = (
        {"pairs": 16, "databases": 6, "epochs": 400} if smoke else {"every": EVERY}
    )
    starts = Starts(2 if smoke else STARTS, "held", TAU)
    runs = paper_plan(SMOKE if smoke else REPLICATE, BEST, **some).runs
    return [replace(run, starts=starts) for run in runs if run.layer.d_model > 1]


def measured(
    name: str, runs: Sequence[Run], what: Callable[[Run, AttentionLayer], dict[str, Any]]
) -> pd.DataFrame:
    """A row for each run, with what is measured of its layer if that holds the database."""
    rows: list[dict[str, Any]] = []
    with bar() as tell:
        for number, run in enumerate(runs, start=1):
            row, layer = trained_without_search(run)
            kept = {key: row[key] for key in KEPT}
            if row["held_by_any"]:
                with torch.no_grad():
                    kept |= what(run, layer.double())
            rows.append(kept)
            tell(name, number, len(runs))
    return pd.DataFrame(rows)


def held(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of layers that hold their database."""
    return table[table["held_by_any"]].reset_index(drop=True)


def counts(table: pd.DataFrame) -> dict[str, int]:
    """Numbers of pairs, and of those that some start holds."""
    return {"pairs": len(table), "held": int(table["held_by_any"].sum())}
