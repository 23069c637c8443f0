"""Types that exact modules share: arrays, sparse vectors, and simple tensors made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# counts or indices
Indices: TypeAlias = NDArray[np.int64]
# entries that are known, or nonzero
Mask: TypeAlias = NDArray[np.bool_]
# the factors of a decomposition of order 3 with integer coefficients, shapes (rank, n_m)
IntegerFactors: TypeAlias = tuple[Indices, Indices, Indices]
# for each mode the indices that an argument is about
Touched: TypeAlias = tuple[Indices, ...]
# a sparse vector: indices of one mode, and a coefficient for each
Vector: TypeAlias = tuple[tuple[int, ...], tuple[Fraction, ...]]
# a simple tensor: one sparse vector per mode
Term: TypeAlias = tuple[Vector, ...]
# the same with coefficients in a number field: polynomials modulo f, by their coefficients
AlgebraicVector: TypeAlias = tuple[tuple[int, ...], tuple[tuple[Fraction, ...], ...]]
AlgebraicTerm: TypeAlias = tuple[AlgebraicVector, ...]
# charges the steps, of about a nanosecond, and the bytes of the work that follows, or refuses it
Spend: TypeAlias = Callable[[int, int], object]


def free(_steps: int, _memory: int) -> None:
    """Charge nothing: a search may take what it needs."""


def vector(indices: Sequence[int], values: Sequence[int | Fraction]) -> Vector:
    """Sparse vector of the nonzero values at some indices."""
    # to make a fraction of a fraction takes longer than all else here
    kept = [
        (int(i), x if type(x) is Fraction else Fraction(x))
        for i, x in zip(indices, values, strict=True)
        if x
    ]
    return tuple(i for i, _ in kept), tuple(x for _, x in kept)


def sparse(elements: Sequence[tuple[Fraction, ...]]) -> AlgebraicVector:
    """Sparse vector of the nonzero elements of a number field, by their coefficients."""
    kept = [(i, x) for i, x in enumerate(elements) if any(x)]
    return tuple(i for i, _ in kept), tuple(x for _, x in kept)


def term(mode: int, across: Vector, *others: Vector) -> Term:
    """Simple tensor of `across` in a mode and of the others in the other modes, ascending."""
    return (*others[:mode], across, *others[mode:])


def lifted(terms: Iterable[Any], indices: tuple[Indices, ...]) -> list[Any]:
    """Convert terms of a sub-tensor to terms of the whole, given the sub-tensor's indices."""
    return [
        tuple(
            (tuple(int(of[i]) for i in where), values)
            for of, (where, values) in zip(indices, parts, strict=True)
        )
        for parts in terms
    ]
