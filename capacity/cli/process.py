"""The process of a command: its standard streams, and the signals that end it.

Streams may be closed, full or broken, or of an encoding that can't hold a text. Signals are Ctrl-C,
and those of schedulers and of terminals that close.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO


def _escaped(error: UnicodeError) -> tuple[str, int]:
    # in the way of Turtle, so that what --as turtle prints stays Turtle
    if not isinstance(error, UnicodeEncodeError):
        raise error
    codes = map(ord, error.object[error.start : error.end])
    return "".join(f"\\u{n:04X}" if n < 2**16 else f"\\U{n:08X}" for n in codes), error.end


_ESCAPED = "capacity.escaped"
codecs.register_error(_ESCAPED, _escaped)


class OutputError(OSError):
    """Standard output can't be written."""


class Output:
    """Standard output, whose errors differ from those of other files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return self._stream.write(text)
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None

    def flush(self) -> None:
        """Write what is held back."""
        try:
            self._stream.flush()
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None

    def give_up(self) -> None:
        """Drop what is held back, which Python would try to write again at its end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        # a stream within Python has no descriptor
        with suppress(OSError, ValueError):
            os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[Output | None]:
    """Show as escapes what the encoding of a stream can't hold, until the context ends.

    Standard error may be closed; what is printed there is then lost, and doesn't go to standard
    output.

    Yields
    ------
    Output or None
        Standard output; None if it is closed.
    """
    out, err = sys.stdout, sys.stderr
    with ExitStack() as stack:
        if err is None:
            err = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123
        for stream in (out, err):
            if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
                stream.reconfigure(errors=_ESCAPED)
                stack.callback(stream.reconfigure, errors="strict")
        output = None if out is None else Output(out)
        stack.enter_context(redirect_stderr(err))
        # this also ends the parser's wrapper of a broken pipe
        stack.enter_context(redirect_stdout(output))  # type: ignore[type-var]
        yield output


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
