"""The file that `rank` and `verify` are about: facts, or a tensor."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from capacity.cli.output import READING, one_of
from capacity.cli.selecting import Chosen, load_chosen
from capacity.cli.sources.files import Address, Given, each, in_words, require_alone
from capacity.database.facts import Database
from capacity.database.io.files.formats import FORMATS, format_of_name
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidArgumentError
from capacity.reading_limits import Limits
from capacity.tensor.files import (
    READ,
    begins_as_matrix_or_facts,
    begins_as_tensor,
    parse_tensor,
)
from capacity.tensor.names import is_named, named_tensor
from capacity.tensor.sparse import SparseTensor

TENSOR_FORMATS = ("npy", "tns", "npz", "mtx", "pt")
# limits of tensors and of facts, as keywords and as options
_LIMITS = ("max_bytes", "max_growth", "max_rows", "max_cells")
_SHARED = ("max-file-bytes", "max-growth", "max-rows", "max-cells")
FactsOrTensorFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"{', '.join([*FORMATS, *TENSOR_FORMATS])}; by default guessed.",
        autocompletion=one_of(lambda: [*FORMATS, *TENSOR_FORMATS]),
        rich_help_panel=READING,
    ),
]


@dataclass(frozen=True)
class Input:
    """Facts or a tensor, with the name of their file and the SHA-256 of its bytes."""

    of: Database | SparseTensor
    source: str | None
    sha256: str | None


class _Piped(io.BytesIO):
    """Bytes of standard input, under its name."""

    name = "-"


def is_name(file: Path) -> bool:
    """Return whether it is the name of a tensor and not of a file that there is."""
    return is_named(os.fspath(file)) and not file.exists()


def is_tensor(given: Given, format: str | None) -> bool:
    """Return whether a file holds a tensor, by its format, name or beginning.

    Raises
    ------
    InvalidArgumentError
        If it is one of several, or may be a matrix and may be facts.
    """
    tensor = next((file for file in each(given) if _is_tensor(file, format)), None)
    if tensor is not None:
        require_alone(given, tensor, "a tensor")
    return tensor is not None


def _is_tensor(file: Path, format: str | None) -> bool:
    if isinstance(file, Address):
        return False
    if is_name(file):
        return True
    if format is not None:
        return format.lower() in TENSOR_FORMATS
    if file.name.lower().endswith(READ):
        return True
    # a name that tells a format of facts is believed, and what isn't a regular file is read once
    if format_of_name(file.name) is not None or not file.is_file():
        return False
    try:
        with file.open("rb") as held:
            beginning = held.read(2**12)
    except OSError:
        # reading it tells what is wrong
        return False
    return _holds_tensor(file, beginning)


def _holds_tensor(file: Path, beginning: bytes) -> bool:
    if begins_as_matrix_or_facts(beginning):
        raise InvalidArgumentError(
            f"{file}: three integers in its first line may be an entry of a matrix, or a fact. "
            "Pass --format tns if it is a matrix; for facts, divide the cells by tabs, and pass "
            "--format tsv."
        )
    return begins_as_tensor(beginning)


def read_input(
    given: Given,
    *,
    format: str | None,
    multi: MultiPolicy | None,
    chosen: Chosen,
) -> Input:
    """Read the chosen facts of files, or a tensor if the format, name or beginning is of one.

    Raises
    ------
    CapacityError
        If the file can't be read, or an option about facts is given for a tensor.
    """
    from capacity.rank.verifier.named import tensor_of
    from capacity.safe_files import read_file

    limits = Limits(**{name: chosen.reading[name] for name in _LIMITS if name in chosen.reading})
    # standard input has no name that tells, and can be read once
    piped = None
    if format is None and not isinstance(given, list) and os.fspath(given) == "-":
        piped = read_file(given, max_bytes=limits.max_bytes)
    tensor = is_tensor(given, format) if piped is None else _holds_tensor(Path("-"), piped)
    if isinstance(given, list) or not tensor:
        facts = given if piped is None else _Piped(piped)
        db = load_chosen(facts, chosen, format=format, multi=multi)
        of_file = db.source
        return Input(db, of_file and of_file.name, of_file and of_file.sha256)
    file = Path(given)
    # `verify` keeps all facts of what may be some
    asked = None if piped is not None and multi == "keep" else multi
    refuse_options_of_facts(file, multi=asked, **chosen.flags())
    if is_name(file):
        return Input(named_tensor(os.fspath(file)), os.fspath(file), None)
    raw = read_file(file, max_bytes=limits.max_bytes) if piped is None else piped
    tensor = parse_tensor(os.fspath(file), raw, limits)
    try:
        tensor_of(tensor)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{file}: {error}") from None
    return Input(tensor, file.name, hashlib.sha256(raw).hexdigest())


def refuse_options_of_facts(file: Given, **options: object) -> None:
    """Raise an InvalidArgumentError for an option that a tensor has no use for."""
    for name, value in options.items():
        # files of both kinds may be limited
        if value is not None and name not in _SHARED:
            raise InvalidArgumentError(
                f"{in_words(file)}: --{name} is about files of facts, and this is read as a "
                f"tensor. Omit --{name}, or pass --format with a format of facts: "
                f"{', '.join(FORMATS)}."
            )
