"""The figures of `experiments.decomposition.run`; their titles take their numbers from `found`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, LINE, MARKERS, WIDTH
from experiments.common.harness import Tables
from experiments.decomposition.measures import AFTER, BEFORE, ENGLISH, LETTERS, SUMS

GREY = "0.6"
MEANING = {"i": "i: input embedding", "h": "h: attention heads", "f": "f: feed-forwards",
           "c": "c: biases and means of norms"}  # fmt: skip


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 2 and 3, Table 2 as dots, ranks of c, and heads."""
    return {
        "linear": _plot_linear(found),
        "importance": _plot_importance(found),
        "sums": _plot_sums(found),
        "ranks": _plot_ranks(found["rank_of_c"]),
        "heads": _plot_heads(tables["heads"], found["heads_in_the_last_embedding"]),
    }


def _line(axes: Axes, by: dict[str, Any], number: int, **style: Any) -> None:
    """Means over layers with their intervals, in a colour and a marker."""
    mean = np.array([one["mean"] for one in by.values()])
    low, high = np.array([one["interval"] for one in by.values()]).T
    axes.errorbar([int(layer) for layer in by], mean, yerr=[mean - low, high - mean], capsize=2,
                  color=COLOURS[number], marker=MARKERS[number], linewidth=1.2,
                  **style)  # fmt: skip


def _bars(found: dict[str, Any]) -> str:
    """Say which intervals the figures by layer have."""
    return ("bars, mostly smaller than the markers: 95 % for all points of a panel at once, "
            f"{found['settings']['groups']} groups of texts")  # fmt: skip


def _plot_linear(found: dict[str, Any]) -> Figure:
    of_models = found["r2_of_feed_forwards"]
    low, high = of_models[ENGLISH]["unexplained_held_out"]
    first = of_models[BEFORE]["unexplained_held_out"][0]
    figure = Figure(figsize=(WIDTH, 3.7))
    axes = figure.subplots()
    unexplained = found["paper"]["unexplained"]
    axes.axhspan(1 - unexplained[1], 1 - unexplained[0], color="0.9", zorder=0,
                 label="BERT-base, the paper's range over layers")  # fmt: skip
    for number, (model, of) in enumerate(of_models.items()):
        _line(axes, of["held out"], number,
              label=f"{model}, {of['layers']} layers, fitted to {of['tokens_fitted']:,} tokens"
              " or more")  # fmt: skip
    axes.set(xlabel="layer", ylim=(0, 1.03), xticks=range(1, 13),
             ylabel="$r^2$ of a linear map of the\nfeed-forward, on held-out texts")  # fmt: skip
    axes.legend(loc="lower left")
    figure.supxlabel(_bars(found), fontsize=8)
    figure.suptitle(
        f"A linear map leaves {100 * low:.0f} to {100 * high:.0f} % of MiniLM's feed-forwards "
        f"unexplained,\nand as little as {100 * first:.0f} % of one of rxnfp's", x=0.01, ha="left",
    )  # fmt: skip
    return figure


def _plot_importance(found: dict[str, Any]) -> Figure:
    of_models = found["importance"]
    correlation = found["spearman_of_pretrained_and_finetuned"]
    figure = Figure(figsize=(WIDTH, 6.6))
    panels = figure.subplots(2, 2, sharey=True).flatten()
    limit = found["paper"]["h_at_most"]
    for axes, (model, of) in zip(panels, of_models.items(), strict=False):
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.axhline(limit, color="0.3", linewidth=1, linestyle=":",
                     label=f"{limit}, which h stays below in BERT-base (the paper)")  # fmt: skip
        for number, term in enumerate(LETTERS):
            _line(axes, of["by_layer"][term], number, label=MEANING[term])
        axes.set(title=f"{model}, {of['tokens']:,} tokens:\nh reaches {of['largest_h']:.2f},"
                 f" c at most {of['largest_c']:.2f}",
                 xlabel="layer (0: embeddings after their norm)",
                 ylabel="importance $\\mu$ of a term")  # fmt: skip
    last = panels[3]
    last.axhline(0, color=GREY, linewidth=0.8)
    for number, term in enumerate(LETTERS):
        _line(last, correlation["by_layer"][term], number)
    layers = correlation["layers"]
    least, most = correlation["range_of_the_last_two_layers"]
    last.set(title=f"rxnfp, before and after finetuning:\n$\\rho$ is {least:.2f} to {most:.2f} in "
             f"layers {layers - 1} and {layers}",
             xlabel="layer", ylabel="Spearman's $\\rho$ of $\\mu$ over tokens")  # fmt: skip
    for axes in panels:
        axes.set(xticks=range(0, 7) if axes is panels[0] else range(0, 13, 2), ylim=(-0.08, 1.08))
        axes.tick_params(labelleft=True)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend([*handles[1:], handles[0]], [*labels[1:], labels[0]], ncols=2, title=_bars(found),
                  loc="outside lower center", title_fontsize=8)  # fmt: skip
    shrinks, layers = (sum(of[key] for of in of_models.values())
                       for key in ("layers_where_i_shrinks", "layers"))  # fmt: skip
    figure.suptitle(f"The input's importance shrinks in {shrinks} of {layers} layers;\n"
                    f"that of heads exceeds {limit}, below which it stays in BERT-base",
                    x=0.01, ha="left")  # fmt: skip
    return figure


def _plot_sums(found: dict[str, Any]) -> Figure:
    of_texts = found["accuracy_of_sums"]
    figure = Figure(figsize=(WIDTH, 5.2))
    panels = figure.subplots(1, len(of_texts), sharex=True, sharey=True)
    places = np.arange(len(SUMS))
    splits = next(iter(of_texts.values()))["splits"]
    groups = found["settings"]["groups"]
    for axes, (text, of) in zip(panels, of_texts.items(), strict=True):
        for number, (kind, shift, label) in enumerate((
            ("default", -0.13, f"the model's own head (95 % for all sums at once, {groups} groups"
             " of texts)"),
            ("learned", 0.13, f"a linear classifier learned for each sum (95 %, {splits} splits)"),
        )):  # fmt: skip
            mean = np.array([of[kind][name]["mean"] for name in SUMS])
            low, high = np.array([of[kind][name]["interval"] for name in SUMS]).T
            axes.errorbar(mean, places + shift, xerr=[mean - low, high - mean], capsize=2,
                          linestyle="none", color=COLOURS[number], marker=MARKERS[number],
                          label=label)  # fmt: skip
        axes.axvline(of["most_frequent_token"], color=LINE, linestyle="--", linewidth=1,
                     label="always the most frequent token")  # fmt: skip
        axes.grid(axis="y", color="0.93")
        axes.set_axisbelow(True)
        axes.set(title=f"{text}, {of['questions']:,} questions:\nf alone "
                 f"{of['default']['f']['mean']:.2f} with the model's head",
                 xlabel="share of questions answered right", xlim=(0, 1.02))  # fmt: skip
    panels[0].set_yticks(places, SUMS)
    panels[0].set(ylim=(len(SUMS) - 0.5, -0.5), ylabel="sum of terms of the last embedding\n"
                  "(i: input, h: heads, f: feed-forwards, c: biases and means)")  # fmt: skip
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=1)
    paper = found["paper"]["f_by_its_own_head"]
    figure.suptitle("Feed-forwards alone answer most questions by the model's own head "
                    f"(BERT-base: {100 * paper:.1f} %)", x=0.01, ha="left")  # fmt: skip
    return figure


def _plot_ranks(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.4))
    panels = figure.subplots(1, len(found), sharey=True)
    for axes, (model, of) in zip(panels, found.items(), strict=True):
        layers = range(len(of["rank"]))
        axes.plot(layers, of["bound"], color=COLOURS[0], label="2N for N norms so far")
        axes.plot(layers, of["paper"], color=LINE, linestyle="--",
                  label="2$\\Lambda$ for $\\Lambda$ sublayers so far (the paper)")  # fmt: skip
        axes.plot(layers, of["rank"], "o", color="0.15", markersize=4, label="measured, float64")
        last = of["last"]
        axes.set(title=f"{model}, {of['tokens']:,} tokens:\nin the end {last['rank']}, not "
                 f"{last['paper']}", xlabel="layer (0: embeddings after their norm)",
                 xticks=layers[:: max(1, len(layers) // 6)])  # fmt: skip
        axes.tick_params(labelleft=True)
    panels[0].set_ylabel("rank of c over tokens")
    panels[0].legend(loc="upper left")
    more = {of["last"]["rank"] - of["last"]["paper"] for of in found.values()}
    figure.suptitle("c (biases and means of norms) has two dimensions a norm, "
                    f"{', '.join(map(str, more))} more than the paper's 2$\\Lambda$",
                    x=0.01, ha="left")  # fmt: skip
    return figure


def _plot_heads(table: pd.DataFrame, found: dict[str, Any]) -> Figure:
    models = (ENGLISH, BEFORE, AFTER)
    figure = Figure(figsize=(WIDTH, 4.6))
    panels = figure.subplots(2, len(models), sharex="col", sharey="row")
    for (above, below), model in zip(panels.T, models, strict=True):
        of, heads = found[model], table[table["model"] == model]
        layers = range(1, len(of["by_layer"]) + 1)
        above.bar(layers, of["by_layer"], color=GREY, width=0.7)
        above.set(title=f"{model}: {of['last_layer']:.2f}\nof {of['sum']:.2f} are the last layer's")
        below.axhline(0, color=GREY, linewidth=0.8)
        for number, (sign, part) in enumerate((
            ("towards the embedding", heads[heads["importance"] >= 0]),
            ("away from it", heads[heads["importance"] < 0]),
        )):  # fmt: skip
            below.plot(part["layer"], part["importance"], linestyle="none", alpha=0.7,
                       color=(COLOURS[0], LINE)[number], marker=MARKERS[2 * number], markersize=3.5,
                       label=f"head that points {sign}")  # fmt: skip
        below.set(title=f"{of['negative']} of {of['heads']} heads point away", xlabel="layer",
                  xticks=layers if len(layers) < 8 else (1, 3, 6, 9, 12))  # fmt: skip
    panels[0, 0].set_ylabel("importance $\\mu$\nof a layer's heads")
    panels[1, 0].set_ylabel("importance $\\mu$\nof each head")
    handles = panels[1, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2)
    of = found[ENGLISH]
    figure.suptitle(
        f"The last layer's heads have {100 * of['last_layer'] / of['sum']:.0f} % of the importance "
        "of all heads in MiniLM's\nlast embedding (means over all tokens)", x=0.01, ha="left",
    )  # fmt: skip
    return figure
