"""Numbers of a real number field, as coefficients of exact decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

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
