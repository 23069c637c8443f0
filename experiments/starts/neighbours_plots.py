"""Figures of `neighbours`."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.conclusions import with_mean
from experiments.common.drawing import REFERENCE, estimates, headline, told
from experiments.common.harness import Tables
from experiments.starts.neighbours_numbers import BEST_OF, LINES, ONE, curve

# frozen, by starts -> label
DRAWN = {
    (False, ONE): "trained, one start",
    (False, BEST_OF): "trained, best of 8",
    (True, BEST_OF): "W_Q, W_K frozen, best of 8",
}
# of the lines
AUTHORS = {":": "Allen-Zhu and Li", "--": "Morris et al."}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Bits a parameter by size, and shares of associations."""
    return {
        "bits": _bits(tables["bits"], found),
        "associations": _associations(found["associations"]),
    }


def _bits(runs: pd.DataFrame, found: dict[str, Any]) -> Figure:
    """A row for each kind of databases, a panel for each layer."""
    kinds, layers = (runs[name].unique() for name in ("kind", "layer_id"))
    short, long = runs["trained_for"].min(), runs["trained_for"].max()
    figure = Figure(figsize=(WIDTH, 5.4))
    panels = figure.subplots(len(kinds), len(layers), sharex=True, sharey=True, squeeze=False)
    for row, kind in zip(panels, kinds, strict=True):
        for axes, layer in zip(row, layers, strict=True):
            part = runs[(runs["kind"] == kind) & (runs["layer_id"] == layer)]
            _panel(axes, part[part["trained_for"] == short], part[part["trained_for"] == long])
            sizes = found["cp"]["sizes"][str(kind)]
            estimates(
                axes, [size["triples"] for size in sizes], [size["bits"] for size in sizes],
                colour=COLOURS[7], marker=MARKERS[3], line=":", label="CP at its argmax rank",
            )  # fmt: skip
            for bits, (line, whose) in zip(LINES.values(), AUTHORS.items(), strict=True):
                axes.axhline(bits, color=REFERENCE, lw=0.8, ls=line, label=f"{bits:g}, {whose}")
            axes.set(xscale="log", ylim=(0, 4.5))
            axes.minorticks_off()
            axes.set_xticks([100, 300, 1000], ["100", "300", "1,000"])
        row[0].set_ylabel(f"{kind}\nbits a parameter")
    for axes, layer in zip(panels[0], layers, strict=True):
        axes.set_title(layer)
    for axes in panels[-1]:
        axes.set_xlabel("triples")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=3,
        title="2,000 epochs; hollow: 20,000",
    )  # fmt: skip
    most = _most_of(found)
    headline(
        figure,
        "More starts and frozen queries and keys raise what layers store, to "
        f"{most['mean']:.1f} bits a parameter at most;\nCP holds all of these databases whole, "
        "with more bits a parameter at each size",
    )
    return figure


def _most_of(found: dict[str, Any]) -> dict[str, Any]:
    """The largest mean of any layer, kind, way and number of epochs."""
    every = [
        way["most"][BEST_OF]["averaged"]
        for of_kind in found["bits"].values()
        for of in of_kind.values()
        for ways in of["layers"].values()
        for way in ways.values()
    ]
    return max(every, key=lambda one: one["mean"])


def _panel(axes: Axes, short: pd.DataFrame, long: pd.DataFrame) -> None:
    content = short.groupby("n_triples")[["bits_content", "n_all_parameters"]].mean()
    axes.plot(
        content.index, content["bits_content"] / content["n_all_parameters"], color=COLOURS[6],
        lw=1, label="all bits of the databases",
    )  # fmt: skip
    for ((frozen, name), label), colour, marker in zip(
        DRAWN.items(), COLOURS, MARKERS, strict=False
    ):
        for runs, line, hollow in ((short, "-", False), (long, "none", True)):
            if hollow and (runs.empty or runs["trained_for"].max() == short["trained_for"].max()):
                continue
            each = curve(runs[runs["is_frozen"] == frozen], "averaged", name)
            triples = sorted(each["n_triples"].unique())
            means = [
                with_mean(part["bits"], part[["database_id"]])
                for _, part in each.groupby("n_triples")
            ]
            estimates(
                axes, triples, means, colour=colour, marker=marker, line=line, hollow=hollow,
                label=None if hollow else label,
            )  # fmt: skip


def _heads(number: int) -> str:
    return "1 head" if number == 1 else f"{number} heads"


def _associations(found: dict[str, Any]) -> Figure:
    """Shares by d_h, with the largest d: attention as in the paper, and scaled."""
    table = pd.DataFrame(found["shares"])
    table = table[table["d"] == table["d"].max()]
    figure = Figure(figsize=(WIDTH, 3.8))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, scaled in zip(panels, (False, True), strict=True):
        of_scale = table[table["scaled"] == scaled]
        for heads, colour, marker in zip(
            sorted(table["heads"].unique()), COLOURS, MARKERS, strict=False
        ):
            for frozen, line in ((False, "-"), (True, "--")):
                part = of_scale[(of_scale["heads"] == heads) & (of_scale["frozen"] == frozen)]
                for name, hollow in (("one", True), ("best", False)):
                    label = _heads(heads) if not frozen and not hollow else None
                    estimates(
                        axes, part["d_h"].tolist(), part[name].tolist(), colour=colour,
                        marker=marker, line=line if not hollow else "none", hollow=hollow,
                        label=label,
                    )  # fmt: skip
        scale = "scaled by 1 / sqrt(d_h)" if scaled else "as in the paper"
        axes.set_title(f"d = {table['d'].max()}, {scale}")
        axes.set(xlabel="d_h", xscale="log", yscale="log")
        axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"], minor=False)
        axes.minorticks_off()
        axes.set_yticks([0.06, 0.1, 0.2, 0.4], ["0.06", "0.1", "0.2", "0.4"])
    panels[0].set_ylabel("pairs of 2,500 predicted")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3,
        title="solid: trained, dashed: W_Q, W_K frozen; hollow: one start, full: best of 4",
    )  # fmt: skip
    laws = found["exponents"]["trained, scaled"]
    headline(
        figure,
        f"Associations grow as d_h to the power {told(laws['one start']['d_h'])} by one start, and "
        f"{told(laws['best']['d_h'])} by the best of 4\n(trained, scaled)",
    )
    return figure
