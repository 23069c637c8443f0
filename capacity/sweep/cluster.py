"""Tasks on a Dask cluster that is there already: on one machine, under SLURM, in a cloud."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from capacity.errors import SweepError
from capacity.extras import require_packages
from capacity.sweep.pool import Executor, Outcome, Tasks, attempt
from capacity.sweep.storage.manifest import environment

# tasks that wait for each thread, so that none is idle
AHEAD = 2
# seconds
PATIENCE = 60


@contextmanager
def on_dask(address: str) -> Iterator[Executor]:
    """The workers of a scheduler, until the context ends; outcomes come as tasks are done.

    A worker that dies costs its task an attempt; one that has cost several workers their lives
    fails alone, as the scheduler's ``allowed-failures`` says. Functions must be of a module that
    the workers can import.

    Parameters
    ----------
    address : str
        Such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    MissingExtraError
        If Dask isn't there.
    SweepError
        If no scheduler answers.
    """
    require_packages("--dask", ("distributed",), "distributed")
    from distributed import Client

    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SweepError(
            f"No Dask scheduler answers at {address} ({error}). Start one with `dask scheduler`, "
            "or leave --dask out."
        ) from None
    try:
        _check(client, address)
        yield partial(_on_dask, client)
    finally:
        # what it was to compute for this client is dropped with it
        client.close()


def _check(client: Any, address: str) -> None:
    """All workers must have what this process has, before they are given anything."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise SweepError(
            f"The scheduler at {address} has no worker for {PATIENCE} s. Start some with "
            f"`dask worker {address}`."
        ) from None
    here = environment()
    for worker, there in client.run(environment, on_error="return").items():
        if there != here:
            raise SweepError(
                f"Dask's worker {worker} must have what this process has, {here}; it has {there}. "
                "Rows of both would be mixed: give it the same versions, on one kind of processor."
            )


def _on_dask(client: Any, function: Callable[..., Any], tasks: Tasks) -> Iterator[Outcome]:
    from distributed import KilledWorker, as_completed

    names: dict[Any, Hashable] = {}

    def submitted(name: Hashable) -> Any:
        # by default equal arguments are one task, and what it gave is kept
        future = client.submit(attempt, function, name, tasks[name], pure=False)
        names[future.key] = name
        return future

    waiting = iter(tasks)
    ahead = AHEAD * max(1, sum(client.nthreads().values()))
    # whose workers died, though it may have been another task's fault
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
        # alone: what dies now dies by itself
        for future in as_completed([submitted(name)], loop=client.loop):
            yield _outcome(future, name, client)


def _outcome(future: Any, name: Hashable, client: Any) -> Outcome:
    """What became of a future; if Dask gave it up, the value is its exception."""
    try:
        if future.status == "finished":
            return future.result()
        if future.status != "error" or client.status != "running":
            raise SweepError(
                "Dask's scheduler is gone. What was done is kept; the same command goes on."
            )
        error = future.exception()
        return Outcome(name, error, error=f"Dask gave it up: {error}")
    finally:
        future.release()
