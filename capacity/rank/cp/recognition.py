"""Recognise numbers of high precision: as fractions, or as elements of one number field.

Solutions of polynomial equations with rational coefficients that are isolated are algebraic
numbers. If one is known to enough digits, a short integer relation among its powers yields its
minimal polynomial f, and a short relation among another number and those powers writes that as a
polynomial in the first. Lattice reduction (LLL) finds such relations. What is recognised may be
wrong, so it is verified exactly afterwards.

References
----------
A. K. Lenstra, H. W. Lenstra, L. Lovasz, Factoring polynomials with rational coefficients, Math.
Ann. 261, 1982; H. Cohen, A Course in Computational Algebraic Number Theory, 1993, section 2.7.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Mask
from capacity.rank.cp.equations import Equations, Work
from capacity.rank.cp.levenberg_marquardt import Array

# digits that aren't trusted, of all that are computed
GUARD = 70
# bits of a fraction's denominator
MOST_BITS = 80
# a relation is taken for one if its coefficients have at most this share of the bits that random
# numbers would need
SHORT = 0.6
# irrational numbers that are looked at for a generator, and the sums that replace it
GENERATORS, SUMS = 6, 4
# denominator of the fractions that unknowns are fixed to, and iterations of the refinement
FIXED_DENOMINATOR, ITERATIONS = 64, 200


@dataclass(frozen=True)
class Field:
    """The number field of a real root of a polynomial.

    Attributes
    ----------
    f : tuple of int
        Coefficients of the polynomial, of x^0 first.
    lo, hi : Fraction
        Numbers close to the root, on both sides of it.
    """

    f: tuple[int, ...]
    lo: Fraction
    hi: Fraction

    @property
    def degree(self) -> int:
        """Degree of the polynomial."""
        return len(self.f) - 1


RATIONALS = Field((0, 1), Fraction(-1), Fraction(1))


def refined(
    equations: Equations, x: Array, fixed: Mask, bits: int, work: Work
) -> NDArray[np.object_] | None:
    """Refine a solution to fixed-point numbers, integers over 2^bits.

    Newton's method with exact residuals, and with the pseudo-inverse of the floating-point
    Jacobian: some 40 bits an iteration, also where equations are dependent. None if it doesn't
    converge.
    """
    free = np.flatnonzero(~fixed)
    m, n, order = len(equations.places), len(free), len(equations.shape)
    words = 1 + bits * order // 64
    iteration = len(equations.places) * equations.rank * order * (200 + 2 * words) + 2 * m * n
    if not work.spend(25 * m * n * min(m, n)):
        return None
    inverse = np.linalg.pinv(equations.jacobian(x)[:, free], rcond=1e-10)
    simple = [Fraction(v).limit_denominator(FIXED_DENOMINATOR) for v in x.tolist()]
    near = [
        (q.numerator << bits) // q.denominator if f else int(Fraction(v) * (1 << bits))
        for v, q, f in zip(x.tolist(), simple, fixed.tolist(), strict=True)
    ]
    fine = np.array(near, object)
    previous = bits
    for _ in range(ITERATIONS):
        if not work.spend(iteration):
            return None
        left = equations.fixed_point_residual(fine, bits)
        size = max((abs(v).bit_length() for v in left.tolist()), default=0)
        exponent = size - bits * order
        if exponent < GUARD // 2 - bits:
            return fine
        if exponent > previous - 3:
            return None
        previous = exponent
        # the leading 60 bits of the residual, and 50 bits of the step after its point
        drop = max(0, size - 60)
        step = inverse @ np.array([float(v >> drop) for v in left.tolist()])
        shift = drop - bits * order + bits - 50
        for i, s in zip(free.tolist(), np.rint(step * 2.0**50).tolist(), strict=True):
            move = int(s)
            fine[i] -= move << shift if shift >= 0 else move >> -shift
    return None


def recognised(
    numbers: Sequence[int], bits: int, degree: int, work: Work
) -> tuple[Field, list[tuple[Fraction, ...]]] | None:
    """Write numbers as elements of one number field.

    Parameters
    ----------
    numbers : sequence of int
        The numbers times 2^bits.
    bits : int
        Their precision.
    degree : int
        Largest degree of the field.
    work : Work
        Work that may be done; it is charged.

    Returns
    -------
    (field, elements) or None
        The field, and for each number the coefficients of a polynomial in its generator, of lower
        degree. None if some number isn't recognised.
    """
    # equal numbers may differ in digits that aren't trusted
    numbers = [_rounded(v) for v in numbers]
    found: dict[int, tuple[Fraction, ...]] = {}
    for v in {*numbers}:
        q = _fraction(v, bits)
        if q is not None:
            found[v] = _trimmed((q,))
    rest = sorted({*numbers} - {*found}, key=abs)
    if not rest:
        return RATIONALS, [found[v] for v in numbers]
    generator = _generator(rest[:GENERATORS], bits, degree, work)
    for _ in range(SUMS):
        if generator is None:
            return None
        f, alpha = generator
        powers = _powers(alpha, len(f) - 2, bits)
        odd = None
        for v in rest:
            relation = _relation([v, *powers], bits, work)
            if relation is None or not relation[0]:
                odd = v
                break
            found[v] = tuple(Fraction(-c, relation[0]) for c in relation[1:])
        if odd is None:
            field = _field(f, alpha, bits)
            return None if field is None else (field, [_trimmed(found[v]) for v in numbers])
        # of two numbers of different fields, the sum generates both nearly always
        generator = _generator([alpha + odd], bits, degree, work)
    return None


def _rounded(value: int) -> int:
    half = 1 << (GUARD - 20)
    return ((value + half) >> (GUARD - 19)) << (GUARD - 19)


def _fraction(value: int, bits: int) -> Fraction | None:
    near = Fraction(value, 1 << bits).limit_denominator(1 << MOST_BITS)
    exact = abs(Fraction(value, 1 << bits) - near) < Fraction(1, 1 << (bits - GUARD))
    return near if exact else None


def _generator(
    values: Sequence[int], bits: int, degree: int, work: Work
) -> tuple[tuple[int, ...], int] | None:
    """A number of the highest degree, and among these of the shortest minimal polynomial."""
    found: list[tuple[tuple[int, ...], int]] = []
    for value in values:
        f = _minimal_polynomial(value, bits, degree, work)
        if f is None:
            return None
        found.append((f, value))
    return min(found, key=lambda one: (-len(one[0]), max(map(abs, one[0]))))


def _minimal_polynomial(value: int, bits: int, degree: int, work: Work) -> tuple[int, ...] | None:
    for d in range(2, degree + 1):
        relation = _relation(_powers(value, d, bits), bits, work)
        if relation is not None and relation[-1]:
            sign = 1 if relation[-1] > 0 else -1
            return tuple(sign * c for c in relation)
    return None


def _powers(value: int, degree: int, bits: int) -> list[int]:
    powers = [1 << bits]
    for _ in range(degree):
        powers.append((powers[-1] * value) >> bits)
    return powers


def _relation(values: Sequence[int], bits: int, work: Work) -> list[int] | None:
    """Short integers c with sum_i c_i values_i = 0; None if no short ones are found."""
    n, kept = len(values), bits - GUARD
    # measured: LLL of n rows with a column of `kept` bits
    if not work.spend(2_000 * n**3 * (1 + kept // 100)):
        return None
    rows = [[int(i == j) for j in range(n)] + [v >> GUARD] for i, v in enumerate(values)]
    first = [int(x) for x in flint.fmpz_mat(rows).lll().tolist()[0]]
    size = max(map(abs, first[:n])).bit_length()
    short = size * n < SHORT * kept and abs(first[n]).bit_length() < size + 30
    return first[:n] if short else None


def _field(f: tuple[int, ...], alpha: int, bits: int) -> Field | None:
    """The field of a root, between the shortest fractions on both sides that separate it."""
    polynomial: Any = flint.fmpz_poly(list(f))
    roots = [complex(root) for root, _ in polynomial.complex_roots()]
    value = alpha / (1 << bits)
    gaps = sorted(abs(root - value) for root in roots)
    for places in range(1, 200):
        lo = Fraction(alpha >> (bits - places), 1 << places)
        hi = lo + Fraction(1, 1 << places)
        below, above = (polynomial(flint.fmpq(x.numerator, x.denominator)) for x in (lo, hi))
        if below * above < 0 and (len(gaps) < 2 or float(hi - lo) < gaps[1] / 2):
            return Field(f, lo, hi)
    return None


def _trimmed(coefficients: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Omit zero coefficients of the highest powers."""
    n = max((i + 1 for i, c in enumerate(coefficients) if c), default=0)
    return coefficients[:n]
