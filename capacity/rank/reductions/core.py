"""The concise core: a sub-tensor with the rank of the whole.

In each mode, let all slices be combinations of some chosen ones, T_j = sum_s C[j, s] T_s. Then the
tensor is (C_0, C_1, C_2) times its sub-tensor on the chosen slices, and the sub-tensor is part of
the tensor, so neither rank exceeds the other. With independent slices in each mode, the sub-tensor
is *concise*: its unfoldings have full rank. Slices with few entries are chosen first, to keep it
sparse.

This holds for the rank alone. The effective rank can be larger than that of the core: two copies of
Example 2.2 of Wong (2025), with the sums of their subjects, have effective rank 10, and their core
has 9.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (Tucker
compression, of which this is an exact case).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.exact.modular_rank import rank_modulo
from capacity.exact.types import Indices, Vector, vector
from capacity.rank.reductions.coefficients import RATIONAL, Coefficients
from capacity.tensor.sparse import SparseTensor


@briefly_shown
@dataclass(frozen=True)
class Core:
    """A concise core, with the coefficients that give the whole tensor back.

    Attributes
    ----------
    tensor : integer ndarray, shape (r0, r1, ...)
        The core; its shape is the multilinear rank of the whole.
    chosen : tuple of ndarrays of int64
        Indices of the slices of the whole that the core consists of, for each mode.
    coordinates : tuple of lists
        For each mode, and each slice s of the core, the nonzero C[j, s] as a sparse vector over the
        slices j of the whole.
    """

    tensor: NDArray[np.integer]
    chosen: tuple[Indices, ...]
    coordinates: tuple[list[Vector], ...]

    def lifted(self, terms: Iterable[Any], coefficients: Coefficients = RATIONAL) -> list[Any]:
        """Convert a decomposition of the core to one of the whole, with as many terms."""
        return [
            tuple(
                _combined(vector, of, coefficients)
                for vector, of in zip(term, self.coordinates, strict=True)
            )
            for term in terms
        ]


def concise_core(tensor: ArrayLike | SparseTensor | Database) -> Core:
    """Find a concise core of a tensor, exactly.

    Parameters
    ----------
    tensor : array_like of int, SparseTensor or Database
        A small tensor of any order, of at least two modes; it is made dense.

    Returns
    -------
    Core
        The core, with the coefficients that give the tensor back.

    Raises
    ------
    InvalidArgumentError
        Unless the tensor has two modes or more, and integer entries.
    MemoryBudgetError
        If the dense tensor exceeds the budget of ``to_numpy``.

    Examples
    --------
    The third slice is the sum of the other two:

    >>> T = np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]], [[1, 0], [0, 1]]])
    >>> core = concise_core(T)
    >>> core.tensor.shape, core.chosen[0].tolist()
    ((2, 2, 2), [0, 1])
    """
    chosen: list[Indices] = []
    coordinates: list[list[Vector]] = []
    sparse = isinstance(tensor, SparseTensor | Database)
    core = tensor.to_numpy() if sparse else np.asarray(tensor)
    if core.ndim < 2 or core.dtype.kind not in "bui":
        raise InvalidArgumentError(
            "`tensor` must have two modes or more, and integer entries; got shape "
            f"{core.shape} of {core.dtype}."
        )
    for mode in range(core.ndim):
        # a basis of the slices of the core so far is one for the whole: the modes don't interfere
        kept, vectors = _basis(np.moveaxis(core, mode, 0).reshape(core.shape[mode], -1))
        core = core.take(kept, axis=mode)
        chosen.append(kept)
        coordinates.append(vectors)
    return Core(core, tuple(chosen), tuple(coordinates))


def _basis(rows: NDArray[np.integer]) -> tuple[Indices, list[Vector]]:
    """Independent rows, and for each of them its coefficients in all rows."""
    if rank_modulo(rows.astype(np.int64)) == len(rows):
        # independent modulo a prime, so independent
        return np.arange(len(rows)), [vector([i], [1]) for i in range(len(rows))]
    order = np.argsort((rows != 0).sum(axis=1), kind="stable")
    columns = np.unique(rows[order], axis=1).T
    m, n = columns.shape
    reduced, rank = flint.fmpq_mat(flint.fmpz_mat(m, n, columns.ravel().tolist())).rref()
    table = reduced.tolist()[:rank]
    pivots = [next(j for j, x in enumerate(row) if x) for row in table]
    vectors = [vector(order.tolist(), [Fraction(int(x.p), int(x.q)) for x in row]) for row in table]
    kept = order[pivots]
    ascending = np.argsort(kept)
    return kept[ascending], [vectors[i] for i in ascending]


# coefficients of a chosen slice in itself alone
_ALONE = (Fraction(1),)


def _combined(x: Vector, parts: list[Vector], coefficients: Coefficients) -> Vector:
    if all(parts[s][1] == _ALONE for s in x[0]):
        # slices that no other slice is combined of
        return tuple(parts[s][0][0] for s in x[0]), x[1]
    total: dict[int, Any] = {}
    for s, c in zip(*x, strict=True):
        number = coefficients.number(c)
        for j, y in zip(*parts[s], strict=True):
            product = number * coefficients.rational(y)
            total[j] = total[j] + product if j in total else product
    return coefficients.vector(total)
