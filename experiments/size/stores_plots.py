"""Figures of real stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import KINDS, REFERENCE, estimates
from experiments.size.stores_numbers import FACTOR, RANKS, found_sizes


def figures(
    runs: pd.DataFrame, databases: pd.DataFrame, found: dict[str, Any]
) -> dict[str, Figure]:
    """Errors by store, and missing pairs."""
    sizes = found_sizes(runs).merge(databases, on="database_id")
    return {"errors": _errors(found), "missing": _missing(sizes)}


def _errors(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.5 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True, sharex=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        stores = found[kind]["stores"]
        places = np.arange(len(stores))
        for of, colour, marker, shift in (
            ("error", COLOURS[0], MARKERS[0], -0.15),
            ("controls", COLOURS[1], MARKERS[1], 0.15),
        ):
            estimates(ax, places + shift, [one[of] for one in stores.values()], colour=colour,
                      marker=marker, across=True,
                      label="parts" if of == "error" else "their controls")  # fmt: skip
        ax.set_yticks(places, list(stores))
        ax.axvline(0, color=REFERENCE, lw=0.8)
        within = np.log(FACTOR)
        ax.axvspan(-within, within, color="0.92", zorder=0, label=f"a factor of {FACTOR:g}")
        ax.set_title(f"{kind} recipe")
        ax.set_xlabel("log(found size / facts), nats")
    if found[KINDS[0]]["stores"]:
        axes[0].invert_yaxis()
        axes[0].legend(frameon=False, fontsize="small")
    return figure


def _missing(sizes: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.5 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    of = sizes[(sizes["what"] == "missing") & (sizes["kind"] == "best")]
    markers = dict(zip(sorted(of["store"].unique()), MARKERS, strict=False))
    colours = dict(zip(sorted(of["share"].unique()), COLOURS, strict=False))
    for ax, (name, ends) in zip(axes, RANKS.items(), strict=True):
        for (store, share), each in of.groupby(["store", "share"]):
            ax.loglog(each[list(ends)].mean(axis=1), each["size"], ls="none", ms=4,
                      marker=markers[store], color=colours[share])  # fmt: skip
        ax.set_title(f"found size over {name}")
        ax.set_xlabel(f"{name}, mean of both certified ends")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.set_minor_formatter(NullFormatter())
        ax.set_xticks([30, 50, 70, 100])
    axes[0].set_ylabel("found size, triples (best recipe)")
    axes[0].set_yticks([20, 50, 100, 200, 500])
    handles = [Line2D([], [], ls="none", marker=marker, color="0.4", label=store)
               for store, marker in markers.items()]  # fmt: skip
    handles += [Line2D([], [], ls="none", marker="o", color=colour, label=f"{share:.0%} missing")
                for share, colour in colours.items()]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles) or 1,
                  fontsize="x-small", frameon=False, columnspacing=1,
                  handletextpad=0.2)  # fmt: skip
    return figure
