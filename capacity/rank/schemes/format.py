"""`SchemeFormat`: a format of schemes, the file that a reader gets, and the list of formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.checks import nearest, shown
from capacity.display import briefly_shown
from capacity.errors import DecompositionFormatError, InvalidArgumentError
from capacity.rank.coefficients import GaussianRational
from capacity.rank.schemes.layout import Matrices
from capacity.reading_limits import Limits

_DEFAULT = Limits()
ADVICE = "A decomposition has integers or fractions, and the same number of terms in each factor."


@briefly_shown
@dataclass(frozen=True)
class SchemeFile:
    """A file, or several that belong together, as a reader of a format gets it.

    Attributes
    ----------
    name : str
        Path, for messages.
    data : bytes
        The whole file, decompressed.
    format : str
        Name of the format.
    limits : Limits
        Limits of reading it.
    shape : tuple of int or None
        Shape of the tensor that is to be decomposed, if it is known.
    others : tuple of SchemeFile
        The files that belong to this one, such as those of R and P to that of L.
    """

    name: str
    data: bytes
    format: str = ""
    limits: Limits = _DEFAULT
    shape: tuple[int, ...] | None = None
    others: tuple[SchemeFile, ...] = ()

    def text(self) -> str:
        """Return the file as text.

        Raises
        ------
        DecompositionFormatError
            If it isn't UTF-8.
        """
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise self.error("it isn't text in UTF-8", line=line) from None

    def error(
        self, reason: object, *, line: int | None = None, advice: str = ADVICE
    ) -> DecompositionFormatError:
        """Make the error that states what is wrong with the file, and in which line."""
        return DecompositionFormatError(
            self.name, str(reason), format=self.format, line=line, advice=advice
        )

    def require_cells(self, n_cells: int) -> None:
        """Refuse matrices of more numbers than the limits allow, before they are made.

        Raises
        ------
        DecompositionFormatError
            With the limit.
        """
        if excess := self.limits.excess(cells=n_cells):
            raise self.error(excess[0], advice=excess[1])

    def empty(self, *shape: int) -> NDArray[np.object_]:
        """Return a matrix of zeros, within the limits."""
        self.require_cells(int(np.prod(shape, dtype=object)))
        return np.zeros(shape, dtype=object)


@briefly_shown
@dataclass(frozen=True)
class SchemeFormat:
    """A format in which decompositions are published.

    Attributes
    ----------
    name : str
        Its name, in lower case.
    suffixes : tuple of str
        Ends of names of files, such as ``.json``.
    read : callable
        Returns of a `SchemeFile` the ways to read it, as `layout.settled` takes them: for each a
        matrix for each mode, of integers and fractions, whose columns are the terms. What is wrong
        is raised by `SchemeFile.error`.
    parts : tuple of str
        Ends of the names of files that belong together, in the order of the modes.
    write : callable, optional
        Returns of the matrices of a decomposition the bytes of its file, or of its files in the
        order of `parts`. What the format can't hold is raised as `NotRationalError`.
    is_complex : bool
        True if `write` takes complex numbers, which are `GaussianRational`.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[SchemeFile], Iterable[Matrices]]
    parts: tuple[str, ...] = ()
    write: Callable[[Matrices], Sequence[bytes]] | None = None
    is_complex: bool = False


FORMATS: dict[str, SchemeFormat] = {}


def register_scheme_format(format: SchemeFormat) -> None:
    """Register a format, so that `read_decomposition` reads its files.

    Parameters
    ----------
    format : SchemeFormat
        Its name and its suffixes must be its own.

    Raises
    ------
    InvalidArgumentError
        If one of them is taken.

    Examples
    --------
    >>> register_scheme_format(SchemeFormat("ones", (".ones",), lambda file: []))
    >>> unregister_scheme_format("ones").suffixes
    ('.ones',)
    """
    suffixes = {suffix for one in FORMATS.values() for suffix in one.suffixes}
    if format.name in FORMATS or suffixes & set(format.suffixes):
        raise InvalidArgumentError(
            f"The name and the suffixes of a format must be its own; got {shown(format.name)} with "
            f"{shown(format.suffixes)}. `unregister_scheme_format` frees them."
        )
    FORMATS[format.name] = format


def unregister_scheme_format(name: str) -> SchemeFormat:
    """Remove a format from the registry, and return it.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    SchemeFormat
        Which files can't be read in any longer.

    Raises
    ------
    InvalidArgumentError
        If there is none of that name.

    Examples
    --------
    >>> register_scheme_format(SchemeFormat("twos", (".twos",), lambda file: []))
    >>> unregister_scheme_format("twos").name
    'twos'
    """
    return FORMATS.pop(format_named(name).name)


def format_named(name: str) -> SchemeFormat:
    """Return the format of a name.

    Raises
    ------
    InvalidArgumentError
        With the nearest name, if there is none.
    """
    if name not in FORMATS:
        raise InvalidArgumentError(
            f"`format` must be one of {', '.join(FORMATS)}; got {shown(name)}."
            f"{nearest(name, FORMATS)}"
        )
    return FORMATS[name]


def format_of(name: str) -> SchemeFormat | None:
    """Return the format that the end of a file's name denotes; None if it denotes none."""
    plain = name.lower().removesuffix(".gz")
    fitting = [
        (len(suffix), one)
        for one in FORMATS.values()
        for suffix in one.suffixes
        if plain.endswith(suffix)
    ]
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def as_stored(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return a matrix of int64 if all its numbers are such integers, as `Factors` has it."""
    numbers = matrix.ravel().tolist()
    whole = not any(isinstance(x, GaussianRational) for x in numbers) and all(
        x.denominator == 1 and abs(x) < 2**63 for x in numbers
    )
    return matrix.astype(np.int64) if whole else matrix
