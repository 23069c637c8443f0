"""How many real roots a polynomial has, exactly, by Sturm's theorem.

For a polynomial f over Q the sequence f, f', and on with minus the remainders of division, changes
signs fewer times at plus infinity than at minus infinity, by the number of distinct real roots of f
(Sturm 1829; it holds for f with repeated roots as well). So f is a product of distinct linear
factors over R if and only if that number is its degree.
"""

from __future__ import annotations

from itertools import pairwise

import flint


def distinct_real_roots(f: flint.fmpq_poly) -> int:
    """Count the distinct real roots of a nonzero polynomial.

    Examples
    --------
    (x - 1)^2 (x^2 + 1) has one:

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

    As many numbers as the square of the degree, up to the degree times as long as the coefficients,
    are multiplied.
    """
    d, bits = f.degree(), max(c.height_bits() for c in f.coeffs())
    return int(20 * d**2 * (1 + d * bits / 64) ** 1.3)


def _primitive(f: flint.fmpq_poly) -> flint.fmpq_poly:
    """A positive multiple with coprime integer coefficients: signs stay, and numbers stay short."""
    numerator = f.numer()
    return flint.fmpq_poly(numerator / abs(numerator.content())) if numerator else f
