"""Measurements of trained layers beyond the columns of a sweep's table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from capacity.checks import require_integer
from capacity.errors import InvalidArgumentError, SweepError
from capacity.layer.engines.engine import Engine
from capacity.layer.engines.registry import engines_named, make_known
from capacity.progress import Progress
from capacity.sweep.estimates import TimeLeft
from capacity.sweep.plan import Plan, Run, task_seconds, tasks_of
from capacity.sweep.training.one_run import database_ranks, train_runs
from capacity.sweep.training.trained import layer_of
from capacity.sweep.workers.pool import Outcome, in_this_process, processes

if TYPE_CHECKING:
    pass

Measure: TypeAlias = "Callable[[Run, Any], Mapping[str, Any]]"


def measure_runs(
    runs: Sequence[Run],
    measure: Measure,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Train each run's layer, and add columns that a function computes from the layer.

    Nothing is stored before the end; use `run_sweep` for work of hours.

    Parameters
    ----------
    runs : sequence of Run
        Runs on CPUs, such as the ``runs`` of a `Plan`.
    measure : callable
        Called with a run and its trained layer; returns a mapping of further columns. With more
        than one worker it must be defined at the top level of a module, so that another process
        can import it, or be a partial of such a function.
    workers : int
        Number of processes; 1: this one only. The table doesn't depend on it.
    progress : callable, optional
        Called with ("ranks", n, total, None) while the ranks of databases are bounded, then with
        ("runs", n, total, seconds left) after each task.

    Returns
    -------
    DataFrame
        One row per run, in the order of `runs`.

    Raises
    ------
    SweepError
        If a run fails.
    InvalidArgumentError
        If `workers` is below 1, or a run is given twice.

    Examples
    --------
    Layers with one head and with two, and the ranks of their embeddings:

    >>> import torch
    >>> from capacity.sweep import make_plan
    >>> layers = {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [2]}
    >>> plan = make_plan(
    ...     {
    ...         "databases": {"synthetic": {"count": 1, "max_triples": 6}},
    ...         "layers": layers,
    ...         "recipe": {"epochs": 5},
    ...         "compute": {"engine": "reference"},
    ...     }
    ... )
    >>> def measure(run, layer):
    ...     return {"rank_of_W_E": int(torch.linalg.matrix_rank(layer.W_E))}
    >>> table = measure_runs(plan.runs, measure)
    >>> table[["n_heads", "rank_of_W_E"]].to_numpy().tolist()
    [[1, 2], [2, 2]]
    """
    workers = require_integer("workers", workers)
    order = {run.key: i for i, run in enumerate(runs)}
    if len(order) < len(runs):
        raise InvalidArgumentError(
            f"`runs` must differ; {len(runs) - len(order)} of {len(runs)} are repeated. Pass each "
            "run once."
        )
    databases = {run.database.facts_sha256: (run.database,) for run in runs}
    shards = Plan(tuple(runs), {}).shards
    seconds = task_seconds(runs, workers=workers)
    tasks = dict(enumerate(task for shard in shards for task in tasks_of(shard, seconds)))
    tell = progress or (lambda _what, _done, _total, _left: None)
    rows: list[dict[str, Any]] = []
    ranks: dict[str, Any] = {}
    with processes(workers) if workers > 1 else nullcontext(in_this_process) as execute:
        for outcome in execute(database_ranks, databases):
            ranks[outcome.name] = _value(outcome, "The ranks of a database can't be bounded")
            tell("ranks", len(ranks), len(databases), None)
        known = {
            i: (task, {run.database.facts_sha256: ranks[run.database.facts_sha256] for run in task})
            for i, task in tasks.items()
        }
        left = TimeLeft(sum(run.seconds for run in runs))
        do = partial(_measured, measure=measure, engines=engines_named(run.engine for run in runs))
        for outcome in execute(do, known):
            rows += _value(outcome, "A run failed")
            left.done(sum(run.seconds for run in tasks[outcome.name]))
            tell("runs", len(rows), len(runs), left.seconds())
    in_order: list[dict[str, Any]] = sorted(rows, key=lambda row: order[row["run_key"]])
    return pd.DataFrame(in_order)


def _value(outcome: Outcome, failed: str) -> Any:
    if outcome.error is not None:
        raise SweepError(f"{failed}: {outcome.error}")
    return outcome.value


def _measured(
    runs: Sequence[Run],
    ranks: Mapping[str, Mapping[str, int]],
    *,
    measure: Measure,
    engines: Iterable[Engine],
) -> list[dict[str, Any]]:
    import torch

    make_known(engines)
    by_key = {run.key: run for run in runs}
    rows: list[dict[str, Any]] = []
    for row, trained in train_runs(runs, ranks=ranks):
        run = by_key[row["run_key"]]
        with torch.no_grad():
            rows.append({**row, **measure(run, layer_of(run, trained))})
    return rows
