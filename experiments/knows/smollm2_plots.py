"""Figures of what SmolLM2-135M knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, estimates, percent
from experiments.knows.smollm2_numbers import N_LAYERS

MATCHES = {"nothing": "the same number", "predicate": "by predicate",
           "answers": "by predicate and\nfrequency of the answer"}  # fmt: skip


def plot(_tables: dict[str, pd.DataFrame], found: dict[str, Any]) -> dict[str, Figure]:
    """Known facts and the layers that bring them; their size; what is kept without queries."""
    return {"known": _known(found), "size": _size(found), "mean": _mean(found)}


def _known(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.4))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    predicates = list(found["stores"]["countries"])
    places = np.arange(len(predicates))[::-1]
    for number, how in enumerate(("plain", "calibrated")):
        estimates(
            left, places + 0.12 - 0.24 * number,
            [found["stores"]["countries"][q][how] for q in predicates],
            colour=COLOURS[number], marker=MARKERS[number], across=True, label=f"{how} scores",
        )  # fmt: skip
    left.set(
        title="Facts of countries that\nSmolLM2-135M knows: "
        f"{percent(found['totals']['countries']['plain'])} of all",
        xlabel="share known", xlim=(-0.03, 1.03), yticks=places, yticklabels=predicates,
    )  # fmt: skip
    _layers(right, found)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    return figure


def _layers(axes: Axes, found: dict[str, Any]) -> None:
    """Bars of known facts by the layer of their largest head."""
    below = np.zeros(N_LAYERS)
    for number, (predicate, of) in enumerate(found["brings"].items()):
        counts = np.array([of["layers"].get(str(layer), 0) for layer in range(N_LAYERS)])
        label = f"{predicate} ({of['known']} of {of['asked']})"
        axes.bar(range(N_LAYERS), counts, bottom=below, color=COLOURS[number], label=label)
        below += counts
    axes.set(
        title="Layer of the head that brings the\nlargest part of a known fact's logit",
        xlabel="layer, counted from 0", ylabel="known facts", xlim=(-0.7, N_LAYERS - 0.3),
    )  # fmt: skip
    axes.legend(loc="upper left")


def _size(found: dict[str, Any]) -> Figure:
    """Description length of what is known over that of random parts."""
    figure = Figure(figsize=(WIDTH, 2.6))
    panels = figure.subplots(1, len(found["parts"]), sharey=True, squeeze=False)[0]
    for axes, (store, by_scores) in zip(panels, found["parts"].items(), strict=True):
        for number, (how, of) in enumerate(by_scores.items()):
            lengths = [of[match]["description_length"] for match in MATCHES]
            estimates(
                axes, np.arange(len(MATCHES)) + 0.12 - 0.24 * number,
                [_over(one["random"], one["known"]) for one in lengths], colour=COLOURS[number],
                marker=MARKERS[number], across=True, label=f"{how} scores ({of['known']} facts)",
            )  # fmt: skip
        axes.axvline(1, color=REFERENCE, linewidth=0.8, label="equal")
        axes.set(
            title=f"Facts of {store}", xlabel="description length of random facts\n"
            "over that of what is known", yticks=range(len(MATCHES)),
            yticklabels=list(MATCHES.values()), ylim=(-0.5, 3.4),
        )  # fmt: skip
        axes.legend(loc="upper right")
    panels[0].set_ylabel("random facts, matched")
    return figure


def _over(random: dict[str, Any], known: float) -> dict[str, Any]:
    """The mean of random parts and its interval, in units of what is known."""
    return {"mean": random["mean"] / known, "interval": [end / known for end in random["interval"]]}


def _mean(found: dict[str, Any]) -> Figure:
    """Known facts that are kept with the mean attention of one layer, and of all."""
    figure = Figure(figsize=(WIDTH, 2.7))
    axes = figure.subplots()
    for number, (predicate, by_layer) in enumerate(found["mean_attention"].items()):
        layers = [layer for layer in by_layer if layer != "all"]
        of = [*(by_layer[layer] for layer in layers), by_layer["all"]]
        estimates(
            axes, np.array([*map(int, layers), N_LAYERS + 2]) + 0.25 * (number - 1), of,
            colour=COLOURS[number], marker=MARKERS[number],
            label=f"{predicate} ({of[0]['n']} known)",
        )  # fmt: skip
    ticks = [0, 5, 10, 15, 20, 25, 29, N_LAYERS + 2]
    axes.set(
        title="Known facts that are kept with the mean attention of other countries' prompts",
        xlabel="layer whose attention is replaced", ylabel="share kept", ylim=(0, 1.05),
        xticks=ticks, xticklabels=[*map(str, ticks[:-1]), "all"],
    )  # fmt: skip
    axes.legend(loc="lower left")
    return figure
