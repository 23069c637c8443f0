"""Decompositions composed of those of smaller tensors: Kronecker factors, and blocks of slices.

The terms of a Kronecker product are the products of those of its factors, as Strassen's algorithm
for matrices of blocks has it; one factor may be an algebra with irrational coefficients. The terms
of two blocks together are terms of their sum. Parts are split again. Those with few entries are
searched, each of them once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from capacity.exact.types import Indices, Term, lifted
from capacity.rank.coefficients import coefficients_of
from capacity.rank.composition.kronecker import (
    classes_of_pairs,
    halves,
    kronecker_factors,
    product_of_terms,
)
from capacity.rank.composition.remainders import REMAINDERS, SEARCHES, first_terms, shortest_terms
from capacity.rank.composition.w_states import w_cube_terms
from capacity.rank.method import Goal, Method, Problem, findings
from capacity.rank.reductions.subtensor import Finding, concise_core
from capacity.rank.upper.published_schemes import PUBLISHED_SCHEMES
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition

# entries of a part that is searched, and entries and places of the whole
MOST_SEARCHED, MOST_ENTRIES, LARGEST = 27, 700, 300_000
# methods that know a decomposition without a search
KNOWN = PUBLISHED_SCHEMES, REMAINDERS
# parts of the work: of all searches, and of one
ALL, ONE = 4, 16


def compositions(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decompose the core if it has Kronecker factors or blocks."""
    core = problem.core
    tensor = core.tensor.astype(np.int64)
    if tensor.size > LARGEST or np.count_nonzero(tensor) > MOST_ENTRIES:
        return
    composer, upper = _Composer(goal, tensor), goal.upper
    terms = composer.composed(tensor)
    if terms is not None and len(terms) < upper:
        upper = len(terms)
        yield (Decomposition(tuple(core.lifted(terms))),)
    found = composer.over_a_field(tensor, upper)
    if found is not None:
        yield (replace(found, terms=tuple(core.lifted(found.terms, coefficients_of(found)))),)


class _Composer:
    """Decompositions of parts, by what is known of those that occurred before."""

    def __init__(self, goal: Goal, tensor: Indices) -> None:
        self.goal, self.left = goal, goal.work // ALL
        # blocks in two modes alone, as facts of different predicates often are, are left to the
        # searches of the whole
        several = all(count > 1 for _, count in classes_of_pairs(tensor))
        searched = several or next(kronecker_factors(tensor), None) is not None
        self.methods = (*KNOWN, *SEARCHES) if searched else KNOWN
        self.known: dict[tuple[bytes, tuple[int, ...]], list[Term]] = {}

    def composed(self, tensor: Indices) -> list[Term] | None:
        """The shortest decomposition of a concise tensor from its parts; None if it has none."""
        found = [
            product_of_terms(self.best(A), self.best(B), B.shape, order)
            for A, B, order in kronecker_factors(tensor)
        ]
        found += [
            [term for block in blocks for term in lifted(self.best(tensor[np.ix_(*block)]), block)]
            for blocks in halves(tensor)
        ]
        cube = w_cube_terms(tensor)
        found += [] if cube is None else [cube]
        return min(found, key=len, default=None)

    def over_a_field(self, tensor: Indices, upper: int) -> AlgebraicDecomposition | None:
        """The shortest product of a decomposition over a number field and a rational one."""
        shortest = None
        for A, B, order in kronecker_factors(tensor):
            for number, part in enumerate((A, B)):
                found, other = self._algebraic(part), self.best(B if part is A else A)
                if found is None or found.value * len(other) >= upper:
                    continue
                both = (found.terms, other) if number == 0 else (other, found.terms)
                times = _scaled if number == 0 else _scaling
                terms = product_of_terms(*both, B.shape, order, times)
                upper, shortest = len(terms), replace(found, terms=tuple(terms))
        return shortest

    def _algebraic(self, tensor: Indices) -> AlgebraicDecomposition | None:
        """The shortest decomposition of an algebra by its factors over the reals, if irrational."""
        goal = replace(self.goal, work=self.goal.work // ONE, upper=len(self.best(tensor)))
        found = [of for of, *_ in findings(REMAINDERS, Problem(tensor), goal)]
        algebraic = [of for of in found if isinstance(of, AlgebraicDecomposition)]
        return min(algebraic, key=lambda of: of.value, default=None)

    def best(self, tensor: Indices) -> list[Term]:
        """The shortest decomposition of a part, composed or searched."""
        core = concise_core(tensor)
        part = core.tensor.astype(np.int64)
        key = part.tobytes(), part.shape
        if key not in self.known:
            best = first_terms(part, self.goal)
            if len(best) > max(part.shape):
                composed = self.composed(part)
                best = best if composed is None else min(best, composed, key=len)
                best = self._searched(part, best)
            self.known[key] = best
        return core.lifted(self.known[key])

    def _searched(self, tensor: Indices, start: list[Term]) -> list[Term]:
        few = np.count_nonzero(tensor) <= MOST_SEARCHED and self.left > 0
        work = self.goal.work // ONE
        self.left -= work if few else 0
        methods = self.methods if few else KNOWN
        return shortest_terms(tensor, replace(self.goal, work=work), start, methods)


def _scaled(element: tuple[Fraction, ...], by: Fraction) -> tuple[Fraction, ...]:
    """An element of a number field times a fraction."""
    return tuple(x * by for x in element)


def _scaling(by: Fraction, element: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """The same, with the fraction first."""
    return _scaled(element, by)


COMPOSITION = Method("composition", compositions, sides=("upper",), limit="walks")
