"""Figures of the experiment on completion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import KINDS, REFERENCE, estimates
from experiments.completion.conclusions import CLAIMED, recalled
from experiments.completion.foretold import RANKS, RIVALS

SAID = {"argmax": "argmax", "p50": "p > 0.5", "p95": "p ≥ 0.95"}
LABELS = {"unknown": "p of unknown", "unsure": "unsure, not taught it"}
AGAINST = {"facts": "facts taught", "test": "test facts"}
BLOCKS = ("paper", "shared", "tables", "own objects", "small")


def figures(runs: pd.DataFrame, splits: pd.DataFrame, found: dict[str, Any]) -> dict[str, Figure]:
    """Artefacts by layer; test facts by what is added to the rank; areas under the curve."""
    return {
        "artefacts": _artefacts(runs, found), "added": _added(runs, splits),
        "gains": _gains(found), "unknown": _unknown(found),
    }  # fmt: skip


def _artefacts(runs: pd.DataFrame, found: dict[str, Any]) -> Figure:
    size = (
        runs[runs["pairs_tokens"].notna()]
        .groupby("layer_id")["n_all_parameters"]
        .median()
        .sort_values()
    )
    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        of = found["artefacts"]["paper"][kind]
        for (among, text), line in zip(
            (("roles", "subject and predicate"), ("tokens", "any two tokens")),
            ("-", "--"), strict=True,
        ):  # fmt: skip
            for at, colour, marker in zip(SAID, COLOURS, MARKERS, strict=False):
                estimates(
                    ax, size.to_numpy(), [of[among][at]["by_layer"][name] for name in size.index],
                    colour=colour, marker=marker, line=line, hollow=among == "tokens",
                    label=f"{text}, {SAID[at]}",
                )  # fmt: skip
        ax.axhspan(*CLAIMED, color="0.92", zorder=0, label="5 to 20, as claimed")
        ax.set(xscale="log", yscale="symlog", xlabel="all parameters (median)")
        ax.set_xticks(size, [f"{n:.0f}" for n in size], rotation=90)
        ax.set_xticks([], minor=True)
        ax.set_title(f"paper's kind, {kind} recipe")
    axes[0].set_ylabel("artefacts a training triple")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _added(runs: pd.DataFrame, splits: pd.DataFrame) -> Figure:
    """A point for each database and share: what is added to the rank, and test facts right."""
    plain = recalled(runs[(runs["taught"] == "facts") & (runs["until"] == "recalled")])
    joined = plain.merge(splits, on=["database_id", "held_out"])
    joined["right"] = joined["test_right"] / joined["n_test"] - joined["chance"]
    joined["added"] = (joined["all_upper"] - joined["train_upper"]) / joined["n_test"]
    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        points = joined[joined["kind"] == kind].groupby(["block", "database_id", "held_out"])
        mean = points[["added", "right"]].mean().reset_index()
        for block, colour, marker in zip(BLOCKS, COLOURS, MARKERS, strict=False):
            of = mean[mean["block"] == block]
            ax.plot(of["added"], of["right"], ls="none", marker=marker, ms=3, color=colour,
                    alpha=0.5, label=block)  # fmt: skip
        ax.axhline(0, color=REFERENCE, lw=0.8, label="chance")
        ax.set_title(f"{kind} recipe")
        ax.set_xlabel("added to the effective rank a test fact (upper ends)")
    axes[0].set_ylabel("test facts right, above chance")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _gains(found: dict[str, Any]) -> Figure:
    names = (*RANKS, *RIVALS)
    figure = Figure(figsize=(WIDTH, 0.5 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, kind in zip(axes, KINDS, strict=True):
        for i, (block, colour, marker) in enumerate(zip(BLOCKS, COLOURS, MARKERS, strict=False)):
            gains = found["completion"].get(block, {}).get(kind, {}).get("gain_alone", {})
            places = [names.index(name) + 0.14 * (i - 2) for name in gains]
            if places:
                estimates(ax, places, list(gains.values()), colour=colour, marker=marker,
                          label=block, across=True)  # fmt: skip
        ax.axvline(0, color=REFERENCE, lw=0.8, label="constants alone")
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel("nats gained a test fact")
        ax.set_title(f"{kind} recipe")
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _unknown(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.42 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    blocks = [block for block in BLOCKS if block in found["unknown"]]
    for ax, kind in zip(axes, KINDS, strict=True):
        for i, (score, against) in enumerate(
            (score, against) for score in ("unknown", "unsure") for against in ("facts", "test")
        ):
            of = [found["unknown"][block][kind]["all"] for block in blocks]
            estimates(
                ax, np.arange(len(blocks)) + 0.12 * (i - 1.5),
                [each[f"auroc_{score}_{against}"] for each in of],
                colour=COLOURS[i], marker=MARKERS[i], hollow=score == "unsure",
                label=f"{LABELS[score]}, against {AGAINST[against]}",
            )  # fmt: skip
        ax.axhline(0.5, color=REFERENCE, lw=0.8, label="a constant")
        ax.set_xticks(range(len(blocks)), blocks)
        ax.set_title(f"{kind} recipe")
    axes[0].set_ylabel("area under the ROC curve")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
