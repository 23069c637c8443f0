"""Figures of what decoders know that are trained here."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import REFERENCE, estimates, headline


def plot(_tables: dict[str, pd.DataFrame], found: dict[str, Any]) -> dict[str, Figure]:
    """Draw the known facts through training, and the components that bring them."""
    return {"course": _course(found["cells"]), "parts": _parts(found["cells"])}


def _course(cells: dict[str, Any]) -> Figure:
    """Known facts of people by the number of times that each was seen, and their size."""
    figure = Figure(figsize=(WIDTH, 3.4))
    left, right = figure.subplots(1, 2)
    for number, (name, cell) in enumerate(cells.items()):
        steps = cell["stores"]["people"]["course"]
        of = {"color": COLOURS[number], "marker": MARKERS[number], "linewidth": 1}
        seen = [step["exposures"] for step in steps]
        left.plot(seen, [step["known"] / step["facts"] for step in steps], label=name, **of)
        sized = [step for step in steps if step["length_ratio"] is not None]
        right.plot(
            [step["known"] / step["facts"] for step in sized],
            [step["length_ratio"] for step in sized], **of,
        )  # fmt: skip
    right.axhline(1, color=REFERENCE, linewidth=0.8, label="random facts of the same predicates")
    left.set(title="Facts of people that are known", xlabel="times that a fact was seen",
             ylabel="share known", xscale="log", ylim=(-0.03, 1.03))  # fmt: skip
    right.set(title="How regular what is known is", xlabel="share known", xlim=(-0.03, 1.03))
    right.set_ylabel("description length over that\nof random facts")
    right.set_ylim(bottom=0)
    right.legend(loc="lower right")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _parts(cells: dict[str, Any]) -> Figure:
    """Facts that sums of heads' parts bring among the objects of all predicates."""
    sums = ("subject", "predicate", "subject + predicate", "heads", "feed_forward", "model")
    figure = Figure(figsize=(WIDTH, 3.2))
    axes = figure.subplots()
    n = len(cells)
    for number, (name, cell) in enumerate(cells.items()):
        estimates(
            axes, [i + 0.8 * ((number + 0.5) / n - 0.5) for i in range(len(sums))],
            [cell["stores"]["people"]["sums"][one] for one in sums], colour=COLOURS[number],
            marker=MARKERS[number], label=name,
        )  # fmt: skip
    axes.set(
        ylabel="share of people's facts", ylim=(-0.03, 1.03), xticks=range(len(sums)),
        xticklabels=["heads, from\nthe subject", "heads, from\nthe predicate", "heads, from\nboth",
                     "heads", "feed-forwards", "model"],
    )  # fmt: skip
    headline(figure, "Facts that sums of components bring, among the objects of all predicates")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
