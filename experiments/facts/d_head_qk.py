"""Effect of d_head_qk where nothing else changes: the open question of the paper's section 5.2.

    python -m experiments.facts.d_head_qk --run     (three minutes on two cores)
    python -m experiments.facts.d_head_qk --plot

Figure 4 averages over d_model, and d_head_qk = 6 needs d_model = 6: its columns differ in d_model.
Here slopes of the accuracy at tau = 0.95, and of memorising there, are taken with d_model left
free, as in the figure; held fixed, at 3 to 6; with the number of parameters held fixed; and with
equation (9) held fixed. All are by least squares, with the logarithm of the database rank bound
beside them. Errors are clustered by databases and by layers (Cameron, Gelbach and Miller 2011), and
the p-values of all slopes of both recipes are adjusted together (Holm 1979). Runs are those of
figures.py, and as many again with d_model 4 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.conclusions import adjusted, slopes_of
from experiments.common.drawing import KINDS, REFERENCE, estimates, headline, told, value_of
from experiments.common.harness import BEST, PLAIN, Tables, committed, main, paper_plan, sweep

HEADS = range(1, 7)
WIDTHS = (3, 4, 5, 6)
COLUMNS = ["database_id", "layer_id", "database_rank_bound", "layer_rank_bound", "d_model",
           "n_heads", "d_head_qk", "d_head_vo", "accuracy_p95", "status"]  # fmt: skip


def run(smoke: bool) -> Tables:
    """Layers with d_model 4 and 6 alone, by two recipes."""
    few: dict[str, Any] = (
        {"pairs": 300, "databases": 20, "epochs": 60} if smoke else {"pairs": 3000}
    )
    tables: Tables = {}
    for kind, recipe in (("plain", PLAIN), ("best", BEST)):
        parts = [
            sweep("d-head-qk", paper_plan(10 + d, recipe, layers={"d_model": [d]}, **few))
            for d in (4, 6)
        ]
        tables[kind] = pd.concat(parts)[COLUMNS]
    return tables


def numbers(tables: Tables) -> dict[str, Any]:
    """Slopes for one more dimension."""
    found: dict[str, Any] = {}
    for kind in ("plain", "best"):
        figures = _ready(committed("figures", kind)[COLUMNS])
        every = pd.concat([figures, _ready(tables[kind])], ignore_index=True)
        found[kind] = {
            "as_in_figure_4": _slopes(figures, "qk + vo"),
            "as_in_figure_4_by_d_head_vo": {
                str(vo): _slopes(figures[figures["vo"] == vo], "qk") for vo in HEADS
            },
            "at_fixed_d_model_and_n_heads": _slopes(every, "qk + vo + C(d_model):C(n_heads)"),
            "at_each_d_model": {str(d): _at(every[every["d_model"] == d]) for d in WIDTHS},
            "one_more_vo_for_one_less_qk_at_fixed_d_model_n_heads_parameters": _slopes(
                every, "vo + C(d_model):C(n_heads):C(both)", names=("vo",)
            ),
            "at_fixed_layer_rank_bound": _slopes(figures, "qk + C(bound)", names=("qk",)),
            "at_fixed_layer_rank_bound_and_d_model": _slopes(
                every, "qk + C(bound):C(d_model)", names=("qk",)
            ),
        }
        found[kind]["further_runs"] = len(tables[kind])
    adjusted(list(_every_slope(found)))
    return found


def _every_slope(found: Any) -> Iterator[dict[str, Any]]:
    """The slopes in a part of the conclusions."""
    if isinstance(found, dict):
        if "slope" in found:
            yield found
        else:
            for part in found.values():
                yield from _every_slope(part)


def _at(table: pd.DataFrame) -> dict[str, Any]:
    """Slopes at one d_model: over all, how that of qk changes with vo, and at each vo."""
    dims = range(1, int(table["vo"].max()) + 1)
    return {
        "accuracy": _slopes(table, "qk + vo + C(n_heads)"),
        "memorised": _slopes(table, "qk + vo + C(n_heads)", of="memorised"),
        "change_of_the_qk_slope_with_one_more_vo": _slopes(
            table, "qk * vo + C(n_heads)", names=("qk:vo",)
        ),
        "one_head": _slopes(table[table["n_heads"] == 1], "qk + vo"),
        "by_d_head_vo": {
            str(vo): _slopes(table[table["vo"] == vo], "qk + C(n_heads)") for vo in dims
        },
    }


def _ready(table: pd.DataFrame) -> pd.DataFrame:
    names = {"d_head_qk": "qk", "d_head_vo": "vo", "accuracy_p95": "accuracy",
             "layer_rank_bound": "bound"}  # fmt: skip
    renamed = table[table["status"] != "diverged"].rename(columns=names).reset_index(drop=True)
    return renamed.assign(
        both=renamed["qk"] + renamed["vo"],
        size=np.log(renamed["database_rank_bound"]),
        memorised=(renamed["accuracy"] == 1).astype(float),
    )


def _slopes(
    table: pd.DataFrame,
    terms: str,
    *,
    names: tuple[str, ...] = ("qk", "vo"),
    of: str = "accuracy",
) -> dict[str, Any]:
    return {
        **slopes_of(table, f"{of} ~ size + {terms}", names),
        "n_runs": len(table),
    }


def plot(tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Slopes of d_head_qk at each d_head_vo: with d_model free, and at each d_model."""
    figure = Figure(figsize=(WIDTH, 3.9))
    panels = figure.subplots(1, 2, sharey=True)
    held: list[dict[str, Any]] = []
    left_free: list[dict[str, Any]] = []
    for axes, kind in zip(panels, KINDS, strict=True):
        of = found[kind]
        ways = {"d_model left free, as in Figure 4": of["as_in_figure_4_by_d_head_vo"]}
        ways |= {f"d_model = {d}": of["at_each_d_model"][str(d)]["by_d_head_vo"] for d in (4, 6)}
        for number, (name, by_vo) in enumerate(ways.items()):
            (held if number else left_free).extend(one["qk"] for one in by_vo.values())
            slopes = {int(vo) + 0.2 * (number - 1): one["qk"] for vo, one in by_vo.items()}
            for sure in (True, False):
                some = {x: one for x, one in slopes.items() if _is_sure(one) == sure}
                estimates(
                    axes, list(some), list(some.values()), colour=COLOURS[number],
                    marker=MARKERS[number], hollow=not sure,
                )  # fmt: skip
            axes.plot([], [], MARKERS[number], color=COLOURS[number], label=name)
        axes.axhline(0, color=REFERENCE, linewidth=0.8, linestyle=":", label="no effect")
        free, fixed = (by_vo["1"]["qk"] for by_vo in (ways[name] for name in list(ways)[::2]))
        axes.set(
            title=f"{kind.capitalize()}, d_head_vo 1: {told(free, 3)} with d_model\n"
            f"left free, {told(fixed, 3)} at d_model 6",
            xlabel="d_head_vo",
        )
    panels[0].set_ylabel("accuracy for one more d_head_qk")
    handles, labels = panels[0].get_legend_handles_labels()
    hollow = Line2D([], [], marker="o", linestyle="none", markerfacecolor="white", color=REFERENCE)
    family = found[KINDS[0]]["as_in_figure_4"]["qk"]["comparisons"]
    figure.legend(
        [*handles, hollow],
        [*labels, f"hollow: p > 0.05 after Holm ({family} slopes)"],
        loc="outside lower center", ncols=3,
    )  # fmt: skip
    largest = [max(abs(value_of(one)) for one in some) for some in (held, left_free)]
    headline(
        figure,
        f"At d_model 4 and 6 slopes of d_head_qk are at most {largest[0]:.3f} in size; with it\n"
        f"left free, up to {largest[1]:.3f} (tau = 0.95; intervals over databases, layers)",
    )
    return {"slopes": figure}


def _is_sure(one: dict[str, Any]) -> bool:
    return one["p_holm"] is not None and one["p_holm"] < 0.05


if __name__ == "__main__":
    main("d_head_qk", run, numbers, plot)
