"""`as_tensor`: tensors in whatever form they come, as integers, and as floats for estimates.

A form that `from_dense` doesn't know is a line in `CONVERTERS`, or one that another package
registers.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

from capacity.converters import Converter, Converters
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.tensor.dense import from_dense
from capacity.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# what `as_tensor` takes, of which other libraries' classes have no name here
TensorLike: TypeAlias = Union[SparseTensor, str, os.PathLike[str], "ArrayLike", Any]

CONVERTERS = Converters([
    Converter("file", (str, os.PathLike), "capacity.tensor.files:read_tensor"),
])  # fmt: skip
ESTIMATES = (
    "For a tensor of floats, capacity.cp_estimate(tensor) and "
    "capacity.rank.numerical_rank_estimates(tensor) estimate the rank, without a certificate."
)


def as_tensor(tensor: TensorLike) -> SparseTensor:
    """Return a tensor of integers, in whatever form it comes.

    Parameters
    ----------
    tensor : tensor, array_like or path
        A `SparseTensor`, which is returned as it is; an array of numpy or torch, nested lists, a
        decomposition of tensorly, or a sparse array of scipy, of which one of two modes is a
        matrix, as `from_dense` takes them; a path, which `read_tensor` reads; or what a registered
        converter takes.

    Returns
    -------
    SparseTensor
        The tensor.

    Raises
    ------
    InvalidTypeError
        For an open file, and for a table.
    InvalidArgumentError
        As `from_dense`: for entries that aren't integers; then with what estimates the rank.
    TensorFormatError
        As `read_tensor`.

    Examples
    --------
    >>> as_tensor([[1, 0], [0, -2]])
    SparseTensor(2 x 2, 2 entries from -2 to 1)
    """
    given = tensor_given(tensor)
    if isinstance(given, SparseTensor):
        return given
    for name, what in (("read", "an open file: name it by its path"),
                       ("__arrow_c_stream__", "a table: its facts are "
                        "capacity.database.as_database(table)")):  # fmt: skip
        if hasattr(type(given), name):
            raise InvalidTypeError(f"A tensor must be an array, lists, or a path; got {what}.")
    try:
        return from_dense(given)
    except InvalidArgumentError as error:
        if not _holds_floats(given):
            raise
        raise InvalidArgumentError(f"{error} {ESTIMATES}") from None


def as_floats(tensor: TensorLike) -> NDArray[np.float64]:
    """Return numbers of any kind as an array of floats, for estimates.

    Parameters
    ----------
    tensor : tensor, array_like or path
        What `as_tensor` takes, with any real entries.

    Raises
    ------
    InvalidTypeError, ValueError
        For what isn't an array of real numbers.
    """
    given = tensor_given(tensor)
    if "complex" in str(getattr(given, "dtype", "")):
        raise InvalidTypeError("A tensor must hold real numbers; got complex ones.")
    if isinstance(given, SparseTensor):
        return given.to_numpy(np.float64)
    if hasattr(given, "to_tensor"):
        given = given.to_tensor()
    if hasattr(given, "tocoo"):
        given = given.toarray()
    if hasattr(given, "detach"):
        given = given.detach().cpu().to_dense().double().numpy()
    return np.asarray(given, dtype=np.float64)


def tensor_given(tensor: Any) -> Any:
    """Return what a converter makes of an object, or the object itself if there is none."""
    seen: list[type] = []
    while not isinstance(tensor, SparseTensor) and type(tensor) not in seen:
        converter = CONVERTERS.of(tensor)
        if converter is None:
            break
        seen.append(type(tensor))
        tensor = converter.made(tensor)
    return tensor


def _holds_floats(tensor: Any) -> bool:
    try:
        given = np.asarray(tensor) if isinstance(tensor, list | tuple) else tensor
    except ValueError:
        return False
    return "float" in str(getattr(given, "dtype", ""))


def register_tensor_converter(converter: Converter) -> None:
    """Register a converter, so that every function of tensors accepts objects of another kind.

    Parameters
    ----------
    converter : Converter
        The kind, and a function that converts an object to an array, to a `SparseTensor`, or to
        something else that `as_tensor` takes. It is asked before those of the library.

    Raises
    ------
    InvalidTypeError
        If it isn't a `Converter`.
    InvalidArgumentError
        If there is one of its name.

    Examples
    --------
    >>> from capacity import rank_interval
    >>> class Diagonal:
    ...     entries = [1, 2, 3]
    >>> kind = Converter("diagonal", (Diagonal,), lambda given: np.diag(given.entries))
    >>> register_tensor_converter(kind)
    >>> print(rank_interval(Diagonal()))
    [3, 3]
    >>> unregister_tensor_converter("diagonal").name
    'diagonal'
    """
    CONVERTERS.register(converter)


def unregister_tensor_converter(name: str) -> Converter:
    """Take the converter of a name from the list.

    Parameters
    ----------
    name : str
        Name of a registered converter.

    Returns
    -------
    Converter
        The converter.

    Raises
    ------
    InvalidArgumentError
        If there is none.

    Examples
    --------
    >>> register_tensor_converter(Converter("diagonal", (), np.diag))
    >>> unregister_tensor_converter("diagonal").make is np.diag
    True
    """
    return CONVERTERS.unregister(name)
