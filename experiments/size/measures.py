"""Which measure is the size of a database: triples, rank, entropy, or a description length.

    python -m experiments.size.measures --run     (ten minutes on two cores)
    python -m experiments.size.measures --plot

In databases of the paper's kind these go together (log triples and log Proposition 2.1 have a
correlation of 0.99). Here a factorial separates them, at fixed numbers of subjects, predicates,
objects and triples (`capacity.database.structured_database`). Fixed before the run, after a pilot
with other seeds that chose the layers:

* `BLOCKS`, each with its numbers of subjects, predicates, objects and triples: copies between
  predicates (192 triples, 6 objects); the same with objects of each predicate's own (96 triples, 48
  objects), whose rank is 48 whatever is copied; and tables of groups of order 12, whose rank is
  between 16 and 27, beside Latin squares (144 triples, 12 objects); shares of `COPIES`;
* 40 databases a cell, three starts, six layers, two recipes;
* the measures of `MEASURES`; every pair has a fact, so that effective rank is rank. The description
  length is `capacity.database.description_length`, written before these runs and not changed;
* the outcome, that a run recalls all facts by argmax (and, beside it, at tau = 0.95), and the test:
  a logistic regression on the measures' standardised logarithms, each alone and all together, with
  a constant for each layer. Intervals are over databases; six layers are too few to speak for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity import Database, LayerConfig, Recipe
from capacity.database import description_length, object_entropy, structured_database
from capacity.sweep import Plan, Run
from experiments.common.harness import BEST, PLAIN, Tables, main, sweep
from experiments.size import measures_numbers, measures_plots

RECIPES = {"plain": PLAIN, "best": BEST}
COPIES = (0.0, 0.25, 0.5, 0.75, 1.0)
DATABASES, STARTS = 40, 3
KEPT = (
    "run_key", "database_id", "layer_id", "seed", "status", "accuracy_argmax", "accuracy_p95",
    "n_triples", "n_objects", "database_rank_bound", "database_rank_lower", "database_rank_upper",
)  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Databases of one shape, and the layers that they are trained on."""

    shape: dict[str, int]
    own_objects: bool
    kinds: tuple[str, ...]
    layers: tuple[LayerConfig, ...]


BLOCKS = {
    "copies": Block(
        {"subjects": 24, "predicates": 8, "objects": 6},
        own_objects=False,
        kinds=("same", "relabelled", "classes", "pairs"),
        layers=tuple(
            LayerConfig(d, heads, 2, 2)
            for d, heads in ((3, 3), (4, 4), (5, 4), (6, 4), (6, 6), (7, 6))
        ),
    ),
    "own objects": Block(
        {"subjects": 12, "predicates": 8, "objects": 48},
        own_objects=True,
        kinds=("relabelled",),
        layers=tuple(
            LayerConfig(d, heads, qk, 2)
            for d, heads, qk in ((3, 1, 1), (3, 2, 1), (3, 3, 2), (4, 3, 2), (5, 3, 2), (5, 4, 2))
        ),
    ),
    "tables": Block(
        {"subjects": 12, "predicates": 12, "objects": 12},
        own_objects=False,
        kinds=("group", "latin"),
        layers=tuple(
            LayerConfig(d, heads, 2, 2)
            for d, heads in ((4, 3), (4, 4), (5, 3), (5, 4), (5, 5), (6, 6))
        ),
    ),
}


def cells() -> list[tuple[str, str, float]]:
    """Block, kind and share of each cell; without copies all kinds are one."""
    return [
        (block, kind, copies)
        for block, of in BLOCKS.items()
        for kind, copies in product(of.kinds, COPIES)
        if copies or kind == of.kinds[0]
    ]


def database_of(block: str, kind: str, copies: float, i: int) -> Database:
    """One database of a cell."""
    of = BLOCKS[block]
    number = cells().index((block, kind, copies))
    return structured_database(
        2_800_000 + 1000 * number + i,
        kind,  # type: ignore[arg-type]
        copies,
        own_objects=of.own_objects,
        **of.shape,
    )


def run(smoke: bool) -> Tables:
    """A row for each run, and one for each database."""
    chosen = cells()[::8] if smoke else cells()
    count, starts = (2, 1) if smoke else (DATABASES, STARTS)
    databases = {
        f"{block}, {kind} {copies:g}, {i}": (
            block,
            kind,
            copies,
            database_of(block, kind, copies, i),
        )
        for block, kind, copies in chosen
        for i in range(count)
    }
    runs = tuple(
        Run(name, db, layer, seed, Recipe(**{**recipe, **({"epochs": 20} if smoke else {})}))
        for recipe in RECIPES.values()
        for name, (block, _, _, db) in databases.items()
        for layer in (BLOCKS[block].layers[::5] if smoke else BLOCKS[block].layers)
        for seed in range(starts)
    )
    table = sweep("database-size", Plan(runs, {"database-size": count, "smoke": smoke}))
    kinds = {run.key: kind for run in runs for kind in RECIPES
             if run.recipe.learning_rate == Recipe(**RECIPES[kind]).learning_rate}  # fmt: skip
    rows = table[list(KEPT)].assign(kind=table["run_key"].map(kinds)).drop(columns="run_key")
    ranks = [column for column in KEPT if column.startswith(("database_rank", "n_"))]
    by_name = rows.drop_duplicates("database_id").set_index("database_id")[ranks]
    described = [
        {
            "database_id": name, "block": block, "structure": kind, "copies": copies,
            "entropy": object_entropy(db), "description_length": description_length(db).bits,
            **by_name.loc[name].to_dict(),
        }
        for name, (block, kind, copies, db) in databases.items()
    ]  # fmt: skip
    return {
        "runs": rows.drop(columns=ranks).sort_values(["database_id", "layer_id", "kind", "seed"]),
        "databases": pd.DataFrame(described),
    }


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares memorised of each cell, and the effects of the measures."""
    return measures_numbers.conclusions(tables["runs"], tables["databases"])


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares memorised by copies, and the measures' effects."""
    return measures_plots.figures(found)


if __name__ == "__main__":
    main("database_size", run, numbers, plot)
