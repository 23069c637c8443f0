"""Figures 2, 3 and 4 of Wong 2025, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.evaluator import accuracy_column, accuracy_grid
from capacity.plots import plot_accuracy_grids
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import KINDS, headline, told
from experiments.common.harness import Tables

# the pool of the paper's experiment here
POOL = "0.4-1.0"


def drawn(tables: Tables, found: dict[str, Any], taus: tuple[Any, ...]) -> dict[str, Figure]:
    """Figures 2, 3 and 4."""
    return {
        "2": _sizes(tables, found),
        "3": _grids(tables["plain"], "Plain recipe", taus),
        "3-best": _grids(tables["best"], "Best recipe", taus),
        "4": _heads(tables, found),
    }


def _sizes(tables: Tables, found: dict[str, Any]) -> Figure:
    """Triples over the rank bounds of databases, parameters over those of layers."""
    figure = Figure(figsize=(WIDTH, 3.5))
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1])
    pools = tables["pools"]
    slopes = found["triples_a_unit_of_rank_bound"]
    for number, (pool, part) in enumerate(pools.groupby("pool")):
        colour, one = COLOURS[number], slopes[str(pool)]
        low, high = str(pool).split("-")
        left.plot(
            part["database_rank_bound"], part["n_triples"], MARKERS[number], color=colour,
            alpha=0.35, markersize=2.5, markeredgewidth=0,
        )  # fmt: skip
        end = part["database_rank_bound"].max()
        left.plot(
            [0, end], [0, end * one["slope"]], color=colour,
            label=f"{low} to {high}: {told(one, interval=True)}",
        )  # fmt: skip
    least, most = (f([one["slope"] for one in slopes.values()]) for f in (min, max))
    n = slopes[POOL]["databases"]
    left.set(
        title=f"2a. {least:.1f} to {most:.1f} triples a unit of the bound,\n"
        f"as the generator is set (ours: {told(slopes[POOL])})",
        xlabel="database rank bound (Prop. 2.1)",
        ylabel="triples",
        ylim=(0, None),
        xlim=(0, None),
    )
    figure.legend(
        *left.get_legend_handles_labels(),
        title="2a. objects to draw from, as a share of the subjects: triples a unit of the bound "
        f"({n} databases each)", title_fontsize=8, loc="outside lower left", alignment="left",
        ncols=2,
    )  # fmt: skip
    layers = tables["plain"].drop_duplicates("layer_id")
    widths = sorted(layers["d_model"].unique())
    for number, d in enumerate(widths):
        part = layers[layers["d_model"] == d]
        right.plot(
            part["layer_rank_bound"], part["n_parameters"], MARKERS[number % len(MARKERS)],
            color=COLOURS[number % len(COLOURS)], alpha=0.7, markersize=3.5, markeredgewidth=0,
            label=f"{d}",
        )  # fmt: skip
    right.set(
        title="2b. Parameters rise with equation (9), and\nspread: rank correlation "
        f"{found['rank_correlation_of_parameters_and_bound']:.2f}",
        xlabel="layer rank bound (eq. 9)",
        ylabel="parameters of the heads",
        xlim=(0, None),
        ylim=(0, None),
    )
    right.legend(
        title=f"d_model ({len(layers)} layers)", title_fontsize=8, ncols=3, alignment="left",
        loc="upper left", columnspacing=1, handletextpad=0,
    )  # fmt: skip
    return figure


def _grids(table: pd.DataFrame, recipe: str, taus: tuple[Any, ...]) -> Figure:
    """The accuracy grid at each tau, on one scale."""
    means = {tau: table[accuracy_column(tau)].mean() for tau in taus}
    grids = {
        f"{'argmax' if tau == 'argmax' else f'tau = {tau:.2f}'}: mean {means[tau]:.2f}":
        accuracy_grid(table, tau) for tau in taus
    }  # fmt: skip
    runs = pd.concat(grids.values())["n_runs"]
    figure = plot_accuracy_grids(
        grids, of=f"mean accuracy; {runs.min()} to {runs.max()} runs a cell"
    )
    first, last = (means[tau] for tau in (taus[0], taus[-1]))
    headline(
        figure,
        f"{recipe}: mean accuracy falls from {first:.2f} by argmax to {last:.2f} at "
        f"tau = {taus[-1]} ({len(table):,} runs)",
    )
    return figure


def _heads(tables: Tables, found: dict[str, Any]) -> Figure:
    """Mean accuracies by d_head_qk and d_head_vo, on one colour scale."""
    figure = Figure(figsize=(WIDTH, 4.0))
    panels: list[Axes] = list(figure.subplots(1, 2, sharex=True, sharey=True))
    wide = {
        kind: tables[kind].pivot_table(
            index="d_head_qk", columns="d_head_vo", values="accuracy_p95", aggfunc="mean"
        )
        for kind in KINDS
    }
    least = np.floor(10 * min(float(np.nanmin(one)) for one in wide.values())) / 10
    image = None
    for axes, kind in zip(panels, KINDS, strict=True):
        cells, of = wide[kind].to_numpy(), found["figure_4"][kind]
        image = axes.imshow(
            cells, origin="lower", aspect="auto", cmap="cividis", vmin=least, vmax=1
        )
        for (row, column), mean in np.ndenumerate(cells):
            if np.isfinite(mean):
                dark = mean < (1 + least) / 2
                axes.text(
                    column, row, f"{mean:.2f}", ha="center", va="center", fontsize=7,
                    color="white" if dark else "black",
                )  # fmt: skip
        axes.set(
            title=f"{kind.capitalize()} recipe: {told(of['mean_step'], 3, interval=True)}\na step, "
            f"{of['steps_that_gain']} of {of['steps_from_qk_to_vo']} steps gain",
            xlabel="d_head_vo",
            xticks=range(cells.shape[1]), xticklabels=wide[kind].columns,
            yticks=range(cells.shape[0]), yticklabels=wide[kind].index,
        )  # fmt: skip
    panels[0].set_ylabel("d_head_qk")
    if image is not None:
        figure.colorbar(image, ax=panels, label="mean accuracy at tau = 0.95", shrink=0.85)
    gains, steps = (
        sum(found["figure_4"][kind][name] for kind in KINDS)
        for name in ("steps_that_gain", "steps_from_qk_to_vo")
    )
    headline(
        figure,
        f"One d_head_vo more for one d_head_qk less gains accuracy in {gains} of {steps} steps\n"
        f"right and down (d_model left free; {len(tables['plain']):,} runs a recipe)",
    )
    return figure
