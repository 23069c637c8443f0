"""The figure of `experiments.facts.measured_ranks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, headline, percent, told

LARGEST = 300
_FORWARD = "forward pass (upper end)"


def drawn(tables: Mapping[str, pd.DataFrame], found: dict[str, Any]) -> Figure:
    """Ranks of L over (9), and of what is said over the forward pass, from end to end.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Runs with their ranks, by recipe.
    found : dict
        Conclusions of the experiment.
    """
    threshold = f"{found['threshold']:g}"
    figure = Figure(figsize=(WIDTH, 5.3))
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    for number, (row, (kind, table)) in enumerate(zip(panels, tables.items(), strict=True)):
        of = found[kind]
        ratios = of["rank_of_what_is_said_over_rank_of_forward_pass"]
        below = of["rank_of_L_below_equation_9"][threshold]
        ends = (table["layer_rank_bound"], table[f"L_lower_{threshold}"])
        _between(row[0], *ends, table[f"L_upper_{threshold}"], number)
        title = f"{kind.capitalize()}: rank(L) is below (9)\nin {percent(below)} of the runs"
        row[0].set_title(title)
        for axes, tau in zip(row[1:], ("argmax", "0.95"), strict=True):
            forward = table[f"forward_upper_{threshold}"]
            _between(axes, forward, table[f"said_{tau}_lower"], table[f"said_{tau}_upper"], number)
            what = "argmax" if tau == "argmax" else f"softmax ≥ {tau}"
            ratio = told(ratios[tau], interval=True)
            axes.set_title(f"{what}: mean ratio\nat least {ratio}")
    labels = ("rank of L", "rank of argmax", "rank of softmax ≥ 0.95")
    for axes, label in zip(panels.T, labels, strict=True):
        for one in axes:
            one.set_ylabel(label)
    for axes, label in zip(panels[1], ("layer rank bound (eq. 9)", *2 * [_FORWARD]), strict=True):
        axes.set_xlabel(label)
    equal, _ = panels[0, 0].get_legend_handles_labels()
    run = Line2D([], [], color=REFERENCE, alpha=0.4, marker="o", markeredgewidth=0)
    labels = ["equal", "a run, from its lower end (dot) to its upper end"]
    figure.legend([equal[0], run], labels, loc="outside lower center", ncols=2)
    reached = [percent(found[kind]["rank_of_L_reaches_equation_9"]) for kind in tables]
    runs = len(next(iter(tables.values())))
    headline(
        figure,
        f"rank(L) reaches equation (9) in at least {reached[0]} (plain) and {reached[1]} (best)\n"
        f"of {runs} runs each (singular values above {threshold} of the largest)",
    )
    return figure


def _between(axes: Axes, x: pd.Series, lower: pd.Series, upper: pd.Series, number: int) -> None:
    axes.plot([1, LARGEST], [1, LARGEST], "--", color=REFERENCE, linewidth=1, label="equal")
    axes.vlines(
        x, lower, upper, color=COLOURS[number], alpha=0.25, linewidth=1,
    )  # fmt: skip
    axes.plot(
        x, lower, MARKERS[number], color=COLOURS[number], alpha=0.7, markersize=2.5,
        markeredgewidth=0,
    )  # fmt: skip
    axes.set_xscale("log", base=2)
    # 0 is a rank too
    axes.set_yscale("symlog", base=2, linthresh=1)
    axes.set(
        xlim=(1.5, LARGEST), ylim=(-0.2, LARGEST), xticks=[2, 8, 32, 128],
        yticks=[0, 2, 8, 32, 128],
    )  # fmt: skip
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
