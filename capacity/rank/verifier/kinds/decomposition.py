"""Upper bound by a decomposition: the number of simple tensors that add up to the entries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from capacity.exact.types import Term
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.entries import Entries, Given
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.blocked_sums import (
    integer_terms,
    steps_of_blocks,
    sums_by_blocks,
)
from capacity.rank.verifier.procedures.sums import require_terms, sums_of_terms

# largest number of integer products per entry in decompositions that the library writes
PRODUCTS_AN_ENTRY = 20
# steps for a product that is added up
PRODUCT = 190


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(FromAbove):
    """A sum of simple tensors, each the outer product of a sparse vector for each mode.

    Attributes
    ----------
    terms : tuple of tuple of vectors
        For each term a vector for each mode, which is a pair (indices, coefficients).
    """

    kind: ClassVar[str] = "decomposition"
    forms: ClassVar[Forms] = {"terms": "terms"}
    terms: tuple[Term, ...]

    @property
    def value(self) -> int:
        """Number of terms."""
        return len(self.terms)


def products_of_fraction(bits: int) -> int:
    """Count the products of integers that take as long as one of fractions of `bits` bits."""
    # the time of a greatest common divisor is quadratic in the length
    return 15 + bits // 12 + (bits // 400) ** 2


def products_of_terms(terms: Iterable[Term]) -> int:
    """Count the products of coefficients in some terms; one of fractions counts as several."""
    count = 0
    for term in terms:
        bits = _bits_of_products(term)
        # without an index of one mode, those of the others are multiplied all the same
        products = math.prod(max(1, len(indices)) for indices, _ in term)
        count += products * (products_of_fraction(bits) if bits else 1)
    return count


def _bits_of_products(term: Term) -> int:
    """Bits of the longest product of a term's coefficients; 0 if they are integers of 64 bits."""
    bits, small = 0, True
    for _, values in term:
        if not values:
            continue
        tops, bottoms = zip(*(x.as_integer_ratio() for x in values), strict=True)
        longest = max(max(tops), -min(tops), max(bottoms)).bit_length()
        small = small and longest < 64 and max(bottoms) == 1
        bits += longest
    return 0 if small else bits


def entries_of_terms(argument: Decomposition, entries: Entries) -> Given:
    """Check that the terms add up to integers at some entries and 0 elsewhere."""
    require_terms(argument.terms, entries)
    whole = integer_terms(argument.terms, entries.budget)
    steps = PRODUCT * products_of_terms(argument.terms)
    if whole is not None and steps_of_blocks(whole, entries) < steps:
        return sums_by_blocks(whole, entries)
    entries.budget.spend(steps)
    terms = [[(indices, _plain(values)) for indices, values in term] for term in argument.terms]
    # of a fraction, the numbers above and below the line, each of them twice on its way
    size = max(map(_bits_of_products, argument.terms)) // 2
    return sums_of_terms(terms, entries, of_rational=lambda x: x, steps=_steps_of_sum, size=size)


def _steps_of_sum(x: int | Fraction) -> int:
    # sums of fractions may have longer denominators than any term
    return 0 if type(x) is int else PRODUCT * products_of_fraction(x.denominator.bit_length())


def _plain(values: tuple[Fraction, ...]) -> list[int | Fraction]:
    """Convert integer fractions to int, which are added ten times faster."""
    return [x.numerator if x.denominator == 1 else x for x in values]


KIND = Kind(Decomposition, upper=entries_of_terms, alone=True, above_rational=True)
