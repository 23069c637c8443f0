"""Arithmetic with the coefficients of decompositions: fractions, or elements of a number field.

An element of the field Q[x]/(f) is a tuple of fractions in an argument of a certificate, the
coefficients of a polynomial, and a `flint.fmpq_poly` while it is added and multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import flint

from capacity.display import briefly_shown
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition, polynomial
from capacity.rank.verifier.kinds.decomposition import Decomposition

# a decomposition with explicit coefficients
Explicit: TypeAlias = Decomposition | AlgebraicDecomposition


@briefly_shown
@dataclass(frozen=True)
class Coefficients:
    """The coefficients of a decomposition, and numbers that can be added and multiplied.

    Attributes
    ----------
    number : callable
        Converts a coefficient to a number.
    coefficient : callable
        Converts a number back to a coefficient; that of zero is false.
    rational : callable
        Converts a fraction to a number.
    """

    number: Callable[[Any], Any]
    coefficient: Callable[[Any], Any]
    rational: Callable[[Fraction], Any]

    def vector(self, numbers: Mapping[int, Any]) -> Any:
        """Sparse vector of the nonzero numbers at some indices."""
        found = {i: self.coefficient(x) for i, x in numbers.items()}
        kept = {i: x for i, x in found.items() if x}
        return tuple(kept), tuple(kept.values())


RATIONAL = Coefficients(lambda x: x, Fraction, lambda x: x)


def coefficients_of(found: Explicit) -> Coefficients:
    """Return the arithmetic of a decomposition's coefficients."""
    if isinstance(found, Decomposition):
        return RATIONAL
    modulus = flint.fmpq_poly(list(found.f))
    return Coefficients(polynomial, lambda x: fractions_of(x % modulus), lambda x: polynomial([x]))


def fractions_of(x: flint.fmpq_poly) -> tuple[Fraction, ...]:
    """Return the coefficients of a polynomial, of x^0 first and without zeros at the end."""
    return tuple(Fraction(int(c.p), int(c.q)) for c in x.coeffs())
