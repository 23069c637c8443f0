"""Figures of the factorial of databases."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.drawing import KINDS, estimates

BLOCKS = ("copies", "own objects", "tables")
KINDS_OF_STRUCTURE = ("same", "relabelled", "classes", "group", "latin", "pairs")


def figures(found: dict[str, Any]) -> dict[str, Figure]:
    """Shares memorised by the share that is copied, and a forest of effects."""
    return {"copies": _copies(found), "effects": _effects(found)}


def _copies(found: dict[str, Any]) -> Figure:
    figure = Figure(figsize=(WIDTH, 0.6 * WIDTH), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, kind in zip(axes, KINDS, strict=True):
        for ax, block in zip(row, BLOCKS, strict=True):
            cells = [cell for cell in found["cells"] if cell["block"] == block]
            without = [cell for cell in cells if cell["copies"] == 0]
            for structure, colour, marker in zip(
                KINDS_OF_STRUCTURE, COLOURS, MARKERS, strict=False
            ):
                of = without + [c for c in cells if c["structure"] == structure and c["copies"] > 0]
                if len(of) == len(without):
                    continue
                estimates(
                    ax, [c["copies"] for c in of],
                    [c["memorised"][kind]["argmax"] for c in of if kind in c["memorised"]],
                    colour=colour, marker=marker, line="-", label=structure,
                )  # fmt: skip
            ax.set_title(f"{block}, {kind}")
    for ax in axes[1]:
        ax.set_xlabel("share that a rule determines")
        ax.legend(frameon=False, fontsize="small")
    for ax in axes[:, 0]:
        ax.set_ylabel("runs that memorise")
    return figure


def _effects(found: dict[str, Any]) -> Figure:
    of_block = found["effects"]["copies"]
    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, which in zip(axes, ("alone", "together"), strict=True):
        names: list[str] = []
        for i, (kind, colour) in enumerate(zip(KINDS, COLOURS, strict=False)):
            effects = of_block[kind]["argmax"][which]
            names = list(effects)
            estimates(
                ax, [place + 0.2 * i - 0.1 for place in range(len(names))],
                list(effects.values()), colour=colour, label=f"{kind} recipe", across=True,
            )  # fmt: skip
        ax.axvline(0, color="0.7", lw=0.8)
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel("log odds a standard deviation")
        ax.set_title("each measure alone" if which == "alone" else "all together")
    axes[0].invert_yaxis()
    axes[0].legend(frameon=False, fontsize="small")
    return figure
