"""The driver of a sweep: what is still to do, who computes it, and when it is stored.

The databases whose ranks are still needed are bounded first, each once; the runs follow, in tasks
of about a second. No worker waits until the last database is bounded. This process alone writes
rows: a shard when all its runs are done and their databases bounded, and unfinished shards every
few seconds and when it ends for any reason, without ranks, so that no run is trained again because
its database isn't bounded. Longer runs resume from snapshots, but not on Dask, whose workers may
not see the folder, nor if they are trained together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from capacity.database.facts import Database
from capacity.errors import SweepError, warn_caller
from capacity.layer.engines.registry import engines_named
from capacity.progress import Progress
from capacity.sweep.estimates import TimeLeft
from capacity.sweep.plan import Run, task_seconds, tasks_of
from capacity.sweep.storage.records import DamagedFileError
from capacity.sweep.storage.row_schema import Row
from capacity.sweep.storage.store import Store
from capacity.sweep.training.one_run import database_ranks, timed_rows
from capacity.sweep.waiting_rows import WaitingRows
from capacity.sweep.workers.pool import Executor, Outcome, in_this_process

# between two writes of the rows of unfinished shards; a kill loses the rows since the last
KEEP_SECONDS = 5.0


class Driver:
    """Remaining shards of one part, with progress."""

    def __init__(
        self,
        store: Store,
        mine: range,
        part: str,
        here: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self._store, self._shards, self._part = store, store.plan.shards, part
        self._here, self._report = here, progress or (lambda _what, _done, _total, _left: None)
        self._waiting = WaitingRows({n: self._shards[n] for n in mine if not self._is_done(n)})
        for number in self._waiting.shards:
            self._waiting.add(number, self._kept(number))
        self._changed: set[int] = set()
        self._kept_at = time.monotonic()
        self._seconds: dict[int, float] = {}
        self._total = sum(len(self._shards[number]) for number in mine)
        left = sum(len(self._waiting.untrained(number)) for number in self._waiting.shards)
        self._before = self._total - left
        # keys of the runs that this call has done
        self._trained: set[str] = set()
        self._time_left = TimeLeft(0.0)

    def run(
        self, executor: AbstractContextManager[Executor], *, workers: int, snapshots: bool
    ) -> None:
        """Do what remains, and store it.

        Parameters
        ----------
        executor : context manager of Executor
            Does the tasks; entered if there are any.
        workers : int
            Number of its processes, for which tasks are cut.
        snapshots : bool
            True if runs resume from snapshots in the folder, which all processes must then see.

        Raises
        ------
        SweepError
            If some runs failed, after all others are done.
        """
        self._tell(())
        try:
            self._store.require_whole_table()
        except DamagedFileError as error:
            self._tell_damage(error, table=True)
        n_shards = len(self._waiting.shards)
        to_bound = self._to_bound()
        self._store_complete()
        tasks = self._tasks(workers)
        if not (to_bound or tasks):
            return
        with executor as execute:
            do = partial(
                timed_rows,
                tell=self._tell if execute is in_this_process else None,
                snapshots=self._store.snapshots if snapshots else None,
                engines=engines_named(run.engine for runs in tasks.values() for run in runs),
            )
            failed = list(self._do(execute, to_bound, tasks, do))
        if failed:
            for outcome in failed:
                self._store.log(self._part, failed=outcome.name, error=outcome.error)
            first = failed[0]
            # the error is the last line of a traceback
            why = (first.error or "").strip().rpartition("\n")[2]
            n_left = len(self._waiting.shards)
            raise SweepError(
                f"{n_left} of {n_shards} shards aren't done, because {len(failed)} tasks failed; "
                "the others are, and the same command tries these tasks again. The log has all "
                f"errors; the first, {first.name}: {why}"
            )

    def _to_bound(self) -> dict[str, Database]:
        """Find the databases whose ranks are needed and not stored, the largest first."""
        unknown: dict[str, Database] = {}
        for facts, db in self._waiting.databases.items():
            try:
                known = self._store.ranks(facts)
            except DamagedFileError as error:
                self._tell_damage(error, ranks=facts)
                known = None
            if known is None:
                unknown[facts] = db
            else:
                self._waiting.bounded(facts, known)
        # one that takes long should not begin last
        return dict(sorted(unknown.items(), key=lambda item: -item[1].n_triples))

    def _tasks(self, workers: int) -> dict[tuple[int, int], tuple[Run, ...]]:
        """Cut the runs that have no rows yet into tasks."""
        left = {number: self._waiting.untrained(number) for number in self._waiting.shards}
        seconds = task_seconds((run for runs in left.values() for run in runs), workers=workers)
        return {
            (number, i): some
            for number, runs in left.items()
            for i, some in enumerate(tasks_of(runs, seconds))
        }

    def _do(
        self,
        execute: Executor,
        to_bound: Mapping[str, Database],
        tasks: Mapping[tuple[int, int], tuple[Run, ...]],
        do: Callable[..., Any],
    ) -> Iterator[Outcome]:
        """Bound databases, and do the tasks as soon as workers are free; yield the failures."""
        cost = sum(run.seconds for runs in tasks.values() for run in runs)
        self._time_left = TimeLeft(cost)
        bounding = {("ranks", facts): (database_ranks, db) for facts, db in to_bound.items()}
        training = {("runs", name): (do, runs) for name, runs in tasks.items()}
        n_bounded = 0
        try:
            with closing(execute(_call, {**bounding, **training})) as outcomes:
                for outcome in outcomes:
                    what, name = outcome.name
                    if what == "ranks":
                        n_bounded += 1
                        if not self._trained:
                            self._report("ranks", n_bounded, len(to_bound), None)
                            self._time_left = TimeLeft(cost)
                    if outcome.error is not None:
                        yield replace(
                            outcome,
                            name=f"ranks of {name}" if what == "ranks" else f"shard {name[0]}",
                        )
                    elif what == "ranks":
                        self._bounded(name, outcome.value)
                    else:
                        self._done(name[0], tasks[name], *outcome.value)
                    if time.monotonic() - self._kept_at > KEEP_SECONDS:
                        self._keep()
        except BaseException:
            # the error that ended the training must be raised, and not a later one
            with suppress(SweepError):
                self._keep()
            raise
        self._keep()

    def _bounded(self, facts: str, ranks: dict[str, int]) -> None:
        """Store the ranks of a database, and the shards that lacked nothing else."""
        self._store.keep_ranks(facts, ranks)
        self._waiting.bounded(facts, ranks)
        self._store_complete()

    def _done(
        self,
        number: int,
        runs: tuple[Run, ...],
        rows: Sequence[Row],
        there: dict[str, Any],
        seconds: float,
    ) -> None:
        """Add the rows of a task to their shard, and store it if it is complete."""
        if there != self._here:
            raise SweepError(
                "A worker must have the versions and the processor of this process, "
                f"{self._here}; it has {there}. Otherwise one table would mix rows of "
                "both: install the same versions, on one kind of processor."
            )
        self._seconds[number] = self._seconds.get(number, 0.0) + seconds
        self._changed.add(number)
        self._waiting.add(number, rows)
        if self._waiting.is_complete(number):
            self._store_shard(number)
        self._tell(runs)

    def _store_complete(self) -> None:
        for number in [n for n in self._waiting.shards if self._waiting.is_complete(n)]:
            self._store_shard(number)

    def _store_shard(self, number: int) -> None:
        rows = self._waiting.complete(number)
        self._store.write(number, rows)
        seconds = round(self._seconds.get(number, 0.0), 3)
        self._store.log(self._part, shard=number, runs=len(rows), seconds=seconds)
        self._waiting.remove(number)
        self._changed.discard(number)

    def _keep(self) -> None:
        """Write the rows of the unfinished shards that have new ones since the last time."""
        for number in sorted(self._changed):
            self._store.keep_unfinished(number, self._waiting.rows(number))
            self._changed.remove(number)
        self._kept_at = time.monotonic()

    def _is_done(self, number: int) -> bool:
        try:
            done = self._store.require_whole(number)
        except DamagedFileError as error:
            self._tell_damage(error, shard=number)
            return False
        if done:
            # a kill may have come between storing the shard and removing these
            self._store.end_unfinished(number)
        return done

    def _kept(self, number: int) -> Sequence[Row]:
        try:
            return self._store.unfinished(number)
        except DamagedFileError as error:
            self._tell_damage(error, unfinished=number)
            return []

    def _tell_damage(self, error: DamagedFileError, **what: Any) -> None:
        """Report damage, which is done again, in the log and in a warning."""
        self._store.log(self._part, **what, damaged=f"{error.reason}; it is done again")
        warn_caller(UserWarning(f"{error.path} {error.reason}; it is done again."))

    def _tell(self, runs: Iterable[Run]) -> None:
        """Report progress after some runs, which may have been reported already."""
        for run in runs:
            if run.key not in self._trained:
                self._trained.add(run.key)
                self._time_left.done(run.seconds)
        done, left = self._before + len(self._trained), self._time_left.seconds()
        self._report("runs", done, self._total, left)


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
