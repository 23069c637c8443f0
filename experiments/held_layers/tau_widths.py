"""tau against rank(L), for layers of thirty-two widths that hold their database.

    python -m experiments.held_layers.tau_widths --run     (ten minutes on one core)
    python -m experiments.held_layers.tau_widths --plot

Wong 2025, section 5.2, expects that the effects of softmax on rank grow with rank(L), so that tau
may have to be scaled with it. `tau_rank` asked five widths, first starts, and both directions; its
intervals are up to 0.8 wide. Fixed before the run: d_model from 2 to `WIDEST`, `HEADS` heads of
d_head_qk = d_head_vo = 2, databases of `RATIO` triples for each unit of equation (9), `COUNT` for
each cell; the best recipe without early stop, from up to `STARTS` starts until one holds the
database (tau = 0.95). Measured are the numerical rank of L and of the forward pass (unfoldings,
singular values above `THRESHOLD` of the largest), the smallest c with which c L memorises at 0.99,
and the certified lower end (unfoldings) of the rank of what is said with a probability of 0.95.

The question is one-sided: a slope of the logarithm over that of rank(L) of

* H1: the smallest scale c;
* H2: the rank of softmax >= 0.95 over that of the forward pass

above zero would ask for a tau that grows. *Holds here* if the whole interval of 95 % is above zero,
*not seen here* otherwise; an interval more than `WIDE` wide decides neither, and is called so.
Errors are clustered by the widths, which were chosen. A first run of four databases for each cell
had an interval of H2 that was 0.29 wide, and six more were added for it; it was 0.23 wide with
twenty widths, and twelve more were added.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.database import random_database
from capacity.evaluator import decoded_facts, pair_logits, smallest_scale
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    Recipe,
    Starts,
    layer_rank_assumed,
    layer_tensor,
)
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.rank import numerical_rank_estimates, rank_interval
from capacity.sweep import Run
from experiments.common.conclusions import slopes_of, verdict, with_mean
from experiments.common.drawing import headline, told
from experiments.common.harness import BEST, Tables, main
from experiments.held_layers.layers import TAU, counts, held, measured

WIDEST, HEADS, RATIO, COUNT, STARTS = 33, (1, 2, 4), 3, 10, 4
THRESHOLD, AT, WIDE = 1e-4, 0.99, 0.2
TICKS, SCALES = (2, 5, 10, 20, 40), (0.3, 0.5, 1, 2, 4)
SLOPES = {"log_scale": "smallest scale at 0.99", "log_softmax": "rank of softmax >= 0.95"}


def run(smoke: bool) -> Tables:
    """A row for each layer and database, with ranks if it holds it."""
    recipe = Recipe(**{**BEST, "stop_tau": 0, **({"epochs": 1000} if smoke else {})})
    return {"layers": measured("tau_widths", list(_cells(recipe, smoke)), ranks_of)}


def _cells(recipe: Recipe, smoke: bool) -> Iterator[Run]:
    starts = Starts(STARTS, "held", TAU)
    widths = range(2, 6 if smoke else WIDEST + 1)
    for d, heads, i in product(widths, HEADS, range(1 if smoke else COUNT)):
        config = LayerConfig(d, heads, 2, 2)
        triples = RATIO * layer_rank_assumed(config)
        within = (round(0.9 * triples), round(1.1 * triples))
        db = random_database(np.random.default_rng([163, d, heads, i]), triples=within)
        yield Run(f"tau-widths-{d}-{heads}-{i}", db, config, i, recipe, starts=starts)


def ranks_of(run: Run, layer: AttentionLayer) -> dict[str, Any]:
    """Ranks of L, of the forward pass and of what it says, and the smallest scale at 0.99."""
    db = run.database
    k, q = (ids.astype(np.int64) for ids in (db.subject_ids, db.predicate_ids))
    pairs = np.stack(np.meshgrid(k, q, indexing="ij"), axis=-1).reshape(-1, 2)
    forward = pair_logits(layer, pairs).reshape(len(k), len(q), db.n_tokens)
    facts = db.token_triples.astype(np.int64)
    said = decoded_facts(layer, db, TAU, nonsense=True)
    assert said is not None
    of_L, of_forward = (
        numerical_rank_estimates(tensor, threshold=THRESHOLD).unfolding_rank
        for tensor in (layer_tensor(layer, db).L, forward)
    )
    return {
        "rank_of_L": of_L,
        "rank_of_forward_pass": of_forward,
        "rank_of_softmax": rank_interval(said, methods=[]).lower,
        # a column "scale" would be the layer's option, which tables omit
        "scale_p99": smallest_scale(pair_logits(layer, facts[:, :2]), facts[:, 2], AT),
    }


def numbers(tables: Tables) -> dict[str, Any]:
    """Both slopes with their intervals, and a verdict for each hypothesis."""
    ready = _ready(tables["layers"])
    slopes = {
        name: slopes_of(ready, f"{name} ~ log_rank", ["log_rank"], clusters=["d_model"])["log_rank"]
        for name in SLOPES
    }
    return {
        **counts(tables["layers"]),
        "widths": ready["d_model"].nunique(),
        "rank_of_L": {"least": ready["rank_of_L"].min(), "most": ready["rank_of_L"].max()},
        "scale": with_mean(ready["scale_p99"], ready),
        "softmax_over_forward_pass": with_mean(
            ready["rank_of_softmax"] / ready["rank_of_forward_pass"], ready
        ),
        "slopes": slopes,
        "hypotheses": {
            f"H{number}": _verdict(slopes[name]["interval"])
            for number, name in enumerate(SLOPES, start=1)
        },
    }


def _verdict(interval: list[float]) -> str:
    low, high = interval
    return "not tested" if high - low > WIDE and low <= 0 else verdict(low > 0)


def _ready(layers: pd.DataFrame) -> pd.DataFrame:
    of = held(layers)
    return of.assign(
        log_rank=np.log(of["rank_of_L"]),
        log_scale=np.log(of["scale_p99"]),
        log_softmax=np.log(of["rank_of_softmax"] / of["rank_of_forward_pass"]),
    )


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Both quantities over the rank of L."""
    ready = _ready(tables["layers"])
    figure = Figure(figsize=(WIDTH, 3.4))
    panels = figure.subplots(1, 2)
    for axes, (name, what), colour, marker in zip(
        panels, SLOPES.items(), COLOURS, MARKERS, strict=False
    ):
        axes.plot(ready["rank_of_L"], np.exp(ready[name]), marker, ms=3, color=colour, alpha=0.8)
        axes.set(xscale="log", yscale="log", xlabel="rank of L")
        axes.set_xticks(TICKS, [str(rank) for rank in TICKS])
        axes.set_yticks(SCALES, [str(value) for value in SCALES])
        axes.minorticks_off()
        slope = told(found["slopes"][name], interval=True)
        axes.set_title(f"{what}{'' if name == 'log_scale' else ' / forward pass'},\nslope {slope}")
    headline(
        figure,
        f"{found['held']} layers of {found['widths']} widths that hold their database, at {RATIO} "
        "triples for each unit of (9)",
    )
    return {"ranks": figure}


if __name__ == "__main__":
    main("tau_widths", run, numbers, plot)
