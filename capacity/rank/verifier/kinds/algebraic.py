"""Upper bound by a decomposition whose coefficients lie in a real number field.

Some integer tensors have shorter decompositions over the reals than over the rationals. That of the
cyclic group Z/5 takes 7 terms with sqrt(5), for example, and more without. The coefficients are
polynomials in a real number alpha, which by the certificate is a root of f between lo
and hi.

*Proof.* Since f(lo) and f(hi) have different signs, f has a real root alpha between lo and hi, by
the intermediate value theorem. Putting alpha for x takes sums to sums, products to products, and
multiples of f to 0. So what is equal modulo f is equal at alpha, and the terms at alpha, which are
real, add up to what the terms add up to modulo f. At each place this is checked to be an integer.

Nothing else matters: f needn't be irreducible, nor have only one root between lo and hi, and no
coefficient is ever inverted.

References
----------
H. Cohen, A Course in Computational Algebraic Number Theory, 1993, section 4.2 (elements of a number
field as polynomials modulo f).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import flint

from capacity.exact.types import AlgebraicTerm
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.entries import Entries, Given, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.sums import Sparse, require_terms, sums_of_terms

# steps for any operation with polynomials
OPERATION = 1_500


@dataclass(frozen=True, eq=False, repr=False)
class AlgebraicDecomposition(FromAbove):
    """A sum of simple tensors whose coefficients are polynomials in a root of a polynomial.

    Attributes
    ----------
    f : tuple of int
        Coefficients of the polynomial, of x^0 first; the last isn't zero.
    lo, hi : Fraction
        Numbers between which f has a root: f(lo) and f(hi) have different signs.
    terms : tuple of tuple of vectors
        For each term a vector for each mode, which is a pair (indices, coefficients). A coefficient
        is a tuple of fractions, the coefficients of a polynomial of lower degree than f, of x^0
        first.
    """

    kind: ClassVar[str] = "algebraic decomposition"
    forms: ClassVar[Forms] = {
        "f": "polynomial",
        "lo": "fraction",
        "hi": "fraction",
        "terms": "algebraic terms",
    }
    f: tuple[int, ...]
    lo: Fraction
    hi: Fraction
    terms: tuple[AlgebraicTerm, ...]

    @property
    def value(self) -> int:
        """Number of terms."""
        return len(self.terms)


def entries_of_algebraic_terms(argument: AlgebraicDecomposition, entries: Entries) -> Given:
    """Check that the terms add up to integers at some entries and 0 elsewhere."""
    require(len(argument.f) > 1 and argument.f[-1] != 0, "f must have a degree of at least 1")
    require(argument.lo < argument.hi, "lo must be below hi")
    entries.budget.spend(_steps_of_root(argument))
    f = flint.fmpq_poly(list(argument.f))
    below, above = (f(_rational(x)) for x in (argument.lo, argument.hi))
    require(below * above < 0, "f must have different signs at lo and hi")
    require_terms(argument.terms, entries)
    low = all(
        len(c) < len(argument.f) for term in argument.terms for _, values in term for c in values
    )
    require(low, "coefficients must be polynomials of lower degree than f")
    entries.budget.spend(_steps_of_conversion(argument))
    terms = _converted(argument)
    entries.budget.spend(_steps_of_products(terms))
    length, bits = (max(of) for of in zip(*map(_size, terms), strict=True))
    return sums_of_terms(
        terms,
        entries,
        of_rational=partial(_modulo, f, entries),
        steps=_steps_of_denominator,
        longer=_steps(length, bits),
        # each product twice on its way
        size=200 + length * bits // 4,
    )


def cost_of_algebraic_terms(argument: AlgebraicDecomposition) -> int:
    """Estimate the steps of checking a decomposition that the library writes."""
    conversion = _steps_of_root(argument) + _steps_of_conversion(argument)
    return conversion + _steps_of_products(_converted(argument))


def _modulo(f: flint.fmpq_poly, entries: Entries, total: flint.fmpq_poly) -> Fraction | None:
    """The rational number that a polynomial is equal to modulo f; None if it is none."""
    degree, quotients = f.degree(), max(0, total.length() - f.degree())
    # each quotient makes the remainder longer by the bits of f
    bits = _bits(total) + quotients * (1 + f.numer().height_bits())
    entries.budget.spend(degree * (1 + quotients) * _steps(1, bits))
    rest = total % f
    if rest.degree() > 0:
        return None
    return Fraction(int(rest[0].p), int(rest[0].q))


def _converted(argument: AlgebraicDecomposition) -> list[list[Sparse]]:
    return [
        [(indices, [polynomial(c) for c in values]) for indices, values in term]
        for term in argument.terms
    ]


def polynomial(coefficients: Sequence[Fraction]) -> flint.fmpq_poly:
    """Make the polynomial with some coefficients, of x^0 first."""
    below = math.lcm(*(c.denominator for c in coefficients))
    return flint.fmpq_poly([c.numerator * (below // c.denominator) for c in coefficients], below)


def _rational(x: Fraction) -> flint.fmpq:
    return flint.fmpq(x.numerator, x.denominator)


# ---- steps ---------------------------------------------------------------------------------------


def _steps(length: int, bits: int) -> int:
    """Steps of a product of polynomials that has a length, and coefficients of some bits.

    Measured for lengths up to 1,500 and up to 60,000 bits; beyond, flint is faster than this.
    """
    return OPERATION + (length + 3) * (100 + 3 * bits // 2 + bits**2 // 22_000)


def _bits(x: flint.fmpq_poly) -> int:
    return int(x.numer().height_bits()) + int(x.denom().bit_length())


def _size(term: list[Sparse]) -> tuple[int, int]:
    """Length and bits of the products of a term's coefficients, at most."""
    lengths = [max((x.length() for x in values), default=0) for _, values in term]
    bits = [max(map(_bits, values), default=0) for _, values in term]
    return 1 + sum(lengths), sum(bits) + len(term) * max(lengths).bit_length()


def _steps_of_products(terms: list[list[Sparse]]) -> int:
    return sum(
        math.prod(max(1, len(indices)) for indices, _ in term) * _steps(*_size(term))
        for term in terms
    )


def _steps_of_denominator(total: flint.fmpq_poly) -> int:
    # sums may have longer denominators than any term
    return _steps(total.length(), int(total.denom().bit_length()))


def _steps_of_conversion(argument: AlgebraicDecomposition) -> int:
    steps = 0
    for term in argument.terms:
        for _, values in term:
            for c in values:
                above = max((x.numerator.bit_length() for x in c), default=0)
                steps += _steps(len(c), above + sum(x.denominator.bit_length() for x in c))
    return steps


def _steps_of_root(argument: AlgebraicDecomposition) -> int:
    degree, bits = len(argument.f), max(map(int.bit_length, argument.f))
    places = max(
        x.numerator.bit_length() + x.denominator.bit_length() for x in (argument.lo, argument.hi)
    )
    return 2 * _steps(degree, bits + degree * places)


KIND = Kind(AlgebraicDecomposition, upper=entries_of_algebraic_terms)
