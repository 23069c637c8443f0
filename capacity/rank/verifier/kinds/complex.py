"""Upper bound over the complex numbers by simple tensors whose coefficients are Gaussian rationals.

Some integer tensors have shorter decompositions over C than over R: the product of two complex
numbers takes two terms instead of three. Coefficients are x + y i with rational x and y.

*Proof.* A product of such numbers, one for each mode, is the sum of the products of one part of
each, real or imaginary, by i^k if k parts are imaginary. So a simple tensor is the sum of the
simple tensors of the parts of its vectors, by i^k. Those with an even k add up to the real part of
the sum of all terms, with the sign of i^k, and those with an odd k, with that of i^(k - 1), to the
imaginary part. The terms add up to a real tensor T if and only if the former is T and the latter 0.
Both are sums of simple tensors over the rationals, which
`capacity.rank.verifier.kinds.decomposition` adds up.

This proves nothing about the rank over R or Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from capacity.exact.types import AlgebraicTerm, AlgebraicVector, Term, Vector
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.entries import Entries, Given, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.kinds.decomposition import Decomposition, entries_of_terms
from capacity.rank.verifier.procedures.sums import INDEX, require_terms


@dataclass(frozen=True, eq=False, repr=False)
class ComplexDecomposition(FromAbove):
    """A sum of simple tensors whose coefficients are complex numbers with rational parts.

    Attributes
    ----------
    terms : tuple of tuple of vectors
        For each term a vector for each mode, which is a pair (indices, coefficients). A coefficient
        is a tuple of at most two fractions: the real part, and the imaginary part.
    """

    kind: ClassVar[str] = "complex decomposition"
    forms: ClassVar[Forms] = {"terms": "algebraic terms"}
    terms: tuple[AlgebraicTerm, ...]

    @property
    def value(self) -> int:
        """Number of terms."""
        return len(self.terms)


def entries_of_complex_terms(argument: ComplexDecomposition, entries: Entries) -> Given:
    """Check that the terms add up to integers at some entries and 0 elsewhere."""
    terms = argument.terms
    require_terms(terms, entries)
    pairs = all(len(c) <= 2 for term in terms for _, values in term for c in values)
    require(pairs, "a coefficient must be a real and an imaginary part")
    split = [[_parts(vector) for vector in term] for term in terms]
    # a term of vectors that are all complex has a part for each choice of theirs
    parts = sum(math.prod(map(len, term)) for term in split)
    entries.budget.spend(INDEX * entries.order * parts, 100 * entries.order * parts)
    real, imaginary = _expanded(split)
    if imaginary:
        given = entries_of_terms(Decomposition(imaginary), entries)
        require(not len(given.rows), "the terms don't add up to real numbers")
    require(bool(real), "the terms have no real part")
    return entries_of_terms(Decomposition(real), entries)


def _parts(vector: AlgebraicVector) -> list[tuple[int, Vector]]:
    """The parts of a vector that aren't 0, the real one as 0 and the imaginary one as 1."""
    found: list[tuple[int, Vector]] = []
    for which in range(2):
        kept = [(i, c[which]) for i, c in zip(*vector, strict=True) if len(c) > which and c[which]]
        if kept:
            found.append((which, (tuple(i for i, _ in kept), tuple(x for _, x in kept))))
    return found


def _expanded(
    terms: list[list[list[tuple[int, Vector]]]],
) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """Terms of the real part of a sum, and of the imaginary part."""
    found: tuple[list[Term], list[Term]] = [], []
    for term in terms:
        for chosen in product(*term):
            k = sum(which for which, _ in chosen)
            (indices, values), *others = (vector for _, vector in chosen)
            signed = values if k % 4 < 2 else tuple(-x for x in values)
            found[k % 2].append(((indices, signed), *others))
    return tuple(found[0]), tuple(found[1])


KIND = Kind(ComplexDecomposition, upper=entries_of_complex_terms, alone=True, above_real=False)
