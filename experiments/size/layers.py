"""Which sizes of a layer decide how large a database it memorises, on fresh data.

    python -m experiments.size.layers --run     (forty minutes on two cores)
    python -m experiments.size.layers --plot

In equation (9) of Wong 2025, d_model + n_heads d_head_vo, heads and d_head_vo enter as a product.
The tables of `figures` said otherwise, after the fact: triples ~ d_model^1.6 n_heads^1.6
d_head_vo^0.5 d_head_qk^-0.1 by the plain recipe, and 1.9, 2.1, 0.8, -0.6 by the best. Here that is
tested on layers and databases that had no part in it. Fixed before the run:

* the layers, `LAYERS`: d_model 2, 4 and 8 with each number of heads and the pairs of d_head_qk and
  d_head_vo of `HEAD_SIZES`, so that all four sizes are uncorrelated (d_model 2 has pairs of its
  own); and two layers of d_model 16, which are only asked about, with one head and two;
* the databases, 20 of each size, one layer trained on each, and the grid `SIZES`, which each layer
  bisects for the size at which half of the databases are memorised (tau = 0.95); a size's next
  database is trained on until ten are memorised, or eleven aren't;
* the forms of the law, `FORMS`, each fitted to the runs of databases below `SPLIT` triples, and
  asked about those above;
* the matched layers: at one d_model, one (9) and one number of parameters, more heads of smaller
  queries, keys and values against fewer of larger.

Intervals are over databases and layers. The forms of neighbours have the exponents that they prove
or measure, and a factor fitted here: H d_h + d (Dana, Pydi, Chevaleyre 2411.10115, guaranteed; with
d_h for d_head_vo, this is (9)); H d^3 in their task where d_h = d, which is H d d_h^2 (measured);
H min(n, d_h), n = 2 tokens of context (Mahdavi, Liao, Thrampoulidis 2306.02010); one fact a
parameter (Nichani, Lee, Bietti 2412.06538).
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity import LayerConfig, Recipe
from capacity.evaluator import half_size
from capacity.progress import bar
from capacity.sweep import Run
from experiments.common.bisections import row_without_search, share_held
from experiments.common.harness import BEST, PLAIN, Tables, main, rows_of
from experiments.size import layers_numbers, layers_plots
from experiments.size.databases import sized_database

RECIPES = {"plain": PLAIN, "best": BEST}
TAU, DATABASES = 0.95, 20
# (d_head_qk, d_head_vo): a square and its middle
HEAD_SIZES = ((1, 1), (1, 4), (2, 2), (4, 1), (4, 4))
NARROW = ((1, 1), (1, 2), (2, 1), (2, 2))
HEADS = (1, 2, 4, 8, 16)
# larger than all that a law is fitted to
LARGEST = 16
LAYERS = [
    LayerConfig(d, heads, qk, vo)
    for d, heads in (*product((2, 4, 8), HEADS), *product((LARGEST,), (1, 2)))
    for qk, vo in (((2, 2),) if d == LARGEST else NARROW if d == 2 else HEAD_SIZES)
]
# half an octave apart
SIZES = tuple(round(50 * 2 ** (i / 2)) for i in range(13))


def run(smoke: bool) -> Tables:
    """A row for each run of each bisection."""
    tasks = [
        (kind, layer.name, 2 if smoke else DATABASES, 300 if smoke else 2000)
        for layer, kind in product(LAYERS[18::25] if smoke else LAYERS, RECIPES)
    ]
    with bar() as tell:
        found = rows_of("law_of_layers", bisection_of, tasks, tell, in_process=smoke, cost=_cost_of)
    runs = pd.DataFrame([row for each in found for row in each["runs"]])
    return {"runs": runs.sort_values(["kind", "layer_id", "n_asked", "seed"], ignore_index=True)}


def bisection_of(task: tuple[str, str, int, int]) -> dict[str, Any]:
    """All runs of the bisection of one layer by one recipe."""
    kind, name, count, epochs = task
    layer = _named(name)
    recipe = Recipe(**{**RECIPES[kind], "epochs": epochs})
    rows: list[dict[str, Any]] = []

    def is_held(size: int, seed: int) -> bool:
        row = row_of(layer, size, seed, recipe)
        rows.append({"kind": kind, **row})
        return row["accuracy_p95"] == 1

    half_size(lambda size: share_held(count, partial(is_held, size)), SIZES)
    return {"runs": rows}


def _cost_of(task: tuple[str, str, int, int]) -> float:
    """Rough cost of a bisection: larger layers are asked for larger databases."""
    kind, name, _, _ = task
    return (2 if kind == "best" else 1) * _named(name).n_parameters


def _named(name: str) -> LayerConfig:
    return next(each for each in LAYERS if each.name == name)


def row_of(layer: LayerConfig, size: int, seed: int, recipe: Recipe) -> dict[str, Any]:
    """One run; databases are shared by all layers."""
    db = sized_database(size, seed)
    row = row_without_search(Run(f"sized-{size}-{seed}", db, layer, seed, recipe))
    kept = (
        "database_id", "layer_id", "seed", "n_triples", "n_objects", "n_tokens",
        "database_rank_bound", "d_model", "n_heads", "d_head_qk", "d_head_vo", "n_parameters",
        "n_embedding_parameters", "layer_rank_bound", "epochs", "status", "accuracy_argmax",
        "accuracy_p95",
    )  # fmt: skip
    return {"n_asked": size, **{key: row[key] for key in kept}}


def numbers(tables: Tables) -> dict[str, Any]:
    """Exponents, what each form foretells, and matched layers."""
    return layers_numbers.conclusions(tables["runs"])


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes foretold and found; exponents; matched layers."""
    return layers_plots.figures(tables["runs"], found)


if __name__ == "__main__":
    main("law_of_layers", run, numbers, plot)
