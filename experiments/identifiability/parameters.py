"""Con and Add with as many parameters: the size of values, or their number.

    python -m experiments.identifiability.parameters --run     (five minutes on one core)
    python -m experiments.identifiability.parameters --plot

Bhardwaj et al. (2021, section 7) suppose that Add, where values have d_model dimensions, declines
less than Con because it has more parameters. Here Con gets a larger feed-forward, so that it has as
many parameters as Add of the same d_head_qk, within `WITHIN` of them (*wide Con*). It is trained as
the encoders of Table 1 on the same texts and seeds, whose accuracies are in the committed table of
`identifiability`. Fixed before the run: d_head_qk of `QUERY_KEY`, `SEEDS` seeds; the difference of
two encoders is paired by seed and averaged over d_head_qk.

* H: it is the parameters: wide Con is better than Con, and Add isn't distinguishable from wide Con.

*Holds here* if the interval over seeds (Student's) of the first difference is above zero, and that
of the second has zero inside. Without a difference between Add and Con there is nothing to explain:
then the verdict is *not seen here*.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from capacity.transformer import EncoderClassifier, EncoderConfig, train_classifier
from capacity.transformer.encoder.training import accuracy
from experiments.common.conclusions import over_few, verdict
from experiments.common.drawing import estimates, headline, told
from experiments.common.harness import Tables, committed, main
from experiments.identifiability.encoders import COMBINE, N_HEADS, sentences

QUERY_KEY, SEEDS, EPOCHS, D_MODEL = (1, 16, 64), 5, 8, 128
WITHIN = 1e-3
WIDE = "wide Con"


def run(smoke: bool) -> Tables:
    """A row for each wide Con."""
    cells = [(d, seed) for seed in range(2 if smoke else SEEDS) for d in QUERY_KEY]
    rows: list[dict[str, Any]] = []
    torch.set_num_threads(1)
    with bar() as tell:
        for number, (d, seed) in enumerate(cells, start=1):
            rows.append(row_of(d, seed, smoke))
            tell("encoders", number, len(cells))
    return {"accuracy": pd.DataFrame(rows)}


def wide_con(add: EncoderConfig) -> EncoderConfig:
    """Con with the feed-forward that brings it nearest to the parameters of an Add."""
    con = replace(add, combine=COMBINE["Con"])
    a_unit = 2 * con.d_model + 1
    units = round((add.n_parameters - con.n_parameters) / a_unit)
    return replace(con, d_feed_forward=con.d_feed_forward + units)


def row_of(d_head_qk: int, seed: int, smoke: bool) -> dict[str, Any]:
    """Train one wide Con as the encoders of Table 1."""
    texts = sentences(seed, smoke)
    add = EncoderConfig(
        texts.n_words, 3, texts.n_positions, D_MODEL, N_HEADS, d_head_qk, 4 * D_MODEL,
        COMBINE["Add"],
    )  # fmt: skip
    config = wide_con(add)
    model = EncoderClassifier(config, seed=seed)
    tokens, labels, mask = texts.train
    train_classifier(
        model, tokens, labels, mask=mask, epochs=2 if smoke else EPOCHS, seed=seed,
        validation=texts.validation,
    )  # fmt: skip
    tokens, labels, mask = texts.test
    return {
        "heads": WIDE, "d_head_qk": d_head_qk, "seed": seed, "n_parameters": config.n_parameters,
        "n_parameters_of_add": add.n_parameters,
        "accuracy": accuracy(model, tokens, labels, mask),
    }  # fmt: skip


def numbers(tables: Tables) -> dict[str, Any]:
    """Differences paired by seed, and the verdict."""
    wide = tables["accuracy"]
    known = committed("identifiability", "accuracy")
    both = pd.concat([known[known["d_head_qk"].isin(QUERY_KEY)], wide])
    seeds = wide["seed"].unique()
    of = both[both["seed"].isin(seeds)].pivot_table(
        index="seed", columns=["heads", "d_head_qk"], values="accuracy"
    )
    mean = {
        name: np.mean([of[name, d] for d in QUERY_KEY], axis=0) for name in ("Con", "Add", WIDE)
    }
    add, parameters, left = (
        over_few(mean[one] - mean[other])
        for one, other in (("Add", "Con"), (WIDE, "Con"), ("Add", WIDE))
    )
    holds = add["interval"][0] > 0 and parameters["interval"][0] > 0 > left["interval"][0]
    excess = (wide["n_parameters"] / wide["n_parameters_of_add"] - 1).abs().max()
    return {
        "seeds": len(seeds),
        "parameters_differ_by_at_most": excess,
        "accuracy": {name: {str(d): over_few(of[name, d]) for d in QUERY_KEY} for name in mean},
        "add_less_con": add,
        "wide_con_less_con": parameters,
        "add_less_wide_con": left,
        "verdict": verdict(holds and left["interval"][1] > 0),
    }


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Accuracies by d_head_qk."""
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    for number, (name, by) in enumerate(found["accuracy"].items()):
        at = [place + 0.08 * (number - 1) for place in range(len(by))]
        estimates(
            axes, at, list(by.values()), colour=COLOURS[number], marker=MARKERS[number], label=name
        )
    axes.set_xticks(range(len(QUERY_KEY)), [str(d) for d in QUERY_KEY])
    axes.set(xlabel="d_head_qk", ylabel="test accuracy")
    axes.legend()
    headline(
        figure,
        f"Add less Con {told(found['add_less_con'], 4, interval=True)}, and less Con of as\n"
        f"many parameters {told(found['add_less_wide_con'], 4, interval=True)}",
    )
    return {"accuracy": figure}


if __name__ == "__main__":
    main("parameters", run, numbers, plot)
