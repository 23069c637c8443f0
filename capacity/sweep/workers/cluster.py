"""Tasks on an existing Dask cluster: on one machine, under SLURM or in a cloud."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from capacity.errors import SweepError, warn_caller
from capacity.schedulers import connected
from capacity.sweep.storage.manifest import environment
from capacity.sweep.workers.pool import Executor, Outcome, Tasks, attempt

# tasks submitted per thread, so that none is idle
AHEAD = 2
# seconds without a worker until that is told, and between two looks whether a task is done
PATIENCE, _POLL = 60.0, 0.05


@contextmanager
def on_dask(address: str) -> Iterator[Executor]:
    """Use the workers of a Dask scheduler until the context ends.

    Outcomes come as tasks are done. A worker that dies costs its task an attempt; a task that kills
    more workers than the scheduler's ``allowed-failures`` fails alone. Functions must be defined at
    the top level of a module that the workers can import.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.

    Yields
    ------
    Executor
        Does tasks on the cluster.

    Raises
    ------
    MissingExtraError
        If Dask isn't installed.
    SweepError
        If no scheduler answers, it has no workers, or their versions or processors differ from
        those of this process.
    """
    needed = ("distributed",)
    with connected(address, "--dask", needed, SweepError, instead="omit --dask") as client:
        _check(client)
        yield partial(_on_dask, client)


def _check(client: Any) -> None:
    """Require the versions and processors of this process of all workers."""
    here = environment()
    for worker, there in client.run(environment, on_error="return").items():
        if there != here:
            raise SweepError(
                f"Dask's worker {worker} must have the versions and the processor of this process, "
                f"{here}; it has {there}. Otherwise one table would mix rows of both: install the "
                "same versions, on one kind of processor."
            )


def _on_dask(
    client: Any, function: Callable[..., Any], tasks: Tasks
) -> Generator[Outcome, None, None]:
    from distributed import KilledWorker, as_completed

    names: dict[Any, Hashable] = {}

    def submitted(name: Hashable) -> Any:
        # by default Dask merges tasks of equal arguments, and keeps their results
        future = client.submit(attempt, function, name, tasks[name], pure=False)
        names[future.key] = name
        return future

    waiting = iter(tasks)
    ahead = AHEAD * max(1, sum(client.nthreads().values()))
    # tasks whose workers died, though another task may have been the cause. They come last, since
    # one that kills again would end what else its worker does; rows that wait for one are kept
    suspects: list[Hashable] = []
    coming: Any = as_completed(
        [submitted(name) for name in islice(waiting, ahead)], loop=client.loop
    )
    for future in _completed(coming, client):
        outcome = _outcome(future, names.pop(future.key), client)
        if isinstance(outcome.value, KilledWorker):
            suspects.append(outcome.name)
        else:
            yield outcome
        for name in islice(waiting, 1):
            coming.add(submitted(name))
    for name in suspects:
        # alone: a worker that dies now dies of this task
        for future in _completed(as_completed([submitted(name)], loop=client.loop), client):
            yield _outcome(future, name, client)


def _completed(coming: Any, client: Any) -> Iterator[Any]:
    """Yield futures as they are done, and warn while there is no worker that could do them.

    A worker that is killed is started again by its nanny, but not always: Dask would wait
    endlessly, without a word.
    """
    looked = seen = time.monotonic()
    warned = False
    while not coming.is_empty():
        if coming.has_ready():
            future = next(coming)
            if future.status in ("lost", "pending") and client.status == "running":
                # done, but its worker went before the result was fetched: it is computed again
                coming.add(future)
            else:
                yield future
            continue
        time.sleep(_POLL)
        now = time.monotonic()
        if now - looked < PATIENCE / 6 or client.status != "running":
            continue
        looked = now
        if client.nthreads():
            seen, warned = now, False
        elif not warned and now - seen >= PATIENCE:
            warned = True
            address = client.scheduler.address
            warn_caller(
                UserWarning(
                    f"The scheduler at {address} has had no worker for {now - seen:.0f} s. This "
                    f"waits for one: start some with `dask worker {address}`, or interrupt it; "
                    "finished runs are kept."
                )
            )


def _outcome(future: Any, name: Hashable, client: Any) -> Outcome:
    """Outcome of a future; if Dask abandoned it, the value is its exception."""
    try:
        if future.status == "finished":
            return future.result()
        if future.status != "error" or client.status != "running":
            raise SweepError(
                "Dask's scheduler is gone. Finished runs are kept; run the same command again to "
                "continue."
            )
        error = future.exception()
        return Outcome(name, error, error=f"Dask stopped it: {error}")
    finally:
        future.release()
