"""Upper bound by a decomposition: the number of simple tensors that add up to the entries."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from capacity.rank.types import Term, Vector
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.entries import Entries, Given, require
from capacity.rank.verifier.kind import Kind

# largest number of integer products per entry in decompositions that the library writes
PRODUCTS_AN_ENTRY = 20
# steps for a product that is added up, for a fiber of the last mode, for an index, and for a first
# index of any term
PRODUCT, FIBER, INDEX, FIRST = 190, 1_100, 500, 6_000
# bytes for a fiber
FIBER_BYTES = 300
# sums stay below this, so that those of several arguments can be added in 64 bits
LARGEST_SUM = 2**40


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
        products = math.prod(len(indices) for indices, _ in term)
        numbers = [x for _, values in term for x in values]
        if all(x.denominator == 1 and abs(x.numerator) < 2**63 for x in numbers):
            count += products
        else:
            bits = sum(
                max((max(x.numerator.bit_length(), x.denominator.bit_length()) for x in values),
                    default=0)
                for _, values in term
            )  # fmt: skip
            count += products * products_of_fraction(bits)
    return count


def entries_of_terms(argument: Decomposition, entries: Entries) -> Given:
    """Check that the terms add up to integers at some entries and 0 elsewhere.

    They are added up by first index and by fiber of the last mode, because a term of a few bytes
    can have more entries than fit in memory.
    """
    require(len(argument.terms) > 0, "a decomposition must have terms")
    for term in argument.terms:
        entries.budget.spend(INDEX * (1 + sum(len(indices) for indices, _ in term)))
    entries.budget.spend(PRODUCT * products_of_terms(argument.terms))
    of_first: defaultdict[int, list[tuple[int, int | Fraction]]] = defaultdict(list)
    fibers: defaultdict[int, int] = defaultdict(int)
    for number, term in enumerate(argument.terms):
        require(len(term) == entries.order, f"term {number} must have a vector for each mode")
        for (indices, values), n in zip(term, entries.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
            require(len(set(indices)) == len(indices), f"term {number} has an index twice")
            fits = len(values) == len(indices)
            require(fits, f"term {number} must have a coefficient for each index")
        (first, values), *middle, _ = term
        for i, x in zip(first, _plain(values), strict=True):
            of_first[i].append((number, x))
            fibers[i] += math.prod(len(indices) for indices, _ in middle)
    entries.budget.spend(FIRST * len(fibers))
    entries.budget.spend(
        FIBER * (entries.order - 2 or 1) * sum(fibers.values()),
        FIBER_BYTES * max(fibers.values(), default=0),
    )
    given: dict[int, int] = {}
    for i in sorted(of_first):
        given |= _given(i, of_first[i], argument, entries)
    rows = np.array(sorted(given), np.int64)
    return Given(rows, np.array([given[row] for row in rows.tolist()], np.int64))


def _given(
    i: int, members: list[tuple[int, int | Fraction]], argument: Decomposition, entries: Entries
) -> dict[int, int]:
    """Sums at the entries of a slice of the first mode, by row."""
    fibers: defaultdict[tuple[int, ...], list[tuple[int, int | Fraction]]] = defaultdict(list)
    for number, x in members:
        _, *middle, _ = argument.terms[number]
        for at, y in _products(middle):
            fibers[at].append((number, x * y))
    mine: defaultdict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    rows = entries.of_first(i)
    for row, (_, *at, last) in zip(rows, entries.indices[rows].tolist(), strict=True):
        mine[tuple(at)][last] = row
    given: dict[int, int] = {}
    for at, parts in fibers.items():
        if entries.effective and at not in mine:
            continue
        for last, x in _sum(parts, argument, entries).items():
            if x == 0:
                continue
            # the sum itself may have too many digits for a message
            place = (i, *at, last)
            require(x.denominator == 1, f"the terms add up to a fraction at {place}")
            require(last in mine[at], f"the terms don't add up to 0 at {place}, where T is 0")
            require(abs(x) < LARGEST_SUM, f"the terms add up to too large a number at {place}")
            given[mine[at][last]] = int(x)
    return given


def _products(
    vectors: Sequence[Vector],
) -> Iterator[tuple[tuple[int, ...], int | Fraction]]:
    """Yield each place of the outer product of some vectors, with the entry there."""
    if not vectors:
        yield (), 1
        return
    (indices, values), *others = vectors
    rest = list(_products(others))
    for j, y in zip(indices, _plain(values), strict=True):
        for at, z in rest:
            yield (j, *at), y * z


def _sum(
    parts: list[tuple[int, int | Fraction]], argument: Decomposition, entries: Entries
) -> dict[int, int | Fraction]:
    """Entries of a fiber of the sum, by its index."""
    total: defaultdict[int, int | Fraction] = defaultdict(int)
    for number, xy in parts:
        indices, values = argument.terms[number][-1]
        for v, z in zip(indices, _plain(values), strict=True):
            total[v] = value = total[v] + xy * z
            if type(value) is not int:
                # sums of fractions may have longer denominators than any term
                entries.budget.spend(PRODUCT * products_of_fraction(value.denominator.bit_length()))
    return total


def _plain(values: tuple[Fraction, ...]) -> list[int | Fraction]:
    """Convert integer fractions to int, which are added ten times faster."""
    return [x.numerator if x.denominator == 1 else x for x in values]


KIND = Kind(Decomposition, upper=entries_of_terms, alone=True)
