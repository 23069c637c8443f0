"""How many facts of n tokens a layer holds, for n = 3, 4, 5.

    python -m experiments.claims.n_tokens --run
    python -m experiments.claims.n_tokens --plot

Wong (section 5.2) expects tensors of n modes to serve for facts of n tokens. Fixed before the run:

* a database of N facts of n tokens has n - 1 columns of `KEYS` / (n - 1) tokens each for the keys,
  which are drawn without repetition, and one of `OBJECTS` objects drawn evenly for each. So the
  number of tokens, and with it that of all parameters of a layer, is the same for every n and N,
  and so are the bits of a fact. The databases of a seed are nested: the first N of one list;
* the layers `LAYERS` and the best recipe with `EPOCHS` epochs, by two losses: of all tokens but the
  first, as in the paper, and of objects alone;
* the size N of a layer, seed, n and loss: the largest of `SIZES` that is held at tau = 0.95 by some
  of the starts `WAYS`, one trained and one with W_Q and W_K frozen, found by bisection. Shares need
  not fall with N everywhere, which bisection assumes;
* H1, "N falls slower than 1/n": the exponent b of N ~ n^-b, by least squares with a level for each
  layer and seed, is below one. It *holds here* for a loss if the whole 95 % interval over layers
  and seeds is below 1; the paper's loss decides. If more than `MOST_OUTSIDE` of the sizes are
  outside the grid it is *not tested*.

A pilot on databases of another draw (layer d4-h4-qk2-vo2, `100` and `200` facts) chose the sizes;
in it facts were lost with n by the loss of all tokens, and by that of objects they weren't. A size
above the grid counts as its largest, and one below it as half an octave less than its smallest. Few
layers and seeds are tried, because facts of four tokens train by the engine `reference` alone.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.evaluator import cluster_bootstrap, memorises, percentile_interval
from capacity.layer import Positions, train
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.rank import paper_bound
from experiments.common.drawing import REFERENCE, estimates, headline
from experiments.common.harness import BEST, Tables, main, rows_of

TAU, KEYS, OBJECTS, EPOCHS, SEEDS = 0.95, 48, 16, 600, 2
MOST_OUTSIDE = 0.1
TOKENS = (3, 4, 5)
LAYERS = (LayerConfig(3, 2, 2, 2), LayerConfig(4, 2, 2, 2), LayerConfig(4, 4, 2, 2))
# half an octave apart; with three tokens there are 576 keys
SIZES = (18, 25, 35, 50, 71, 100, 141, 200, 283, 400, 566)
LOSSES: tuple[Positions, ...] = ("both", "object")
WAYS: tuple[tuple[str, ...], ...] = ((), ("W_Q", "W_K"))
FIRST_SEED = 4000


def database_of(n_tokens: int, n_facts: int, seed: int) -> Database:
    """The first facts of a list that is drawn for a number of tokens and a seed."""
    rng = np.random.default_rng([63, n_tokens, FIRST_SEED + seed])
    side = KEYS // (n_tokens - 1)
    cells = rng.permutation(side ** (n_tokens - 1))[: SIZES[-1]]
    objects = rng.integers(OBJECTS, size=len(cells))
    keys = np.stack(np.unravel_index(cells, (side,) * (n_tokens - 1)), axis=1)
    rows = zip(keys[:n_facts].tolist(), objects[:n_facts].tolist(), strict=True)
    return Database.from_tuples(
        [(*(f"k{column}.{x}" for column, x in enumerate(key)), f"o{v}") for key, v in rows]
    )


def run(smoke: bool) -> Tables:
    """A row for each start of each bisection."""
    seeds, layers, epochs = (2, LAYERS[:2], 10) if smoke else (SEEDS, LAYERS, EPOCHS)
    tasks: list[tuple[str, int, Positions, int, int]] = [
        (layer.name, n, loss, seed, epochs)
        for seed, layer, n, loss in product(range(seeds), layers, TOKENS, LOSSES)
    ]
    with bar() as tell:
        found = rows_of("n_tokens", bisection_of, tasks, tell, in_process=True)
    return {"starts": pd.DataFrame([row for each in found for row in each["starts"]])}


def bisection_of(task: tuple[str, int, Positions, int, int]) -> dict[str, Any]:
    """All starts of one bisection."""
    name, n, loss, seed, epochs = task
    config = next(each for each in LAYERS if each.name == name)
    rows: list[dict[str, Any]] = []

    def is_held(size: int) -> bool:
        db = database_of(n, size, seed)
        for way in WAYS:
            layer = AttentionLayer(config, db.n_tokens, seed=seed)
            recipe = Recipe(**BEST, epochs=epochs, positions=loss, frozen=way)
            training = train(layer, db, recipe)
            rows.append(
                {"layer_id": name, "n_tokens": n, "loss": loss, "seed": seed, "size": size,
                 "frozen": " ".join(way), "held": memorises(layer, db, TAU),
                 "epochs": training.epochs, "database_rank_bound": paper_bound(db),
                 "vocabulary": db.n_tokens}
            )  # fmt: skip
            if rows[-1]["held"]:
                return True
        return False

    largest_held(is_held)
    return {"starts": rows}


def largest_held(is_held: Any) -> int | None:
    """The largest size of the grid that is held, by bisection; None if not even the smallest is."""
    low, high = 0, len(SIZES)
    while low < high:
        middle = (low + high) // 2
        if is_held(SIZES[middle]):
            low = middle + 1
        else:
            high = middle
    return SIZES[low - 1] if low else None


def numbers(tables: Tables) -> dict[str, Any]:
    """Sizes by layer, n and loss, their exponents in n, and the verdict on H1."""
    sizes = _sizes(tables["starts"])
    exponents = {loss: _exponent(part) for loss, part in sizes.groupby("loss")}
    return {
        "sizes": {
            loss: {
                str(n): _mean(of) for n, of in part.groupby("n_tokens")
            }
            for loss, part in sizes.groupby("loss")
        },
        "layers": {
            loss: {
                name: {str(n): float(np.exp(np.log(of["size"]).mean()))
                       for n, of in each.groupby("n_tokens")}
                for name, each in part.groupby("layer_id", sort=False)
            }
            for loss, part in sizes.groupby("loss")
        },
        "outside_the_grid": {loss: int(of["outside"].sum()) for loss, of in sizes.groupby("loss")},
        "bisections": len(sizes),
        "exponents": exponents,
        "held_by_trained": {
            loss: float((part["frozen"] == "").mean())
            for loss, part in tables["starts"].query("held").groupby("loss")
        },
        "bound_per_fact": {
            str(n): float((of["database_rank_bound"] / of["size"]).mean())
            for n, of in tables["starts"].groupby("n_tokens")
        },
        "hypotheses": {
            loss: "not tested"
            if sizes.loc[sizes["loss"] == loss, "outside"].mean() > MOST_OUTSIDE
            else "holds here"
            if found["interval"][1] < 1
            else "not seen here"
            for loss, found in exponents.items()
        },
    }  # fmt: skip


def _sizes(starts: pd.DataFrame) -> pd.DataFrame:
    """A row for each bisection, with its size."""
    keys = ["layer_id", "seed", "n_tokens", "loss"]
    held = starts.groupby([*keys, "size"], sort=False)["held"].any().reset_index()
    rows: list[dict[str, Any]] = []
    for values, of in held.groupby(keys, sort=False):
        most = of.loc[of["held"], "size"].max()
        outside = bool(np.isnan(most)) or most == SIZES[-1]
        size = SIZES[0] / 2**0.5 if np.isnan(most) else float(most)
        rows.append({**dict(zip(keys, values, strict=True)), "size": size, "outside": outside})
    return pd.DataFrame(rows)


def _slope(sizes: pd.DataFrame, weights: Any) -> float:
    """Slope of log N in log n within layers and seeds, with weights of a resample."""
    x, y = np.log(sizes["n_tokens"].to_numpy(float)), np.log(sizes["size"].to_numpy(float))
    groups = sizes.groupby(["layer_id", "seed"]).ngroup().to_numpy()
    for of in np.unique(groups):
        inside = groups == of
        x[inside] -= x[inside].mean()
        y[inside] -= y[inside].mean()
    return float((weights * x * y).sum() / (weights * x * x).sum())


def _exponent(sizes: pd.DataFrame) -> dict[str, Any]:
    # every bisection of a layer and seed is drawn together, so that levels stay as they are
    draws = cluster_bootstrap(sizes[["seed", "layer_id"]], 1000)
    drawn = [_slope(sizes, weights) for weights in draws if weights.any()]
    low, high = percentile_interval(drawn)
    return {"value": -_slope(sizes, np.ones(len(sizes))), "interval": [-high, -low]}


def _mean(sizes: pd.DataFrame) -> dict[str, Any]:
    """Geometric mean of sizes, and its interval over layers and seeds."""
    logs = np.log(sizes["size"].to_numpy(float))
    draws = cluster_bootstrap(sizes[["seed", "layer_id"]], 1000)
    drawn = [np.exp((w * logs).sum() / w.sum()) for w in draws if w.any()]
    return {"mean": float(np.exp(logs.mean())), "interval": list(percentile_interval(drawn))}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes by the number of tokens, for both losses, beside 1/n."""
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    for loss, colour, marker in zip(LOSSES, COLOURS, MARKERS, strict=False):
        of = [found["sizes"][loss][str(n)] for n in TOKENS]
        name = "loss of all tokens" if loss == "both" else "loss of objects"
        estimates(axes, TOKENS, of, colour=colour, marker=marker, label=name, line="-")
        one = [of[0]["mean"] * TOKENS[0] / n for n in TOKENS]
        label = "as 1/n" if loss == LOSSES[0] else None
        axes.plot(TOKENS, one, "--", color=REFERENCE, linewidth=0.8, label=label)
    axes.set(xlabel="tokens of a fact", ylabel="facts held by some start", yscale="log")
    axes.set_xticks(TOKENS)
    axes.legend()
    b = found["exponents"]
    headline(
        figure,
        "Facts that a layer holds fall with their number of tokens n as\n"
        f"n to -{b['both']['value']:.2f} (loss of all tokens) and -{b['object']['value']:.2f} "
        "(objects)",
    )
    return {"sizes": figure}


if __name__ == "__main__":
    main("n_tokens", run, numbers, plot)
