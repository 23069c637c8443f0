"""Exact decompositions with explicit coefficients, rational or algebraic, from numerical fits.

A fit is moved within its family of solutions until its coefficients are recognisable
(`capacity.rank.cp.snapping`), refined to hundreds of digits, and recognised as fractions or
as elements of one number field (`capacity.rank.cp.recognition`), for all factors but the
last. The last one is solved for exactly (`capacity.rank.cp.equations`), so rounding errors
can't make the result wrong. Isolated solutions of a high degree remain out of reach.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capacity.exact.types import AlgebraicTerm, Indices, Mask, sparse
from capacity.rank.coefficients import Explicit
from capacity.rank.cp.equations import Equations, Work, last_factor
from capacity.rank.cp.levenberg_marquardt import Array, Fit
from capacity.rank.cp.recognition import Field, recognised, refined
from capacity.rank.cp.snapping import snapped
from capacity.rank.verifier.argument_json import MOST_DIGITS
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition
from capacity.rank.verifier.kinds.decomposition import Decomposition

# ways to an isolated solution that are tried
ATTEMPTS = 4
# precisions, in bits, and the highest degree of a field that is sought with each
PRECISIONS = ((600, 8), (2_600, 14))


class ExactTerms(NamedTuple):
    """An exact decomposition over a number field."""

    field: Field
    terms: list[AlgebraicTerm]


def explicit_terms(
    tensor: Indices, fit: Fit, *, observed: Mask | None = None, work: Work | None = None
) -> ExactTerms | None:
    """Turn a numerical decomposition into an exact decomposition over a real number field.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, ..., n_d)
        The tensor to decompose, of two modes or more.
    fit : Fit
        A decomposition of the tensor, with a residual near zero.
    observed : ndarray of bool, shape (n_0, ..., n_d-1), optional
        Fibers of the last mode that the decomposition must reproduce; all if omitted.
    work : Work, optional
        Work that may be done; it is charged. Ten billion units if omitted.

    Returns
    -------
    ExactTerms or None
        The field, of degree 1 if it is that of the rationals, and as many terms as `fit` has. None
        if none are found.

    Examples
    --------
    The tensor of a rotation by a right angle takes three terms, and any three fit:

    >>> from capacity.rank.cp.levenberg_marquardt import fit_cp, random_start
    >>> T = np.array([[[1, 0], [0, 1]], [[0, 1], [-1, 0]]])
    >>> fit = fit_cp(T, random_start(T.shape, 3, np.random.default_rng(0)))
    >>> found = explicit_terms(T, fit)
    >>> found.field.degree, len(found.terms)
    (1, 3)
    """
    # the last mode is solved for, so the longest comes last; a mask fixes which mode is last
    modes = list(range(tensor.ndim))
    order = modes if observed is not None else sorted(modes, key=lambda m: tensor.shape[m])
    turned = np.ascontiguousarray(tensor.transpose(order)).astype(np.int64)
    equations = Equations.of(turned, fit.rank, observed)
    remaining = Work(10**10) if work is None else work
    near = tuple(fit.factors[m] for m in order)
    ends: list[tuple[Array, Mask]] = []
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng(attempt) if attempt else None
        end = snapped(equations, near, remaining, rng)
        if end is None:
            continue
        found = _recognised(turned, equations, end, observed, PRECISIONS[0], remaining)
        if found is not None:
            return _turned(found, order)
        ends.append(end)
    for end in ends:
        found = _recognised(turned, equations, end, observed, PRECISIONS[1], remaining)
        if found is not None:
            return _turned(found, order)
    return None


def _recognised(
    tensor: Indices,
    equations: Equations,
    end: tuple[Array, Mask],
    observed: Mask | None,
    precision: tuple[int, int],
    work: Work,
) -> ExactTerms | None:
    """Recognise the coefficients of a solution, and solve for the last factor."""
    bits, degree = precision
    numbers = refined(equations, *end, bits, work)
    if numbers is None:
        return None
    found = recognised(numbers[: equations.n_of_others].tolist(), bits, degree, work)
    if found is None:
        return None
    field, elements = found
    rank = equations.rank
    factors = [
        [elements[at + i * rank : at + (i + 1) * rank] for i in range(n)]
        for at, n in zip(equations.starts, tensor.shape[:-1], strict=False)
    ]
    last = last_factor(tensor, factors, field.f, observed)
    if last is None:
        return None
    factors.append(last)
    terms = [tuple(sparse([row[r] for row in f]) for f in factors) for r in range(rank)]
    return ExactTerms(field, terms) if _is_short(terms) else None


def _turned(found: ExactTerms, order: list[int]) -> ExactTerms:
    """Put the modes back into their places."""
    places = [order.index(m) for m in range(len(order))]
    return found._replace(terms=[tuple(term[m] for m in places) for term in found.terms])


def as_argument(found: ExactTerms) -> Explicit:
    """Make the argument of a certificate: a plain decomposition if all numbers are rational."""
    field, terms = found
    if field.degree > 1:
        return AlgebraicDecomposition(field.f, field.lo, field.hi, tuple(terms))
    return Decomposition(
        tuple(
            tuple((indices, tuple(c[0] for c in values)) for indices, values in term)
            for term in terms
        )  # type: ignore[arg-type]
    )


def _is_short(terms: list[AlgebraicTerm]) -> bool:
    """Return True if certificates may hold all the numbers."""
    numbers = (x for term in terms for _, values in term for c in values for x in c)
    return all(max(abs(x.numerator), x.denominator) < 10**MOST_DIGITS for x in numbers)
