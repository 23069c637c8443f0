"""Signals that end a command: Ctrl-C, and those of schedulers and of terminals that close."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# what shells report of a program that Ctrl-C ends: 128 + SIGINT; of others likewise
INTERRUPTED = 130
# Windows has no SIGHUP
_NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def ended_by_signals() -> Iterator[Callable[[], int]]:
    """Let SIGTERM and SIGHUP end the work as Ctrl-C does, until the context ends.

    A KeyboardInterrupt is raised, so that what Ctrl-C removes or keeps is removed or kept. Later
    signals of these kinds change nothing: ``timeout`` sends two, and the second would disturb the
    clean-up. A signal that the caller of this process ignores, as ``nohup`` does, is ignored.

    Yields
    ------
    callable
        Returns the exit code of a command that was interrupted: 143 for SIGTERM, 129 for SIGHUP,
        130 otherwise.
    """
    came: list[int] = []

    def end(number: int, _frame: Any) -> None:
        came.append(number)
        if len(came) == 1:
            raise KeyboardInterrupt

    before: dict[int, Any] = {}
    # Python lets no other thread handle signals
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, end)
    try:
        yield lambda: 128 + came[0] if came else INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
