"""Measure the layers of runs themselves, where the columns of a sweep's table don't say enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from capacity.errors import InvalidArgumentError, SweepError
from capacity.sweep.one_run import database_ranks, do_runs
from capacity.sweep.plan import Plan, Run
from capacity.sweep.pool import in_this_process, processes

if TYPE_CHECKING:
    from capacity.layer.model import AttentionLayer

Measure: TypeAlias = "Callable[[Run, AttentionLayer], Mapping[str, Any]]"


def measure_runs(
    runs: Sequence[Run],
    measure: Measure,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Train each run's layer, and add to its row what a function makes of the layer.

    Nothing is stored on the way: for what takes hours, `run_sweep` and its table are the place.

    Parameters
    ----------
    runs : sequence of Run
        Such as the ``runs`` of a `Plan`; on CPUs.
    measure : callable
        Given a run and its trained layer, returns more columns. With more than one worker it must
        be of a module, so that another process can import it, or a partial of such a function.
    workers : int
        Processes; 1: this one. The table doesn't depend on it.
    progress : callable, optional
        Is told how many runs are done, and how many there are.

    Returns
    -------
    DataFrame
        One row a run, in their order.

    Raises
    ------
    SweepError
        If a run fails.
    ValueError
        For a number of workers below 1, or a run that comes twice.
    """
    if workers < 1:
        raise InvalidArgumentError(f"`workers` must be at least 1; got {workers}.")
    order = {run.key: i for i, run in enumerate(runs)}
    if len(order) < len(runs):
        raise InvalidArgumentError(
            f"`runs` must differ; {len(runs) - len(order)} of {len(runs)} come again."
        )
    tasks = {i: (part, measure) for i, part in enumerate(Plan(tuple(runs), {}).shards)}
    rows: list[tuple[int, dict[str, Any]]] = []
    with processes(workers) if workers > 1 else nullcontext(in_this_process) as execute:
        for outcome in execute(_measured, tasks):
            if outcome.error is not None:
                raise SweepError(f"A run of part {outcome.name} failed: {outcome.error}")
            rows.extend((order[row["run_key"]], row) for row in outcome.value)
            if progress is not None:
                progress(len(rows), len(runs))
    return pd.DataFrame([row for _, row in sorted(rows, key=lambda pair: pair[0])])


def _measured(runs: Sequence[Run], measure: Measure) -> list[dict[str, Any]]:
    import torch

    databases = {run.database.facts_sha256: run.database for run in runs}
    ranks = {facts: database_ranks(db) for facts, db in databases.items()}
    by_key = {run.key: run for run in runs}
    rows: list[dict[str, Any]] = []
    for row, layer in do_runs(runs, ranks=ranks):
        with torch.no_grad():
            rows.append({**row, **measure(by_key[row["run_key"]], layer)})
    return rows
