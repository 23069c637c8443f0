"""Nonzero minors of flattenings, as theorems of Lean want them: with the inverse beside.

A minor is one of the unfolding of the first mode, or of the Koszul flattening with p = 1, of a
*part*: the tensor, or a view of it, with the mode of the argument first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices
from capacity.rank.verifier.argument import Argument, View
from capacity.rank.verifier.kinds.koszul import Koszul
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.tensor.sparse import SparseTensor

# the two other modes, in ascending order
OTHERS = ((1, 2), (0, 2), (0, 1))


@dataclass(frozen=True, eq=False)
class Minor:
    """A square matrix within a flattening of a part, and its inverse.

    Attributes
    ----------
    part : ndarray of int64, shape (a, b, c)
        The part, with the mode of the argument first.
    maps : tuple of ndarrays of int64, shapes (n'_m, n_m), or None
        Matrix of each mode whose products with the tensor are the part; None if it is the tensor.
    mode : int
        Mode of the tensor that is the first one of the part.
    rows, columns : list of tuple of int
        Places of the minor: (i,) and (j, l) of an unfolding, (l, p, q) and (j, s) of a Koszul
        flattening, with p < q and s in the first mode, j in the second one and l in the third one.
    entries : ndarray of int64, shape (m, m)
        The minor.
    value : int
        What it proves: ceil(m / (a - 1)) for a Koszul flattening, m for an unfolding.
    """

    part: Indices
    maps: tuple[Indices, Indices, Indices] | None
    mode: int
    rows: list[tuple[int, ...]]
    columns: list[tuple[int, ...]]
    entries: Indices
    value: int

    @property
    def is_koszul(self) -> bool:
        """True for a minor of a Koszul flattening."""
        return len(self.rows[0]) == 3

    def inverse(self) -> NDArray[Any]:
        """Inverse of the minor: fractions, shape (m, m)."""
        m = len(self.entries)
        inverse = flint.fmpq_mat(flint.fmpz_mat(self.entries.tolist())).inv()
        found = [[inverse[i, j] for j in range(m)] for i in range(m)]
        return np.array([[Fraction(int(x.p), int(x.q)) for x in row] for row in found], object)


def minor_of(argument: Argument, tensor: SparseTensor) -> Minor:
    """Make the minor that an argument of a lower bound has, or promises.

    Parameters
    ----------
    argument : Argument
        An `Unfolding`, or a `Koszul` with p = 1, that was verified.
    tensor : SparseTensor
        The tensor that it is about, of order three.

    Raises
    ------
    InvalidArgumentError
        If the argument is another one.
    """
    if isinstance(argument, Unfolding):
        part = np.moveaxis(tensor.to_numpy(), argument.mode, 0)
        entries = part[argument.rows[:, None], *argument.columns.T]
        rows = [(int(row),) for row in argument.rows]
        return Minor(part, None, argument.mode, rows, list(map(tuple, argument.columns.tolist())),
                     entries, len(rows))  # fmt: skip
    if isinstance(argument, Koszul) and argument.p == 1:
        return _of_koszul(argument, tensor)
    what = f"{argument.kind!r}" + (
        f" with p = {argument.p}" if isinstance(argument, Koszul) else ""
    )
    raise InvalidArgumentError(
        "A lower end that is written for Lean must rest on an unfolding, or on a Koszul flattening "
        f"with p = 1; it rests on an argument of the kind {what}. Search with `methods` that leave "
        "others out, such as ['Koszul flattening', 'flip graph over F_2']."
    )


def _of_koszul(argument: Koszul, tensor: SparseTensor) -> Minor:
    maps = maps_of(argument.view, tensor.shape)
    whole = all(len(P) == P.shape[1] and (np.eye(len(P)) == P).all() for P in maps)
    changed = tensor.to_numpy()
    for mode, P in enumerate(maps):
        changed = np.moveaxis(np.tensordot(P, changed, axes=(1, mode)), 0, mode)
    part = np.moveaxis(changed, argument.mode, 0)
    flat, rows, columns = koszul_flattening(part)
    m = (argument.value - 1) * (len(part) - 1) + 1
    at_rows, at_columns = pivots(flat, argument.prime, m)
    return Minor(
        part, None if whole else maps, argument.mode, [rows[i] for i in at_rows],
        [columns[j] for j in at_columns], flat[np.ix_(at_rows, at_columns)], argument.value,
    )  # fmt: skip


def maps_of(view: View, shape: tuple[int, ...]) -> tuple[Indices, Indices, Indices]:
    """Return the matrix of each mode that makes a view of a tensor."""
    maps: list[Indices] = []
    for n, of, P in zip(shape, view.indices, view.bases, strict=True):
        chosen = np.zeros((len(of), n), np.int64)
        chosen[np.arange(len(of)), of] = 1
        maps.append(chosen if P is None else P @ chosen)
    a, b, c = maps
    return a, b, c


def koszul_flattening(
    part: Indices,
) -> tuple[Indices, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the Koszul flattening with p = 1 of a tensor, and the places of rows and columns.

    Its entry at the row (l, p, q) and the column (j, s) is T[p, j, l] for s = q, -T[q, j, l] for
    s = p, and else 0.

    Examples
    --------
    >>> flat, rows, columns = koszul_flattening(np.array([[[2]], [[3]]]))
    >>> flat.tolist(), rows, columns
    ([[-3, 2]], [(0, 0, 1)], [(0, 0), (0, 1)])
    """
    a, b, c = part.shape
    rows = [(third, p, q) for third in range(c) for p, q in combinations(range(a), 2)]
    columns = [(j, s) for j in range(b) for s in range(a)]
    flat = np.zeros((c, a * (a - 1) // 2, b, a), np.int64)
    for number, (p, q) in enumerate(combinations(range(a), 2)):
        flat[:, number, :, q] = part[p].T
        flat[:, number, :, p] = -part[q].T
    return flat.reshape(len(rows), len(columns)), rows, columns


def pivots(matrix: Indices, prime: int, m: int) -> tuple[list[int], list[int]]:
    """Rows and columns of a minor of size m that isn't 0 modulo a prime.

    Examples
    --------
    >>> pivots(np.array([[0, 0, 2], [0, 0, 4], [0, 1, 1]]), 7, 2)
    ([0, 2], [1, 2])
    """
    columns = _pivot_columns(matrix, prime)[:m]
    return _pivot_columns(matrix[:, columns].T, prime), columns


def _pivot_columns(matrix: Indices, prime: int) -> list[int]:
    n_rows, n_columns = matrix.shape
    flat = (matrix % prime).ravel().tolist()
    echelon, rank = flint.nmod_mat(n_rows, n_columns, flat, prime).rref()
    found: list[int] = []
    for j in range(n_columns):
        if len(found) < rank and int(echelon[len(found), j]) != 0:
            found.append(j)
    return found
