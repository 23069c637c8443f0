"""Progress on a terminal: a spinner, and a bar with the time left.

Both are silent if standard error isn't a terminal, or another one is shown, and import rich when
they are used. What takes hours may ask for a line now and then instead, for a log.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from typing import Protocol, TypeAlias

from capacity.visible import visible

# called with the name of what is counted, the number done, the total, and an estimate of the
# seconds left: None if there is no better one than the speed so far
Progress: TypeAlias = Callable[[str, int, int, float | None], object]


# whether one is shown; a terminal has one line for them
_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)


class Bar(Protocol):
    """A `Progress` that draws a bar; the seconds left may be omitted."""

    def __call__(self, what: str, done: int, total: int, left: float | None = None, /) -> None:
        """Draw the bar with these numbers."""

    def note(self, text: str, /) -> None:
        """Show a text beside the bar, such as the loss of a training."""


class _Silent:
    """The bar where there is no terminal."""

    def __call__(self, what: str, done: int, total: int, left: float | None = None, /) -> None:
        pass

    def note(self, text: str, /) -> None:
        pass


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on standard error; silent if that isn't a terminal.

    Yields a function that shows a text beside the spinner, such as the state of the work.
    """
    if not _may_be_terminal():
        yield lambda _more: None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if console.is_terminal:
        # as Text: what is in brackets would else be markup
        with _alone(), console.status(Text(visible(what))) as status:
            yield lambda more: status.update(Text(visible(f"{what}: {more}")))
    else:
        yield lambda _more: None


@contextmanager
def _alone() -> Iterator[None]:
    token = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def _may_be_terminal() -> bool:
    """Return False if rich would find no terminal, or one in use; it isn't worth its import."""
    if _SHOWN.get():
        return False
    # FORCE_COLOR asks for colours in a file, where a moving bar would leave a line a step
    asked = {"0": False, "1": True}.get(os.environ.get("TTY_COMPATIBLE", ""))
    return sys.stderr.isatty() if asked is None else asked


class _Lines:
    """The bar where a line is written now and then."""

    def __init__(self) -> None:
        self._line = ""

    def __call__(self, what: str, done: int, total: int, left: float | None = None, /) -> None:
        self._line = f"{what}: {done:,} of {total:,} done"
        if left is not None:
            self._line += f", {_about(left)} left"

    def note(self, text: str, /) -> None:
        pass

    def write(self) -> None:
        """Write how far the work is, if it has reported that."""
        if self._line:
            with suppress(OSError, ValueError):
                print(visible(self._line), file=sys.stderr, flush=True)


def _about(seconds: float) -> str:
    """Write a duration in one unit."""
    units = ((3600, "hours"), (60, "minutes"), (1, "seconds"))
    unit, name = next(u for u in units if seconds > 1.5 * u[0] or u[0] == 1)
    return f"about {seconds / unit:.0f} {name}"


@contextmanager
def _every(seconds: float) -> Iterator[_Lines]:
    """Write a line each time that the seconds have passed, however long a step takes."""
    lines, ended = _Lines(), Event()

    def write() -> None:
        while not ended.wait(seconds):
            lines.write()

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        with _alone():
            yield lines
    finally:
        ended.set()
        writer.join()


@contextmanager
def bar(*, line_every: float | None = None) -> Iterator[Bar]:
    """Show progress, speed and time left on standard error.

    Parameters
    ----------
    line_every : float, optional
        Seconds after which a line is written if standard error isn't a terminal; by default it is
        silent there.
    """
    if not _may_be_terminal():
        if line_every is None or _SHOWN.get() or sys.stderr is None:
            yield _Silent()
            return
        with _every(line_every) as lines:
            yield lines
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Speed(TextColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:.3g}/s" if speed else "", style="progress.data.speed")

    class Left(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            until = task.fields.get("until")
            if until is None:
                return super().render(task)
            minutes, seconds = divmod(max(0, round(until - time.monotonic())), 60)
            left = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
            return Text(left, style="progress.remaining")

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(),
               MofNCompleteColumn(), Speed(""), TimeElapsedColumn(), TextColumn("left"), Left(),
               TextColumn("{task.fields[note]}", markup=False))  # fmt: skip
    with _alone(), Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, note="")

        class Drawn:
            counted = ""

            def __call__(
                self, what: str, done: int, total: int, left: float | None = None, /
            ) -> None:
                until = None if left is None else time.monotonic() + left
                # for a new count the clock restarts: earlier work must not enter its speed
                if what == self.counted:
                    bar.update(task, completed=done, total=total, until=until)
                else:
                    bar.reset(task, description=visible(what), completed=done, total=total,
                              until=until, note="")  # fmt: skip
                self.counted = what

            def note(self, text: str, /) -> None:
                bar.update(task, note=visible(text))

        yield Drawn()
