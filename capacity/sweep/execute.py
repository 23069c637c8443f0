"""Do the runs of a plan, here, in several processes or on a cluster, and store them by shards.

First the ranks of the databases that are still needed, each once, then the shards. Whoever computes
them, this process alone writes them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from capacity.errors import InvalidArgumentError, SweepError
from capacity.sweep.cluster import on_dask
from capacity.sweep.manifest import environment
from capacity.sweep.one_run import Device, database_ranks, do_runs, resolve_device
from capacity.sweep.plan import Plan, Run
from capacity.sweep.pool import Executor, Outcome, in_this_process, processes
from capacity.sweep.store import Store

# (what, how many are done, how many there are)
Progress: TypeAlias = Callable[[Literal["ranks", "runs"], int, int], None]


def run_sweep(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    device: Device = "auto",
    shard: tuple[int, int] | None = None,
    dask: str | None = None,
    allow_other_engine: bool = False,
    progress: Progress | None = None,
) -> Path | None:
    """Do what is left of a sweep.

    Parameters
    ----------
    plan : Plan
    folder : path
        Where its shards are; those that are done are not done again.
    workers : int
        Processes; 1: this one.
    device : {'auto', 'cpu', 'cuda'}
    shard : (i, n), optional
        Do the i-th of n equal parts only, counted from 0.
    dask : str, optional
        Address of a Dask scheduler whose workers compute instead; they must have the same versions
        as this process, and compute on CPUs.
    allow_other_engine : bool
        Do all runs beside those that another engine, dtype or version has done in the folder.
    progress : callable, optional
        Is told ("ranks", n, total) while the ranks of databases are bounded, then
        ("runs", n, total) while layers are trained.

    Returns
    -------
    Path or None
        ``runs.parquet``, or None while other parts are not done.

    Raises
    ------
    SweepError
        If the folder holds another sweep or can't be written, if another process does the same
        part, or, at the end, if some shards failed; the others are done then.
    ValueError
        For a number of workers below 1, a part that doesn't exist, or GPUs of a cluster.
    """
    if workers < 1:
        raise InvalidArgumentError(f"`workers` must be at least 1; got {workers}.")
    part, parts = shard or (0, 1)
    if not 0 <= part < parts:
        raise InvalidArgumentError(f"`shard` i/N must have 0 <= i < N; got {part}/{parts}.")
    if dask is not None and device == "cuda":
        raise InvalidArgumentError(
            "`dask` must compute on CPUs, for GPUs of a cluster aren't compared with this "
            "process's; got device='cuda'. Say cpu or auto, or train on GPUs with `shard`."
        )
    chosen = resolve_device("cpu" if dask is not None else device)
    here = environment(chosen)
    store = Store(folder, plan.on(chosen), here, allow_other_engine=allow_other_engine)
    with store.mine(part, parts) as mine:
        _Driver(store, mine, f"{part}-of-{parts}", here, progress).run(workers, dask)
    return store.finish()


class _Driver:
    """What is left of a part, and how far it is."""

    def __init__(
        self,
        store: Store,
        mine: range,
        part: str,
        here: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self._store, self._shards, self._part = store, store.plan.shards, part
        self._here, self._report = here, progress or (lambda _what, _done, _total: None)
        self._todo = [number for number in mine if not store.is_done(number)]
        self._total = sum(len(self._shards[number]) for number in mine)
        self._done = self._total - sum(len(self._shards[number]) for number in self._todo)
        self._ranks: dict[str, dict[str, int]] = {}

    def run(self, workers: int, dask: str | None) -> None:
        self._report("runs", self._done, self._total)
        if not self._todo:
            return
        for number in self._todo:
            if self._store.path(number).exists():
                self._store.log(self._part, shard=number, damaged="it is done again")
        alone = workers == 1 and dask is None
        with self._executor(workers, dask) as execute:
            failed = [*self._bound(execute), *self._train(execute, self._tell if alone else None)]
        if failed:
            for outcome in failed:
                self._store.log(self._part, failed=outcome.name, error=outcome.error)
            left = sum(not self._store.is_done(number) for number in self._todo)
            first = failed[0]
            raise SweepError(
                f"{left} of {len(self._todo)} shards aren't done, for {len(failed)} tasks failed; "
                "the others are, and the same command tries these again. The log has all; the "
                f"first, {first.name}: {first.error}"
            )

    def _executor(self, workers: int, dask: str | None) -> AbstractContextManager[Executor]:
        if dask is not None:
            return on_dask(dask)
        if workers > 1:
            return processes(min(workers, len(self._todo)))
        return nullcontext(in_this_process)

    def _bound(self, execute: Executor) -> Iterator[Outcome]:
        """Bound the ranks of the databases that are still needed; give what fails."""
        needed: dict[str, Any] = {}
        for number in self._todo:
            for run in self._shards[number]:
                needed[run.database.facts_sha256] = run.database
        for facts in needed:
            known = self._store.ranks(facts)
            if known is not None:
                self._ranks[facts] = known
        tasks = {f: (db,) for f, db in needed.items() if f not in self._ranks}
        for n, outcome in enumerate(execute(database_ranks, tasks), 1):
            self._report("ranks", n, len(tasks))
            if outcome.error is not None:
                yield outcome
                continue
            self._store.keep_ranks(outcome.name, outcome.value)
            self._ranks[outcome.name] = outcome.value

    def _train(self, execute: Executor, tell: Callable[[int], None] | None) -> Iterator[Outcome]:
        """Do the shards whose ranks are known; give what fails."""
        tasks: dict[int, tuple[Any, ...]] = {}
        for number in self._todo:
            runs = self._shards[number]
            facts = {run.database.facts_sha256 for run in runs}
            if facts <= self._ranks.keys():
                tasks[number] = (runs, {f: self._ranks[f] for f in facts})
        for outcome in execute(partial(_shard, tell=tell) if tell else _shard, tasks):
            if outcome.error is not None:
                yield outcome
                continue
            rows, there, seconds = outcome.value
            if there != self._here:
                raise SweepError(
                    f"A worker must have what this process has, {self._here}; it has {there}. Rows "
                    "of both would be mixed: give it the same versions, on one kind of processor."
                )
            self._store.write(outcome.name, rows)
            self._store.log(self._part, shard=outcome.name, runs=len(rows), seconds=seconds)
            self._done += len(rows)
            self._report("runs", self._done, self._total)

    def _tell(self, n: int) -> None:
        self._report("runs", self._done + n, self._total)


def _shard(
    runs: Sequence[Run],
    ranks: Mapping[str, Mapping[str, int]],
    tell: Callable[[int], None] | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any], float]:
    """The rows of some runs, what computed them, and the seconds that it took."""
    start = time.perf_counter()
    rows: list[dict[str, Any]] = []
    for row, _ in do_runs(runs, ranks=ranks):
        rows.append(row)
        if tell is not None:
            tell(len(rows))
    return rows, environment(runs[0].device), round(time.perf_counter() - start, 3)
