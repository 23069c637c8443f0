"""Decompositions of algebras by Chinese remainders: the product of each direct factor by itself.

A core that is the product of an associative algebra is split into ideals
(`capacity.rank.composition.ideals`). Each takes the products of linear forms of its kind: values of
polynomials (`capacity.rank.composition.interpolation`), forms of matrices (`matrices`, beside it)
and quaternions (`quaternions`), or those of a search. The forms make two of the three factors of a
decomposition; the last one is solved for, exactly, so that wrong forms prove nothing.

Over the rationals an algebra may have fewer ideals than over the reals, and take more terms. So its
decomposition over the rationals comes first, which holds over both, and is followed by that over
the reals if it is shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isqrt
from typing import TypeAlias

import flint
import numpy as np

from capacity.exact.types import Indices, Term, sparse
from capacity.rank.coefficients import Explicit, coefficients_of, fractions_of
from capacity.rank.composition.ideals import Ideal
from capacity.rank.composition.interpolation import (
    Form,
    Polynomial,
    generator,
    rational_factors,
    real_factors,
    values_of_remainders,
)
from capacity.rank.composition.simple_algebras import (
    STRASSEN,
    entries_of_matrices,
    forms_of_quaternions,
)
from capacity.rank.cp.equations import Work, last_factor
from capacity.rank.cp.exact_fits import LEAST_SQUARES
from capacity.rank.cp.explicit import ExactTerms, as_argument
from capacity.rank.cp.recognition import RATIONALS, Field
from capacity.rank.method import Goal, Method, Problem, findings
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.reductions.unital_algebras import Algebra
from capacity.rank.upper.binary_search import BINARY_FLIPS
from capacity.rank.upper.walk_starts import as_terms, first_decompositions
from capacity.rank.verifier.entries import LARGEST_VALUE
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.theory.products import matrix_multiplication

# methods that search a part, in order
SEARCHES = (BINARY_FLIPS, LEAST_SQUARES)


def first_terms(tensor: Indices, goal: Goal) -> list[Term]:
    """Return a decomposition of a part that needs no search."""
    starts = first_decompositions(tensor, np.random.default_rng(goal.seed), work=goal.work)
    return as_terms(min(starts, key=lambda factors: len(factors[0])))


def shortest_terms(
    tensor: Indices,
    goal: Goal,
    start: list[Term],
    methods: Sequence[Method] = SEARCHES,
) -> list[Term]:
    """Search for a decomposition of a part with few terms, over the rationals.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The part.
    goal : Goal
        The work that it may take, limits and seed; bounds and start are those of the whole.
    start : list of Term
        A decomposition of the part.
    methods : sequence of Method
        Methods that yield terms.

    Returns
    -------
    list of Term
        The shortest decomposition found, which may be `start`.
    """
    problem = Problem(tensor)
    best, lower = start, max(problem.core.tensor.shape)
    for method in methods:
        if len(best) <= lower or (method.limit and not getattr(goal.limits, method.limit)):
            continue
        mine = replace(goal, lower=lower, upper=len(best), start=tuple(best))
        for found in findings(method, problem, mine):
            if isinstance(found[0], Decomposition) and found[0].value < len(best):
                best = list(found[0].terms)
    return best


# part of the work for the search of an ideal, and the largest dimension of one of no known kind
PART, MOST_SEARCHED = 4, 9
# linear forms of both factors of a product, each a column
Forms: TypeAlias = "tuple[flint.fmpq_mat, flint.fmpq_mat]"


def remainders(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Decompose the core if it is the product of an algebra of ideals of known kinds."""
    if not problem.algebras:
        return
    algebra, n_entries = problem.algebras[0], np.count_nonzero(problem.core.tensor)
    ideals = Ideal.of(algebra).direct_factors()
    generated: list[tuple[flint.fmpq_mat, flint.fmpq_poly]] = []
    others: list[Forms] = []
    # of matrices, by their dimension
    products: dict[int, Forms | None] = {4: (_transposed(STRASSEN[0]), _transposed(STRASSEN[1]))}
    for ideal in ideals:
        by_powers = generator(ideal)
        if by_powers is not None:
            powers, f = by_powers
            generated.append((ideal.coordinates * powers, f))
            continue
        if len(ideals) == 1 and ideal.dimension > 4 and n_entries == ideal.dimension**1.5:
            # matrices in their own bases are left to the searches of the whole
            return
        forms = _forms_of_matrices(ideal, goal, products) or forms_of_quaternions(ideal)
        if forms is None and len(ideals) > 1 and ideal.dimension <= MOST_SEARCHED:
            forms = _searched(ideal.products, goal)
        if forms is None:
            return
        left, right = forms
        others.append((ideal.coordinates * left, ideal.coordinates * right))
    upper = goal.upper
    for field, factors in _over_fields([f for _, f in generated], Work(goal.work)):
        values = [
            _composed(coordinates, form)
            for (coordinates, f), of in zip(generated, factors, strict=True)
            for form in values_of_remainders(f.degree(), of, field)
        ]
        sides = [[*values, *(x for pair in others for x in _columns(pair[side]))]
                 for side in range(2)]  # fmt: skip
        if len(sides[0]) < upper:
            found = _decomposition(problem, algebra, sides, field)
            if found is not None:
                upper = found.value
                yield (found,)


def _over_fields(
    polynomials: Sequence[flint.fmpq_poly], work: Work
) -> Iterator[tuple[Field, list[list[Polynomial]]]]:
    """Yield the factors of some polynomials over the rationals, and those over the reals."""
    yield RATIONALS, [rational_factors(f) for f in polynomials]
    over_reals = real_factors(polynomials, work)
    if over_reals is not None and over_reals[0].degree > 1:
        yield over_reals


def _composed(coordinates: flint.fmpq_mat, form: Form) -> Form:
    """The values of a form at vectors of which some coordinates are given, a row for each."""
    return [
        sum((x * c for x, c in zip(form, row, strict=True) if c != 0), flint.fmpq_poly([0]))
        for row in coordinates.tolist()
    ]


def _columns(matrix: flint.fmpq_mat) -> list[Form]:
    return [[flint.fmpq_poly([x]) for x in column] for column in matrix.transpose().tolist()]


def _forms_of_matrices(ideal: Ideal, goal: Goal, products: dict[int, Forms | None]) -> Forms | None:
    """Forms of the entries of matrices, by known ones or by those that a search finds."""
    entries = entries_of_matrices(ideal)
    if entries is None:
        return None
    if ideal.dimension not in products:
        n = isqrt(ideal.dimension)
        # for each entry of the first factor, a row for each one of the second
        slices = matrix_multiplication(n, n, n).to_numpy()
        products[ideal.dimension] = _searched([_matrix(of) for of in slices], goal)
    forms = products[ideal.dimension]
    return None if forms is None else (entries * forms[0], entries * forms[1])


def _transposed(rows: list[list[int]]) -> flint.fmpq_mat:
    return flint.fmpq_mat(flint.fmpz_mat(rows)).transpose()


def _searched(products: list[flint.fmpq_mat], goal: Goal) -> Forms | None:
    """Forms of a decomposition that a search finds of a product, given that of basis vectors."""
    d = len(products)
    flat = flint.fmpq_mat([M.entries() for M in products]).numer_denom()[0].entries()
    if max(abs(x) for x in flat) >= LARGEST_VALUE:
        return None
    part = np.array([int(x) for x in flat], np.int64).reshape(d, d, d)
    mine = replace(goal, work=goal.work // PART)
    terms = shortest_terms(part, mine, first_terms(part, mine))
    left, right = np.full((2, d, len(terms)), flint.fmpq(0), object)
    for r, term in enumerate(terms):
        for matrix, vector in ((left, term[0]), (right, term[1])):
            for i, x in zip(*vector, strict=True):
                matrix[i, r] = flint.fmpq(x.numerator, x.denominator)
    return flint.fmpq_mat(left.tolist()), flint.fmpq_mat(right.tolist())


def _decomposition(
    problem: Problem, algebra: Algebra, sides: list[list[Form]], field: Field
) -> Explicit | None:
    """Decompose the tensor by forms of both factors of the algebra's product."""
    core = problem.core
    modes = [*(m for m in range(3) if m != algebra.mode), algebra.mode]
    turned = core.tensor.astype(np.int64).transpose(modes)
    # the vectors of both modes as elements of the algebra
    through = (
        np.tensordot(turned, algebra.right, (1, 0)),
        np.tensordot(turned, algebra.left, (0, 0)),
    )
    modulus = flint.fmpq_poly(list(field.f))
    factors = [
        [[fractions_of(x % modulus) for x in row] for row in zip(*forms_of_mode, strict=True)]
        for forms_of_mode in (
            [_composed(_matrix(vectors), form) for form in forms]
            for vectors, forms in zip(through, sides, strict=True)
        )
    ]
    last = last_factor(turned, factors, field.f)
    if last is None:
        return None
    factors.append(last)
    places = [modes.index(m) for m in range(3)]
    terms = [
        tuple(sparse([row[r] for row in factors[place]]) for place in places)
        for r in range(len(sides[0]))
    ]
    found = as_argument(ExactTerms(field, terms))
    return replace(found, terms=tuple(core.lifted(found.terms, coefficients_of(found))))


def _matrix(A: Indices) -> flint.fmpq_mat:
    return flint.fmpq_mat(flint.fmpz_mat(A.tolist()))


REMAINDERS = Method(
    "Chinese remainders",
    remainders,
    sides=("upper",),
    cost=lambda problem: 60 * max(problem.tensor.shape) ** 5,
)
