"""The page about a sweep: accuracies, a law with its band, what failed, and provenance."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from capacity.checks import Seed, integer_seed
from capacity.evaluator.columns import accuracy_column
from capacity.evaluator.laws.grid import accuracy_grid
from capacity.evaluator.laws.law import memorised_runs
from capacity.layer.recall import check_threshold
from capacity.optional import needed_by
from capacity.report.drawing.pictures import grid_pictures, hexadecimal, sequential
from capacity.report.rendering import Column, Table, rendered, sentence, table
from capacity.report.sweep_numbers import (
    accuracy_curves,
    decoders,
    exponents,
    failures,
    fitted_law,
    law_chart,
    named_thresholds,
    statuses,
)
from capacity.sweep.storage.manifest import manifests
from capacity.sweep.storage.runs_table import load

# characters of a plan
_LONGEST = 20_000
_NO_LAW = "Its capacity would be that of equation (9), which decoders don't have."


def sweep_report(folder: str | os.PathLike[str], *, tau: float = 0.95, seed: Seed = 0) -> str:
    """Write a page about a sweep that can be sent to a colleague, also while the sweep runs.

    It has the accuracy grids at all thresholds side by side (Wong 2025, Figure 3), accuracies over
    both rank bounds, the capacity law with its band (`capacity.evaluator.capacity_factor`), the
    runs that failed, and versions, plan and seeds. The computer's name isn't on it.

    Parameters
    ----------
    folder : path
        Folder of the sweep.
    tau : float
        Threshold at which runs memorise, for the law: one that the runs were scored at.
    seed : int or numpy.random.Generator
        Seed of the resamples for intervals.

    Returns
    -------
    str
        The page, one HTML file that loads nothing.

    Raises
    ------
    SweepError
        If the folder holds no sweep, no shard is done yet, or a file is damaged.
    InvalidArgumentError
        If `tau` isn't a threshold that the runs were scored at.
    MissingExtraError
        Without pandas (extra ``layers``), or jinja2 (extra ``report``).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.sweep import make_plan, run_sweep
    >>> layers = {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [2]}
    >>> databases = {"synthetic": {"count": 1, "max_triples": 6}}
    >>> plan = make_plan({"databases": databases, "layers": layers, "recipe": {"epochs": 5}})
    >>> with TemporaryDirectory() as folder:
    ...     _ = run_sweep(plan, folder)
    ...     page = sweep_report(folder)
    >>> "2 runs" in page.replace("</data>", ""), "<script src" in page
    (True, False)
    """
    check_threshold(tau)
    with needed_by("A report of a sweep"):
        import pandas as pd  # noqa: F401
    held, runs, start = manifests(Path(folder)), load(folder), integer_seed(seed)
    named = named_thresholds(runs)
    # equation (9), an axis of the grids and the law's capacity, is about the paper's layer
    of_decoders = "n_layers" in runs
    # refuses a threshold that the runs weren't scored at
    accuracy_grid(runs.assign(layer_rank_bound=0) if of_decoders else runs, tau)
    grids = {} if of_decoders else {n: accuracy_grid(runs, each) for n, each in named.items()}
    pictures = grid_pictures(grids) if grids else ()
    law = _NO_LAW if of_decoders else fitted_law(runs, tau, start)
    recipes = runs["recipe"].drop_duplicates().sort_values().tolist()
    name = Path(folder).resolve().name
    return rendered(
        "sweep.html.j2",
        title=f"The sweep {name} on one page",
        n_runs=len(runs),
        n_planned=sum(one["n_runs"] for one in held),
        n_databases=runs["database_id"].nunique(),
        n_layers=runs["layer_id"].nunique(),
        n_memorised=int(memorised_runs(runs, tau).sum()),
        n_diverged=int((runs["status"] == "diverged").sum()),
        n_tied=int((runs["tied"] > 0).sum()),
        mean=float(runs[accuracy_column(tau)].where(runs["status"] != "diverged").mean()),
        tau=tau,
        recipes=recipes,
        decoders=decoders(runs, tau) if of_decoders else None,
        pictures=pictures,
        undrawn=[one for one in grids if one not in {each.title for each in pictures}],
        scale=[(hexadecimal(sequential(i / 20)), i / 20) for i in range(21)],
        curves=accuracy_curves(runs, named, tau, start),
        law=None if isinstance(law, str) else law,
        no_law=law if isinstance(law, str) else "",
        drawn=None if isinstance(law, str) else law_chart(runs, law, tau),
        exponents=None if isinstance(law, str) else exponents(runs, tau, start),
        statuses=statuses(runs, recipes),
        failures=failures(runs),
        provenance=_provenance(held, runs, recipes),
        plans=[json.dumps(one.get("config"), indent=1)[:_LONGEST].split("\n") for one in held],
    )  # fmt: skip


def _provenance(held: Sequence[Mapping[str, Any]], runs: Any, recipes: Sequence[str]) -> Table:
    """Versions and keys of each manifest, and what the runs record of themselves."""
    rows: list[tuple[str, Any]] = []
    for number, one in enumerate(held, start=1):
        which = f" ({number})" if len(held) > 1 else ""
        rows += [(f"plan{which}", one["plan_key"]), (f"question{which}", one["question"])]
        rows += [(f"{key}{which}", value) for key, value in one["computed_by"].items()]
        begun = one.get("begun_on")
        if isinstance(begun, dict) and isinstance(begun.get("commit"), str):
            rows.append((f"commit{which}", begun["commit"]))
    seeds = sorted(set(runs["seed"].tolist()))
    rows.append(("seeds of weights", ", ".join(map(str, seeds))))
    rows += [(f"recipe {n}", text) for n, text in enumerate(recipes, start=1)]
    return table(
        "provenance",
        "Versions, plan and seeds",
        [Column("what", "What the runs depend on."), Column("value", "Its value.")],
        ((what, sentence(str(value))) for what, value in rows),
    )
