"""How much larger databases a layer holds with its queries and keys frozen at random.

    python -m experiments.starts.half_sizes --run
    python -m experiments.starts.half_sizes --plot

Gates of a layer with few heads saturate while they are trained, and the start is lost. Fixed before
the run:

* the layers, `LAYERS`, with d_head_qk 2: of `HEADS` and `VALUES` those with n_heads d_head_vo up to
  d_model, and for `SMALL` d_model up to four times that. With d_model 8 it is at most `WIDEST`: at
  the limit sizes lie above 2,000 triples, where the starts of one database take minutes;
* the databases, `DATABASES` of each size of the grid `SIZES`, drawn for this experiment, and the
  best recipe;
* of each layer the size that half of the databases are held at (tau = 0.95), by bisection: trained,
  by one start each, and by some of `STARTS`; and with W_Q and W_K frozen, by some of `STARTS`;
* H4: in `SHARE` of the layers with n_heads d_head_vo <= d_model the frozen size is at least
  `TIMES` that of one trained start. H4 *holds here* if so many of these layers do; the interval of
  the share over layers is told beside. What freezing does apart from more starts is the ratio to
  some of as many trained starts, told beside as well.

A size below the grid counts as its smallest and one above it as its largest, and layers of which
that is so are told. A pilot on other databases showed that a grid to 1,600 triples would have
decided: three layers of d_model 8 at the limit lay above it in both ways.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity import LayerConfig, Recipe
from capacity.evaluator import HalfSize, fit_size_law, half_size, percentile_interval
from capacity.layer import Starts
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.sweep import Run
from experiments.common.bisections import row_without_search, share_held
from experiments.common.conclusions import with_mean
from experiments.common.drawing import REFERENCE, headline
from experiments.common.harness import BEST, Tables, main, rows_of
from experiments.size.databases import sized_database

TAU, DATABASES, STARTS = 0.95, 10, 8
SHARE, TIMES = 0.8, 2.0
HEADS, VALUES = (1, 2, 4, 8, 16), (1, 2, 4)
SMALL, WIDEST = (3, 4, 5), 4
LAYERS = [
    LayerConfig(d, heads, 2, vo)
    for d, heads, vo in product((*SMALL, 6, 8), HEADS, VALUES)
    if vo <= d and heads * vo <= (4 * d if d in SMALL else min(d, WIDEST) if d == 8 else d)
]
# half an octave apart, from 25 to 6,400
SIZES = tuple(round(25 * 2 ** (i / 2)) for i in range(17))
# so that the databases are none of those of `law_of_layers`
FIRST_SEED = 1000
LAW = ("d_model", "n_heads", "d_head_vo")
ONE, SOME, FROZEN = "trained, one start", "trained, some of 8", "frozen, some of 8"
WAYS: dict[str, tuple[tuple[str, ...], Starts]] = {
    ONE: ((), Starts(1)),
    SOME: ((), Starts(STARTS, "held")),
    FROZEN: (("W_Q", "W_K"), Starts(STARTS, "held")),
}


def run(smoke: bool) -> Tables:
    """A row for each run of each bisection."""
    tasks = [
        (way, layer.name, 2 if smoke else DATABASES, 300 if smoke else 2000)
        for layer, way in product(LAYERS[:6:2] if smoke else LAYERS, WAYS)
    ]
    with bar() as tell:
        found = rows_of("half_sizes", bisection_of, tasks, tell, in_process=smoke, cost=_cost_of)
    runs = pd.DataFrame([row for each in found for row in each["runs"]])
    return {"runs": runs.sort_values(["way", "layer_id", "n_asked", "seed"], ignore_index=True)}


def bisection_of(task: tuple[str, str, int, int]) -> dict[str, Any]:
    """All runs of the bisection of one layer in one way."""
    way, name, count, epochs = task
    layer = next(each for each in LAYERS if each.name == name)
    return {"runs": bisected(layer, way, count, epochs, FIRST_SEED)}


def bisected(
    layer: LayerConfig, way: str, count: int, epochs: int, first_seed: int
) -> list[dict[str, Any]]:
    """A row for each run of a bisection over `SIZES`, on databases of seeds from the first on."""
    frozen, starts = WAYS[way]
    recipe = Recipe(**{**BEST, "epochs": epochs, "frozen": frozen})
    rows: list[dict[str, Any]] = []

    def is_held(size: int, number: int) -> bool:
        row = _row_of(layer, size, first_seed + number, recipe, starts)
        rows.append({"way": way, **row})
        return row["held_by_any"]

    half_size(lambda size: share_held(count, partial(is_held, size)), SIZES)
    return rows


def _row_of(
    layer: LayerConfig, size: int, seed: int, recipe: Recipe, starts: Starts
) -> dict[str, Any]:
    db = sized_database(size, seed)
    name = f"sized-{size}-{seed}"
    row = row_without_search(Run(name, db, layer, seed, recipe, starts=starts))
    kept = (
        "database_id", "layer_id", "seed", "n_triples", "n_objects", "n_tokens",
        "database_rank_bound", "d_model", "n_heads", "d_head_qk", "d_head_vo", "layer_rank_bound",
        "epochs", "status", "accuracy_argmax", "accuracy_p95", "starts_tried", "held_by_any",
    )  # fmt: skip
    return {"n_asked": size, **{key: row[key] for key in kept}}


def _cost_of(task: tuple[str, str, int, int]) -> float:
    """Rough cost: larger layers are asked for larger databases, and frozen ones more often."""
    way, name, _, _ = task
    layer = next(each for each in LAYERS if each.name == name)
    return WAYS[way][1].most * layer.d_model**2 * layer.n_heads


def numbers(tables: Tables) -> dict[str, Any]:
    """Sizes by layer and way, their ratios, and the verdict on H4."""
    sizes = _sizes(tables["runs"])
    few = sizes["n_heads"] * sizes["d_head_vo"] <= sizes["d_model"]
    reached = with_mean(sizes[few]["ratio"] >= TIMES, sizes[few])
    return {
        "layers": sizes.to_dict("records"),
        "layers_with_rises": sum(any(rises.values()) for rises in sizes["rises"]),
        "few_heads": {"at_least_twice": reached, **_ratios(sizes[few])},
        "many_heads": _ratios(sizes[~few]),
        "law": _law_of_reach(tables["runs"], sizes),
        "hypotheses": {"H4": "holds here" if (reached["mean"] or 0) >= SHARE else "not seen here"},
    }


def _ratios(sizes: pd.DataFrame) -> dict[str, Any]:
    """Medians of the ratios of the frozen size, to those of one trained start and of some."""
    to_one, to_some = (
        sizes[[not beyond[way] and not beyond[FROZEN] for beyond in sizes["beyond"]]]
        for way in (ONE, SOME)
    )
    return {
        "layers": len(sizes),
        "beyond_the_grid": len(sizes) - len(to_one),
        "beyond_the_grid_by_some": len(sizes) - len(to_some),
        "to_one": to_one["ratio"].median(),
        "to_some": to_some["ratio_to_some"].median(),
        "below_some": int((to_some["ratio_to_some"] < 1).sum()),
    }


def _sizes(runs: pd.DataFrame) -> pd.DataFrame:
    """The size of each layer by each way, and the ratios of the frozen one to the others."""
    rows: list[dict[str, Any]] = []
    columns = ["d_model", "n_heads", "d_head_qk", "d_head_vo"]
    by_name = {layer.name: layer for layer in LAYERS}
    for name, of_layer in runs.groupby("layer_id", sort=False):
        config = by_name[str(name)]
        halves = {way: half_of(of_layer[of_layer["way"] == way]) for way in WAYS}
        sizes = {way: within_grid(half) for way, half in halves.items()}
        rows.append(
            {
                "layer": config.name,
                **{name: getattr(config, name) for name in columns},
                **sizes,
                "ratio": sizes[FROZEN] / sizes[ONE],
                "ratio_to_some": sizes[FROZEN] / sizes[SOME],
                "beyond": {
                    way: half.above is None or half.below is None for way, half in halves.items()
                },
                "rises": {way: list(half.rises) for way, half in halves.items()},
            }
        )
    return pd.DataFrame(rows)


def _law_of_reach(runs: pd.DataFrame, sizes: pd.DataFrame) -> dict[str, Any]:
    """The law that `capacity.evaluator.held_size` has by reach: some of as many trained starts."""
    # a row is of the first start that holds, or else of the best: with it alone, as of one start
    some = runs[runs["way"] == SOME].drop(columns="starts_tried").reset_index(drop=True)
    if some["held_by_any"].all() or not some["held_by_any"].any():
        # as in the tests' few runs
        return {}
    found = fit_size_law(some, LAW, TAU)
    ends = found.exponent_intervals()
    inside = sizes[[not beyond[SOME] for beyond in sizes["beyond"]]]
    rows = inside[list(LAW)].to_numpy(float)
    foretold = [found.law.size_at(dict(zip(LAW, row, strict=True))) for row in rows]
    errors = np.log(inside[SOME] / foretold)
    columns = {"d_head_qk": "d_head_qk", **{name: name for name in LAW}, "triples": "n_triples"}
    return {
        "exponents": {
            name: {"value": value, "interval": ends[name]}
            for name, value in found.law.exponents.items()
        },
        "columns": list(LAW), "intercept": found.law.intercept, "weights": list(found.law.weights),
        "steepness": found.law.steepness, "errors_in_nats": percentile_interval(errors),
        "standard_deviation_in_nats": float(errors.std()),
        "ranges": {
            name: [int(some[column].min()), int(some[column].max())]
            for name, column in columns.items()
        },
    }  # fmt: skip


def half_of(runs: pd.DataFrame) -> HalfSize:
    """The bisection again, from the shares that are there."""
    shares = runs.groupby("n_asked")["held_by_any"].mean()
    return half_size(lambda size: float(shares[size]), SIZES)


def within_grid(half: HalfSize) -> float:
    """The size, or the end of the grid that it lies beyond."""
    if half.above is None:
        return float(SIZES[0])
    return float(SIZES[-1]) if half.below is None else half.size


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes with frozen queries and keys, beside those of trained ones."""
    sizes = pd.DataFrame(found["layers"])
    figure = Figure(figsize=(WIDTH, 4.2))
    panels = figure.subplots(1, sizes["d_model"].nunique(), sharey=True, squeeze=False)[0]
    ticks = sorted({heads * vo for heads, vo in product(HEADS, VALUES) if heads * vo <= HEADS[-1]})
    for axes, (d, part) in zip(panels, sizes.groupby("d_model"), strict=True):
        inner = part["n_heads"] * part["d_head_vo"]
        for way, colour, marker in zip(WAYS, COLOURS, MARKERS, strict=False):
            axes.loglog(inner, part[way], marker, color=colour, alpha=0.8, markersize=4, label=way)
        axes.axvline(d, color=REFERENCE, linewidth=0.8, linestyle=":", label="d_model")
        axes.set(title=f"d_model {d}", xlim=(0.7, 23))
        axes.set_xticks(ticks, [str(n) for n in ticks])
        axes.minorticks_off()
    panels[len(panels) // 2].set_xlabel("n_heads d_head_vo")
    panels[0].set_ylabel("triples of the databases of which half are held")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    few = found["few_heads"]
    headline(
        figure,
        "With queries and keys frozen at random some of 8 starts hold databases of\n"
        f"{few['to_one']:.1f} times the size (median) that one trained start does, and "
        f"{few['to_some']:.1f} times that of some of 8,\nup to n_heads d_head_vo = d_model",
    )
    return {"sizes": figure}


if __name__ == "__main__":
    main("half_sizes", run, numbers, plot)
