"""One run: train a layer from its starts, and write its row.

A row depends on its run alone: the generators are seeded from `Run.draw`, so that any engine
starts from the same weights, and one thread computes, so that the table is the same for any number
of workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capacity.database.facts import Database
from capacity.layer.engines.engine import Engine
from capacity.layer.engines.registry import Compute, make_known
from capacity.layer.model.config import AnyConfig, LayerConfig, layer_rank_assumed, layer_rank_upper
from capacity.layer.run.recipe import Recipe, Training
from capacity.progress import Progress
from capacity.sweep.plan import Run
from capacity.sweep.storage.manifest import environment
from capacity.sweep.storage.row_schema import (
    RANK_COLUMNS,
    layer_columns,
    recipe_columns,
    starts_columns,
)
from capacity.sweep.training.trained import Trained, Watch, layer_of
from capacity.sweep.training.tried import Kept, tried_runs

if TYPE_CHECKING:
    pass


def train_run(
    run: Run, *, ranks: Mapping[str, int] | None = None, progress: Progress | None = None
) -> tuple[dict[str, Any], Any]:
    """Train and score one layer.

    Parameters
    ----------
    run : Run
        Run to do; its database must be functional.
    ranks : mapping, optional
        Bounds of the database's rank, as `database_ranks` returns them; computed if omitted.
    progress : callable, optional
        Called with the number of epochs done and their total, if the engine reports them.

    Returns
    -------
    row : dict
        One row of the runs table.
    layer : AttentionLayer or Decoder
        The trained layer.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.

    Examples
    --------
    A plan of one run:

    >>> from capacity.sweep import make_plan
    >>> plan = make_plan(
    ...     {
    ...         "databases": {"synthetic": {"count": 1, "max_triples": 6}},
    ...         "layers": {"d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [2]},
    ...         "recipe": {"epochs": 5},
    ...         "compute": {"engine": "reference"},
    ...     }
    ... )
    >>> row, layer = train_run(plan.runs[0])
    >>> row["epochs"], row["n_parameters"], layer.W_E.shape[1]
    (5, 12, 2)
    """
    row, layer, _ = train_and_tell(run, ranks=ranks, progress=progress)
    return row, layer


def train_and_tell(
    run: Run,
    *,
    ranks: Mapping[str, int] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
) -> tuple[dict[str, Any], Any, Training]:
    """Train and score one layer, as `train_run` does, and return the history of the training too.

    Parameters
    ----------
    run, ranks, progress
        As `train_run` takes them.
    watch : callable, optional
        Called with the number of epochs done and the last known loss, as `capacity.layer.train`
        calls it.

    Returns
    -------
    row : dict
        One row of the runs table.
    layer : AttentionLayer or Decoder
        The trained layer.
    training : Training
        The outcome, with its history.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    """
    ((_, kept),) = tried_runs([run], None, progress, watch)
    training = replace(kept.training, starts=kept.tried)
    return _row(run, kept, ranks), layer_of(run, kept.trained), training


def train_runs(
    runs: Sequence[Run],
    *,
    ranks: Mapping[str, Mapping[str, Any]] | None = None,
    snapshots: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[dict[str, Any], Trained | None]]:
    """Train and score many layers, those that are trained together first.

    Torch isn't loaded for engines that can do without (`Engine.run_weights`).

    Parameters
    ----------
    runs : sequence of Run
        Runs to do; their databases must be functional.
    ranks : mapping, optional
        Results of `database_ranks`, by the SHA-256 of the facts; computed if omitted.
    snapshots : Path, optional
        Folder of snapshots, from which runs resume and to which they add; they stay there when a
        run is done. Runs that are trained together have none.
    progress : callable, optional
        Called with the number of epochs done and their total, if the engine reports them.

    Yields
    ------
    row : dict
        One row of the runs table.
    trained : AttentionLayer, Decoder, mapping of str to ndarray, or None
        The trained layer, or its weights (`layer_of`); None if the row is of a start that an
        earlier process trained, which can be with snapshots alone.

    Raises
    ------
    MultiValuedError
        If a database is multi-valued.
    """
    batches: dict[tuple[str, Recipe, Compute], list[Run]] = {}
    for run in runs:
        if run.is_grouped:
            batches.setdefault((run.engine, run.recipe, run.compute), []).append(run)
    for group in [*batches.values(), *([run] for run in runs if not run.is_grouped)]:
        for run, kept in tried_runs(group, snapshots, progress):
            known = None if ranks is None else ranks[run.database.facts_sha256]
            yield _row(run, kept, known), kept.trained


def timed_rows(
    runs: Sequence[Run],
    *,
    tell: Callable[[Iterable[Run]], None] | None,
    snapshots: Path | None,
    engines: Iterable[Engine],
) -> tuple[list[dict[str, Any]], dict[str, Any], float]:
    """Train some runs whose databases may not be bounded yet.

    Parameters
    ----------
    runs : sequence of Run
        The runs.
    tell : callable or None
        Called with each run when it is done.
    snapshots : Path or None
        As `train_runs` has them.
    engines : iterable of Engine
        Engines that the runs name, which a new process may not know.

    Returns
    -------
    rows : list of dict
        Rows of the runs table, without ranks.
    there : dict
        The environment that computed them.
    seconds : float
        How long it took.
    """
    start = time.perf_counter()
    make_known(engines)
    by_key = {run.key: run for run in runs}
    no_ranks = dict.fromkeys(RANK_COLUMNS)
    later = {run.database.facts_sha256: no_ranks for run in runs}
    rows: list[dict[str, Any]] = []
    for row, _ in train_runs(runs, ranks=later, snapshots=snapshots):
        rows.append(row)
        if tell is not None:
            tell([by_key[row["run_key"]]])
    return rows, environment(runs[0].device), round(time.perf_counter() - start, 3)


def _row(run: Run, kept: Kept, ranks: Mapping[str, int] | None) -> dict[str, Any]:
    """One row of the runs table, in the order of its columns (`storage.row_schema`)."""
    db = run.database
    k, q, v = db.shape
    return {
        "run_key": run.key,
        "database_id": run.database_id,
        "layer_id": run.layer.name,
        "seed": run.seed,
        "n_subjects": k,
        "n_predicates": q,
        "n_objects": v,
        "n_tokens": db.n_tokens,
        "n_triples": db.n_triples,
        **(database_ranks(db) if ranks is None else ranks),
        **layer_columns(run.layer),
        "n_parameters": run.layer.n_parameters,
        "n_embedding_parameters": run.layer.n_embedding_parameters(db.n_tokens),
        **_layer_ranks(run.layer, (k, q, v)),
        **recipe_columns(run.recipe),
        "engine": kept.training.engine,
        "variant": run.variant,
        "dtype": run.compute.dtype,
        "epochs": kept.training.epochs,
        "loss": kept.training.loss,
        "status": kept.training.status,
        **starts_columns(run.starts, kept.tried),
        **kept.scores,
    }


def _layer_ranks(layer: AnyConfig, shape: tuple[int, ...]) -> dict[str, int | None]:
    """Columns of a layer's rank; the tensor L is defined for plain layers alone."""
    if not isinstance(layer, LayerConfig):
        return {"layer_rank_bound": None, "layer_rank_upper": None}
    upper = layer_rank_upper(layer, shape) if layer.is_plain else None
    return {"layer_rank_bound": layer_rank_assumed(layer), "layer_rank_upper": upper}


def database_ranks(db: Database) -> dict[str, int]:
    """Columns of a database's rank: the bound of Proposition 2.1, and a certified interval."""
    # a process that hands out tasks needs neither this, nor what is compiled: a sweep bounds many
    # databases
    from capacity.rank.analysis import RankAnalysis

    import_module("numba")
    analysis = RankAnalysis(db)
    # a wider interval would be stored as if it were the one of a whole search
    interval = analysis.rank.uninterrupted()
    ranks = analysis.bounds.paper, interval.lower, interval.upper
    return dict(zip(RANK_COLUMNS, ranks, strict=True))
