"""Sparse vectors and simple tensors made of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from capacity.rank.types import Indices, Term, Vector


def vector(indices: Sequence[int], values: Sequence[int | Fraction]) -> Vector:
    """Sparse vector of the nonzero values at some indices."""
    # to make a fraction of a fraction takes longer than all else here
    kept = [
        (int(i), x if type(x) is Fraction else Fraction(x))
        for i, x in zip(indices, values, strict=True)
        if x
    ]
    return tuple(i for i, _ in kept), tuple(x for _, x in kept)


def term(mode: int, across: Vector, a: Vector, b: Vector) -> Term:
    """Simple tensor of `across` in a mode and of `a` and `b` in the other two, ascending."""
    vectors = [a, b]
    vectors.insert(mode, across)
    return vectors[0], vectors[1], vectors[2]


def lifted(terms: list[Term], indices: tuple[Indices, Indices, Indices]) -> list[Term]:
    """Convert terms of a sub-tensor to terms of the whole, given the sub-tensor's indices."""
    moved: list[Term] = []
    for parts in terms:
        a, b, c = (
            (tuple(int(of[i]) for i in where), values)
            for of, (where, values) in zip(indices, parts, strict=True)
        )
        moved.append((a, b, c))
    return moved
