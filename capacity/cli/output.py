"""What the commands share: options, JSON, files, progress."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from capacity.database.io.load import ALIASES
from capacity.database.policy import MultiPolicy
from capacity.errors import MissingExtraError
from capacity.safe_files import write_whole

File = Annotated[
    Path, typer.Argument(help="RDF, TSV or CSV; may be compressed.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MultiOption = Annotated[
    MultiPolicy | None,
    typer.Option(help="What to do with (subject, predicate) pairs of several objects."),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help=f"{', '.join(ALIASES)}; guessed if left out.")
]
DeviceOption = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to train.")]


# what optional parts of the library import
EXTRAS = {
    "layers": ("torch", "safetensors", "jaxtyping"),
    "transformers": ("torch", "safetensors", "jaxtyping", "transformers"),
}


def require_extra(what: str, extra: str) -> None:
    """Raise a MissingExtraError, which says what to install, unless an extra is there."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}; install the extra: "
            f"pip install 'knowledge-capacity[{extra}]'"
        )


def print_json(data: Any) -> None:
    """Print one line of JSON, and nothing else."""
    print(json.dumps(plain(data)))


def plain(data: Any) -> Any:
    """JSON knows no NaN: a number that isn't there is null."""
    if isinstance(data, Mapping):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all, and the folders that it needs."""
    write_whole(path, text.encode())


@contextmanager
def spinner(what: str) -> Iterator[Callable[[str], None]]:
    """A sign of life on standard error, silent when that is not a terminal.

    What it yields takes more words, such as how far things are.
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
