"""Random decompositions over a real number field, of the same sum as given rational terms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from capacity.exact.types import Term
from capacity.rank import AlgebraicDecomposition
from capacity.testing.choices import Choices

# an element of a field, as the coefficients of a polynomial of lower degree than f
Element: TypeAlias = tuple[Fraction, ...]
SparseElements: TypeAlias = dict[int, Element]


@dataclass(frozen=True)
class Field:
    """A polynomial f with a root between two numbers, and the inverse of that root modulo f."""

    f: tuple[int, ...]
    lo: Fraction
    hi: Fraction
    inverse: Element


# the square root of 2, (sqrt(5) - 1) / 2, the cube root of 2, 2 cos(2 pi / 7), and a rational
FIELDS = (
    Field((-2, 0, 1), Fraction(1), Fraction(2), (Fraction(0), Fraction(1, 2))),
    Field((-1, 1, 1), Fraction(0), Fraction(3, 4), (Fraction(1), Fraction(1))),
    Field((-2, 0, 0, 1), Fraction(-1), Fraction(7), (Fraction(0), Fraction(0), Fraction(1, 2))),
    Field((-1, -2, 1, 1), Fraction(1), Fraction(2), (Fraction(-2), Fraction(1), Fraction(1))),
    Field((-3, 2), Fraction(1), Fraction(9, 5), (Fraction(2, 3),)),
)


def algebraic_decomposition(choose: Choices, terms: list[Term]) -> AlgebraicDecomposition:
    """Choose a field, and terms over it that have the sum of some rational terms."""
    field = choose.one(FIELDS)
    zero = (Fraction(0),) * (len(field.f) - 1)
    found: list[list[SparseElements]] = [
        [
            {i: (x, *zero[1:]) for i, x in zip(indices, values, strict=True)}
            for indices, values in term
        ]
        for term in terms
    ]
    alpha = _times_root(field, (Fraction(1), *zero[1:]))
    for _ in range(choose.integer(1, 4)):
        n = choose.integer(0, len(found) - 1)
        a, b, *_ = choose.order(range(len(found[n])))
        if choose.chance(1, 2):
            # u b c = u (alpha b) (c / alpha)
            found[n][a] = _scaled(field, found[n][a], alpha)
            found[n][b] = _scaled(field, found[n][b], field.inverse)
        else:
            # u b c = u (b - alpha b') c + u (alpha b') c
            piece = _scaled(field, choose.one(found)[a], alpha)
            found.append([piece if m == a else dict(part) for m, part in enumerate(found[n])])
            found[n][a] = _less(found[n][a], piece)
    kept = [one for one in found if all(one)]
    return AlgebraicDecomposition(
        field.f,
        field.lo,
        field.hi,
        tuple(tuple((tuple(part), tuple(part.values())) for part in one) for one in kept),
    )


def _times_root(field: Field, x: Element) -> Element:
    """Multiply by the root: x^d is replaced by what f says it is."""
    *low, top = (Fraction(0), *x)
    return tuple(y - top * c / field.f[-1] for y, c in zip(low, field.f, strict=False))


def _product(field: Field, x: Element, y: Element) -> Element:
    total = [Fraction(0)] * len(x)
    for c in y:
        total = [t + c * z for t, z in zip(total, x, strict=True)]
        x = _times_root(field, x)
    return tuple(total)


def _scaled(field: Field, part: SparseElements, by: Element) -> SparseElements:
    return {i: _product(field, x, by) for i, x in part.items()}


def _less(x: SparseElements, y: SparseElements) -> SparseElements:
    total = dict(x)
    for i, value in y.items():
        old = total.get(i, (Fraction(0),) * len(value))
        total[i] = tuple(a - b for a, b in zip(old, value, strict=True))
    return {i: value for i, value in total.items() if any(value)}
