"""Options, JSON and files, as all commands have them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from capacity.database.io.formats import FORMATS
from capacity.database.policy import MultiPolicy
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
    str | None, typer.Option("--format", help=f"{', '.join(FORMATS)}; guessed if left out.")
]
DeviceOption = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Where to train.")]


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
