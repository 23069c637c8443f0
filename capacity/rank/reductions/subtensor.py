"""Small sub-tensors, among them the concise core, and arguments about them made ones of the whole.

**The concise core** has the rank of the whole. In each mode, let all slices be combinations of some
chosen ones, T_j = sum_s C[j, s] T_s. Then the tensor is (C_0, C_1, C_2) times its sub-tensor on the
chosen slices, and the sub-tensor is part of the tensor, so neither rank exceeds the other. With
independent slices in each mode, the sub-tensor is *concise*: its unfoldings have full rank. Slices
with few entries are chosen first, to keep it sparse.

This holds for the rank alone. The effective rank can be larger than that of the core: two copies of
Example 2.2 of Wong (2025), with the sums of their subjects, have effective rank 10, and their core
has 9.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (Tucker
compression, of which this is an exact case).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.exact.modular_rank import rank_modulo
from capacity.exact.types import Indices, Term, Vector, lifted, vector
from capacity.rank.coefficients import RATIONAL, Coefficients
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.verifier.argument import Argument, View
from capacity.tensor.coordinates import distinct
from capacity.tensor.sparse import SparseTensor

# arguments that are found together, and whose values add up
Finding: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True)
class Part:
    """Some entries as a small tensor, with its indices in the whole.

    Attributes
    ----------
    indices : tuple of ndarrays of int64
        Indices of the whole that the entries have in each mode.
    places : ndarray of int64, shape (n_entries, order)
        Positions of the entries in the small tensor.
    values : ndarray of int64, shape (n_entries,)
        The entries.
    """

    indices: tuple[Indices, ...]
    places: Indices
    values: Indices

    @classmethod
    def of(cls, tensor: SparseTensor, rows: Indices) -> Part:
        """Make the part for some rows of the entries; nothing dense is allocated yet."""
        mine = tensor.indices[rows]
        used = tuple(distinct(of) for of in mine.T)
        places = [np.searchsorted(of, mine[:, m]) for m, of in enumerate(used)]
        return cls(used, np.stack(places, axis=1), tensor.values[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(map(len, self.indices))

    @property
    def size(self) -> int:
        """Number of entries times number of slices."""
        return math.prod(self.shape) * sum(self.shape)

    def tensor(self) -> NDArray[np.integer]:
        """The dense tensor, of int8 where its entries fit."""
        small = self.values.max(initial=0) < 2**7 and self.values.min(initial=0) >= -(2**7)
        dense = np.zeros(self.shape, np.int8 if small else np.int64)
        dense[tuple(self.places.T)] = self.values
        return dense

    def relocated(self, found: Finding) -> Finding:
        """Convert arguments about the tensor to arguments about the whole."""
        return tuple(relocated(argument, self.indices) for argument in found)


def restricted(terms: Iterable[Term], indices: tuple[Indices, ...]) -> list[Term]:
    """Restrict a decomposition to a sub-tensor, of which it is one, too; terms may vanish.

    Parameters
    ----------
    terms : iterable of Term
        A decomposition of the whole.
    indices : tuple of ndarrays of int64
        Indices of the sub-tensor in the whole, for each mode.

    Examples
    --------
    >>> one = (Fraction(1),)
    >>> restricted([(((0, 1), 2 * one), ((3,), one))], (np.array([1]), np.array([2, 3])))
    [(((0,), (Fraction(1, 1),)), ((1,), (Fraction(1, 1),)))]
    """
    numbers = [{i: n for n, i in enumerate(of.tolist())} for of in indices]
    kept = [
        tuple(
            (
                tuple(mine[i] for i in places if i in mine),
                tuple(x for i, x in zip(places, values, strict=True) if i in mine),
            )
            for (places, values), mine in zip(term, numbers, strict=True)
        )
        for term in terms
    ]
    return [term for term in kept if all(places for places, _ in term)]


def relocated(argument: Argument, indices: tuple[Indices, ...]) -> Argument:
    """Convert an argument about a sub-tensor to one about the whole.

    Parameters
    ----------
    argument : Argument
        An argument about the sub-tensor.
    indices : tuple of ndarrays of int64
        Indices of the sub-tensor in the whole, for each mode.

    Returns
    -------
    Argument
        An argument of the same kind about the whole.

    Raises
    ------
    InvalidArgumentError
        If the argument has boxes, which are numbered for all entries.
    """
    fields: dict[str, Any] = {}
    for name, form in argument.forms.items():
        value = getattr(argument, name)
        if form == "boxes":
            raise InvalidArgumentError(
                f"An argument with boxes, such as {argument.kind!r}, must be about the whole "
                "tensor; got one about a sub-tensor. Find it by `find_in_entries`."
            )
        if form == "view":
            lifted_to = tuple(of[i] for of, i in zip(indices, value.indices, strict=True))
            value = View(lifted_to, value.bases)
        elif form == "slices":
            value = indices[_mode(argument)][value]
        elif form == "fibers":
            others = [of for m, of in enumerate(indices) if m != _mode(argument)]
            value = np.stack([of[value[:, n]] for n, of in enumerate(others)], axis=1)
        elif form in ("terms", "algebraic terms"):
            value = tuple(lifted(list(value), indices))
        fields[name] = value
    kind: type[Any] = type(argument)
    return kind(**fields)


def _mode(argument: Any) -> int:
    """Mode of the slices and fibers of an argument."""
    return argument.mode


@briefly_shown
@dataclass(frozen=True)
class Core:
    """A concise core, with the coefficients that yield the whole tensor again.

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


def concise_core(tensor: FactsOrTensor) -> Core:
    """Find a concise core of a tensor, exactly.

    Parameters
    ----------
    tensor : array_like of int, or what `rank_interval` takes
        A small tensor of any order, of at least two modes; it is made dense.

    Returns
    -------
    Core
        The core, with the coefficients that restore the tensor.

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
    if isinstance(tensor, np.ndarray | list | tuple):
        try:
            core = np.asarray(tensor)
        except ValueError as error:
            # lists of different lengths, or of what is no number
            raise InvalidArgumentError(f"`tensor` must be an array of integers; {error}") from None
    else:
        core = given_of(tensor, "concise_core(tensor)").to_numpy()
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
