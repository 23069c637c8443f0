"""The figures of `experiments.effective_attention.run`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FormatStrFormatter

from capacity.plots.theme import COLOURS, LINE, MARKERS, WIDTH
from experiments.common.drawing import headline
from experiments.common.harness import Tables
from experiments.common.models import CLS, SEP
from experiments.common.texts import KINDS, OTHER, PUNCTUATION

BLUE, _, GREEN, _, PURPLE, *_ = COLOURS
GREY = COLOURS[7]
# the name of texts in the tables -> their key in the conclusions
TEXTS = {
    "tweets, 64 tokens": "tweets_64",
    "tweets, 128 tokens": "tweets_128",
    "reactions, pretrained": "pretrained",
    "reactions, finetuned": "finetuned",
}
PANELS = {
    "tweets_64": "MiniLM, tweets, 64 tokens",
    "tweets_128": "MiniLM, tweets, 128 tokens",
    "pretrained": "BERT of reactions, pretrained",
    "finetuned": "BERT of reactions, finetuned",
}
# a colour and a marker stand for a kind of token in all figures
LOOKS = {
    CLS: (BLUE, MARKERS[0]), SEP: (GREEN, MARKERS[1]),
    PUNCTUATION: (PURPLE, MARKERS[2]), OTHER: (GREY, MARKERS[3]),
}  # fmt: skip
NAMES = {PUNCTUATION: "punctuation", OTHER: "other tokens"}
DRAWN = (CLS, SEP, PUNCTUATION)
ATTENTIONS = {"standard": (GREY, MARKERS[0]), "plain": (BLUE, MARKERS[1]),
              "simplex": (PURPLE, MARKERS[2])}  # fmt: skip


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 1, 2, 3, 5 and 6 of the paper, and what is left of weights by layer."""
    settings, kinds = found["settings"], found["figures_5_and_6"]
    return {
        "example": _example(tables["example"], found["figure_2"]),
        "heads": _heads(tables["shares-by-head"], kinds, settings["sentences"]),
        "layers": _layers(kinds, settings["sentences"]),
        "final": _final(tables["final-by-head"], found["figure_1"], settings["sentences"]),
        "finetuning": _finetuning(found["figure_3"]),
    }


def _example(table: pd.DataFrame, found: dict[str, Any]) -> Figure:
    """One head's patterns, with their tokens of most weight below."""
    tokens = table.loc[table["row"] == 0, "token"]
    places = [place for place, token in enumerate(tokens) if token in (CLS, SEP)]
    figure = Figure(figsize=(WIDTH, 4.6))
    above, below = figure.subplots(2, 3, height_ratios=(1, 1))
    norm = SymLogNorm(0.01, vmin=-1, vmax=1, base=10)
    for axes, bars, attention in zip(above, below, ATTENTIONS, strict=True):
        square = table.pivot(index="row", columns="column", values=attention)
        axes.imshow(square, cmap="RdBu_r", norm=norm, interpolation="nearest")
        axes.set_xticks(places, tokens.iloc[places])
        axes.set_yticks(places, tokens.iloc[places] if axes is above[0] else [])
        axes.spines[:].set_visible(True)
        axes.set_title(attention)
        _most(bars, found["most"][attention])
    above[0].set_ylabel("attending token")
    above[1].set_xlabel("attended token")
    below[0].set_ylabel("tokens with\nthe most weight")
    below[1].set_xlabel(f"mean weight received (rows of tokens but {CLS} and {SEP})")
    ticks = [-1, -0.1, -0.01, 0, 0.01, 0.1, 1]
    bar = figure.colorbar(
        above[0].images[0], ax=above, ticks=ticks, label="weight (log scale)", shrink=0.85
    )
    bar.ax.minorticks_off()
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks])
    headline(
        figure,
        f"Plain attention takes away the column of {CLS}, simplex attention a part of it\n"
        f"(MiniLM, layer {found['layer']}, head {found['head']}, one sentence of {len(tokens)} "
        "tokens)",
    )
    return figure


def _most(axes: Axes, most: list[tuple[str, float]]) -> None:
    names, weights = zip(*most, strict=True)
    colours = [LOOKS[name][0] if name in LOOKS else GREY for name in names]
    axes.barh(range(len(names)), weights, color=colours)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 0.65)
    for place, weight in enumerate(weights):
        axes.text(weight + 0.01, place, f"{weight:.3f}", va="center", fontsize=7)


def _heads(table: pd.DataFrame, found: dict[str, Any], n: int) -> Figure:
    """Each head's weight on delimiters, by standard and by plain attention."""
    figure = Figure(figsize=(WIDTH, 5.6))
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (name, slug) in zip(grid.flat, TEXTS.items(), strict=True):
        part = table[table["texts"] == name]
        ends = np.array([0, 0.8])
        axes.plot(ends, ends, color=LINE, linewidth=1, label="nothing is taken away")
        axes.axhline(0, color="black", linewidth=0.8, linestyle=":", label="all is taken away")
        for kind in (CLS, SEP):
            of = part[part["kind"] == kind]
            wide = of.pivot(index=["layer", "head"], columns="attention", values="weight")
            colour, marker = LOOKS[kind]
            axes.scatter(wide["standard"], wide["plain"], s=16, marker=marker, color=colour,
                         alpha=0.6, linewidth=0, label=f"a head's weight on {kind}")  # fmt: skip
        left = found[slug]["weight_left"]["plain"]
        axes.set_title(
            f"{PANELS[slug]} ({len(wide)} heads)\nleft: {_percent(left['cls'])} of {CLS}, "
            f"{_percent(left['sep'])} of {SEP}"
        )
        _roots(axes.xaxis)
        _roots(axes.yaxis)
        axes.set(xlim=(0, 0.8), ylim=(-0.01, 0.8))
    for axes in grid[1]:
        axes.set_xlabel("mean weight, standard attention")
    for axes in grid[:, 0]:
        axes.set_ylabel("mean weight, plain attention")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    headline(
        figure,
        f"MiniLM's heads rest on {CLS}, and plain attention takes that away; {SEP} keeps most\n"
        f"(scales of square roots; means over {n} sentences)",
    )
    return figure


def _roots(axis: Axis) -> None:
    """A scale of square roots, so that 0 is on it and small weights are seen."""
    of = axis.axes
    set_scale = of.set_xscale if axis is of.xaxis else of.set_yscale
    set_scale("function", functions=(_root, _square))
    axis.set_major_locator(FixedLocator([0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7]))
    axis.set_major_formatter(FormatStrFormatter("%g"))


def _root(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.sqrt(np.abs(x))


def _square(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.square(x)


def _percent(share: dict[str, Any]) -> str:
    return f"{100 * share['value']:.2g} %"


def _layers(found: dict[str, Any], n: int) -> Figure:
    """Weights and shares of each kind of token, by layer."""
    figure = Figure(figsize=(WIDTH, 5.4))
    grid = figure.subplots(2, 4, sharex="col", sharey=True)
    for column, (slug, panel) in zip(grid.T, PANELS.items(), strict=True):
        for axes, value in zip(column, ("weight", "share"), strict=True):
            for kind in DRAWN:
                key = {SEP: "sep", CLS: "cls"}.get(kind, kind)
                for attention, line in (("standard", "-"), ("plain", ":")):
                    of = found[slug][value][attention][key]["by_layer"]
                    _band(axes, of, *LOOKS[kind], f"{NAMES.get(kind, kind)}, {attention}", line)
            _roots(axes.yaxis)
        column[0].set_title(panel.replace(", ", "\n", 1))
        column[1].set_xlabel("layer")
        layers = len(found[slug]["weight"]["standard"]["cls"]["by_layer"]["mean"])
        column[1].set_xticks(range(2, layers + 1, 2))
    grid[0, 0].set(ylabel="mean signed weight", ylim=(-0.003, 0.5))
    grid[1, 0].set_ylabel("share of absolute weights")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    headline(
        figure,
        f"Plain attention empties {CLS} in every layer of MiniLM, not in the BERT of "
        "reactions\n"
        f"(scale of square roots; bands: 95 %, over {n} sentences)",
    )
    return figure


def _final(table: pd.DataFrame, found: dict[str, Any], n: int) -> Figure:
    """The row of [CLS] in the final layer: the largest weight on each kind."""
    figure = Figure(figsize=(WIDTH, 4.6))
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    kinds = [kind for kind in (OTHER, PUNCTUATION, CLS, SEP) if kind in KINDS]
    for axes, (name, slug) in zip(grid.flat, TEXTS.items(), strict=True):
        for attention, shift in (("standard", 0.17), ("plain", -0.17)):
            colour, marker = ATTENTIONS[attention]
            for place, kind in enumerate(kinds):
                part = table[(table["texts"] == name) & (table["kind"] == kind)]
                heads = part.loc[part["attention"] == attention, "largest"]
                one = found[slug][attention][{SEP: "sep", CLS: "cls"}.get(kind, kind)]
                axes.scatter(heads, np.full(len(heads), place + shift), s=9, color=colour,
                             alpha=0.45, linewidth=0,
                             label=f"{attention}: a head" if not place else None)  # fmt: skip
                low, high = one["interval"]
                axes.errorbar(
                    one["mean"], place + shift, marker=marker, color="black",
                    markerfacecolor=colour, capsize=2, linewidth=1,
                    xerr=[[max(one["mean"] - low, 0)], [max(high - one["mean"], 0)]],
                    label=f"{attention}: mean of heads, 95 % over {n} sentences"
                    if not place else None,
                )  # fmt: skip
        axes.set_yticks(range(len(kinds)), [NAMES.get(kind, kind) for kind in kinds])
        axes.set_title(PANELS[slug])
        axes.set_xticks([0, 0.05, 0.1, 0.15, 0.2])
    for axes in grid[1]:
        axes.set_xlabel("largest weight on a token of the kind")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    best = min(found[slug]["place_of_sep"] for slug in PANELS)
    place = ("first", "second", "third", "last")[best - 1]
    headline(
        figure,
        f"In the row of {CLS}, final layer, {SEP} comes {place} at best of the four kinds, by "
        "standard attention",
    )
    return figure


def _finetuning(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.3))
    axes = figure.subplots()
    for attention, of in found["cosine"].items():
        _band(axes, of, *ATTENTIONS[attention], attention)
    axes.set(xlabel="layer", ylabel="cosine of patterns,\npretrained and finetuned", ylim=(0, 1))
    axes.set_xticks(range(1, len(found["cosine"]["standard"]["mean"]) + 1))
    axes.legend(loc="lower left")
    last = found["layers_by_change"]["standard"][:2]
    axes.set_title(
        f"Layers {last[0]} and {last[1]} change most with finetuning, by each attention\n"
        f"(BERT of reactions; bands: 95 %, over {found['n_sentences']} sentences and "
        f"{found['n_heads']} heads)"
    )
    return figure


def _band(
    axes: Axes, of: dict[str, list[float]], colour: str, marker: str, label: str, line: str = "-"
) -> None:
    layers = range(1, len(of["mean"]) + 1)
    axes.plot(layers, of["mean"], line, marker=marker, markersize=3, color=colour, label=label,
              linewidth=1.2, markerfacecolor=colour if line == "-" else "white")  # fmt: skip
    axes.fill_between(layers, of["low"], of["high"], color=colour, alpha=0.2, linewidth=0)
