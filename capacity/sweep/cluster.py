"""Tasks on an existing Dask cluster: on one machine, under SLURM or in a cloud."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from capacity.errors import SweepError
from capacity.schedulers import connected
from capacity.sweep.pool import Executor, Outcome, Tasks, attempt
from capacity.sweep.storage.manifest import environment

# tasks submitted per thread, so that none is idle
AHEAD = 2


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
    for future in coming:
        outcome = _outcome(future, names.pop(future.key), client)
        if isinstance(outcome.value, KilledWorker):
            suspects.append(outcome.name)
        else:
            yield outcome
        for name in islice(waiting, 1):
            coming.add(submitted(name))
    for name in suspects:
        # alone: a worker that dies now dies of this task
        for future in as_completed([submitted(name)], loop=client.loop):
            yield _outcome(future, name, client)


def _outcome(future: Any, name: Hashable, client: Any) -> Outcome:
    """Outcome of a future; if Dask gave it up, the value is its exception."""
    try:
        if future.status == "finished":
            return future.result()
        if future.status != "error" or client.status != "running":
            raise SweepError(
                "Dask's scheduler is gone. Finished runs are kept; run the same command again to "
                "continue."
            )
        error = future.exception()
        return Outcome(name, error, error=f"Dask gave it up: {error}")
    finally:
        future.release()
