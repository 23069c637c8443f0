"""The files that commands are about: facts in one or several, united, or one tensor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from capacity.cli.sources.endpoints import Address, path_or_address
from capacity.errors import InvalidArgumentError
from capacity.tensor.names import written

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
