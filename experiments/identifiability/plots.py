"""The figures of identifiability.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.common.harness import Tables

COLOURS = sns.color_palette("colorblind")
# d_head_vo, heads of a layer and d_model
SIZES = {"Con": (64, 8, 512), "Add": (512, 8, 512), "MiniLM": (32, 12, 384)}
SMALL_VALUES = {"small Con": 16, "MiniLM": 32}


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 2 and 6 with joint nullity, Figure 5 with the boundary of P4, and Table 1."""
    return {
        "ranks": _ranks(tables["ranks"], tables["heads"]),
        "p4": _p4(tables),
        "accuracy": _accuracy(tables["accuracy"], found["table_1"]),
    }


def _ranks(first: pd.DataFrame, heads: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 7.6), layout="constrained")
    (con, bert), (add, joint) = figure.subplots(2, 2)
    panels = (
        (con, "Con", first, "Con, d_head_vo = 64: first head, 100 texts"),
        (bert, "MiniLM", heads, "MiniLM, d_head_vo = 32: 72 heads, 20 texts"),
        (add, "Add", first, "Add, d_head_vo = 512: first head, 100 texts"),
    )
    for axes, name, table, title in panels:
        of, d = table[table["model"] == name], SIZES[name][0]
        n = np.arange(1, of["n_tokens"].max() + 1)
        axes.plot(n, np.minimum(n, d), color="grey", linewidth=1)
        axes.plot(n, np.maximum(n - d, 0), color="grey", linewidth=1, label="theory")
        _spread(axes, of, "rank_values", COLOURS[0], "rank(T)")
        _spread(axes, of, "nullity", COLOURS[3], "dim LN(T)")
        axes.set(title=title, xlabel="number of tokens n", ylabel="rank or dimension")
    con.legend(frameon=False)
    _joint(joint, heads)
    return figure


def _spread(axes: Axes, table: pd.DataFrame, column: str, colour: Any, label: str) -> None:
    """Means with the least and the largest."""
    by = table.groupby("n_tokens")[column].agg(["mean", "min", "max"])
    axes.errorbar(by.index, by["mean"], yerr=[by["mean"] - by["min"], by["max"] - by["mean"]],
                  fmt="o", color=colour, capsize=3, label=label)  # fmt: skip


def _joint(axes: Axes, heads: pd.DataFrame) -> None:
    for colour, marker, size, name in ((0, "s", 10, "Con"), (1, "o", 5, "Add")):
        of = heads[heads["model"] == name]
        one = of.groupby(["n_tokens", "sentence"])["nullity_simplex"].sum().groupby("n_tokens")
        axes.plot(one.mean(), ":", marker=marker, markersize=size, color=COLOURS[colour],
                  fillstyle="none", label=f"{name}: each head alone, summed")  # fmt: skip
        axes.plot(of.groupby("n_tokens")["joint_nullity"].mean(), marker, markersize=size,
                  color=COLOURS[colour], label=f"{name}: all heads at once")  # fmt: skip
    n = np.arange(1, heads["n_tokens"].max() + 1)
    _, n_heads, d_model = SIZES["Con"]
    axes.plot(n, np.maximum(n_heads * n - d_model - n_heads, 0), color="grey", linewidth=1,
              zorder=0, label="8 n - d_model - 8")  # fmt: skip
    axes.set(title="Changes to a row of all 8 heads that can't be seen",
             xlabel="number of tokens n", ylabel="dimension")  # fmt: skip
    axes.legend(frameon=False)


def _p4(tables: Tables) -> Figure:
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    con, bert, counted = figure.subplots(1, 3)
    for axes, name in ((con, "Con"), (bert, "MiniLM")):
        of = tables["logits"][tables["logits"]["model"] == name]
        _spread(axes, of, "constructed", COLOURS[0], "constructed A + A~ (P1-P3)")
        _spread(axes, of, "own", COLOURS[3], "the head's own A")
        axes.axhline(SIZES[name][0], color="grey", linestyle=":", label="d_head_qk")
        axes.set(title=f"{name}, d_head_qk = d_head_vo = {SIZES[name][0]}",
                 xlabel="number of tokens n", ylabel="least rank of logits")  # fmt: skip
        axes.set_ylim(0)
    con.legend(frameon=False, loc="lower right")
    boundary = tables["boundary"]
    for colour, d in zip((2, 4, 0), boundary["d_head_vo"].unique(), strict=True):
        near = boundary[(boundary["d_head_vo"] == d) & (boundary["n_tokens"] <= 4.5 * d)]
        counted.plot(near["n_tokens"] / d, near["largest"] / d, color=COLOURS[colour],
                     label=f"boundary, d_head_vo = {d}")  # fmt: skip
    defects = tables["defects"]
    sizes = defects["model"].map(SMALL_VALUES)
    places = pd.DataFrame(
        {"n": defects["n_tokens"] / sizes, "qk": defects["d_head_qk"] / sizes,
         "unique": defects["defect"] == 0}
    )  # fmt: skip
    every = places.groupby(["n", "qk"])["unique"].mean().reset_index()
    for lowest, highest, marker, colour, label in (
        (1.0, 1.0, "o", COLOURS[1], "small Con: all unique"),
        (0.0, 0.0, "x", "black", "small Con: none unique"),
        (1e-9, 1 - 1e-9, "d", COLOURS[3], "some heads unique"),
    ):
        of = every[every["unique"].between(lowest, highest)]
        if len(of):
            counted.scatter(of["n"], of["qk"], marker=marker, color=colour, label=label, zorder=3)
    counted.axhline(1, color="grey", linestyle=":")
    counted.set(title="P1-P4: A is unique below the boundary", xlim=(1, 4.5), ylim=(0, 1.1),
                xlabel="n / d_head_vo", ylabel="d_head_qk / d_head_vo")  # fmt: skip
    counted.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def _accuracy(table: pd.DataFrame, found: Mapping[str, Any]) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for colour, shift, name in ((0, 0.96, "Con"), (1, 1.04, "Add")):
        of = table[table["heads"] == name]
        left.scatter(of["d_head_qk"] * shift**2, of["accuracy"], s=9, alpha=0.6,
                     color=COLOURS[colour])  # fmt: skip
        _means(left, found["accuracy"][name], shift, COLOURS[colour], name)
    left.set(ylabel="test accuracy", title="means with 95 % intervals, and each seed")
    left.legend(frameon=False)
    _means(right, found["add_less_con"], 1.0, COLOURS[2], "")
    right.axhline(0, color="grey", linewidth=0.8)
    right.set(ylabel="test accuracy", title="Add less Con, by the same seeds")
    places = [int(d) for d in found["add_less_con"]]
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(places, labels=places)
        axes.set(xlabel="d_head_qk")
    return figure


def _means(axes: Axes, cells: Mapping[str, Any], shift: float, colour: Any, label: str) -> None:
    mean = np.array([cell["mean"] for cell in cells.values()])
    low, high = np.array([cell["interval"] for cell in cells.values()]).T
    places = np.array([int(d) for d in cells]) * shift
    axes.errorbar(places, mean, yerr=[mean - low, high - mean], fmt="o-", capsize=3, color=colour,
                  label=label)  # fmt: skip
