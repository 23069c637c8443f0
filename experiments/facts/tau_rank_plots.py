"""The figure of `experiments.facts.tau_rank`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import KINDS, REFERENCE, headline, told, value_of
from experiments.common.harness import Tables

# the conclusion, the column, and what it is
PANELS = {
    "log_scale": ("scale_p99", "smallest scale c at 0.99"),
    "log_argmax": ("ratio_of_argmax", "argmax over forward pass"),
    "log_softmax": ("ratio_of_softmax", "softmax ≥ 0.95 over forward pass"),
}


def drawn(tables: Tables, found: dict[str, Any]) -> Figure:
    """The smallest scale, and the rank of argmax over that of the forward pass, over rank(L)."""
    figure = Figure(figsize=(WIDTH, 7.8))
    panels = figure.subplots(3, 2, sharex=True, sharey="row")
    for column, kind in enumerate(KINDS):
        table = tables[kind]
        ready = table.assign(
            ratio_of_argmax=table["rank_of_argmax"] / table["rank_of_forward_pass"],
            ratio_of_softmax=table["rank_of_softmax"] / table["rank_of_forward_pass"],
            rank=table["rank_of_L"].clip(lower=1),
        )
        for axes, (name, (of, label)) in zip(panels[:, column], PANELS.items(), strict=True):
            slope = found[kind]["slopes"][name]
            _points(axes, ready, of, slope)
            what = {"scale_p99": "scale", "ratio_of_argmax": "argmax"}.get(of, "softmax")
            axes.set_title(f"{kind.capitalize()}, {what}: exponent\n{_exponent(slope)}")
            if not column:
                axes.set_ylabel(label)
        panels[-1, column].set_xlabel("rank(L), lower end")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    slopes = [one for kind in KINDS for one in found[kind]["slopes"].values()]
    rising = sum(value_of(one) > 0 and _is_sure(one) for one in slopes)
    falling = sum(value_of(one) < 0 and _is_sure(one) for one in slopes)
    told_apart = (
        f"{rising} rise and {falling} fall" if rising + falling else "none differs from zero"
    )
    headline(
        figure,
        f"Of {len(slopes)} exponents of rank(L), at fixed ratios of triples to equation (9),\n"
        f"{told_apart} (p < 0.05 after Holm; intervals over widths)",
    )
    return figure


def _points(axes: Axes, table: pd.DataFrame, of: str, slope: dict[str, Any]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for number, (ratio, part) in enumerate(table.groupby("ratio")):
        some = part[np.isfinite(part[of]) & (part[of] > 0)]
        axes.plot(
            some["rank"], some[of], MARKERS[number], color=COLOURS[number], alpha=0.5,
            markersize=3, markeredgewidth=0, label=f"{ratio} triples a unit of equation (9)",
        )  # fmt: skip
        if slope["slope"] is None or len(some) < 2:
            continue
        # through the middle of its points, with the common exponent
        x = np.array([some["rank"].min(), some["rank"].max()], dtype=float)
        middle = np.exp(np.log(some[of]).mean() - slope["slope"] * np.log(some["rank"]).mean())
        axes.plot(
            x, middle * x ** slope["slope"], color=COLOURS[number], linewidth=1,
            label=f"{ratio} triples: fitted power of rank(L)",
        )  # fmt: skip
    axes.axhline(
        1, color=REFERENCE, linewidth=1, linestyle="--",
        label="1: as trained, or the rank of the forward pass",
    )  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")


def _exponent(slope: dict[str, Any]) -> str:
    if slope["slope"] is None:
        return f"not fitted ({slope['n_runs']} runs)"
    return f"{told(slope, interval=True)} ({slope['n_runs']} runs)"


def _is_sure(slope: dict[str, Any]) -> bool:
    return slope.get("p_holm") is not None and slope["p_holm"] < 0.05
