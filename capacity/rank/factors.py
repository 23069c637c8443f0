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

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.display import briefly_shown, table
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.exact.types import vector
from capacity.optional import needed_by
from capacity.rank.coefficients import AlgebraicNumber, GaussianRational
from capacity.rank.conventions import of_transposed, sides_of_product, transposed_product
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.options import Field
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.checker import Verdict, verify
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.complex import ComplexDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.named import name_of, tensor_of
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
        return any(isinstance(x, GaussianRational) for of in self.matrices
                   if of.dtype == object for x in of.ravel().tolist())  # fmt: skip

    def to_floats(self) -> list[NDArray[np.float64]] | list[NDArray[np.complex128]]:
        """Return the matrices rounded to float64, or to complex128 if a coefficient isn't real."""
        if self.is_complex:
            return [of.astype(np.complex128) for of in self.matrices]
        return [of.astype(np.float64) for of in self.matrices]

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
        shape = " x ".join(str(len(of)) for of in self.matrices)
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
            terms = [[dict(zip(*of, strict=True)) for of in term] for term in argument.terms]
        elif isinstance(argument, AlgebraicDecomposition):
            terms = [[_numbers(argument, of) for of in term] for term in argument.terms]
        elif isinstance(argument, ComplexDecomposition):
            terms = [[_complex_numbers(of) for of in term] for term in argument.terms]
        else:
            raise InvalidArgumentError(
                f"The upper end must rest on explicit terms; it rests on an argument of the kind "
                f"{argument.kind!r}, which proves that a decomposition exists and has none. Search "
                "again with a higher `effort`, or with `methods` that leave that kind out."
            )
        for term in terms:
            for mode, of in enumerate(term):
                columns[mode].append(of)
    size = 8 * sum(tensor.shape) * len(columns[0])
    if size > MOST_BYTES:
        raise MemoryBudgetError(
            f"The matrices of a decomposition must fit {MOST_BYTES:,} bytes; for a tensor of the "
            f"shape {tensor.shape} they would take {size:,}. Take the part that has entries."
        )
    matrices = [_matrix(n, some) for n, some in zip(tensor.shape, columns, strict=True)]
    return Factors(tuple(matrices))


def verify_decomposition(of: FactsOrTensor, factors: FactorsLike) -> Verdict:
    """Check exactly that a decomposition adds up to a tensor, entry by entry.

    Parameters
    ----------
    of : Database or SparseTensor
        The tensor, or a database, which is taken as its tensor.
    factors : Factors, tensorly CPTensor, or sequence of array_like, shapes (n_m, rank)
        A matrix for each mode, of integers, fractions, numbers of one number field, or complex
        numbers. Floats, and the parts of complex numbers, must be whole numbers, halves, quarters,
        or such parts down to 1/64.

    Returns
    -------
    Verdict
        Proved if the rank of the tensor is at most the number of columns, by this decomposition;
        if a number isn't real, the rank over C.

    Raises
    ------
    InvalidTypeError
        If `of` is neither a database nor a tensor.
    InvalidArgumentError
        If `factors` aren't matrices of the right shapes, or hold other numbers.
    MemoryBudgetError
        If the check takes more memory or time than `CheckBudget` allows.

    Examples
    --------
    Gauss multiplies complex numbers by three products instead of four:

    >>> from capacity.tensor import complex_numbers
    >>> A = [[1, 0, 1], [0, 1, 1]]
    >>> C = [[1, -1, 0], [-1, -1, 1]]
    >>> verify_decomposition(complex_numbers(), [A, A, C])
    Verdict(proved=True, reason=None)
    >>> verify_decomposition(complex_numbers(), [A, A, A]).proved
    False

    Over the complex numbers two are enough:

    >>> A = [[1, 1], [1j, -1j]]
    >>> verify_decomposition(complex_numbers(), [A, A, [[0.5, 0.5], [-0.5j, 0.5j]]]).proved
    True
    """
    of = given_of(of, "verify_decomposition(of, factors)")
    tensor = tensor_of(of)
    matrices = _checked(factors, tensor.shape)
    verdict = _verdict(of, matrices)
    if verdict.proved or (sides := sides_of_product(tensor)) is None:
        return verdict
    if not _verdict(of, [*matrices[:2], of_transposed(matrices[2], sides)]).proved:
        return verdict
    rank = matrices[0].shape[1]
    return Verdict(False, f"{verdict.reason}; {transposed_product(sides, rank)}")


def start_argument(
    of: Database | SparseTensor, factors: object
) -> Decomposition | ComplexDecomposition:
    """Return the decomposition that a search starts from, or that bounds the rank over C.

    Raises
    ------
    InvalidArgumentError
        If `factors` aren't a decomposition of the tensor, over the rationals or with complex
        numbers whose parts are rational.
    MemoryBudgetError
        If the check takes more memory or time than `CheckBudget` allows.
    """
    matrices = _checked(factors, tensor_of(of).shape)
    argument = _argument(matrices)
    verdict = _checked_argument(of, argument)
    if not verdict.proved or isinstance(argument, AlgebraicDecomposition):
        why = verdict.reason or "it has irrational numbers"
        raise InvalidArgumentError(
            f"`start` must be a decomposition of the tensor over the rationals; {why}. Check it by "
            "`verify_decomposition`, which names the convention if that is another."
        )
    return argument


def _verdict(of: Database | SparseTensor, matrices: list[NDArray[Any]]) -> Verdict:
    """Check a decomposition by exact numbers."""
    return _checked_argument(of, _argument(matrices))


def _checked_argument(of: Database | SparseTensor, argument: Argument) -> Verdict:
    arguments = (argument,) if argument.value else ()
    field: Field = "C" if isinstance(argument, ComplexDecomposition) else "R"
    certificate = Certificate(
        "rank", "upper", argument.value, "", arguments, *name_of(of), field=field
    )
    return verify(certificate, of)


def _argument(
    matrices: list[NDArray[Any]],
) -> Decomposition | AlgebraicDecomposition | ComplexDecomposition:
    """Make an argument of matrices of exact numbers."""
    every = [x for m in matrices for x in m.ravel().tolist()]
    fields = {(x.f, x.lo, x.hi) for x in every if isinstance(x, AlgebraicNumber)}
    is_complex = any(isinstance(x, GaussianRational) for x in every)
    if fields and is_complex:
        raise InvalidArgumentError(
            "The numbers of `factors` must lie in one number field; got complex numbers beside "
            "those of a real field."
        )
    if len(fields) > 1:
        raise InvalidArgumentError(
            "The numbers of `factors` must lie in one number field, written with one f, lo and hi; "
            f"got {len(fields)}."
        )
    by_mode = [[_sparse(column) for column in m.T.tolist()] for m in matrices]
    columns = list(zip(*by_mode, strict=True))
    if is_complex:
        return ComplexDecomposition(
            tuple(tuple((i, tuple(map(_pair, x))) for i, x in one) for one in columns)
        )
    if fields:
        ((f, lo, hi),) = fields
        terms = tuple(tuple((i, tuple(map(_polynomial, x))) for i, x in one) for one in columns)
        return AlgebraicDecomposition(f, lo, hi, terms)
    return Decomposition(tuple(tuple(vector(i, x) for i, x in one) for one in columns))


def _checked(factors: object, shape: tuple[int, ...]) -> list[NDArray[np.object_]]:
    """Return matrices of exact numbers, with the weights of a CPTensor in the first one."""
    weights: Any = None
    given: Any = factors.matrices if isinstance(factors, Factors) else factors
    if hasattr(given, "factors") and hasattr(given, "weights"):
        given, weights = given.factors, given.weights
    if not isinstance(given, Sequence) or len(given) != len(shape):
        raise InvalidArgumentError(
            f"`factors` must have a matrix for each of {len(shape)} modes; got {shown(factors)}."
        )
    matrices = [np.array(of, dtype=object) for of in given]
    if weights is not None and matrices[0].ndim == 2:
        matrices[0] = matrices[0] * np.array(weights, dtype=object)
    sizes = [of.shape for of in matrices]
    wanted = [(n, *sizes[0][1:2]) for n in shape]
    if sizes != wanted or len(sizes[0]) != 2:
        raise InvalidArgumentError(
            f"`factors` must be matrices with {shape} rows and the same number of columns; got "
            f"shapes {sizes}."
        )
    return [_exact_matrix(of) for of in matrices]


def _exact_matrix(given: NDArray[Any]) -> NDArray[Any]:
    matrix = np.empty(given.size, dtype=object)
    numbers: list[object] = given.ravel().tolist()
    # what most are is told by their types
    matrix[:] = [x if type(x) in (int, Fraction) else _exact(x) for x in numbers]
    return matrix.reshape(given.shape)


def _exact(x: object) -> Exact:
    if isinstance(x, AlgebraicNumber | Fraction):
        return x
    if isinstance(x, GaussianRational | complex | np.complexfloating):
        real, imag = (_exact(part) for part in (x.real, x.imag))
        # what is complex by its type alone is real
        return GaussianRational(real, imag) if imag else real  # type: ignore[arg-type]
    if isinstance(x, int | np.integer):
        return int(x)
    if isinstance(x, float | np.floating) and np.isfinite(x):
        exact = Fraction(float(x))
        if exact.denominator <= _PARTS:
            return exact if exact.denominator > 1 else int(exact)
    raise InvalidArgumentError(
        "`factors` must hold integers, fractions, `AlgebraicNumber`s or `GaussianRational`s, or "
        "floats and complex numbers whose parts are whole numbers, halves, quarters, or such parts "
        f"down to 1/{_PARTS}; got {shown(x)}. A numerical "
        "fit proves nothing: `rank_interval` turns fits into exact decompositions."
    )


def _of_boxes(argument: Boxes, tensor: SparseTensor) -> list[list[Column]]:
    """Simple tensors of boxes: indicators, of which the last is multiplied by the box's entry."""
    order = np.argsort(argument.box, kind="stable")
    order = order[np.searchsorted(argument.box[order], 0) :]
    found: list[list[Column]] = []
    for rows in np.split(order, np.flatnonzero(np.diff(argument.box[order])) + 1):
        if len(rows):
            *others, last = (np.unique(of).tolist() for of in tensor.indices[rows].T)
            value = int(tensor.values[rows[0]])
            found.append([*(dict.fromkeys(of, 1) for of in others), dict.fromkeys(last, value)])
    return found


def _numbers(argument: AlgebraicDecomposition, of: Any) -> Column:
    """Entries of a vector over a number field; rational numbers are fractions."""
    indices, values = of
    return {
        i: AlgebraicNumber(argument.f, argument.lo, argument.hi, x) if any(x[1:]) else x[0]
        for i, x in zip(indices, values, strict=True)
        if any(x)
    }


def _complex_numbers(of: Any) -> Column:
    """Entries of a vector of complex numbers; real numbers are fractions."""
    indices, values = of
    return {
        i: GaussianRational(x[0], x[1]) if len(x) > 1 and x[1] else x[0]
        for i, x in zip(indices, values, strict=True)
        if any(x)
    }


def _matrix(n: int, columns: list[Column]) -> NDArray[Any]:
    """Matrix of some columns, of int64 if all entries are such integers."""
    whole = all(_is_integer(x) and abs(int(x)) < 2**63 for of in columns for x in of.values())
    matrix = np.zeros((n, len(columns)), np.int64 if whole else object)
    for r, of in enumerate(columns):
        for i, x in of.items():
            matrix[i, r] = int(x) if _is_integer(x) else x
    return matrix


def _is_integer(x: Exact) -> TypeGuard[int | Fraction]:
    return not isinstance(x, AlgebraicNumber | GaussianRational) and x.denominator == 1


def _sparse(column: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
    kept = [(i, x) for i, x in enumerate(column) if x]
    return tuple(i for i, _ in kept), [x for _, x in kept]


def _pair(x: Exact) -> tuple[Fraction, ...]:
    if isinstance(x, GaussianRational):
        return Fraction(x.real), Fraction(x.imag)
    return _polynomial(x)


def _polynomial(x: int | Fraction | AlgebraicNumber) -> tuple[Fraction, ...]:
    return x.coefficients if isinstance(x, AlgebraicNumber) else (Fraction(x),)
