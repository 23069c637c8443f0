"""The figures of `experiments.facts.capacity_law`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from capacity.evaluator import mean_interval, memorised_runs
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.conclusions import CLUSTERS
from experiments.common.drawing import KINDS, REFERENCE, estimates, headline, told, value_of
from experiments.facts.layer_sizes import LEAST, SIZES, TAU

Pair = tuple[pd.DataFrame, pd.DataFrame]
# runs at a point of a curve
POINTS = 12


def shares(
    runs: Mapping[str, Pair], found: dict[str, Any], measures: Mapping[str, tuple[str, str]]
) -> Figure:
    """Shares memorised over size by capacity, of the runs that were fitted and of larger ones.

    Parameters
    ----------
    runs : mapping of str to pair of DataFrame
        By recipe, the runs that the law is fitted to, and the larger ones.
    found : dict
        Conclusions of the experiment.
    measures : mapping of str to pair of str
        Columns of the size and of the capacity, by the name of their ratio.
    """
    figure = Figure(figsize=(WIDTH, 5.0))
    panels = figure.subplots(2, len(measures), sharey=True, sharex="col", squeeze=False)
    for row, kind in zip(panels, KINDS, strict=True):
        for axes, (name, (size, capacity)) in zip(row, measures.items(), strict=True):
            of = found[kind][str(TAU)][name]
            for number, (label, table) in enumerate(zip(_LABELS, runs[kind], strict=True)):
                _curve(axes, table, size, capacity, number, f"{label} ({len(table):,} runs)")
            factor = of["factor"]
            axes.axvline(
                value_of(factor), color=REFERENCE, linewidth=1, linestyle="--",
                label="capacity factor of the smaller ones: half memorise",
            )  # fmt: skip
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_locator(LogLocator(base=4))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.set(title=f"{kind.capitalize()}: half at\n{told(factor, interval=True)}")
        row[0].set_ylabel("share memorised")
    for axes, name in zip(panels[-1], measures, strict=True):
        axes.set_xlabel(name.replace(" (Nichani", "\n(Nichani"))
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    headline(
        figure,
        "None of three ratios puts smaller and larger sizes on one curve by both recipes\n"
        f"(tau = {TAU}; intervals over databases and layers)",
    )
    return figure


_LABELS = ("sizes that the law is fitted to", "larger sizes, not fitted")


def _curve(
    axes: Axes, table: pd.DataFrame, size: str, capacity: str, number: int, label: str
) -> None:
    """Means of as many runs each, in the order of their ratio."""
    ratio = (table[size] / table[capacity]).to_numpy(np.float64)
    done = memorised_runs(table, TAU).astype(float)
    order = np.argsort(ratio, kind="stable")
    points = min(POINTS, max(1, len(order) // 10))
    parts = np.array_split(order, points)
    places = np.array([np.exp(np.log(ratio[part]).mean()) for part in parts])
    of = [
        {"mean": done[part].mean(),
         "interval": mean_interval(done[part], table.iloc[part][list(CLUSTERS)], n_resamples=300)}
        for part in parts
    ]  # fmt: skip
    estimates(
        axes, places, of, colour=COLOURS[number], marker=MARKERS[number], line="-", label=label
    )


def layers(small: Mapping[str, pd.DataFrame], found: dict[str, Any]) -> Figure:
    """Exponents of a layer's sizes, and layers that differ in their numbers of heads alone.

    Parameters
    ----------
    small : mapping of str to DataFrame
        By recipe, the runs that the law is fitted to.
    found : dict
        Conclusions of the experiment.
    """
    figure = Figure(figsize=(WIDTH, 4.3))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1])
    _exponents(left, small, found)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left")
    figure.legend(*_matched(right, small, found), loc="outside lower right")
    headline(
        figure,
        "Equation (9) counts heads and d_head_vo alike; by one start heads count for more\n"
        f"(memorised at tau = {TAU}; intervals over databases and layers)",
    )
    return figure


_SAID = "if a power of equation (9) were all\nthat counts"


def _exponents(axes: Axes, small: Mapping[str, pd.DataFrame], found: dict[str, Any]) -> None:
    for number, kind in enumerate(KINDS):
        shift = 0.17 * (2 * number - 1)
        exponents = found[kind]["forms_of_capacity"]["exponents"]
        expected = _by_equation_9(small[kind], found[kind])
        places = np.arange(len(SIZES)) + shift
        axes.hlines(
            expected, places - 0.14, places + 0.14, color=REFERENCE, linewidth=2,
            label="" if number else _SAID,
        )  # fmt: skip
        estimates(
            axes, places, [exponents[size] for size in SIZES], colour=COLOURS[number],
            marker=MARKERS[number], label=f"{kind} recipe ({len(small[kind]):,} runs)",
        )  # fmt: skip
    heads, values = (
        " and ".join(told(found[kind]["forms_of_capacity"]["exponents"][size], 1) for kind in KINDS)
        for size in ("n_heads", "d_head_vo")
    )
    axes.set(
        title=f"Exponents by both recipes: of heads\n{heads}, of d_head_vo {values}",
        ylabel="exponent, with simultaneous intervals",
        xticks=range(len(SIZES)), xticklabels=SIZES,
    )  # fmt: skip


def _by_equation_9(table: pd.DataFrame, found: dict[str, Any]) -> list[float]:
    """The exponents if triples grew as a power of (9), in the mean over runs."""
    power = value_of(found[str(TAU)]["triples / eq. (9) (Dana et al.)"]["exponent"])
    of_values = table["n_heads"] * table["d_head_vo"] / table["layer_rank_bound"]
    heads = power * float(of_values.mean())
    return [power - heads, heads, heads, 0.0]


def _matched(
    axes: Axes, small: Mapping[str, pd.DataFrame], found: dict[str, Any]
) -> tuple[list[Any], list[str]]:
    """The share memorised with more heads over that with fewer; what its legend says."""
    axes.plot([0, 1], [0, 1], color=REFERENCE, linewidth=1, linestyle="--", label="the same share")
    better: list[str] = []
    examples: list[str] = []
    for number, kind in enumerate(KINDS):
        of = found[kind]["matched_layers"]
        if not of["comparisons"]:
            continue
        gains = of[f"memorised_{TAU}"]
        few, many = np.array(list(_shares_of_matched(small[kind]))).T
        axes.plot(
            few, many, MARKERS[number], color=COLOURS[number], alpha=0.6, markeredgewidth=0,
            label=f"{kind} recipe: mean gain {told(gains['gain'], interval=True)}",
        )  # fmt: skip
        better.append(f"{gains['more_heads_are_better']} of {of['comparisons']} ({kind})")
        x, y = map(value_of, of["example"].values())
        examples.append(f"{x:.2f} to {y:.2f}")
        axes.plot(
            x, y, "o", markersize=9, markerfacecolor="none", markeredgecolor=REFERENCE,
            label="d_model 6, one head of size 3, or three of 1" if number else None,
        )  # fmt: skip
    axes.set(
        title="More heads, same d_model, (9), parameters:\nbetter in " + ", ".join(better),
        xlabel="share memorised with fewer heads",
        ylabel="share memorised with more heads",
        xlim=(-0.03, 1.03), ylim=(-0.03, 1.03),
    )  # fmt: skip
    handles, labels = axes.get_legend_handles_labels()
    if examples:
        labels[-1] += ":\n" + " and ".join(examples)
        handles, labels = [*handles[1:], handles[0]], [*labels[1:], labels[0]]
    return handles, labels


def _shares_of_matched(table: pd.DataFrame) -> Iterator[tuple[float, float]]:
    """As `matched_layers` compares them: those with fewer heads, and those with more."""
    done = pd.Series(memorised_runs(table, TAU).astype(float), index=table.index)
    same = table.assign(done=done).groupby(["d_model", "layer_rank_bound", "n_parameters"])
    for _, part in same:
        by_heads = part.groupby("n_heads")["done"].agg(["mean", "size"])
        means = by_heads.loc[by_heads["size"] >= LEAST, "mean"]
        yield from combinations(means, 2)
