"""Exact decompositions as matrices of factors, to read off a certificate or to have checked.

A decomposition of a tensor T of order n into R simple tensors has a factor of shape (n_m, R) for
each mode m: T is the sum over r of the outer products of their columns r. Coefficients are
integers, fractions, numbers of a real number field, `AlgebraicNumber`, or complex numbers with
rational parts, `GaussianRational`.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009 (factor
matrices, CP decomposition).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown, table
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.optional import needed_by
from capacity.rank.coefficients import AlgebraicNumber, GaussianRational
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.complex import ComplexDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    from tensorly.cp_tensor import CPTensor

# bytes of the matrices of a decomposition
MOST_BYTES = 2**30
# parts of a whole number that floats hold exactly, and that a numerical fit hardly meets
_PARTS = 64


# what is taken as a decomposition: matrices of factors
FactorsLike: TypeAlias = "Factors | CPTensor | Sequence[Any]"
# a coefficient of a decomposition, and those of a column that aren't zero
Exact: TypeAlias = int | Fraction | AlgebraicNumber | GaussianRational
Column: TypeAlias = Mapping[int, Exact]


@briefly_shown
@dataclass(frozen=True, eq=False)
class Factors:
    """An exact decomposition of a tensor, as a matrix for each mode.

    Attributes
    ----------
    matrices : tuple of ndarrays, shapes (n_m, rank)
        Columns r of all matrices are the vectors of the simple tensor r. They hold int64 if all
        coefficients are integers of 64 bits, and otherwise objects: `int`, `Fraction`,
        `AlgebraicNumber` or `GaussianRational`.
    """

    matrices: tuple[NDArray[Any], ...]

    @property
    def rank(self) -> int:
        """Number of simple tensors."""
        return self.matrices[0].shape[1]

    @property
    def is_complex(self) -> bool:
        """True if a coefficient isn't real, so that the decomposition is one over C alone."""
        return any(isinstance(x, GaussianRational) for matrix in self.matrices
                   if matrix.dtype == object for x in matrix.ravel().tolist())  # fmt: skip

    def to_floats(self) -> list[NDArray[np.float64]] | list[NDArray[np.complex128]]:
        """Return the matrices rounded to float64, or to complex128 if a coefficient isn't real."""
        if self.is_complex:
            return [matrix.astype(np.complex128) for matrix in self.matrices]
        return [matrix.astype(np.float64) for matrix in self.matrices]

    def to_tensorly(self) -> CPTensor:
        """Return the decomposition as a tensorly CPTensor of floats, whose weights are 1.

        Raises
        ------
        MissingExtraError
            If tensorly isn't installed.
        """
        with needed_by("Factors.to_tensorly"):
            from tensorly.cp_tensor import CPTensor

        return CPTensor((np.ones(self.rank), self.to_floats()))

    def _repr_html_(self) -> str:
        shape = " x ".join(str(len(matrix)) for matrix in self.matrices)
        return table("Factors", [("simple tensors", self.rank), ("shape of the tensor", shape)])


def factors_of(arguments: Iterable[Argument], tensor: SparseTensor) -> Factors:
    """Return the simple tensors that the arguments of an upper bound consist of, as matrices.

    Parameters
    ----------
    arguments : iterable of Argument
        Boxes, decompositions, and algebraic and complex decompositions.
    tensor : SparseTensor
        The tensor that they are about.

    Returns
    -------
    Factors

    Raises
    ------
    InvalidArgumentError
        If an argument is of another kind, which proves that a decomposition exists and has none.
    MemoryBudgetError
        If the matrices would take more than a gibibyte.
    """
    columns: list[list[Column]] = [[] for _ in tensor.shape]
    for argument in arguments:
        terms: list[list[Column]]
        if isinstance(argument, Boxes):
            terms = _of_boxes(argument, tensor)
        elif isinstance(argument, Decomposition):
            terms = [
                [dict(zip(*column, strict=True)) for column in term] for term in argument.terms
            ]
        elif isinstance(argument, AlgebraicDecomposition):
            terms = [[_numbers(argument, column) for column in term] for term in argument.terms]
        elif isinstance(argument, ComplexDecomposition):
            terms = [[_complex_numbers(column) for column in term] for term in argument.terms]
        else:
            raise InvalidArgumentError(
                f"The upper end must rest on explicit terms; it rests on an argument of the kind "
                f"{argument.kind!r}, which proves that a decomposition exists and has none. Search "
                "again with a higher `effort`, or with `methods` that leave that kind out."
            )
        for term in terms:
            for mode, column in enumerate(term):
                columns[mode].append(column)
    size = 8 * sum(tensor.shape) * len(columns[0])
    if size > MOST_BYTES:
        raise MemoryBudgetError(
            f"The matrices of a decomposition must fit {MOST_BYTES:,} bytes; for a tensor of the "
            f"shape {tensor.shape} they would take {size:,}. Take the part that has entries."
        )
    matrices = [_matrix(n, some) for n, some in zip(tensor.shape, columns, strict=True)]
    return Factors(tuple(matrices))


def _of_boxes(argument: Boxes, tensor: SparseTensor) -> list[list[Column]]:
    """Simple tensors of boxes: indicators, of which the last is multiplied by the box's entry."""
    order = np.argsort(argument.box, kind="stable")
    order = order[np.searchsorted(argument.box[order], 0) :]
    terms: list[list[Column]] = []
    for rows in np.split(order, np.flatnonzero(np.diff(argument.box[order])) + 1):
        if len(rows):
            *others, last = (np.unique(indices).tolist() for indices in tensor.indices[rows].T)
            value = int(tensor.values[rows[0]])
            terms.append(
                [*(dict.fromkeys(indices, 1) for indices in others), dict.fromkeys(last, value)]
            )
    return terms


def _numbers(argument: AlgebraicDecomposition, column: Any) -> Column:
    """Entries of a vector over a number field; rational numbers are fractions."""
    indices, values = column
    return {
        i: AlgebraicNumber(argument.f, argument.lo, argument.hi, x) if any(x[1:]) else x[0]
        for i, x in zip(indices, values, strict=True)
        if any(x)
    }


def _complex_numbers(column: Any) -> Column:
    """Entries of a vector of complex numbers; real numbers are fractions."""
    indices, values = column
    return {
        i: GaussianRational(x[0], x[1]) if len(x) > 1 and x[1] else x[0]
        for i, x in zip(indices, values, strict=True)
        if any(x)
    }


def _matrix(n: int, columns: list[Column]) -> NDArray[Any]:
    """Matrix of some columns, of int64 if all entries are such integers."""
    whole = all(
        _is_integer(x) and abs(int(x)) < 2**63 for column in columns for x in column.values()
    )
    matrix = np.zeros((n, len(columns)), np.int64 if whole else object)
    for r, column in enumerate(columns):
        for i, x in column.items():
            matrix[i, r] = int(x) if _is_integer(x) else x
    return matrix


def _is_integer(x: Exact) -> TypeGuard[int | Fraction]:
    return not isinstance(x, AlgebraicNumber | GaussianRational) and x.denominator == 1
