"""Whether the law of layers foretells what real stores need, beside controls of the same shape.

    python -m experiments.size.stores --run     (a quarter of an hour on two cores)
    python -m experiments.size.stores --plot

The law (`experiments.size.layers`, in the library as `held_size`) was fitted to synthetic databases
alone. Here it meets parts of nine real stores (`stores_data`), and for each part `CONTROLS`
databases without structure that have its numbers of subjects, predicates, objects, facts and
tokens. The *found size* of a database is what the law says of the layers that just hold it: of a
ladder of layers, a rung for each step of the law, one start is trained on rungs by bisection, until
a rung memorises (tau = 0.95) and the one below doesn't; the found size is between what the law
foretells for the two. The *error* is log(found size / number of facts), in nats: below zero, a
smaller layer is enough than the law says.

Fixed before the run:

* `PARTS` of each store and size, where a store has more facts than that, but none with more than
  `MOST_LOGITS` facts times tokens, which would take hours: of 5,000 facts that leaves kinship
  pairs. Both recipes, and the best one alone from `BEST_ALONE` facts on;
* question 1: the law foretells a store if the 95 % interval of the mean error of its parts is
  within a factor of 1.5, and the controls likewise. Intervals are over parts;
* question 2: what is left is error of a part less the mean error of its controls; each measure of
  `experiments.size.measures` foretells it, by a line through the origin on the logarithm of the
  part's measure over the mean of its controls', fitted to the other stores. What it explains is 1
  less the sum of squares that is left, over that of no measure; intervals are over stores;
* question 3: `with_missing_pairs`, at `FACTS` facts and shares `MISSING` of pairs without a fact,
  rank and effective rank come apart. Which do layers follow: the slopes of log found size on the
  logarithms of both (means of certified ends) within a store, together, and the r^2 of each alone;
  intervals are over databases.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity import Database, LayerConfig, Recipe, effective_rank_interval, rank_interval
from capacity.database import description_length, object_entropy
from capacity.evaluator import RecipeName, held_size
from capacity.progress import bar
from capacity.rank import paper_bound
from capacity.sweep import Run, train_run
from experiments.common.harness import BEST, PLAIN, Tables, main, rows_of
from experiments.size import stores_numbers, stores_plots
from experiments.size.stores_data import COMPLETE, STORES, control, part, with_missing_pairs

RECIPES: dict[RecipeName, dict[str, Any]] = {"plain": PLAIN, "best": BEST}
# facts of a part -> parts of each store
PARTS = {50: 3, 158: 3, 500: 2, 1581: 1, 5000: 1}
MOST_LOGITS, BEST_ALONE, CONTROLS = 2_500_000, 1581, 5
MISSING, FACTS, PREDICATES, COPIES = (0.0, 0.3, 0.6, 0.9), 120, 12, 8
LAYERS = [
    LayerConfig(d, heads, 2, 2) for d in range(2, 17) for heads in sorted({d, 3 * d // 2, 2 * d})
]


def run(smoke: bool) -> Tables:
    """A row for each training, and one for each database."""
    parts, epochs = ({50: 1}, 20) if smoke else (PARTS, 2000)
    tasks: list[tuple[Any, ...]] = [
        ("part", name, n, i, epochs)
        # the longest first, so that both processes have work to the end
        for n, name in product(sorted(parts, reverse=True), STORES[::4] if smoke else STORES)
        for i in range(parts[n])
        if affordable(part(name, n, i))
    ]
    tasks += [
        ("missing", name, share, i, epochs)
        for name, share in product(COMPLETE[:1] if smoke else COMPLETE, MISSING)
        for i in range(2 if smoke else COPIES)
    ]
    with bar() as tell:
        found = rows_of("stores", rows_of_task, tasks, tell, in_process=smoke)
    return {
        key: pd.DataFrame([row for each in found for row in each[key]])
        for key in ("runs", "databases")
    }


def affordable(db: Database | None) -> bool:
    """Whether a store has the part, and layers can be trained on it in minutes."""
    return db is not None and db.n_triples * db.n_tokens <= MOST_LOGITS


def rows_of_task(task: tuple[str, str, float, int, int]) -> dict[str, Any]:
    """The databases of a part and of its controls, or one with missing pairs, and their runs."""
    what, name, of, i, epochs = task
    torch.set_num_threads(1)
    identity = f"{name} {of:g} {i}"
    if what == "part":
        db = part(name, int(of), i)
        if db is None:
            raise ValueError(f"{name} has no part of {of} facts.")
        databases = {identity: db}
        databases |= {f"{identity} control {j}": control(db, 1000 * i + j) for j in range(CONTROLS)}
    else:
        db = with_missing_pairs(name, of, i, n_triples=FACTS, n_predicates=PREDICATES)
        databases = {f"missing {identity}": db}
    described = [
        {
            "what": "control" if " control " in each else what, "store": name, "of": identity,
            "share": of if what == "missing" else None, "database_id": each,
            **measured(db, effective=what == "missing"),
        }
        for each, db in databases.items()
    ]  # fmt: skip
    kinds: list[RecipeName] = ["best"] if what == "part" and of >= BEST_ALONE else list(RECIPES)
    runs: list[dict[str, Any]] = []
    for kind in kinds:
        start = None
        for each, db in databases.items():
            rows, found = bisected(each, db, kind, i, epochs, start)
            # controls are alike, and the part needn't be like them
            start = None if each == identity else found
            runs += [{"database_id": each, "kind": kind, **row} for row in rows]
    return {"runs": runs, "databases": described}


def measured(db: Database, *, effective: bool) -> dict[str, Any]:
    """The measures of a database, and its numbers."""
    interval = rank_interval(db)
    found: dict[str, Any] = {
        "n_triples": db.n_triples,
        **dict(zip(("n_subjects", "n_predicates", "n_objects"), db.shape, strict=True)),
        "n_tokens": db.n_tokens,
        "database_rank_bound": paper_bound(db),
        "database_rank_lower": interval.lower,
        "database_rank_upper": interval.upper,
        "entropy": object_entropy(db),
        "description_length": description_length(db).bits,
    }
    if effective:
        also = effective_rank_interval(db)
        found |= {
            "effective_rank_lower": also.lower,
            "effective_rank_upper": also.upper,
        }
    return found


@cache
def ladder(kind: RecipeName) -> list[tuple[float, LayerConfig]]:
    """Layers by what the law foretells, each of them at least 15 % more than the one before."""
    foretold = sorted(
        ((held_size(layer, kind).triples, layer) for layer in LAYERS), key=lambda rung: rung[0]
    )  # type: ignore[arg-type]
    rungs = foretold[:1]
    for rung in foretold[1:]:
        if rung[0] >= 1.15 * rungs[-1][0]:
            rungs.append(rung)
    return rungs


def bisected(
    name: str, db: Database, kind: RecipeName, seed: int, epochs: int, start: int | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Runs on rungs of the ladder, and the lowest that memorises.

    They start on the rung that the law names, or that another control of the same shape had.
    """
    rungs = ladder(kind)
    recipe = Recipe(**{**RECIPES[kind], "epochs": epochs})
    bound = paper_bound(db)
    # ranks aren't asked for here
    ranks = {"database_rank_bound": bound, "database_rank_lower": 1, "database_rank_upper": bound}
    rows: list[dict[str, Any]] = []

    def memorises(rung: int) -> bool:
        triples, layer = rungs[rung]
        row, _ = train_run(Run(name, db, layer, seed, recipe), ranks=ranks)
        done = bool(row["accuracy_p95"] == 1)
        rows.append({
            "rung": rung, "foretold": triples, "memorised": done,
            **{key: row[key] for key in ("layer_id", "status", "accuracy_argmax", "accuracy_p95")},
        })  # fmt: skip
        return done

    if start is None:
        start = int(np.argmin([abs(np.log(triples / db.n_triples)) for triples, _ in rungs]))
    return rows, lowest(memorises, min(start, len(rungs) - 1), len(rungs))


def lowest(memorises: Callable[[int], bool], start: int, n: int) -> int:
    """Find a rung of n that memorises, beside one below that doesn't; n if none does.

    From a rung to start from, steps double until a rung of either kind is found.
    """
    step = 1
    if memorises(start):
        above, below = start, start - 1
        while below >= 0 and memorises(below):
            above, step = below, 2 * step
            below = max(above - step, -1)
    else:
        below, above = start, start + 1
        while above < n and not memorises(above):
            below, step = above, 2 * step
            above = min(below + step, n)
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if memorises(middle) else (middle, above)
    return above


def numbers(tables: Tables) -> dict[str, Any]:
    """Errors by store, what measures explain of them, and rank against effective rank."""
    return stores_numbers.conclusions(tables["runs"], tables["databases"])


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Found sizes beside numbers of facts; missing pairs."""
    return stores_plots.figures(tables["runs"], tables["databases"], found)


if __name__ == "__main__":
    main("stores", run, numbers, plot)
