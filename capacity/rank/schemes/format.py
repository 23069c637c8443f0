"""`SchemeFormat`: a format of schemes, the file that a reader gets, and the list of formats.

Files of one format differ in it, and few name it. So a reader returns every way in which the
numbers make matrices of factors, and the one that adds up to the tensor is taken. It is recognised
by the values of the multilinear form at random points modulo a prime: by Schwartz and Zippel two
forms of degree 3 that differ agree at one with a probability of 3 / p at most. This chooses, and
proves nothing: `verify_decomposition` does that.

References
----------
J. T. Schwartz, Fast probabilistic algorithms for verification of polynomial identities, JACM 27,
1980.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import nearest, shown
from capacity.display import briefly_shown
from capacity.errors import DecompositionFormatError, InvalidArgumentError
from capacity.rank.coefficients import GaussianRational
from capacity.rank.decompositions import of_transposed
from capacity.reading_limits import Limits
from capacity.tensor.sparse import SparseTensor

# a matrix of factors for each mode, shapes (n_m, rank)
Matrices: TypeAlias = tuple[NDArray[Any], ...]

# a prime below 2^31, so that products fit int64, and a number whose square is -1 modulo it
_PRIME = 2**31 - 19
_ROOT = next(
    root
    for base in range(2, 100)
    if (root := pow(base, (_PRIME - 1) // 4, _PRIME)) ** 2 % _PRIME == _PRIME - 1
)


def sides_of(sizes: Sequence[int]) -> tuple[int, int, int] | None:
    """Return n, m and p if three modes have the sizes n m, m p and n p.

    Examples
    --------
    >>> sides_of([6, 12, 8]), sides_of([2, 2, 2])
    ((2, 3, 4), None)
    """
    if len(sizes) != 3 or not all(sizes):
        return None
    a, b, c = sizes
    n, m, p = isqrt(a * c // b), isqrt(a * b // c), isqrt(b * c // a)
    return (n, m, p) if (n * m, m * p, n * p) == (a, b, c) else None


def by_columns(matrices: Iterable[NDArray[Any]]) -> Iterator[Matrices]:
    """Yield matrices whose columns are the terms, if they have the same number of columns."""
    given = tuple(matrices)
    if (
        all(matrix.ndim == 2 for matrix in given)
        and len({matrix.shape[1] for matrix in given}) == 1
    ):
        yield given


def by_rows(matrices: Iterable[NDArray[Any]]) -> Iterator[Matrices]:
    """Yield matrices whose rows are the terms, if they have the same number of rows."""
    return by_columns([matrix.T for matrix in matrices])


def settled(readings: Sequence[Matrices], tensor: SparseTensor | None) -> tuple[Matrices, bool]:
    """Return the reading that adds up to the tensor, and whether its C was transposed.

    Parameters
    ----------
    readings : sequence of Matrices
        At least one; the first is taken where none adds up.
    tensor : SparseTensor or None
        The tensor; by default the product of matrices of these sizes.
    """
    for matrices in readings:
        if _adds_up(matrices, tensor):
            return matrices, False
    for matrices in readings:
        if (sides := sides_of([len(matrix) for matrix in matrices])) is not None:
            n, _, p = sides
            turned = (*matrices[:2], of_transposed(matrices[2], (n, p)))
            if _adds_up(turned, tensor):
                return turned, True
    return readings[0], False


def _adds_up(matrices: Matrices, tensor: SparseTensor | None) -> bool:
    sizes = [len(one) for one in matrices]
    sides = sides_of(sizes)
    if (sides is None) if tensor is None else list(tensor.shape) != sizes:
        return False
    rng = np.random.default_rng(0)
    points = [rng.integers(0, _PRIME, size) for size in sizes]
    terms = np.ones(matrices[0].shape[1], np.int64)
    for point, matrix in zip(points, matrices, strict=True):
        residues = _residues(matrix)
        if residues is None:
            return False
        terms = terms * ((residues * point[:, None] % _PRIME).sum(axis=0) % _PRIME) % _PRIME
    return int(terms.sum() % _PRIME) == _value(points, sides, tensor)


def _value(
    points: list[NDArray[np.int64]], sides: tuple[int, int, int] | None, tensor: SparseTensor | None
) -> int:
    """Value of the tensor's form at a point for each mode."""
    if tensor is not None:
        total = tensor.values % _PRIME
        for mode, point in enumerate(points):
            total = total * point[tensor.indices[:, mode]] % _PRIME
        return int(total.sum() % _PRIME)
    n, m, p = sides or (0, 0, 0)
    a, b, c = points[0].reshape(n, m), points[1].reshape(m, p), points[2].reshape(n, p)
    product = np.zeros((n, p), np.int64)
    for j in range(m):
        product = (product + a[:, j, None] * b[None, j] % _PRIME) % _PRIME
    return int((product * c % _PRIME).sum() % _PRIME)


def _residues(matrix: NDArray[Any]) -> NDArray[np.int64] | None:
    """Numbers modulo the prime; None if one has the prime in its denominator."""
    if matrix.dtype != object:
        return matrix % _PRIME
    flat = matrix.ravel().tolist()
    parts = [(x.real, x.imag) if isinstance(x, GaussianRational) else (x, 0) for x in flat]
    if any(of.denominator % _PRIME == 0 for x in parts for of in x):
        return None
    # i is taken to a root of -1, sums to sums and products to products
    found = [(_residue(real) + _ROOT * _residue(imag)) % _PRIME for real, imag in parts]
    return np.array(found, np.int64).reshape(matrix.shape)


def _residue(x: int | Fraction) -> int:
    if x.denominator > 1:
        return x.numerator * pow(x.denominator, -1, _PRIME) % _PRIME
    return int(x) % _PRIME


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
