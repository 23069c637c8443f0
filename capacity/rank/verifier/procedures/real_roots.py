"""The number of distinct real roots of a polynomial, exactly, by Sturm's theorem.

The Sturm sequence of a polynomial f over Q begins with f and f', and continues with the negated
remainders of division. Its signs change more often at minus infinity than at plus infinity, and the
difference is the number of distinct real roots of f (Sturm 1829; also for f with repeated roots).
So f is a product of distinct linear factors over R if and only if that number is its degree.
"""

from __future__ import annotations

from itertools import pairwise

import flint


def distinct_real_roots(f: flint.fmpq_poly) -> int:
    """Count the distinct real roots of a nonzero polynomial.

    Examples
    --------
    The polynomial (x - 1)^2 (x^2 + 1) has one:

    >>> distinct_real_roots(flint.fmpq_poly([1, -2, 2, -2, 1]))
    1
    """
    sequence = [_primitive(f), _primitive(f.derivative())]
    while sequence[-1]:
        sequence.append(_primitive(-(sequence[-2] % sequence[-1])))
    above = [g.coeffs()[-1] > 0 for g in sequence[:-1]]
    below = [
        positive == (g.degree() % 2 == 0) for positive, g in zip(above, sequence[:-1], strict=True)
    ]
    changes = [sum(a != b for a, b in pairwise(signs)) for signs in (below, above)]
    return changes[0] - changes[1]


def cost_of_real_roots(f: flint.fmpq_poly) -> int:
    """Estimate the nanoseconds that `distinct_real_roots` takes.

    For degree d, it multiplies about d^2 numbers, which are up to d times as long as the
    coefficients.
    """
    d, bits = f.degree(), max(c.height_bits() for c in f.coeffs())
    return int(20 * d**2 * (1 + d * bits / 64) ** 1.3)


def _primitive(f: flint.fmpq_poly) -> flint.fmpq_poly:
    """Positive multiple with coprime integer coefficients: short numbers, and the same signs."""
    numerator = f.numer()
    return flint.fmpq_poly(numerator / abs(numerator.content())) if numerator else f
