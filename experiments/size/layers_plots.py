"""Figures of the law of layers."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from capacity.evaluator import fit_size_law
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import KINDS, REFERENCE, estimates
from experiments.size.layers_numbers import LARGEST, SIZES, SPLIT, TAU, rows_of_sizes, sizes_of

LABELS = {
    "d_model": "d_model",
    "n_heads": "heads",
    "d_head_vo": "d_head_vo",
    "d_head_qk": "d_head_qk",
}


def figures(runs: pd.DataFrame, found: dict[str, Any]) -> dict[str, Figure]:
    """Sizes foretold and found, and the exponents."""
    fitted = [kind for kind in KINDS if "exponents" in found[kind]]
    return {"sizes": _sizes(runs, fitted), "exponents": _exponents(found, fitted)}


def _sizes(runs: pd.DataFrame, fitted: list[str]) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.5 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, fitted, strict=False):
        part = runs[runs["kind"] == kind]
        small = part[(part["n_asked"] < SPLIT) & (part["d_model"] < LARGEST)]
        law = fit_size_law(small, SIZES, TAU, n_resamples=0).law
        sizes = sizes_of(part).dropna(subset="size")
        foretold = [law.size_at(row) for row in rows_of_sizes(sizes)]
        sizes = sizes.assign(foretold=foretold)
        for d, colour, marker in zip((2, 4, 8, LARGEST), COLOURS, MARKERS, strict=False):
            of = sizes[sizes["d_model"] == d]
            ax.loglog(of["foretold"], of["size"], ls="none", marker=marker, ms=4, color=colour,
                      label=f"d_model {d}")  # fmt: skip
        ends = [sizes["size"].min(), sizes["size"].max()]
        ax.loglog(ends, ends, color=REFERENCE, lw=0.8, label="equal")
        ax.axhline(SPLIT, color="0.7", lw=0.8, ls=":", label=f"fitted below {SPLIT} triples")
        ax.set_title(f"{kind} recipe")
        ax.set_xlabel("triples that the law predicts")
    axes[0].set_ylabel("triples that half memorise")
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def _exponents(found: dict[str, Any], fitted: list[str]) -> Figure:
    figure = Figure(figsize=(0.7 * WIDTH, 0.5 * WIDTH), layout="constrained")
    ax = figure.subplots()
    for i, (kind, colour) in enumerate(zip(fitted, COLOURS, strict=False)):
        of = [found[kind]["exponents"][name] for name in SIZES]
        places = [place + 0.2 * i - 0.1 for place in range(len(SIZES))]
        estimates(ax, places, of, colour=colour, label=f"{kind}, fresh layers")
        ax.plot(places, [one["before"] for one in of], ls="none", marker="x", color=colour,
                label=f"{kind}, found before")  # fmt: skip
    ax.axhline(0, color="0.7", lw=0.8)
    ax.set_xticks(range(len(SIZES)), [LABELS[name] for name in SIZES])
    ax.set_ylabel("exponent of triples that half memorise")
    ax.set_title("Sizes of a layer, on fresh layers and databases")
    ax.legend(frameon=False)
    return figure
