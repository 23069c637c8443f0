"""The files that commands are about: facts in one or several, united, or one tensor."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from urllib.parse import urlsplit

import typer

from capacity.cli.output import COUNTING
from capacity.cli.selecting import Chosen
from capacity.database.io.files.formats import format_of_name
from capacity.errors import InvalidArgumentError
from capacity.progress import bar
from capacity.tensor.names import written

if TYPE_CHECKING:
    from capacity.stores.counts import StoreCounts


SECONDS = "--timeout"


def named_path(name: str) -> Path:
    """Return the path of an argument; an empty one would be the current folder.

    Raises
    ------
    BadParameter
        For an empty name.
    """
    if not name:
        raise typer.BadParameter("The path must not be empty.")
    return Path(name)


class Address(str):
    """The address of an endpoint as it was typed: a path would lose a part of it."""

    __slots__ = ()


def path_or_address(name: str) -> Path | Address:
    """Return an address of http or https, or else the path of an argument.

    Raises
    ------
    BadParameter
        For an empty name.
    """
    from capacity.database.io.sparql.endpoints import is_address

    return Address(name) if is_address(name) else named_path(name)


Timeout = Annotated[
    float | None,
    typer.Option(
        SECONDS,
        help="Seconds that a SPARQL endpoint may take for a count; by default 300. With --views, "
        "seconds for reading the view.",
        rich_help_panel=COUNTING,
    ),
]


def refuse_timeout(timeout: float | None) -> None:
    """Raise an InvalidArgumentError for an option that a file has no use for."""
    if timeout is not None:
        raise InvalidArgumentError(
            f"{SECONDS} is an option of endpoints, whose address begins with https://. Omit it."
        )


def count_address(
    address: Address, chosen: Chosen, timeout: float | None, refused: Mapping[str, object]
) -> StoreCounts:
    """Count the facts of an endpoint.

    Parameters
    ----------
    address : Address
        Its address.
    chosen : Chosen
        What the user selects of it: a graph, and nothing else.
    timeout : float or None
        Seconds that it may be silent.
    refused : mapping of str to object
        By their names, options that an endpoint has no use for; None or False where not given.

    Raises
    ------
    CapacityError
        For such an option, or as `capacity.stores.count_endpoint` does.
    """
    from capacity.database.io.sparql.endpoints import endpoint_at
    from capacity.stores.sparql import count_endpoint

    name = endpoint_at(str(address)).name
    if format_of_name(urlsplit(str(address)).path) is not None:
        raise InvalidArgumentError(
            f"{name}: its name is that of a file, and files are not fetched. Save it, and pass the "
            "path of the copy; an endpoint answers queries at an address such as "
            "https://example.org/sparql."
        )
    flags = chosen.flags()
    options: dict[str, Any] = {} if timeout is None else {"timeout": timeout}
    if "graph" in flags:
        options["graph"] = flags.pop("graph")
    for option, value in {**flags, **refused}.items():
        if value not in (None, False):
            raise InvalidArgumentError(
                f"{name}: --{option} needs the facts, and an endpoint counts its facts itself. "
                f"Omit --{option}, or load the facts that you mean by Database.from_sparql."
            )
    with bar() as progress:
        return count_endpoint(str(address), progress=progress, **options)


def graph_json(chosen: Chosen) -> dict[str, Any] | None:
    """Return the chosen graph for JSON, as `selection_json` has it; None for all of them."""
    names = ("graph", "skip_errors")
    options = {name: chosen.reading[name] for name in names if name in chosen.reading}
    return {"options": options, "of": None, "kept": None, "omitted": {}} if options else None


# one file, folder, pattern or address, or several files
Given: TypeAlias = Path | Address | list[Path]
_FACTS = (
    "Files of facts (RDF or tables), or folders or patterns of such files. They may be compressed. "
    "The facts of several files are united."
)
_TENSOR = (
    f"Or a tensor (.npy, .tns, .npz, .mtx or .pt), or the name of one: {written()}."
)  # fmt: skip
_FOLDER = "Or the folder of a sweep, or of a model that save_pretrained wrote."
_ENDPOINT = "Or the address of a SPARQL endpoint, https://..."


def _argument(*said: str) -> Any:
    return typer.Argument(help=" ".join(said), show_default=False, parser=path_or_address)


Files = Annotated[list[Path], _argument(_FACTS)]
FilesOrEndpoint = Annotated[list[Path], _argument(_FACTS, _ENDPOINT)]
FilesOrTensor = Annotated[list[Path], _argument(_FACTS, _TENSOR)]
FilesOrFolder = Annotated[list[Path] | None, _argument(_FACTS, _FOLDER)]
FilesTensorOrEndpoint = Annotated[list[Path], _argument(_FACTS, _ENDPOINT, _TENSOR)]


def one_or_several(files: Sequence[Path]) -> Given:
    """Return the only file, or else all of them.

    Examples
    --------
    >>> one_or_several([Path("a.nt")]) == Path("a.nt")
    True
    """
    return files[0] if len(files) == 1 else list(files)


def each(given: Given) -> list[Path]:
    """List the files.

    Examples
    --------
    >>> each(Path("a.nt")) == [Path("a.nt")]
    True
    """
    return given if isinstance(given, list) else [given]  # type: ignore[list-item]


def in_words(given: Given) -> str:
    """Name the files in a message.

    Examples
    --------
    >>> in_words([Path("a.nt"), Path("b.nt")])
    'a.nt, b.nt'
    """
    names = [os.fspath(one) for one in each(given)]
    return names[0] if len(names) == 1 else f"{', '.join(names):.200}"


def require_alone(given: Given | Sequence[Path], file: Path, what: str) -> None:
    """Refuse a file that can't be united with others.

    Parameters
    ----------
    given : Given
        All files.
    file : Path
        The file.
    what : str
        What it is, such as ``a tensor``.

    Raises
    ------
    InvalidArgumentError
        If there are others.
    """
    n = 1 if isinstance(given, Path | str) else len(given)
    if n > 1:
        raise InvalidArgumentError(
            f"{file!s:.200}: {what} must be given alone; got {n} files, whose facts would be "
            "united. Pass it alone."
        )
