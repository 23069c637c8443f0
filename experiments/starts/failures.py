"""Why starts fail: saturated gates, their starting weights, and queries and keys released late.

    python -m experiments.starts.failures --run
    python -m experiments.starts.failures --plot

The *gate* of a head at a fact is its attention from the predicate to the subject; it is saturated
within `WITHIN` of 0 or 1, where its gradient is next to nothing. Fixed before the run: the best
recipe, tau = 0.95, databases drawn for this experiment (from `FIRST_SEED`), `STARTS` starts of each
of `DATABASES` databases of one size a layer (`SIZES`), the same draws in all ways of a layer.

* **Gates**, at `EPOCHS`, of starts that hold at the end and of starts that fail; none stops early,
  so that all are compared at one age. The area under the curve (AUC) is the share of pairs of a
  failed and a held start, of one layer and database, in which the failed one has more saturated
  gates; beside it that in which it recalls fewer facts by argmax. Saturated gates foretell failure
  *here* if the AUC of epoch 200 lies above 1/2; they come before what is lost if at epoch 50 it
  lies above that of the facts recalled. Within failed starts, facts that are missed at the end
  stand beside the others.
* **Starting weights** of W_Q and W_K times the factors of `SCALINGS`, trained and frozen, and
  attention scaled by 1/sqrt(d_head_qk) with the weights as drawn. Smaller starting weights help
  trained starts *here* if a factor of 0.25 is above 1; larger ones harm frozen starts, whose
  gates embeddings alone can move, if 4 is below 1; the scale helps if it is above none where
  d_head_qk > 1. Both times 0 is a stationary point: each one's gradient has the other as a factor,
  so that gates stay at 1/2.
* **Release**: two legs of 1,000 epochs, with the recipe's schedule in each, in the `WAYS`. Release
  helps *here* if it is above training throughout, and does as well as freezing throughout if their
  difference lies above -`MARGIN`.
* **Does W_QK store?** At the sizes of `LIMITS`, where frozen starts hold half or few of the
  databases, legs of 2,000 epochs: released or frozen in the second, at the recipe's learning rate
  and at a tenth of it (`GENTLE`), and W_Q and W_K trained alone. W_QK stores *here* if facts are
  gained by release over going on frozen as long, gently, by argmax and at tau, over all layers; for
  those of eight heads, where an earlier table had a gain, the same is asked again.

Each is decided by the whole 95 % interval over databases and layers, without a correction for their
number; otherwise it is *not seen here*. Intervals of shares that are all 0 or all 1 have no width.
A pilot on 3 to 5 databases a layer, from seed 3000, chose all sizes, the factor 4 and the gentle
rate, and it showed which way most of these would fall. By hand a layer can write every
database into its attention (`capacity.layer.store_in_query_key`), through its embeddings, so that
the last question is one of training.

Added after the run: the facts gained since the first leg (`since_before`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.evaluator import evaluate
from capacity.layer import Training, train, train_many
from capacity.layer.recall import pair_logits, recalled
from capacity.progress import bar
from experiments.common.harness import BEST, Tables, main, rows_of
from experiments.size.databases import sized_database
from experiments.starts.failures_numbers import conclusions
from experiments.starts.failures_plots import drawn

TAU, DATABASES, STARTS = 0.95, 24, 8
LIMIT_DATABASES, LIMIT_STARTS = 10, 2
QUERY_KEY, ALL_OTHERS = ("W_Q", "W_K"), ("W_E", "W_U", "W_V", "W_O")
# triples at which trained starts fail in part
SIZES = {
    LayerConfig(6, 1, 6, 3): 200,
    LayerConfig(6, 2, 3, 3): 200,
    LayerConfig(4, 1, 4, 4): 100,
    LayerConfig(8, 1, 4, 4): 200,
    LayerConfig(6, 4, 1, 1): 400,
}
LIMITS = {
    LayerConfig(6, 1, 6, 3): (400, 800),
    LayerConfig(6, 2, 3, 3): (1131,),
    LayerConfig(4, 1, 4, 4): (200, 400),
    LayerConfig(8, 1, 4, 4): (1131,),
    LayerConfig(6, 4, 1, 1): (800, 1131),
    LayerConfig(4, 8, 2, 2): (566, 800),
    LayerConfig(4, 8, 4, 1): (566, 800),
}
EPOCHS = (0, 50, 200, 500, 1000, 2000)
WITHIN = 1e-3
# factors of W_Q and of W_K, and whether attention is scaled
SCALINGS = {
    **{f"times {x:g}": (x, x, False) for x in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)},
    "W_Q times 0": (0.0, 1.0, False),
    "scaled": (1.0, 1.0, True),
}
GENTLE = BEST["learning_rate"] / 10
# what is frozen in the first leg and in the second, and the learning rate of the second
Way = tuple[tuple[str, ...], tuple[str, ...], float]
WAYS: dict[str, Way] = {
    "frozen": (QUERY_KEY, QUERY_KEY, BEST["learning_rate"]),
    "released": (QUERY_KEY, (), BEST["learning_rate"]),
    "trained": ((), (), BEST["learning_rate"]),
    "trained, then frozen": ((), QUERY_KEY, BEST["learning_rate"]),
}
LIMIT_WAYS: dict[str, Way] = {
    **{way: WAYS[way] for way in ("frozen", "released", "trained")},
    "frozen, gently": (QUERY_KEY, QUERY_KEY, GENTLE),
    "released, gently": (QUERY_KEY, (), GENTLE),
    "W_Q and W_K alone, gently": (QUERY_KEY, ALL_OTHERS, GENTLE),
}
# so that no database is that of another experiment
FIRST_SEED = 2000


def run(smoke: bool) -> Tables:
    """A row for each start, and of gates for each of its epochs."""
    few, legs = ((2, 2), (60, 30)) if smoke else ((DATABASES, STARTS), (2000, 1000))
    fewer = (2, 2) if smoke else (LIMIT_DATABASES, LIMIT_STARTS)
    layers = list(SIZES)[:3:2] if smoke else list(SIZES)
    limits = [(layer, size) for layer, sizes in LIMITS.items() for size in sizes]
    if smoke:
        limits = [(layer, 100) for layer, _ in limits[::8]]
    tasks: dict[str, tuple[Any, list[Any]]] = {
        "gates": (rows_of_gates, [
            (layer.name, is_frozen, *few, legs[0])
            for layer, is_frozen in product(layers, (False, True))
        ]),
        "weights": (rows_of_weights, [
            (layer.name, scaling, is_frozen, *few, legs[0])
            for layer, scaling, is_frozen in product(layers, SCALINGS, (False, True))
        ]),
        "release": (rows_of_legs, [
            (layer.name, SIZES[layer], "release", *few, legs[1]) for layer in layers
        ]),
        "limit": (rows_of_legs, [
            (layer.name, size, "limit", *fewer, legs[0]) for layer, size in limits
        ]),
    }  # fmt: skip
    made: Tables = {}
    with bar() as tell:
        for name, (what, asked) in tasks.items():
            found = rows_of(f"failures-{name}", what, asked, tell, in_process=smoke)
            made[name] = pd.DataFrame([row for each in found for row in each["rows"]])
    return made


def rows_of_gates(task: tuple[str, bool, int, int, int]) -> dict[str, Any]:
    """Gates of each start by epoch."""
    name, is_frozen, count, starts, epochs = task
    torch.set_num_threads(1)
    config = _layer(name)
    recipe = replace(_recipe(epochs, QUERY_KEY if is_frozen else ()), stop_tau=0.0)
    rows: list[dict[str, Any]] = []
    for ids, layer, db in _starts(config, SIZES[config], count, starts):
        seen: dict[int, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}

        def look(
            epoch: int, _loss: float, layer: Any = layer, db: Any = db, seen: Any = seen
        ) -> None:
            seen[epoch] = saturated(layer, db), _recalled(layer, db)

        training = train(layer, db, recipe, watch=look, watch_at=EPOCHS)
        outcome = {**ids, "is_frozen": is_frozen, **_outcome(layer, db, training)}
        known = seen[epochs][1]
        for epoch in sorted({*EPOCHS, epochs} & seen.keys()):
            gates, now = seen[epoch]
            parts = {"recalled": known, "missed": ~known}
            rows.append(
                {
                    **outcome, "epoch": epoch, "recalled": now.mean(), "saturated": gates.mean(),
                    **{f"saturated_{part}": gates[of].mean() if of.any() else np.nan
                       for part, of in parts.items()},
                }
            )  # fmt: skip
    return {"rows": rows}


def rows_of_weights(task: tuple[str, str, bool, int, int, int]) -> dict[str, Any]:
    """Starts with W_Q and W_K times a factor, or with the scale."""
    name, scaling, is_frozen, count, starts, epochs = task
    torch.set_num_threads(1)
    config = _layer(name)
    of_Q, of_K, scaled = SCALINGS[scaling]
    some = list(_starts(replace(config, scale=scaled), SIZES[config], count, starts))
    with torch.no_grad():
        for _, layer, _ in some:
            layer.W_Q.mul_(of_Q)
            layer.W_K.mul_(of_K)
    recipe = _recipe(epochs, QUERY_KEY if is_frozen else ())
    done = train_many([(layer, db) for _, layer, db in some], recipe)
    rows = [
        {**ids, "scaling": scaling, "is_frozen": is_frozen, **_outcome(layer, db, training),
         "layer_id": name, "saturated": saturated(layer, db).mean()}
        for (ids, layer, db), training in zip(some, done, strict=True)
    ]  # fmt: skip
    return {"rows": rows}


def rows_of_legs(task: tuple[str, int, str, int, int, int]) -> dict[str, Any]:
    """Starts that are trained in two legs, by each way."""
    name, size, which, count, starts, epochs = task
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    ways = WAYS if which == "release" else LIMIT_WAYS
    for first in dict.fromkeys(way[0] for way in ways.values()):
        some = list(_starts(_layer(name), size, count, starts))
        pairs = [(layer, db) for _, layer, db in some]
        train_many(pairs, _recipe(epochs, first))
        before = [evaluate(layer, db) for layer, db in pairs]
        drawn_first = [{n: w.detach().clone() for n, w in layer.named_parameters()}
                       for layer, _ in pairs]  # fmt: skip
        for way, (begun, second, rate) in ways.items():
            if begun != first:
                continue
            legs = [(AttentionLayer.of_weights(layer.config, _copied(weights)), db)
                    for (layer, db), weights in zip(pairs, drawn_first, strict=True)]  # fmt: skip
            done = train_many(legs, replace(_recipe(epochs, second), learning_rate=rate))
            rows += [
                {**ids, "n_asked": size, "way": way, **_outcome(layer, db, training),
                 "argmax_before": was.argmax, "p95_before": was.softmax[TAU]}
                for (ids, _, _), (layer, db), training, was in zip(
                    some, legs, done, before, strict=True)
            ]  # fmt: skip
    return {"rows": rows}


def _starts(
    config: LayerConfig, size: int, count: int, starts: int
) -> Iterator[tuple[dict[str, Any], AttentionLayer, Database]]:
    """Names, layer and database of each start; no two starts of a layer are one draw."""
    for number, start in product(range(FIRST_SEED, FIRST_SEED + count), range(starts)):
        db = sized_database(size, number)
        layer = AttentionLayer(config, db.n_tokens, seed=number * STARTS + start)
        ids = {"layer_id": config.name, "database_id": f"sized-{size}-{number}", "start": start}
        yield ids, layer, db


def _layer(name: str) -> LayerConfig:
    return next(each for each in (*SIZES, *LIMITS) if each.name == name)


def _recipe(epochs: int, frozen: tuple[str, ...]) -> Recipe:
    return Recipe(**{**BEST, "epochs": epochs, "frozen": frozen})


def _copied(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: weight.clone() for name, weight in weights.items()}


def saturated(layer: AttentionLayer, db: Database) -> NDArray[np.bool_]:
    """Tell which gates are within `WITHIN` of 0 or 1: shape (n_facts, n_heads)."""
    pairs = torch.from_numpy(db.token_triples[:, :2].astype(np.int64))
    with torch.no_grad():
        gates = layer.attention(layer.embed(pairs))[:, :, 1, 0].numpy()
    return np.minimum(gates, 1 - gates) < WITHIN


def _recalled(layer: AttentionLayer, db: Database) -> NDArray[np.bool_]:
    """Tell which facts are recalled by argmax."""
    facts = db.token_triples
    return recalled(pair_logits(layer, facts[:, :2]), facts[:, 2], ())["argmax"]


def _outcome(layer: AttentionLayer, db: Database, training: Training) -> dict[str, Any]:
    accuracy, config = evaluate(layer, db), layer.config
    return {
        "n_triples": db.n_triples, "n_tokens": db.n_tokens, "d_model": config.d_model,
        "n_heads": config.n_heads, "d_head_qk": config.d_head_qk, "d_head_vo": config.d_head_vo,
        "epochs": training.epochs, "status": training.status, "accuracy_argmax": accuracy.argmax,
        "accuracy_p95": accuracy.softmax[TAU], "held": accuracy.softmax[TAU] == 1,
    }  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Gates, reliabilities and facts gained, and a verdict for each question."""
    return conclusions(tables)


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Gates by epoch, reliability by starting weights and by way, and facts gained."""
    return drawn(found)


if __name__ == "__main__":
    main("failures", run, numbers, plot)
