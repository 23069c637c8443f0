"""Processes that do tasks: one that dies costs an attempt, and none outlives its parent.

`concurrent.futures` fails all tasks that wait when one process dies, and leaves its processes
running when their parent is killed.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from os import _exit
from pickle import PicklingError
from typing import Any, TypeAlias

from capacity.errors import CapacityError, SweepError
from capacity.limits import in_a_line

# arguments by name, in the order in which they begin
Tasks: TypeAlias = Mapping[Any, tuple[Any, ...]]
ATTEMPTS = 3


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Attributes
    ----------
    name
        Of the task.
    value
        What it returned.
    error : str or None
        Why it failed, if it did: a message, or the traceback of what nobody foresaw.
    """

    name: Any
    value: Any = None
    error: str | None = None


# does tasks by a function, and gives each outcome as it comes
Executor: TypeAlias = Callable[[Callable[..., Any], Tasks], Iterator[Outcome]]


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    task: Hashable | None = None
    ready: bool = False


def in_this_process(function: Callable[..., Any], tasks: Tasks) -> Iterator[Outcome]:
    """Do tasks one after the other."""
    for name, arguments in tasks.items():
        yield attempt(function, name, arguments)


def attempt(function: Callable[..., Any], name: Hashable, arguments: tuple[Any, ...]) -> Outcome:
    """Do one task; an error is an outcome, an interrupt isn't."""
    try:
        return Outcome(name, function(*arguments))
    except CapacityError as error:
        return Outcome(name, error=str(error))
    except Exception:
        return Outcome(name, error=traceback.format_exc())


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Processes that do tasks, until the context ends; outcomes come as tasks are done.

    A task whose process dies `ATTEMPTS` times, killed or out of memory, fails alone. Functions must
    be of a module, so that another process can import them.

    Raises
    ------
    SweepError
        If `ATTEMPTS` processes in a row die before they can do anything.
    """
    staff: list[_Worker] = []
    try:
        yield partial(_in_processes, staff, workers)
    finally:
        for worker in staff:
            _end(worker)


def _in_processes(
    staff: list[_Worker], workers: int, function: Callable[..., Any], tasks: Tasks
) -> Iterator[Outcome]:
    try:
        yield from _outcomes(staff, workers, function, tasks)
    finally:
        # whoever is still at a task of this call would answer the next
        for worker in [w for w in staff if w.task is not None]:
            staff.remove(worker)
            _end(worker)


def _outcomes(
    staff: list[_Worker], workers: int, function: Callable[..., Any], tasks: Tasks
) -> Iterator[Outcome]:
    waiting = deque(tasks)
    deaths: Counter[Hashable] = Counter()
    left, stillborn = len(waiting), 0
    while left:
        busy = sum(worker.task is not None for worker in staff)
        while len(staff) < min(workers, busy + len(waiting)):
            staff.append(_hired())
        for worker in staff:
            if worker.ready and worker.task is None and waiting:
                worker.task = waiting.popleft()
                _send(worker.connection, (function, worker.task, tasks[worker.task]))
        heard = wait([w.connection for w in staff if w.task is not None or not w.ready])
        for worker in [w for w in staff if w.connection in heard]:
            try:
                said = worker.connection.recv()
            except (EOFError, OSError):
                staff.remove(worker)
                worker.process.join()
                if not worker.ready:
                    stillborn += 1
                    if stillborn == ATTEMPTS:
                        raise SweepError(_STILLBORN) from None
                    continue
                deaths[worker.task] += 1
                if deaths[worker.task] < ATTEMPTS:
                    waiting.append(worker.task)
                    continue
                said = Outcome(worker.task, error=_DIED)
            worker.ready, stillborn = True, 0
            if isinstance(said, Outcome):
                left -= 1
                name, worker.task = worker.task, None
                yield replace(said, name=name)


_DIED = f"its process died {ATTEMPTS} times, killed or out of memory"
_STILLBORN = (
    "Worker processes die before they begin. What was done is kept. There may be too little memory "
    "for so many --workers; and a script must call run_sweep under "
    '`if __name__ == "__main__":`, for each worker reads it anew.'
)


def _hired() -> _Worker:
    # spawned, not forked: torch's threads don't survive a fork
    context = get_context("spawn")
    connection, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    process.start()
    # else its end wouldn't be noticed
    theirs.close()
    return _Worker(process, connection)


def _end(worker: _Worker) -> None:
    """End a process, without waiting for a task that is dropped."""
    worker.process.terminate()
    worker.connection.close()
    worker.process.join()


def _send(connection: Connection, task: Any) -> None:
    try:
        connection.send(task)
    except OSError:
        # it died while it was idle; that is heard next
        return
    except (AttributeError, TypeError, PicklingError) as error:
        raise SweepError(
            "What several workers do must be of a module that they can import, such as a function "
            f"at its top level; {in_a_line(error)}. Move it to a module, or take one worker."
        ) from None


def _work(connection: Connection) -> None:
    """In a worker: leave interrupts to the parent, and end when it does, however it ends."""
    parent = parent_process()
    if parent is None:
        raise SweepError("A worker must be a child of the process that hires it.")
    sentinel = parent.sentinel
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        wait([sentinel])
        _exit(1)

    threading.Thread(target=watch, daemon=True).start()
    connection.send("ready")
    while True:
        try:
            function, name, arguments = connection.recv()
        except EOFError:
            return
        except Exception:
            # of a module that isn't there, say; whoever sent it knows its name
            connection.send(Outcome(None, error=traceback.format_exc()))
            continue
        outcome = attempt(function, name, arguments)
        try:
            connection.send(outcome)
        except Exception:
            # what can't be pickled can't be sent, and nothing of it has been
            connection.send(Outcome(name, error=traceback.format_exc()))
