"""Worker processes: one that dies costs its task an attempt, and none outlives its parent.

`concurrent.futures` fails all waiting tasks when one process dies, and leaves its processes running
when their parent is killed.

On Linux workers are forked from a server (`multiprocessing.forkserver`), which has imported what
tasks need and nothing that begins threads of Python, and lives as long as this process; elsewhere,
where libraries of the system don't bear a fork, each is a new interpreter.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pickle import PicklingError
from typing import Any, Literal, TypeAlias

from capacity.errors import CapacityError, LostDeviceError, SweepError, warn_caller

# arguments of the tasks by their names, in the order in which they begin
Tasks: TypeAlias = Mapping[Any, tuple[Any, ...]]
ATTEMPTS = 3
Method: TypeAlias = Literal["forkserver", "spawn"]
# what the server imports
_MODULES = "capacity.sweep.workers.worker_modules"


@dataclass(frozen=True)
class Outcome:
    """Result of a task, or the reason why it failed.

    Attributes
    ----------
    name : hashable
        Name of the task.
    value : object
        Return value of the task.
    error : str or None
        Message of a `CapacityError`, or traceback of another exception; None if it succeeded.
    lost : bool
        True if the device of its process is lost, so that another process may do it.
    """

    name: Any
    value: Any = None
    error: str | None = None
    lost: bool = False


# calls a function on the arguments of each task, and yields the outcomes as they come; tasks that
# are under way end when it is closed
Executor: TypeAlias = Callable[[Callable[..., Any], Tasks], Generator[Outcome, None, None]]


@dataclass
class _Worker:
    number: int
    process: BaseProcess
    connection: Connection
    task: Hashable | None = None
    ready: bool = False


def in_this_process(function: Callable[..., Any], tasks: Tasks) -> Generator[Outcome, None, None]:
    """Do tasks one after the other, in this process."""
    for name, arguments in tasks.items():
        yield attempt(function, name, arguments)


def attempt(function: Callable[..., Any], name: Hashable, arguments: tuple[Any, ...]) -> Outcome:
    """Do one task; its errors become its outcome, interrupts are raised."""
    try:
        return Outcome(name, function(*arguments))
    except CapacityError as error:
        return Outcome(name, error=str(error), lost=isinstance(error, LostDeviceError))
    except Exception:
        return Outcome(name, error=traceback.format_exc())


@contextmanager
def processes(
    workers: int, *, early: bool = False, prepare: Callable[[int], object] | None = None
) -> Iterator[Executor]:
    """Run worker processes until the context ends.

    Outcomes come as tasks are done. A task whose process dies, killed or out of memory, is tried
    again before others begin, and fails alone at `ATTEMPTS` deaths. Functions must be defined at
    the top level of a module, so that another process can import them.

    Parameters
    ----------
    workers : int
        Largest number of processes.
    early : bool
        Where each process is a new interpreter, whether all start before there are tasks, and not
        when tasks wait for them. The server begins at once.
    prepare : callable, optional
        Called in each process before its first task, with the least number from 0 that no other
        process has, for slow imports. An error in it is ignored, because it comes again in the
        tasks.

    Yields
    ------
    Executor
        Does tasks in the processes.

    Raises
    ------
    SweepError
        If `ATTEMPTS` processes in a row die before they can do anything, or a function can't be
        sent to them.
    """
    team = _Team(workers, prepare)
    try:
        if early and team.method == "spawn":
            for _ in range(workers):
                team.start()
        yield team.do
    finally:
        for worker in team.workers:
            _end(worker)


class _Team:
    """Worker processes, at most `size` of them, which do the tasks of one call after the other."""

    def __init__(self, size: int, prepare: Callable[[int], object] | None) -> None:
        self.workers: list[_Worker] = []
        self.method: Method = start_server()
        self._size, self._prepare = size, prepare

    def start(self) -> None:
        """Start a process, whose number is the least that no other one has."""
        taken = {worker.number for worker in self.workers}
        number = min(set(range(len(self.workers) + 1)) - taken)
        self.workers.append(_start_worker(self.method, number, self._prepare))

    def do(self, function: Callable[..., Any], tasks: Tasks) -> Generator[Outcome, None, None]:
        """Do tasks in the processes, as `Executor` has it."""
        try:
            yield from self._outcomes(function, tasks)
        finally:
            # a worker that is still busy with this call would answer the next one
            for worker in [w for w in self.workers if w.task is not None]:
                self.workers.remove(worker)
                _end(worker)

    def _outcomes(self, function: Callable[..., Any], tasks: Tasks) -> Iterator[Outcome]:
        team, waiting = self.workers, deque(tasks)
        deaths: Counter[Hashable] = Counter()
        left, failed_starts = len(waiting), 0
        while left:
            busy = sum(worker.task is not None for worker in team)
            while len(team) < min(self._size, busy + len(waiting)):
                self.start()
            for worker in team:
                if worker.ready and worker.task is None and waiting:
                    _begin(worker, function, waiting, tasks)
            readable = wait([w.connection for w in team if w.task is not None or not w.ready])
            for worker in [w for w in team if w.connection in readable]:
                try:
                    message = worker.connection.recv()
                except (EOFError, OSError):
                    team.remove(worker)
                    worker.process.join()
                    if not worker.ready:
                        failed_starts += 1
                        if failed_starts == ATTEMPTS:
                            raise SweepError(_FAILED_STARTS) from None
                        continue
                    deaths[worker.task] += 1
                    if deaths[worker.task] < ATTEMPTS:
                        waiting.appendleft(worker.task)
                        continue
                    message = Outcome(worker.task, error=_DIED)
                worker.ready, failed_starts = True, 0
                if isinstance(message, Outcome) and message.lost:
                    team.remove(worker)
                    _end(worker)
                    deaths[worker.task] += 1
                    if deaths[worker.task] < ATTEMPTS:
                        warn_caller(UserWarning(f"{message.error} It is tried again."))
                        waiting.appendleft(worker.task)
                        continue
                if isinstance(message, Outcome):
                    left -= 1
                    name, worker.task = worker.task, None
                    if waiting and worker in team:
                        # who listens may take its time, and the worker should not wait for it
                        _begin(worker, function, waiting, tasks)
                    yield replace(message, name=name)


_DIED = f"its process died {ATTEMPTS} times, killed or out of memory"
_FAILED_STARTS = (
    "Worker processes must be able to start; they die before they begin. Finished runs are kept. "
    "If memory is short, use fewer --workers. A script must call run_sweep under "
    '`if __name__ == "__main__":`, because each worker imports it again.'
)


def _begin(
    worker: _Worker, function: Callable[..., Any], waiting: deque[Any], tasks: Tasks
) -> None:
    worker.task = waiting.popleft()
    _send(worker.connection, (function, worker.task, tasks[worker.task]))


def start_server() -> Method:
    """Start the server if there can be one and there is none, and return how processes start.

    They are never forked from this process: torch's threads don't survive it.
    """
    if sys.platform != "linux":
        return "spawn"
    from multiprocessing.forkserver import ensure_running, set_forkserver_preload

    set_forkserver_preload([_MODULES])
    try:
        ensure_running()
    except OSError:
        # its socket is a file, whose path may be too long, or on a file system that has none
        return "spawn"
    return "forkserver"


def _start_worker(method: Method, number: int, prepare: Callable[[int], object] | None) -> _Worker:
    context: Any = get_context(method)
    connection, theirs = context.Pipe()
    # the server has the environment of its own beginning
    arguments = (theirs, number, prepare, dict(os.environ))
    process = context.Process(target=_work, args=arguments, daemon=True)
    try:
        process.start()
    except EOFError:
        # the server was killed
        raise SweepError(_FAILED_STARTS) from None
    # a copy that stays open here would hide the worker's death
    theirs.close()
    return _Worker(number, process, connection)


def _end(worker: _Worker) -> None:
    """End a process without waiting for its task."""
    worker.process.terminate()
    worker.connection.close()
    worker.process.join()


def _send(connection: Connection, task: Any) -> None:
    try:
        connection.send(task)
    except OSError:
        # it died while it was idle; the next wait notices
        return
    except (AttributeError, TypeError, PicklingError) as error:
        from capacity.checks import in_a_line

        raise SweepError(
            "Functions for several workers must be defined at the top level of a module that they "
            f"can import; {in_a_line(error)}. Move them to a module, or use one worker."
        ) from None


def _work(
    connection: Connection,
    number: int,
    prepare: Callable[[int], object] | None,
    environment: Mapping[str, str],
) -> None:
    """Do tasks in a worker, which leaves interrupts to its parent and ends when the parent does."""
    os.environ.clear()
    os.environ.update(environment)
    parent = parent_process()
    if parent is None:
        raise SweepError("A worker must be a child of the process that starts it.")
    sentinel = parent.sentinel
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if prepare is not None:
        with suppress(Exception):
            prepare(number)
    connection.send("ready")
    while True:
        try:
            function, name, arguments = connection.recv()
        except EOFError:
            return
        except Exception:
            # such as a function of a missing module; the parent knows the task's name
            connection.send(Outcome(None, error=traceback.format_exc()))
            continue
        outcome = attempt(function, name, arguments)
        try:
            connection.send(outcome)
        except Exception:
            # the value can't be pickled, so that nothing of it was sent
            connection.send(Outcome(name, error=traceback.format_exc()))
