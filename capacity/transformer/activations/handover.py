"""Values of a function that calls back, as an iterator: it waits until the next is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from queue import Queue
from threading import Semaphore, Thread
from typing import Any, TypeVar

T = TypeVar("T")


class _StoppedError(BaseException):
    """Raised in the function when nobody waits for more values."""


def handed_over(run: Callable[[Callable[[T], None]], None]) -> Iterator[T]:
    """Yield what a function hands over, one by one.

    Parameters
    ----------
    run : callable
        Called with a function ``hand``, in a thread of its own; ``hand(value)`` returns when the
        next value is asked for, and raises an exception when the iterator is closed.

    Examples
    --------
    >>> list(handed_over(lambda hand: [hand(i) for i in range(3)]))
    [0, 1, 2]
    """
    ready: Queue[tuple[bool, Any]] = Queue()
    wanted = Semaphore(0)
    closed: list[bool] = []

    def hand(value: T) -> None:
        ready.put((True, value))
        # this reference would keep it in memory
        del value
        wanted.acquire()
        if closed:
            raise _StoppedError

    def work() -> None:
        try:
            run(hand)
        except BaseException as error:
            ready.put((False, error))
        else:
            ready.put((False, None))

    thread = Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        while True:
            more, value = ready.get()
            if not more:
                if value is not None:
                    raise value
                return
            yield value
            del value
            wanted.release()
    finally:
        closed.append(True)
        wanted.release()
        thread.join()
