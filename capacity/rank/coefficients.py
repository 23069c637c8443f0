"""Coefficients of decompositions: fractions or numbers of a real number field, and arithmetic.

An element of the field Q[x]/(f) is a tuple of fractions in an argument of a certificate, the
coefficients of a polynomial, and a `flint.fmpq_poly` while it is added and multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import flint

from capacity.display import briefly_shown
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition, polynomial
from capacity.rank.verifier.kinds.decomposition import Decomposition

# bits to which a root is computed before it is rounded to a float
BITS = 80


@dataclass(frozen=True)
class AlgebraicNumber:
    """A number of a real number field: a polynomial in a root of f between two numbers.

    Attributes
    ----------
    f : tuple of int
        Coefficients of f, of x^0 first.
    lo, hi : Fraction
        Numbers between which f changes its sign.
    coefficients : tuple of Fraction
        Coefficients of the polynomial, of x^0 first.

    Examples
    --------
    One plus the square root of two:

    >>> AlgebraicNumber((-2, 0, 1), Fraction(1), Fraction(2), (Fraction(1), Fraction(1)))
    1 + x where -2 + x^2 = 0, 1 < x < 2
    >>> float(_)
    2.414213562373095
    """

    f: tuple[int, ...]
    lo: Fraction
    hi: Fraction
    coefficients: tuple[Fraction, ...]

    def __float__(self) -> float:
        lo, hi = self.lo, self.hi
        below = _value(self.f, lo) < 0
        # an error in x is multiplied by the coefficients
        bits = BITS + max(x.numerator.bit_length() for x in self.coefficients)
        while hi - lo > Fraction(1, 2**bits):
            middle = (lo + hi) / 2
            if (_value(self.f, middle) < 0) == below:
                lo = middle
            else:
                hi = middle
        return float(_value(self.coefficients, lo))

    def __repr__(self) -> str:
        root = f"where {_written(self.f)} = 0, {self.lo} < x < {self.hi}"
        return f"{_written(self.coefficients)} {root}"


def _value(f: Sequence[int | Fraction], x: Fraction) -> Fraction:
    total = Fraction(0)
    for c in reversed(f):
        total = total * x + c
    return total


def _written(f: Sequence[int | Fraction]) -> str:
    """Write a polynomial, such as -2 + x^2."""
    parts: list[str] = []
    for power, c in enumerate(f):
        if c:
            x = ("", "x")[power > 0] + (f"^{power}" if power > 1 else "")
            one = x and abs(c) == 1
            parts.append(
                f"{'-' if c < 0 else '+'} {'' if one else abs(c)}{' ' * (bool(x) and not one)}{x}"
            )
    text = " ".join(parts) or "0"
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


@dataclass(frozen=True)
class GaussianRational:
    """A complex number whose real and imaginary parts are rational.

    Attributes
    ----------
    real, imag : int or Fraction
        Both parts.

    Examples
    --------
    >>> GaussianRational(Fraction(1, 2), -1)
    1/2 - i
    >>> complex(_)
    (0.5-1j)
    """

    real: int | Fraction
    imag: int | Fraction

    def __complex__(self) -> complex:
        return complex(float(self.real), float(self.imag))

    def __bool__(self) -> bool:
        return bool(self.real or self.imag)

    def __repr__(self) -> str:
        size = "" if abs(self.imag) == 1 else f"{abs(self.imag)} "
        if not self.imag:
            return str(self.real)
        if not self.real:
            return f"{'-' if self.imag < 0 else ''}{size}i"
        return f"{self.real} {'-' if self.imag < 0 else '+'} {size}i"


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
