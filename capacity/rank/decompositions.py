"""Decompositions that users have: made exact, and checked as certificates are.

There are two conventions for the tensor of a product of matrices. Here the third mode numbers the
entries (i, k) of the product by rows. The tensor whose third mode numbers them by columns is that
of the transposed product, whose decompositions AlphaTensor's files hold.

References
----------
A. Fawzi et al., Discovering faster matrix multiplication algorithms with reinforcement learning,
Nature 610, 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.exact.types import vector
from capacity.rank.coefficients import AlgebraicNumber, GaussianRational
from capacity.rank.factors import _PARTS, Exact, Factors, FactorsLike
from capacity.rank.given import FactsOrTensor, given_of
from capacity.rank.options import Field
from capacity.rank.verifier.argument import Argument
from capacity.rank.verifier.certificate import Certificate
from capacity.rank.verifier.checker import Verdict, verify
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition
from capacity.rank.verifier.kinds.complex import ComplexDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.named import name_of, tensor_of
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.theory.products import matrix_multiplication

if TYPE_CHECKING:
    pass


def sides_of_product(tensor: SparseTensor) -> tuple[int, int] | None:
    """Return the sides of the product if a tensor is that of matrices; None if it is another.

    Examples
    --------
    >>> sides_of_product(matrix_multiplication(2, 3, 4))
    (2, 4)
    """
    if len(tensor.shape) != 3 or not all(tensor.shape):
        return None
    a, b, c = tensor.shape
    # of n m, m p and n p
    n, p = isqrt(a * c // b), isqrt(b * c // a)
    m = a // max(n, 1)
    if (n * m, m * p, n * p) != (a, b, c) or tensor.n_entries != n * m * p:
        return None
    return (n, p) if tensor == matrix_multiplication(n, m, p) else None


def of_transposed(matrix: NDArray[Any], sides: tuple[int, int]) -> NDArray[Any]:
    """Number the rows of a third factor by those of the product, which it numbers by columns.

    Parameters
    ----------
    matrix : ndarray, shape (n p, rank)
        The factor.
    sides : (int, int)
        n and p.
    """
    n, p = sides
    return matrix.reshape(p, n, -1).transpose(1, 0, 2).reshape(n * p, -1)


def transposed_product(sides: tuple[int, int], rank: int) -> str:
    """State that factors are those of the transposed product, and what makes them those of this."""
    n, p = sides
    return (
        "but the factors are those of the transposed product, as AlphaTensor's files have it: "
        f"C.reshape({p}, {n}, {rank}).transpose(1, 0, 2).reshape({n * p}, {rank}) in place of the "
        "third, C, proves it"
    )


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
    facts: Database | SparseTensor, factors: object
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
    matrices = _checked(factors, tensor_of(facts).shape)
    argument = _argument(matrices)
    verdict = _checked_argument(facts, argument)
    if not verdict.proved or isinstance(argument, AlgebraicDecomposition):
        why = verdict.reason or "it has irrational numbers"
        raise InvalidArgumentError(
            f"`start` must be a decomposition of the tensor over the rationals; {why}. Check it by "
            "`verify_decomposition`, which names the convention if that is another."
        )
    return argument


def _verdict(facts: Database | SparseTensor, matrices: list[NDArray[Any]]) -> Verdict:
    """Check a decomposition by exact numbers."""
    return _checked_argument(facts, _argument(matrices))


def _checked_argument(facts: Database | SparseTensor, argument: Argument) -> Verdict:
    arguments = (argument,) if argument.value else ()
    field: Field = "C" if isinstance(argument, ComplexDecomposition) else "R"
    certificate = Certificate(
        "rank", "upper", argument.value, "", arguments, *name_of(facts), field=field
    )
    return verify(certificate, facts)


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
            tuple(tuple((i, tuple(map(_pair, x))) for i, x in entries) for entries in columns)
        )
    if fields:
        ((f, lo, hi),) = fields
        terms = tuple(
            tuple((i, tuple(map(_polynomial, x))) for i, x in entries) for entries in columns
        )
        return AlgebraicDecomposition(f, lo, hi, terms)
    return Decomposition(tuple(tuple(vector(i, x) for i, x in entries) for entries in columns))


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
    matrices = [np.array(_of_torch(matrix), dtype=object) for matrix in given]
    if weights is not None and matrices[0].ndim == 2:
        matrices[0] = matrices[0] * np.array(weights, dtype=object)
    sizes = [matrix.shape for matrix in matrices]
    wanted = [(n, *sizes[0][1:2]) for n in shape]
    if sizes != wanted or len(sizes[0]) != 2:
        raise InvalidArgumentError(
            f"`factors` must be matrices with {shape} rows and the same number of columns; got "
            f"shapes {sizes}."
        )
    return [_exact_matrix(matrix) for matrix in matrices]


def _of_torch(matrix: Any) -> Any:
    """Return an array of a tensor of torch, of bfloat16 as doubles; anything else as it is."""
    if not hasattr(matrix, "detach"):
        return matrix
    dense = matrix.detach().cpu().to_dense().resolve_conj().resolve_neg()
    return (dense.double() if str(dense.dtype) == "torch.bfloat16" else dense).numpy()


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


def _sparse(column: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
    kept = [(i, x) for i, x in enumerate(column) if x]
    return tuple(i for i, _ in kept), [x for _, x in kept]


def _pair(x: Exact) -> tuple[Fraction, ...]:
    if isinstance(x, GaussianRational):
        return Fraction(x.real), Fraction(x.imag)
    return _polynomial(x)


def _polynomial(x: int | Fraction | AlgebraicNumber) -> tuple[Fraction, ...]:
    return x.coefficients if isinstance(x, AlgebraicNumber) else (Fraction(x),)
