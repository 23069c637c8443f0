"""`SparseTensor`: a tensor of integers of any order, by its nonzero entries.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (order, mode,
slice, fiber); B. W. Bader, T. G. Kolda, Efficient MATLAB Computations with Sparse and Factored
Tensors, SIAM J. Sci. Comput. 30, 2007 (coordinate format).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from capacity.checks import require_integer
from capacity.display import table
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.tensor.coordinates import (
    BUDGET,
    LARGEST_ENTRY,
    ascending,
    checked_shape,
    collected,
    fitted,
    integers,
    largest,
    products,
)
from capacity.tensor.parts import multiplied, part_at, unfolded


@dataclass(frozen=True, eq=False, repr=False)
class SparseTensor:
    """An immutable tensor of integers, by its nonzero entries in ascending order.

    `from_dense`, `from_coo` and `read_tensor` make one from arrays, from entries in any order, and
    from files; ``Database.tensor()`` is the 0/1 tensor of a database.

    Parameters
    ----------
    indices : array_like of int, shape (n_entries, order)
        Places of the nonzero entries, each once, in ascending (lexicographic) order.
    values : array_like of int, shape (n_entries,)
        The entries, none of them zero, from -2^63 + 1 to 2^63 - 1.
    shape : sequence of int
        Number of indices of each mode, at least 1.

    Raises
    ------
    InvalidArgumentError
        If an array has another shape, holds anything else than integers, or an index is outside the
        shape; if places aren't in ascending order, or a value is zero.

    Notes
    -----
    Two tensors are equal if they have the same shape and the same entries. Tensors of one shape can
    be added and subtracted, and a tensor can be multiplied by an integer; an entry of more than 63
    bits is refused, so no result is wrong. Indexing is that of numpy, ``T[0]``, ``T[0, 1, 1]``,
    ``T[:, [0, 2]]``, where lists of several modes choose a sub-tensor. What joins tensors is a
    function, such as `direct_sum` and `kronecker`.

    Examples
    --------
    The tensor of the product of two complex numbers:

    >>> C = SparseTensor([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], [1, 1, 1, -1], (2, 2, 2))
    >>> C
    SparseTensor(2 x 2 x 2, 4 entries from -1 to 1)
    >>> C.to_numpy()[1].tolist()
    [[0, 1], [-1, 0]]
    >>> C + C == 2 * C, C - C
    (True, SparseTensor(2 x 2 x 2, zero))
    >>> C[1], C[1, 1, 0]
    (SparseTensor(2 x 2, 2 entries from -1 to 1), -1)
    """

    indices: NDArray[np.int64]
    values: NDArray[np.int64]
    shape: tuple[int, ...]
    # numpy leaves a product by one of its integers to this class
    __array_ufunc__ = None

    def __init__(self, indices: ArrayLike, values: ArrayLike, shape: Sequence[int]) -> None:
        sides = checked_shape(shape)
        places = integers(indices, "`indices`")
        entries = integers(values, "`values`").reshape(-1)
        _require(places.shape, (len(entries), len(sides)))
        at = places.reshape(-1, len(sides))
        inside = (at >= 0) & (at < np.array(sides))
        if not inside.all():
            bad = at[int(np.flatnonzero(~inside.all(axis=1))[0])].tolist()
            raise InvalidArgumentError(
                f"An index must lie within the shape {sides}, counted from 0; got {bad}."
            )
        if len(at) > 1 and not ascending(at):
            raise InvalidArgumentError(
                "`indices` must be distinct and in ascending order. Use `from_coo`, which sorts "
                "entries and adds up those at one place."
            )
        if not entries.all():
            raise InvalidArgumentError(
                "`values` must not be zero: only nonzero entries are kept. Use `from_coo`, which "
                "drops zeros."
            )
        for name, array in (("indices", at), ("values", entries)):
            kept = np.array(array, np.int64)
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)
        object.__setattr__(self, "shape", sides)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def n_entries(self) -> int:
        """Number of nonzero entries."""
        return len(self.values)

    @cached_property
    def largest(self) -> int:
        """Largest absolute value of an entry; 0 for the zero tensor."""
        return largest(self.values)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of shape and entries, by which certificates name the tensor."""
        digest = hashlib.sha256(f"capacity tensor 1 {self.shape}".encode())
        for array in (self.indices, self.values):
            digest.update(np.ascontiguousarray(array, "<i8").tobytes())
        return digest.hexdigest()

    def to_numpy(self, dtype: DTypeLike = np.int64, *, max_bytes: int = BUDGET) -> NDArray[Any]:
        """Write the tensor as a dense array.

        Parameters
        ----------
        dtype : dtype
            Type of the entries.
        max_bytes : int
            Largest size of the array.

        Returns
        -------
        ndarray, shape `shape`

        Raises
        ------
        MemoryBudgetError
            Before allocating, if the array would take more than `max_bytes` bytes.
        """
        dense = dense_zeros(self.shape, dtype, max_bytes, advice="Raise `max_bytes`.")
        dense[tuple(self.indices.T)] = self.values
        return dense

    def __getitem__(self, key: Any) -> SparseTensor | int:
        places, values, shape = part_at((self.indices, self.values, self.shape), key)
        if shape:
            return SparseTensor(places, values, shape)
        return int(values.sum())

    def __iter__(self) -> Iterator[SparseTensor | int]:
        return (self[number] for number in range(self.shape[0]))

    def unfolding(self, mode: int) -> SparseTensor:
        """Unfold the tensor to a matrix, with a row for each index of a mode.

        Parameters
        ----------
        mode : int
            The mode, counted from 0, or from the end.

        Returns
        -------
        SparseTensor, shape ``(shape[mode], product of the other sides)``
            Columns are ordered as numpy and tensorly order them, the last mode the fastest:
            ``numpy.moveaxis(T, mode, 0).reshape(shape[mode], -1)``.

        Raises
        ------
        InvalidArgumentError
            If there is no such mode, or there would be 2^31 columns or more.

        Examples
        --------
        >>> T = SparseTensor([[0, 1, 2], [1, 0, 0]], [5, 7], (2, 2, 3))
        >>> T.unfolding(1).to_numpy().tolist()
        [[0, 0, 0, 7, 0, 0], [0, 0, 5, 0, 0, 0]]
        """
        return SparseTensor(*unfolded((self.indices, self.values, self.shape), mode))

    def mode_product(self, matrix: SparseTensor | ArrayLike, mode: int) -> SparseTensor:
        """Multiply the tensor by a matrix along a mode (Kolda and Bader 2009, section 2.5).

        Parameters
        ----------
        matrix : array_like of int or SparseTensor, shape (n, shape[mode])
            The matrix; each of its rows combines the slices of the mode.
        mode : int
            The mode, counted from 0, or from the end.

        Returns
        -------
        SparseTensor
            With `n` indices in that mode. Its rank is at most that of this tensor, and the same if
            the columns of the matrix are independent.

        Raises
        ------
        InvalidArgumentError
            If the matrix hasn't such a shape or holds anything else than integers, or if an entry
            of the result has more than 63 bits.
        MemoryBudgetError
            If the result takes more than a gigabyte.

        Examples
        --------
        >>> T = SparseTensor([[0, 1], [1, 0]], [5, 7], (2, 2))
        >>> T.mode_product([[1, 1]], 0).to_numpy().tolist()
        [[7, 5]]
        """
        if not isinstance(matrix, SparseTensor):
            given = integers(matrix, "`matrix`")
            places = np.argwhere(given)
            sides = checked_shape(given.shape)
            matrix = SparseTensor(places, given[tuple(places.T)], sides)
        mine = self.indices, self.values, self.shape
        its = matrix.indices, matrix.values, matrix.shape
        return SparseTensor(*multiplied(mine, its, mode))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseTensor):
            return NotImplemented
        return (
            self.shape == other.shape
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.values, other.values)
        )

    def __add__(self, other: object) -> SparseTensor:
        if not isinstance(other, SparseTensor):
            return NotImplemented
        if other.shape != self.shape:
            raise InvalidArgumentError(
                f"Tensors that are added must have one shape; got {self.shape} and {other.shape}. "
                "`direct_sum` takes tensors of any shapes."
            )
        indices = np.concatenate([self.indices, other.indices])
        values = np.concatenate([self.values, other.values])
        return SparseTensor(*collected(indices, values), self.shape)

    def __sub__(self, other: object) -> SparseTensor:
        return self + -other if isinstance(other, SparseTensor) else NotImplemented

    def __neg__(self) -> SparseTensor:
        return -1 * self

    def __mul__(self, factor: object) -> SparseTensor:
        if not isinstance(factor, int | np.integer):
            return NotImplemented
        number = require_integer("factor", factor, least=-LARGEST_ENTRY, most=LARGEST_ENTRY)
        values = fitted(products(self.values, np.array(number)), self.indices)
        kept = values != 0
        return SparseTensor(self.indices[kept], values[kept], self.shape)

    __rmul__ = __mul__

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        sides = " x ".join(map(str, self.shape))
        if not self.n_entries:
            return f"SparseTensor({sides}, zero)"
        ends = f"from {self.values.min()} to {self.values.max()}"
        count = "1 entry" if self.n_entries == 1 else f"{self.n_entries} entries"
        return f"SparseTensor({sides:.120}, {count} {ends})"

    def _repr_html_(self) -> str:
        rows = [("shape", " x ".join(map(str, self.shape))), ("entries", self.n_entries),
                ("largest absolute value", self.largest), ("SHA-256", self.sha256)]  # fmt: skip
        return table("SparseTensor", rows)


def _require(got: tuple[int, ...], wanted: tuple[int, int]) -> None:
    if got != wanted and not (wanted[0] == 0 and 0 in got):
        raise InvalidArgumentError(
            f"`indices` must have a row for each value and a column for each mode, shape {wanted}; "
            f"got shape {got}."
        )


def dense_zeros(
    shape: tuple[int, ...], dtype: DTypeLike, max_bytes: int, *, advice: str
) -> NDArray[Any]:
    """Allocate zeros of some shape, or raise a MemoryBudgetError with advice before it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > max_bytes:
        raise MemoryBudgetError(
            f"A dense tensor must fit the budget of {max_bytes:,} bytes; {shape} of "
            f"{np.dtype(dtype)} would take {size:,}. {advice}"
        )
    return np.zeros(shape, dtype)
