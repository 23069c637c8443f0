"""The figures of decomposition.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.common.harness import Tables
from experiments.decomposition.measures import SUMS

ENGLISH, BEFORE, AFTER = "MiniLM", "rxnfp pretrained", "rxnfp finetuned"
COLOURS = sns.color_palette("colorblind")


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 2 and 3, Table 2 as bars, ranks of c, and heads."""
    return {
        "linear": _plot_linear(found["r2_of_feed_forwards"]),
        "importance": _plot_importance(found),
        "sums": _plot_sums(found["accuracy_of_sums"]),
        "ranks": _plot_ranks(found["rank_of_c"]),
        "heads": _plot_heads(tables["heads"]),
    }


def _line(axes: Axes, by: dict[str, Any], **style: Any) -> None:
    """Means over layers with their intervals."""
    mean = np.array([one["mean"] for one in by.values()])
    low, high = np.array([one["interval"] for one in by.values()]).T
    axes.errorbar([int(layer) for layer in by], mean, yerr=[mean - low, high - mean], capsize=2,
                  marker="o", markersize=4, **style)  # fmt: skip


def _plot_linear(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.axhspan(0.4, 0.7, color="0.92", label="BERT-base (the paper)")
    for colour, (model, of) in zip(COLOURS, found.items(), strict=False):
        _line(axes, of["held out"], color=colour, label=f"{model}, held out")
        _line(axes, of["in sample"], color=colour, linestyle=":", alpha=0.6,
              label=f"{model}, in sample")  # fmt: skip
    axes.set(xlabel="layer", ylabel="$r^2$ of the linear fit of the feed-forward", ylim=(0, 1))
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _plot_importance(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2).flatten()
    for axes, (model, of) in zip(panels, found["importance"].items(), strict=False):
        axes.axhline(0, color="grey", linewidth=0.8)
        for colour, (term, by) in zip(COLOURS, of["by_layer"].items(), strict=False):
            _line(axes, by, color=colour, label=term)
        axes.set(title=model, xlabel="layer (0: the embeddings' norm)", ylim=(-0.1, 1.1),
                 ylabel="importance $\\mu(e, u)$ of the term u")  # fmt: skip
    correlation = found["spearman_of_pretrained_and_finetuned"]["by_layer"]
    for colour, (term, by) in zip(COLOURS, correlation.items(), strict=False):
        _line(panels[3], by, color=colour, label=term)
    panels[3].set(title="rxnfp, pretrained and finetuned", xlabel="layer", ylim=(-0.1, 1.1),
                  ylabel="Spearman's $\\rho$ of $\\mu$ over tokens")  # fmt: skip
    panels[0].legend(frameon=False, title="term u", ncols=2)
    return figure


def _plot_sums(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    panels = figure.subplots(len(found), 1, sharex=True, sharey=True)
    places = np.arange(len(SUMS))
    for axes, (text, of) in zip(panels, found.items(), strict=True):
        mean = np.array([of["default"][name]["mean"] for name in SUMS])
        low, high = np.array([of["default"][name]["interval"] for name in SUMS]).T
        axes.bar(places - 0.2, mean, 0.4, yerr=[mean - low, high - mean], capsize=2,
                 color=COLOURS[0], label="default: its own head, 95 % intervals")  # fmt: skip
        learned = [of["learned"][name] for name in SUMS]
        axes.bar(places + 0.2, [one["mean"] for one in learned], 0.4, capsize=2, color=COLOURS[1],
                 yerr=[one["standard_deviation"] for one in learned],
                 label="learned: a linear classifier, deviation of 3 seeds")  # fmt: skip
        axes.axhline(of["most_frequent_token"], color="0.3", linestyle="--", linewidth=1,
                     label="the most frequent token")  # fmt: skip
        axes.set(title=text, ylabel="accuracy of the masked-LM task", ylim=(0, 1))
    panels[-1].set_xticks(places, SUMS, rotation=35, ha="right")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3,
                  frameon=False)  # fmt: skip
    return figure


def _plot_ranks(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, (model, of) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        layers = range(len(of["rank"]))
        axes.plot(layers, of["bound"], color=COLOURS[0], label="2N, N norms so far")
        axes.plot(layers, of["paper"], color=COLOURS[1], linestyle="--",
                  label="2$\\Lambda$, $\\Lambda$ sublayers so far")  # fmt: skip
        axes.plot(layers, of["rank"], "o", color="0.2", markersize=4, label="measured")
        axes.set(title=f"{model}, {of['tokens']:,} tokens", xlabel="layer", ylabel="rank of c")
    figure.axes[0].legend(frameon=False)
    return figure


def _plot_heads(table: pd.DataFrame) -> Figure:
    wide = table[table["model"] == ENGLISH].pivot(
        index="layer", columns="head", values="importance"
    )
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    limit = float(wide.abs().to_numpy().max())
    sns.heatmap(wide, ax=axes, cmap="RdBu_r", vmin=-limit, vmax=limit,
                cbar_kws={"label": "importance $\\mu$ in the last embedding"})  # fmt: skip
    axes.set(title=ENGLISH, xlabel="head", ylabel="layer")
    return figure
