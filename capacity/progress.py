"""Signs of progress on a terminal: a spinner, and a bar with the time left.

Both are silent where standard error is no terminal, and load rich only when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str], None]]:
    """A sign of life on standard error, silent when that is not a terminal.

    What it yields takes further words, such as how far the work is.
    """
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what) as status:
            yield lambda more: status.update(f"{what}: {escape(more)}")
    else:
        yield lambda _more: None


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """Progress, its speed and the time left, on standard error; silent without a terminal.

    What it yields takes what is counted, how many are done, and how many there are.
    """
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

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Speed(""),
               TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        counted = ""

        def tell(what: str, done: int, total: int) -> None:
            nonlocal counted
            # what was done before is no part of the speed
            (bar.update if what == counted else bar.reset)(
                task, description=what, completed=done, total=total
            )
            counted = what

        yield tell
