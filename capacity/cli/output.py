"""Options, help, JSON and files that the commands share.

Such values are one of a closed set, which depends on the library.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from capacity.errors import InvalidArgumentError
from capacity.optional import require_packages
from capacity.safe_files import require_replaceable, write_whole

if TYPE_CHECKING:
    import pandas as pd


# of commands
FACTS = "Databases of facts"
LAYERS = "Attention layers"
MODELS = "Pretrained models"
PAGES = "Pages to send"
INSTALLATION = "This installation"
# of options
READING = "Reading the file"
CHOOSING = "Choosing facts"
COUNTING = "Counting facts where they are"
ANALYSIS = "Analysis"
SEARCH = "Search"
MODEL = "Pretrained model"
LAYER = "Layer"
TRAINING = "Training"
COMPUTE = "Compute"
OUTPUT = "Output"


def epilog(examples: Sequence[str]) -> str:
    """Write examples as the end of a command's help.

    Parameters
    ----------
    examples : sequence of str
        Command lines.

    Returns
    -------
    str
        Paragraphs, which the help separates: a line break within one isn't kept.

    Examples
    --------
    >>> epilog(["capacity rank facts.ttl"]).splitlines()[::2]
    ['Examples:', '$ capacity rank facts.ttl']
    """
    return "\n\n".join(["Examples:", *(f"$ {line}" for line in examples)])


# the variable by which a shell asks for completions
ASKED = "_CAPACITY_COMPLETE"


def one_of(choices: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make the function that completes an option with one of some values.

    Parameters
    ----------
    choices : callable
        Returns the values; called when the shell asks, so that nothing is imported before.

    Returns
    -------
    callable
        From the beginning of a value, the values with this beginning.

    Examples
    --------
    >>> one_of(lambda: ["turtle", "trig", "csv"])("t")
    ['turtle', 'trig']
    """

    def complete(incomplete: str) -> list[str]:
        found = [choice for choice in choices() if choice.startswith(incomplete)]
        # bash inserts what it is given; other shells escape it themselves
        bash = os.environ.get(ASKED, "").endswith("bash")
        return [choice.replace(" ", r"\ ") for choice in found] if bash else found

    return complete


# suffixes of the tables that commands write
TABLES = (".csv", ".parquet")


Json = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)
]
Cited = Annotated[
    bool,
    typer.Option(
        "--cited/--no-cited",
        help="Let proofs rest on published theorems that the library doesn't prove.",
        rich_help_panel=ANALYSIS,
    ),
]
# the same for each command, whose defaults differ
EFFORT_OPTION: Any = typer.Option(
    help="How hard to search. On small databases quick takes about 1 s, standard 30 s, and "
    "thorough minutes.",
    rich_help_panel=SEARCH,
)
CERTIFICATE_OPTION: Any = typer.Option(
    help="Write the bounds with their proofs to this JSON file, for capacity verify.",
    rich_help_panel=OUTPUT,
)
TEXT_OPTION: Any = typer.Option(
    help="Text that the model reads.", show_default=False, rich_help_panel=MODEL
)
DeviceOption = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option(help="Device to train on.", rich_help_panel=COMPUTE),
]


def seed_option(panel: str) -> Any:
    """Make the option of a seed, in a panel of the help."""
    from capacity.checks import MAX_SEED

    return typer.Option(
        help="Seed of the random numbers; the same seed yields the same result.",
        min=0,
        max=MAX_SEED,
        rich_help_panel=panel,
    )


def print_json(data: Any) -> None:
    """Print one line of JSON, and nothing else."""
    # all but ASCII is escaped already; JSON would allow this one control character as it is
    print(json.dumps(plain(data)).replace("\x7f", r"\u007f"))


def plain(data: Any) -> Any:
    """Replace numbers that aren't finite by None, because JSON has no NaN."""
    if isinstance(data, Mapping):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def new_folder(file: Path) -> str:
    """State that a file's folder will be made; empty if it is there."""
    return "" if file.parent.is_dir() else ", in a new folder"


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all, and make missing folders."""
    write_whole(path, text.encode())


def require_table(path: Path, option: str) -> None:
    """Refuse a path that no table can be written to, before the table is computed.

    Raises
    ------
    InvalidArgumentError
        If its suffix isn't .csv or .parquet.
    StorageError
        If it is a folder, a pipe or a device.
    """
    if path.suffix.lower() not in TABLES:
        raise InvalidArgumentError(f"{option} must end in {' or '.join(TABLES)}; got {path}.")
    require_replaceable(path)


def require_output(path: Path, option: str, what: str) -> None:
    """Refuse a path that neither a figure nor a table can be written to, before it is computed.

    Parameters
    ----------
    path : Path
        File that is to be written.
    option : str
        Option that names it.
    what : str
        The figure, as a message begins if a package for it is missing.

    Raises
    ------
    InvalidArgumentError
        If its suffix is of neither.
    MissingExtraError
        For a figure, if matplotlib isn't installed.
    StorageError
        If it is a folder, a pipe or a device.
    """
    if path.suffix.lower() in TABLES:
        require_table(path, option)
        return
    from capacity.plots.theme import METADATA, require_drawable

    if path.suffix.lower() not in METADATA:
        raise InvalidArgumentError(
            f"{option} must name a figure ({', '.join(METADATA)}) or a table "
            f"({', '.join(TABLES)}); got {path}."
        )
    require_packages(what, ("matplotlib",), "plots")
    require_drawable(path)


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table whole or not at all, as CSV or Parquet by the suffix of the file.

    Raises
    ------
    InvalidArgumentError
        For a label that isn't text in UTF-8, since it holds half of a character.
    StorageError
        If the file can't be written; no part of it is left then.
    """
    data = io.BytesIO()
    try:
        if path.suffix.lower() == ".csv":
            data.write(table.to_csv(index=False, lineterminator="\n").encode())
        else:
            table.to_parquet(data, index=False)
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"{path}: a table must be text in UTF-8; a label holds half of a character. Rename it."
        ) from None
    write_whole(path, data.getvalue())
