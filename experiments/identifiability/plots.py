"""The figures of `experiments.identifiability.run`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, LINE, MARKERS, WIDTH
from experiments.common.drawing import headline
from experiments.common.harness import Tables

BLUE, ORANGE, GREEN, _, PURPLE, *_ = COLOURS
GREY = COLOURS[7]
# d_head_vo, heads of a layer and d_model
SIZES = {"Con": (64, 8, 512), "Add": (512, 8, 512), "MiniLM": (32, 12, 384)}
SMALL_VALUES = {"small Con": 16, "MiniLM": 32}
TOKENS = "number of tokens n"


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Figures 2 and 6 with joint nullity, Figure 5 with the boundary of P4, and Table 1."""
    return {
        "ranks": _ranks(tables["ranks"], tables["heads"], found),
        "p4": _p4(tables, found),
        "accuracy": _accuracy(tables["accuracy"], found["table_1"]),
    }


def _ranks(first: pd.DataFrame, heads: pd.DataFrame, found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 6.4))
    (con, bert), (add, joint) = figure.subplots(2, 2)
    texts, unseen = found["settings"]["texts_a_length"], found["figure_6"]
    panels = (
        (con, "Con", first, f"Con, first head, {texts['Con']} texts a length"),
        (
            bert, "MiniLM", heads,
            f"MiniLM, {found['settings']['heads_of_MiniLM']} heads, {texts['MiniLM']} texts",
        ),
        (add, "Add", first, f"Add, first head, {texts['Con']} texts a length"),
    )  # fmt: skip
    for axes, name, table, title in panels:
        of, d = table[table["model"] == name], SIZES[name][0]
        n = np.arange(1, of["n_tokens"].max() + 1)
        axes.plot(n, np.minimum(n, d), color=LINE, linewidth=1, label=r"min(n, d_head_vo)")
        axes.plot(n, np.maximum(n - d, 0), color=LINE, linewidth=1, linestyle="--",
                  label="max(n - d_head_vo, 0)")  # fmt: skip
        _spread(axes, of, "rank_values", (BLUE, MARKERS[0]), "rank(T): mean, least, largest")
        _spread(axes, of, "nullity", (GREEN, MARKERS[1]), "dim LN(T): the same")
        axes.set_title(f"{title}\nd_head_vo = {d}")
        axes.set(xlabel=TOKENS, ylabel="rank or dimension", xlim=(0, 530), ylim=(-20, 530))
    _joint(joint, heads)
    handles, labels = con.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    headline(
        figure,
        "Added heads are identifiable one by one, up to "
        f"{unseen['largest_n_with_nullity_0_throughout']} tokens; all at once no more than Con's",
    )
    return figure


def _spread(
    axes: Axes, table: pd.DataFrame, column: str, look: tuple[str, str], label: str
) -> None:
    """Means with the least and the largest."""
    by = table.groupby("n_tokens")[column].agg(["mean", "min", "max"])
    axes.errorbar(by.index, by["mean"], yerr=[by["mean"] - by["min"], by["max"] - by["mean"]],
                  fmt=look[1], color=look[0], capsize=2, label=label)  # fmt: skip


def _joint(axes: Axes, heads: pd.DataFrame) -> None:
    n = np.arange(1, heads["n_tokens"].max() + 1)
    texts = heads.loc[heads["model"] == "Con", "sentence"].nunique()
    _, n_heads, d_model = SIZES["Con"]
    axes.plot(n, np.maximum(n_heads * n - d_model - n_heads, 0), color=LINE, linewidth=1,
              label=f"{n_heads} n - d_model - {n_heads}")  # fmt: skip
    for look, name in (((ORANGE, "s"), "Con"), ((PURPLE, "o"), "Add")):
        of = heads[heads["model"] == name]
        one = of.groupby(["n_tokens", "sentence"])["nullity_simplex"].sum().groupby("n_tokens")
        axes.plot(of.groupby("n_tokens")["joint_nullity"].mean(), look[1], color=look[0],
                  label=f"{name}, all at once")  # fmt: skip
        axes.plot(one.mean(), ":", marker=look[1], color=look[0], fillstyle="none",
                  label=f"{name}, one by one, summed")  # fmt: skip
    axes.set_title(f"All {n_heads} heads, d_model = {d_model}\n{texts} texts a length")
    axes.set(xlabel=TOKENS, ylabel="dimension of unseen changes")
    axes.legend(fontsize=7)


def _p4(tables: Tables, found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 6.2))
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 1.25))
    con = figure.add_subplot(grid[0, 0])
    bert = figure.add_subplot(grid[0, 1], sharey=con)
    counted = figure.add_subplot(grid[1, :])
    for axes, name in ((con, "Con"), (bert, "MiniLM")):
        of, d = tables["logits"][tables["logits"]["model"] == name], SIZES[name][0]
        n = np.array([of["n_tokens"].min(), of["n_tokens"].max()])
        axes.plot(n, n - 1, color=GREY, linewidth=1, label="n - 1")
        axes.axhline(d, color=LINE, linewidth=1, label="d_head_qk")
        _spread(axes, of, "constructed", (BLUE, MARKERS[0]), "constructed A + A~ (P1 to P3)")
        _spread(axes, of, "own", (GREEN, MARKERS[1]), "the head's own A")
        axes.set_title(
            f"{name}, d_head_qk = d_head_vo = {d}\nmean, least and largest of {len(of):,} draws"
        )
        axes.set(xlabel=TOKENS, ylim=(0, 140))
    con.set_ylabel("least rank of logits")
    con.legend(loc="lower right", fontsize=7)
    _boundary(counted, tables)
    defects = found["p4"]["defects"]
    counted.set_title(
        "P4 leaves one A below the boundary, and others above: "
        f"{defects['equal_to_the_excess_or_0']} of {defects['n']} cases as counted"
    )
    headline(
        figure, "Constructed attention violates P4, but at d_head_qk = d_head_vo other A fulfil it"
    )
    return figure


def _boundary(axes: Axes, tables: Tables) -> None:
    boundary, defects = tables["boundary"], tables["defects"]
    for line, d in zip(("-", "--", ":"), boundary["d_head_vo"].unique(), strict=True):
        near = boundary[(boundary["d_head_vo"] == d) & (boundary["n_tokens"] <= 4.5 * d)]
        axes.plot(near["n_tokens"] / d, near["largest"] / d, line, color=LINE, linewidth=1.2,
                  label=f"boundary, d_head_vo = {d}")  # fmt: skip
    axes.axhline(1, color=GREY, linewidth=1, label="d_head_qk = d_head_vo")
    sizes = defects["model"].map(SMALL_VALUES)
    places = pd.DataFrame(
        {"model": defects["model"], "n": defects["n_tokens"] / sizes,
         "qk": defects["d_head_qk"] / sizes, "unique": defects["defect"] == 0}
    )  # fmt: skip
    for model, marker in (("small Con", "o"), ("MiniLM", "D")):
        for unique, colour, what in ((True, BLUE, "unique"), (False, PURPLE, "not unique")):
            of = places[(places["model"] == model) & (places["unique"] == unique)]
            if len(of):
                axes.scatter(of["n"], of["qk"], marker=marker, s=28, color=colour, zorder=3,
                             facecolor=colour if unique else "none",
                             label=f"{model}: {what} ({len(of)} cases)")  # fmt: skip
    axes.set(xlim=(1, 4.5), ylim=(0, 1.1), xlabel="n / d_head_vo", ylabel="d_head_qk / d_head_vo")
    axes.legend(loc="lower right", fontsize=7)


def _accuracy(table: pd.DataFrame, found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.7))
    left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
    looks = {"Con": (ORANGE, "s", 0.93), "Add": (PURPLE, "o", 1.07)}
    for name, (colour, marker, shift) in looks.items():
        of = table[table["heads"] == name]
        left.scatter(of["d_head_qk"] * shift, of["accuracy"], s=10, color=colour, alpha=0.5,
                     linewidth=0, label=f"{name}, a seed")  # fmt: skip
        cells = found["accuracy"][name]
        places = np.array([int(d) for d in cells]) * shift
        _bars(left, places, list(cells.values()), colour, marker, f"{name}, mean and 95 %")
    left.set_xscale("log", base=2)
    left.set_xticks(places := [int(d) for d in found["accuracy"]["Con"]], labels=places)
    left.minorticks_off()
    left.set(xlabel="d_head_qk", ylabel="test accuracy")
    left.set_title(f"Accuracy, {found['n_seeds']} seeds")
    left.legend(ncols=2, loc="lower left")
    left.set_ylim(0.65, None)
    n_sets = len(found["slopes_of_the_paper"]["Con"])
    rows = [("Con", "slope_of_con"), ("Add", "slope_of_add")]
    for place, (name, key) in enumerate(rows):
        colour, marker, _ = looks[name]
        paper = list(found["slopes_of_the_paper"][name].values())
        right.scatter(paper, np.full(len(paper), 2 * place + 1), s=14, marker="x", color=colour,
                      label=None)  # fmt: skip
        one = found["compared"][key]
        low, high = one["interval"]
        right.errorbar(one["mean"], 2 * place, xerr=[[one["mean"] - low], [high - one["mean"]]],
                       fmt=marker, color=colour, capsize=3)  # fmt: skip
    right.axvline(0, color=LINE, linewidth=1)
    right.set_yticks(range(4), ["Con, here", "Con, paper", "Add, here", "Add, paper"])
    right.invert_yaxis()
    right.set(xlabel="slope of accuracy for each doubling")
    right.set_title(f"Slopes, here (95 %) and in the\npaper's {n_sets} sets of texts")
    headline(
        figure,
        "A small d_head_qk costs no accuracy here, and the fall of the paper's Con isn't seen",
    )
    return figure


def _bars(
    axes: Axes,
    places: np.ndarray,
    cells: list[dict[str, Any]],
    colour: str,
    marker: str,
    label: str,
) -> None:
    mean = np.array([cell["mean"] for cell in cells])
    low, high = np.array([cell["interval"] for cell in cells]).T
    axes.errorbar(places, mean, yerr=[mean - low, high - mean], fmt=f"{marker}-", capsize=3,
                  color=colour, linewidth=1, label=label)  # fmt: skip
