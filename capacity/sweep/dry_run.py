"""A plan in numbers, before anything is done: what it holds, how long it takes, how large it gets.

The time is that of an idle machine, to within a factor of about two where no run stops early
(``benchmarks/dry_run.py``): what each process needs to start, kernels included, the bounds of the
databases' ranks, and the runs themselves. With runs that memorise, and stop, it takes less. No
torch in here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capacity.layer.engines.registry import START_SECONDS, start_seconds
from capacity.limits import require_integer
from capacity.sweep.plan import Plan

# to bound a database's rank by effort "quick": for each fact, and at most, as measured
RANKS_SECONDS, MOST_RANKS_SECONDS = 1.2e-3, 0.3
# of a file, and of a row in it, as measured
SHARD_BYTES, ROW_BYTES = 17_500, 100


@dataclass(frozen=True)
class Time:
    """About how many seconds the parts of a sweep take, on cores of 2025.

    Attributes
    ----------
    start : float
        Until the first thing is computed: imports, and kernels that are compiled or loaded.
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
        """Seconds of all parts, one after the other."""
        return self.start + self.ranks + self.runs


def time_of(plan: Plan, *, workers: int = 1) -> Time:
    """Estimate how long an idle machine takes for a plan.

    Parameters
    ----------
    plan : Plan
    workers : int
        Processes, each with a core of its own.

    Raises
    ------
    InvalidArgumentError
        For a number of workers below 1.
    """
    require_integer("workers", workers)
    costs = [run.seconds for run in plan.runs]
    ranks = [
        min(MOST_RANKS_SECONDS, RANKS_SECONDS * db.n_triples) for db in plan.databases.values()
    ]
    start = start_seconds((run.engine, run.workload) for run in plan.runs)
    # workers are started by a process that has started itself
    return Time(
        start=start if workers == 1 else START_SECONDS + start,
        ranks=max(sum(ranks) / workers, max(ranks)),
        runs=max(sum(costs) / workers, max(costs)),
    )


def bytes_of(plan: Plan) -> int:
    """Estimate how much a folder holds in the end: each row in a shard and in the table."""
    return SHARD_BYTES * (len(plan.shards) + 1) + 2 * ROW_BYTES * len(plan.runs)


def summary(plan: Plan, *, workers: int = 1) -> dict[str, Any]:
    """Describe a plan in numbers, as ``capacity sweep --dry-run`` prints it."""
    sizes = [db.n_triples for db in plan.databases.values()]
    time = time_of(plan, workers=workers)
    return {
        "runs": len(plan.runs),
        "databases": len(sizes),
        "smallest_database": min(sizes),
        "largest_database": max(sizes),
        "layers": len({run.layer for run in plan.runs}),
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
