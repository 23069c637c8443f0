"""Conclusions and figures of the runs on frequent, noisy and contradictory facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from experiments.common.conclusions import with_mean
from experiments.common.drawing import REFERENCE, estimates, headline

# H2, H3 and H4: what the whole interval has to be above
CORRELATION, SURVIVES, SETS = 0.8, 0.95, 0.9
NOISE = "0.3"
# frequent facts first, in so many groups
GROUPS = 5


def conclusions(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Correlations, shares that survive, sets known, and the verdicts."""
    frequency, noise, sets = (_of[name](tables[name]) for name in _of)

    def verdict(found: dict[str, Any], above: float) -> str:
        low = found["interval"][0] if found["interval"] else 0.0
        return "holds here" if low > above else "not seen here"

    return {
        "frequency": frequency,
        "noise": noise,
        "sets": sets,
        "hypotheses": {
            "H2": verdict(frequency["1.0"]["correlation"], CORRELATION),
            "H3": verdict(noise["all layers"][NOISE]["clean"], SURVIVES),
            "H4": {
                name: verdict(of["known"], SETS)
                for name, of in sets["all layers"].items()
                if name.endswith("facts")
            },
        },
    }


def frequency_numbers(facts: pd.DataFrame) -> dict[str, Any]:
    """By the exponent, the correlation over the facts of each database, and recall by frequency."""
    ladder = [name for name in map(str, facts) if name.startswith("d") and "-h" in name]
    found: dict[str, Any] = {}
    for exponent, part in facts.groupby("exponent"):
        each = [_of_database(of, ladder) for _, of in part.groupby("database_id", sort=False)]
        databases = pd.DataFrame({"database_id": range(len(each))})
        starts = part[ladder].to_numpy().max()
        found[str(exponent)] = {
            "correlation": with_mean([one[0] for one in each], databases),
            "recalled": [
                with_mean([one[1][group] / starts for one in each], databases)
                for group in range(GROUPS)
            ],
            "by_layer": {name: float(part[name].mean() / starts) for name in ladder},
            "correlation_in_layer": {
                name: with_mean([one[2][name] for one in each], databases) for name in ladder
            },
        }
    return found


def _of_database(
    facts: pd.DataFrame, ladder: list[str]
) -> tuple[float, list[float], dict[str, float]]:
    """Correlation, runs that recall each group of facts, and correlations within layers."""
    weight = facts["weight"].to_numpy()
    resistance = facts[ladder].mean(axis=1).to_numpy()
    order = np.argsort(-weight)
    groups = [float(resistance[of].mean()) for of in np.array_split(order, GROUPS)]
    within = {
        # a layer that recalls all facts, or none, orders none
        name: float(spearmanr(facts[name], weight)[0]) if facts[name].nunique() > 1 else 0.0
        for name in ladder
    }
    return float(spearmanr(resistance, weight)[0]), groups, within


def _by_layer(table: pd.DataFrame, cells: Any) -> dict[str, Any]:
    """Cells of all layers that hold their clean database, and of each."""
    asked = table.drop_duplicates(["layer_id", "database_id"])
    held = table[table["held"]]
    return {
        "pairs": len(asked),
        "held": int(asked["held"].sum()),
        "all layers": cells(held),
        # of one layer the runs share nothing: each is of another database
        **{
            str(name): cells(of.drop(columns="layer_id"))
            for name, of in held.groupby("layer_id", sort=False)
        },
    }


def _noise(table: pd.DataFrame) -> dict[str, Any]:
    def cells(runs: pd.DataFrame) -> dict[str, Any]:
        return {
            f"{share:g}": {
                name: with_mean(of[name], of)
                for name in ("clean", "majority", "sets", "divergence", "clean_is_majority")
            }
            for share, of in runs.groupby("share")
        }

    return _by_layer(table, cells)


def _sets(table: pd.DataFrame) -> dict[str, Any]:
    def cells(runs: pd.DataFrame) -> dict[str, Any]:
        return {
            f"{m:.0f} {kind}, as many {same}": {
                "known": with_mean(of["sets"] == 1, of),
                "sets": with_mean(of["sets"], of),
                "divergence": with_mean(of["divergence"], of),
                "majority": with_mean(of["majority"], of) if kind == "falling" else None,
            }
            for (m, kind, same), of in runs.groupby(["objects", "kind", "same"], sort=False)
        }

    return _by_layer(table, cells)


_of = {"frequency": frequency_numbers, "noise": _noise, "sets": _sets}


def drawn(tables: dict[str, pd.DataFrame], found: dict[str, Any]) -> dict[str, Figure]:
    """Recall by frequency, and what survives noise."""
    figure = Figure(figsize=(WIDTH, 3.4))
    left, right = figure.subplots(1, 2)
    _by_frequency(left, found["frequency"])
    _by_noise(right, found["noise"])
    one, noise = found["frequency"]["1.0"]["correlation"], found["noise"]["all layers"]
    headline(
        figure,
        f"Rare facts are lost first (rank correlation {one['mean']:.2f} by Zipf's law), and "
        f"{100 * noise[NOISE]['clean']['mean']:.0f} %\nof clean objects survive a noise of {NOISE}",
    )
    return {"recalled": figure}


def _by_frequency(axes: Axes, found: dict[str, Any]) -> None:
    for (exponent, of), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        estimates(
            axes, range(1, GROUPS + 1), of["recalled"], colour=colour, marker=marker,
            label=f"s = {exponent}", line="-",
        )  # fmt: skip
    axes.set(xlabel="fifth of the facts, frequent first", ylabel="runs that recall a fact")
    axes.set_title("frequency", fontsize=9)
    axes.set_xticks(range(1, GROUPS + 1))
    axes.legend()


def _by_noise(axes: Axes, found: dict[str, Any]) -> None:
    cells = {name: of for name, of in found.items() if isinstance(of, dict) and of}
    for (name, of), colour, marker in zip(cells.items(), COLOURS, MARKERS, strict=False):
        shares = [float(share) for share in of]
        each = [one["clean"] for one in of.values()]
        estimates(axes, shares, each, colour=colour, marker=marker, label=name, line="-")
    axes.axhline(
        SURVIVES, color=REFERENCE, linewidth=0.8, label=f"{100 * SURVIVES:.0f} %, asked by H3"
    )
    axes.set_title("noise", fontsize=9)
    axes.set(xlabel="noise", ylabel="clean objects with the largest logit")
    axes.legend()
