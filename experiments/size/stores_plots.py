"""Figures of real stores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

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
        for end in (-np.log(FACTOR), np.log(FACTOR)):
            ax.axvline(end, color="0.7", lw=0.8, ls=":")
        ax.set_title(f"{kind} recipe")
        ax.set_xlabel("log(found size / facts), nats")
    if found[KINDS[0]]["stores"]:
        axes[0].invert_yaxis()
        axes[0].legend(frameon=False, fontsize="small")
    return figure


def _missing(sizes: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    of = sizes[(sizes["what"] == "missing") & (sizes["kind"] == "best")]
    for ax, (name, ends) in zip(axes, RANKS.items(), strict=True):
        for (store, part), marker in zip(of.groupby("store"), MARKERS, strict=False):
            for (share, each), colour in zip(part.groupby("share"), COLOURS, strict=False):
                ax.loglog(each[list(ends)].mean(axis=1), each["size"], ls="none", marker=marker,
                          ms=4, color=colour, label=f"{store}, {share:.0%} missing")  # fmt: skip
        ax.set_xlabel(f"{name}, mean of both certified ends")
    axes[0].set_ylabel("found size, triples (best recipe)")
    axes[1].legend(fontsize="x-small", frameon=False, ncols=2)
    return figure
