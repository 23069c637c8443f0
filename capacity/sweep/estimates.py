"""Estimates of a sweep's time and disk space, before it is run and while it runs.

The time of a plan is that of an idle machine, within a factor of about two if no run stops early
(``benchmarks/dry_run.py``): the start of each process, kernels included, the bounds of the
databases' ranks, and the runs themselves. Runs that memorise and stop early take less.

The time left follows from the costs of the runs and the pace so far. Costs of runs differ by a
factor of a thousand, so that their number alone predicts little: an hour may remain after nine runs
of ten. The estimated costs may all be off by a common factor, on another machine or with many
workers; the pace so far corrects it. No torch in here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from capacity.checks import require_integer
from capacity.layer.engines.registry import START_SECONDS, start_seconds
from capacity.sweep.grammar.layers import omitted_layers
from capacity.sweep.plan import Plan

# measured: to bound a database's rank by effort "quick", per fact and at most
RANKS_SECONDS, MOST_RANKS_SECONDS = 1.2e-4, 0.3
# measured: size of a parquet file of no rows, and of each row
SHARD_BYTES, ROW_BYTES = 17_500, 100


@dataclass(frozen=True)
class Time:
    """Estimated seconds of the parts of a sweep, on cores as of 2025.

    Attributes
    ----------
    start : float
        Imports, and compiling or loading kernels.
    ranks : float
        Bounding the ranks of the databases.
    runs : float
        Training and scoring, if no run stops early.
    """

    start: float
    ranks: float
    runs: float

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return self.start + self.ranks + self.runs


def time_of(plan: Plan, *, workers: int = 1) -> Time:
    """Estimate the time that an idle machine takes for a plan.

    Parameters
    ----------
    plan : Plan
        Plan to estimate.
    workers : int
        Number of processes, each with a core of its own.

    Returns
    -------
    Time
        Seconds, by parts.

    Raises
    ------
    InvalidArgumentError
        If `workers` isn't an integer of at least 1.
    """
    workers = require_integer("workers", workers)
    if not plan.runs:
        return Time(0.0, 0.0, 0.0)
    costs = [run.seconds for run in plan.runs]
    ranks = [
        min(MOST_RANKS_SECONDS, RANKS_SECONDS * db.n_triples) for db in plan.databases.values()
    ]
    start = start_seconds((run.engine, run.workload) for run in plan.runs)
    # the parent process starts first, then its workers
    return Time(
        start=start if workers == 1 else START_SECONDS + start,
        ranks=max(sum(ranks) / workers, max(ranks)),
        runs=max(sum(costs) / workers, max(costs)),
    )


def bytes_of(plan: Plan) -> int:
    """Estimate the bytes of a finished folder, which has each row in a shard and in the table."""
    return SHARD_BYTES * (len(plan.shards) + 1) + 2 * ROW_BYTES * len(plan.runs)


def summary(
    plan: Plan, *, workers: int = 1, there: Collection[str] | None = None
) -> dict[str, Any]:
    """Describe a plan in numbers, as ``capacity sweep --dry-run`` prints it.

    Parameters
    ----------
    plan : Plan
        Plan to describe.
    workers : int
        Number of processes.
    there : collection of str, optional
        Keys of the runs that its folder holds, and that take no time any more.
    """
    left = tuple(run for run in plan.runs if run.key not in (there or ()))
    sizes = [db.n_triples for db in plan.databases.values()]
    # subsets of a file share what was selected from it
    selected = {id(run.database.selected): run for run in plan.runs}
    time = time_of(replace(plan, runs=left), workers=workers)
    return {
        "runs": len(plan.runs),
        **({} if there is None else {"there": len(plan.runs) - len(left), "to_train": len(left)}),
        "databases": len(sizes),
        "smallest_database": min(sizes),
        "largest_database": max(sizes),
        "selections": [
            {"database": run.database_id, **run.database.selected.to_dict()}
            for run in sorted(selected.values(), key=lambda run: run.database_id)
            if run.database.selected is not None
        ],
        "layers": len({run.layer for run in plan.runs}),
        "omitted": omitted_layers(plan.config),
        "recipes": len({run.recipe for run in plan.runs}),
        "seeds": len({run.seed for run in plan.runs}),
        "shards": len(plan.shards),
        "workers": workers,
        "seconds": round(time.total, 1),
        "seconds_to_start": round(time.start, 1),
        "seconds_of_ranks": round(time.ranks, 1),
        "seconds_of_runs": round(time.runs, 1),
        "bytes": bytes_of(plan),
    }


class TimeLeft:
    """Remaining time of work that is done in pieces of known cost.

    Parameters
    ----------
    cost : float
        Total cost of the work, in any unit.
    clock : callable, optional
        Returns the time in seconds.

    Examples
    --------
    A tenth of the work takes one second, so that nine remain:

    >>> seconds = iter([100.0, 101.0])
    >>> left = TimeLeft(50.0, clock=lambda: next(seconds))
    >>> left.done(5.0)
    >>> left.seconds()
    9.0
    """

    def __init__(self, cost: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cost, self._clock = cost, clock
        self._done, self._began = 0.0, clock()

    def done(self, cost: float) -> None:
        """Record that work of some cost is done."""
        self._done += cost

    def seconds(self) -> float | None:
        """Estimate the seconds left; None before anything is done."""
        if not self._done:
            return None
        return max(0.0, self._cost - self._done) * (self._clock() - self._began) / self._done
