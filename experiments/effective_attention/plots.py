"""The figures of effective_attention.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.common.harness import Tables
from experiments.common.models import CLS, SEP
from experiments.common.texts import KINDS

LINES = {"standard": "-", "plain": "--", "simplex": ":"}
COLOURS = sns.color_palette("colorblind")
TEXTS = ("tweets, 64 tokens", "tweets, 128 tokens", "reactions, pretrained", "reactions, finetuned")
# in the figure of heads
DRAWN = (TEXTS[0], TEXTS[-1])
# weights beyond have the last colour
REACH = 0.5


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 1, 2, 3, 5 and 6 of the paper, and shares by layer."""
    return {
        "example": _example(tables["example"]),
        "heads": _heads(tables["shares-by-head"]),
        "layers": _layers(found["figures_5_and_6"]),
        "final": _final(tables["final-by-head"]),
        "finetuning": _finetuning(found["figure_3"]["cosine"]),
    }


def _example(table: pd.DataFrame) -> Figure:
    tokens = table.loc[table["row"] == 0, "token"]
    delimiters = [place for place, token in enumerate(tokens) if token in (CLS, SEP)]
    figure = Figure(figsize=(16.5, 6), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, attention in zip(panels, LINES, strict=True):
        square = table.pivot(index="row", columns="column", values=attention)
        axes.imshow(square, cmap="RdBu_r", vmin=-REACH, vmax=REACH, interpolation="nearest")
        axes.set_xticks(delimiters, tokens.iloc[delimiters], rotation=90)
        axes.set_yticks([])
        axes.set(title=attention, xlabel="attended token")
    panels[0].set_yticks(range(len(tokens)), tokens, fontsize=5.5)
    panels[0].set_ylabel("attending token")
    figure.colorbar(panels[0].images[0], ax=panels, label="weight", shrink=0.7, extend="both")
    first = table.iloc[0]
    figure.suptitle(
        f"MiniLM, layer {first['layer']} (of 1 to 6), head {first['head']} (of 0 to 11)"
    )
    return figure


def _heads(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(12, 6.2), layout="constrained")
    for row, kind in zip(figure.subplots(2, 4), (CLS, SEP), strict=True):
        for places, name in ((row[:2], DRAWN[0]), (row[2:], DRAWN[1])):
            part = table[(table["texts"] == name) & (table["kind"] == kind)]
            titles = f"{name}, to {kind}"
            _pair(places, part, "layer", "weight", titles, f"mean weight on {kind}")
    return figure


def _final(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    for column, name in zip(figure.subplots(2, 4).T, TEXTS, strict=True):
        part = table[table["texts"] == name]
        _pair(column, part, "kind", "largest", name, "largest weight")
    return figure


def _pair(
    places: np.ndarray, table: pd.DataFrame, index: str, value: str, title: str, label: str
) -> None:
    """Standard and plain attention by head, in the same colours."""
    used = table[table["attention"].isin(["standard", "plain"])]
    low, high = min(0.0, used[value].min()), used[value].max()
    for axes, attention in zip(places, ("standard", "plain"), strict=True):
        of = used[used["attention"] == attention]
        rows = KINDS if index == "kind" else sorted(of[index].unique())
        square = of.pivot(index=index, columns="head", values=value).loc[list(rows)]
        image = axes.imshow(square, cmap="cividis", vmin=low, vmax=high, aspect="auto",
                            interpolation="nearest")  # fmt: skip
        axes.set_yticks(range(len(rows)), rows)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="head", ylabel="layer" if index == "layer" else "")
        axes.set_title(f"{title}\n{attention}", fontsize=9)
        axes.figure.colorbar(image, ax=axes, label=label)


def _layers(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    # one scale for weights and shares of the same texts
    grid = figure.subplots(2, 4, sharex="col", sharey="col")
    for column, name in zip(grid.T, TEXTS, strict=True):
        for axes, value in zip(column, ("weight", "share"), strict=True):
            for colour, kind in zip(COLOURS, KINDS[:3], strict=False):
                for attention in LINES:
                    of = found[name][value][attention][kind]["by_layer"]
                    _band(axes, of, attention, colour, f"{kind}, {attention}")
        column[0].set_title(name, fontsize=10)
        column[1].set_xlabel("layer")
        column[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    grid[0, 0].set_ylabel("signed weight")
    grid[1, 0].set_ylabel("share of absolute weights")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _finetuning(cosines: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for colour, (attention, of) in zip(COLOURS, cosines.items(), strict=False):
        _band(axes, of, attention, colour, attention)
    axes.set(xlabel="layer", ylabel="cosine of patterns,\npretrained and finetuned")
    axes.set_xticks(range(1, 13))
    axes.legend(frameon=False)
    return figure


def _band(axes: Axes, of: dict[str, list[float]], attention: str, colour: Any, label: str) -> None:
    layers = range(1, len(of["mean"]) + 1)
    axes.plot(layers, of["mean"], LINES[attention], color=colour, label=label, linewidth=1.4)
    axes.fill_between(layers, of["low"], of["high"], color=colour, alpha=0.2, linewidth=0)
