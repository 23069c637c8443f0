"""Tables and curves of a sweep's page, from the table of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import accuracy_column, thresholds
from capacity.evaluator.laws.bootstrap import CLUSTERS, mean_interval
from capacity.evaluator.laws.grid import DATABASE_BIN, LAYER_BIN, accuracy_grid
from capacity.evaluator.laws.law import CapacityFactor, capacity_factor, memorised_runs
from capacity.evaluator.laws.size_law import LAYER_SIZES, fit_size_law
from capacity.layer.recall import Threshold
from capacity.report.drawing.line_charts import Chart, Dot, Point, Scale, chart
from capacity.report.drawing.pictures import hexadecimal, sequential
from capacity.report.rendering import Column, Table, table

if TYPE_CHECKING:
    import pandas as pd

# resamples of each interval
N_RESAMPLES = 200
# capacities at which the law's band is computed
_STEPS = 12
_MOST_ROWS = 50


def named_thresholds(runs: pd.DataFrame) -> dict[str, Threshold]:
    """Thresholds that runs were scored at, by their names, probabilities before argmaxes.

    Examples
    --------
    >>> import pandas as pd
    >>> named_thresholds(pd.DataFrame(columns=["accuracy_argmax", "accuracy_p50", "accuracy_p95"]))
    {'p > 0.5': 0.5, 'p >= 0.95': 0.95, 'argmax': 'argmax'}
    """
    words: dict[str, tuple[str, Threshold]] = {
        "argmax": ("argmax", "argmax"),
        "argmax_paper": ("argmax, ties count", "argmax_paper"),
    }
    found = thresholds(runs)
    numbers = sorted(float(one) for one in found if one not in words)
    named: dict[str, Threshold] = {
        f"p {'>' if tau == 0.5 else '>='} {tau:g}": tau for tau in numbers
    }
    named.update(words[one] for one in found if one in words)
    return named


def accuracy_curves(
    runs: pd.DataFrame, named: Mapping[str, Threshold], tau: Threshold, seed: int
) -> tuple[Chart, ...]:
    """Mean accuracy over bins of the database's rank bound, and of the layer's.

    Intervals are of 95 %, by resampling databases and layers; diverged runs have no accuracy.

    Parameters
    ----------
    runs : DataFrame
        The table of runs.
    named : mapping of str to Threshold
        Thresholds by name.
    tau : float, 'argmax' or 'argmax_paper'
        The one whose intervals are drawn as a band.
    seed : int
        Seed of the resamples.
    """
    done = runs[runs["status"] != "diverged"]
    axes = (
        ("database_rank_bound", DATABASE_BIN, "database rank bound (Prop. 2.1)"),
        ("layer_rank_bound", LAYER_BIN, "layer rank bound (eq. 9)"),
    )
    found: list[Chart] = []
    for column, width, across in axes if len(done) else ():
        if done[column].isna().all():
            # of decoders
            continue
        bins = (-(-done[column] // width) * width).to_numpy()
        curves = [
            (name, _points(done, bins, each, name, width, seed)) for name, each in named.items()
        ]
        title = f"Mean accuracy over the {across.split(' (')[0]}"
        banded = next((name for name, each in named.items() if each == tau), "")
        scale = Scale(float(bins.max()), 1.0)
        found.append(chart(title, across, "mean accuracy", curves, scale, banded=banded))
    return tuple(found)


def _points(
    runs: pd.DataFrame, bins: Any, tau: Threshold, name: str, width: int, seed: int
) -> list[Point]:
    column, points = accuracy_column(tau), []
    for end in np.unique(bins).tolist():
        part = runs[bins == end]
        mean = float(part[column].mean())
        low, high = mean_interval(
            part[column], part[list(CLUSTERS)], n_resamples=N_RESAMPLES, seed=seed
        )
        says = (
            f"{name}, bounds {end - width + 1} to {end}: mean accuracy {mean:.3f} "
            f"[{low:.3f}, {high:.3f}] of {len(part)} runs."
        )
        points.append(Point(float(end), mean, low, high, says))
    return points


def fitted_law(runs: pd.DataFrame, tau: Threshold, seed: int) -> CapacityFactor | str:
    """Fit the capacity law with intervals; return the reason where it can't be fitted."""
    bounds = runs["layer_rank_bound"]
    at = np.unique(np.linspace(bounds.min(), bounds.max(), _STEPS).round(3)).tolist()
    try:
        return capacity_factor(runs, tau, at=at, n_resamples=N_RESAMPLES, seed=seed)
    except InvalidArgumentError as error:
        return str(error)


def law_chart(
    runs: pd.DataFrame, law: CapacityFactor, tau: Threshold
) -> tuple[Chart, tuple[Dot, ...]]:
    """The law with its band, and the share of runs that memorise in each cell of the grid."""
    # to the ends of the last bins
    scale = Scale(
        float(-(-runs[law.capacity].max() // LAYER_BIN) * LAYER_BIN),
        float(-(-runs[law.size].max() // DATABASE_BIN) * DATABASE_BIN),
    )
    points = [
        Point(
            at, at * ratio, at * law.ratio_intervals[at][0], at * law.ratio_intervals[at][1],
            f"At a layer rank bound of {at:g}, half of the runs memorise at a database rank bound "
            f"of {at * ratio:.1f} [{at * law.ratio_intervals[at][0]:.1f}, "
            f"{at * law.ratio_intervals[at][1]:.1f}].",
        )
        for at, ratio in law.ratios.items()
    ]  # fmt: skip
    held = memorised_runs(runs, tau).astype(float)
    # a diverged run doesn't memorise, and counts here
    cells = accuracy_grid(runs.assign(**{accuracy_column(tau): held, "status": "completed"}), tau)
    most = max(1, int(cells["n_runs"].max()))
    dots = [
        Dot(
            *scale.at(row["layer_rank_bin"] - LAYER_BIN / 2,
                      row["database_rank_bin"] - DATABASE_BIN / 2),
            round(3 + 7 * (row["n_runs"] / most) ** 0.5, 2),
            f"Layer rank bound up to {int(row['layer_rank_bin'])}, database rank bound up to "
            f"{int(row['database_rank_bin'])}: {row['accuracy']:.1%} of {int(row['n_runs'])} runs "
            "memorise.",
            hexadecimal(sequential(row["accuracy"])),
        )
        for row in cells.to_dict("records")
    ]  # fmt: skip
    drawn = chart(
        "Where half of the runs memorise", "layer rank bound (eq. 9)",
        "database rank bound (Prop. 2.1)", [("the law", points)], scale,
        banded="the law",
    )  # fmt: skip
    return drawn, tuple(dots)


def exponents(runs: pd.DataFrame, tau: Threshold, seed: int) -> Table | None:
    """Exponents of each size of a layer in the number of triples that half of the runs memorise.

    None where they can't be fitted.
    """
    columns = [name for name in LAYER_SIZES if runs[name].nunique() > 1]
    try:
        found = fit_size_law(runs, columns, tau, n_resamples=N_RESAMPLES, seed=seed)
    except InvalidArgumentError:
        return None
    ends = found.exponent_intervals()
    return table(
        "exponents",
        f"Exponents of the layer's sizes in the number of triples that half of the runs memorise, "
        f"with intervals that hold at once with 95 % confidence ({len(found.resampled)} resamples)",
        [Column("size", "A size of the layer."),
         Column("exponent", "Its exponent in the number of triples.", "number"),
         Column("from", "Lower end of its interval.", "number"),
         Column("to", "Upper end of its interval.", "number")],
        ((name, value, *ends[name]) for name, value in found.law.exponents.items()),
    ) if columns else None  # fmt: skip


def decoders(runs: pd.DataFrame, tau: Threshold) -> Table:
    """Table of what each decoder of a sweep holds, over all databases and recipes."""
    held = memorised_runs(runs, tau)
    rows: list[tuple[Any, ...]] = []
    for name, part in runs.assign(held=held).groupby("layer_id", sort=True):
        scored = part[part["status"] != "diverged"]
        rows.append(
            (name, int(part["n_parameters"].iloc[0]), len(part), float(part["held"].mean()),
             float(part["share_of_starts"].mean()), float(scored[accuracy_column(tau)].mean()))
        )  # fmt: skip
    return table(
        "decoders",
        "What each decoder holds, over all databases and recipes",
        [Column("decoder", "Its sizes and options."),
         Column("parameters", "Weights beside embeddings and unembedding.", "number"),
         Column("runs", "Runs that are done.", "number"),
         Column("memorised", f"Share of the runs whose kept start holds every fact at {tau}.",
                "number"),
         Column("share of starts", "Mean share of the starts that hold the database at the plan's "
                "threshold.", "number"),
         Column("accuracy", f"Mean share of facts that are recalled at {tau}.", "number")],
        rows,
    )  # fmt: skip


def statuses(runs: pd.DataFrame, recipes: Sequence[str]) -> Table:
    """Table of how runs ended, by recipe, and how many have tied facts."""
    rows = []
    for number, recipe in enumerate(recipes, start=1):
        part = runs[runs["recipe"] == recipe]
        ended = [
            int((part["status"] == one).sum()) for one in ("memorised", "completed", "diverged")
        ]
        rows.append((number, len(part), *ended, int((part["tied"] > 0).sum())))
    return table(
        "statuses",
        "How runs ended, by recipe",
        [Column("recipe", "Number of the recipe, under provenance.", "number"),
         Column("runs", "Runs that are done.", "number"),
         Column("memorised", "Stopped early: every fact passed the recipe's stop_tau.", "number"),
         Column("completed", "Trained for all epochs.", "number"),
         Column("diverged", "The loss became infinite or no number: no accuracy.", "number"),
         Column("with ties", "Runs with facts whose object shares the largest logit: argmax, which "
                "needs a unique maximum, doesn't count them, and the paper's does.", "number")],
        rows,
    )  # fmt: skip


def failures(runs: pd.DataFrame) -> Table:
    """Runs that diverged, and those with most ties."""
    bad = runs[(runs["status"] == "diverged") | (runs["tied"] > 0)]
    worst = bad.assign(bad=bad["status"] != "diverged").sort_values(
        ["bad", "tied", "run_key"], ascending=[True, False, True]
    )
    cut = f", {_MOST_ROWS} of {len(bad):,}" if len(bad) > _MOST_ROWS else ""
    keys = ("run_key", "status", "database_id", "layer_id", "seed", "epochs", "loss", "tied",
            "accuracy_argmax", "accuracy_argmax_paper")  # fmt: skip
    rows = (
        tuple(row[key][:12] if key == "run_key" else row[key] for key in keys)
        for row in worst.head(_MOST_ROWS).to_dict("records")
    )
    return table(
        "failures",
        f"Runs that diverged, and those with ties{cut}",
        [Column("run", "Beginning of the run's key."), Column("status", "How it ended."),
         Column("database", "Its database."), Column("layer", "Its layer."),
         Column("seed", "Seed of its initial weights.", "number"),
         Column("epochs", "Epochs done.", "number"),
         Column("loss", "Last loss, in nats.", "number"),
         Column("tied", "Share of facts that are tied.", "number"),
         Column("argmax", "Share of facts with a unique largest logit.", "number"),
         Column("argmax, ties count", "The same, where ties count as right.", "number")],
        rows,
    )  # fmt: skip
