"""Upper bound by a decomposition: the number of simple tensors that add up to facts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from capacity.rank.types import Indices, Term
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.facts import Facts, require
from capacity.rank.verifier.kind import Kind

# largest number of integer products per fact in decompositions that the library writes
PRODUCTS_A_FACT = 20
# steps for a product that is added up, for a pair of a subject and a predicate, for an index, and
# for a subject of any term
PRODUCT, PAIR, INDEX, SUBJECT = 190, 1_000, 500, 6_000
# bytes for a pair
PAIR_BYTES = 250


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(FromAbove):
    """A sum of simple tensors, each the outer product of three sparse vectors.

    Attributes
    ----------
    terms : tuple of (vector, vector, vector)
        Vectors over subjects, predicates and objects; each is a pair (indices, coefficients).
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


def facts_of_terms(argument: Decomposition, facts: Facts) -> Indices:
    """Check that the terms add up to 1 at some facts and 0 elsewhere; return the facts' rows.

    They are added up by subject and by fiber, because a term of a few bytes can have more entries
    than fit in memory.
    """
    require(len(argument.terms) > 0, "a decomposition must have terms")
    for term in argument.terms:
        facts.budget.spend(INDEX * (1 + sum(len(indices) for indices, _ in term)))
    facts.budget.spend(PRODUCT * products_of_terms(argument.terms))
    of_subject: defaultdict[int, list[tuple[int, int | Fraction]]] = defaultdict(list)
    pairs: defaultdict[int, int] = defaultdict(int)
    for number, term in enumerate(argument.terms):
        for (indices, values), n in zip(term, facts.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
            require(len(set(indices)) == len(indices), f"term {number} has an index twice")
            fits = len(values) == len(indices)
            require(fits, f"term {number} must have a coefficient for each index")
        (subjects, values), (predicates, _), _ = term
        for k, x in zip(subjects, _plain(values), strict=True):
            of_subject[k].append((number, x))
            pairs[k] += len(predicates)
    facts.budget.spend(SUBJECT * len(pairs))
    facts.budget.spend(PAIR * sum(pairs.values()), PAIR_BYTES * max(pairs.values(), default=0))
    given: list[int] = []
    for k in sorted(of_subject):
        given += _given(k, of_subject[k], argument, facts)
    return np.array(sorted(given), np.int64)


def _given(
    k: int, members: list[tuple[int, int | Fraction]], argument: Decomposition, facts: Facts
) -> list[int]:
    """Rows of the facts of a subject that its terms, times their coefficients, add up to."""
    fibers: defaultdict[int, list[tuple[int, int | Fraction]]] = defaultdict(list)
    for number, x in members:
        _, (predicates, values), _ = argument.terms[number]
        for q, y in zip(predicates, _plain(values), strict=True):
            fibers[q].append((number, x * y))
    rows = facts.of_subject(k)
    objects: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row, (_, q, v) in zip(rows, facts.triples[rows].tolist(), strict=True):
        objects[q][v] = row
    given: list[int] = []
    for q, parts in fibers.items():
        if facts.effective and q not in objects:
            continue
        for v, x in _sum(parts, argument, facts).items():
            if x == 0:
                continue
            # the sum itself may have too many digits for a message
            require(x == 1, f"the terms add up to neither 0 nor 1 at {k, q, v}")
            require(v in objects[q], f"the terms add up to 1 at {k, q, v}, which is no fact")
            given.append(objects[q][v])
    return given


def _sum(
    parts: list[tuple[int, int | Fraction]], argument: Decomposition, facts: Facts
) -> dict[int, int | Fraction]:
    """Entries of a fiber of the sum, by object."""
    total: defaultdict[int, int | Fraction] = defaultdict(int)
    for number, xy in parts:
        _, _, (indices, values) = argument.terms[number]
        for v, z in zip(indices, _plain(values), strict=True):
            total[v] = value = total[v] + xy * z
            if type(value) is not int:
                # sums of fractions may have longer denominators than any term
                facts.budget.spend(PRODUCT * products_of_fraction(value.denominator.bit_length()))
    return total


def _plain(values: tuple[Fraction, ...]) -> list[int | Fraction]:
    """Convert integer fractions to int, which are added ten times faster."""
    return [x.numerator if x.denominator == 1 else x for x in values]


KIND = Kind(Decomposition, upper=facts_of_terms, alone=True)
