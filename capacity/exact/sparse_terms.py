"""Sparse vectors and simple tensors made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from capacity.exact.types import AlgebraicVector, Indices, Term, Vector


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
