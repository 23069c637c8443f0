"""Products of polynomials modulo others, by evaluation at points, over the rationals or the reals.

Let w generate an algebra, and f be its minimal polynomial, so that the algebra is that of
polynomials modulo f. With powers q of different irreducible polynomials, f = q_1 q_2 ..., the
product modulo f is determined by those modulo each q. That of two remainders, of degree below d,
has a degree below 2 d - 1, and so is determined by its values at 2 d - 1 points, one of which is
infinity: the leading coefficient. These are the products of the values of the remainders. So the
rank is at most 2 n - k for k factors q (S. Winograd, Some bilinear forms whose multiplicative
complexity depends on the field of constants, 1977, who proves that it is no less).

Over the reals, the irreducible factors have degree 1 and 2. Their coefficients are computed to
hundreds of digits and recognised as elements of one number field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import flint

from capacity.rank.composition.ideals import Ideal, irreducible_factors
from capacity.rank.cp.equations import Work
from capacity.rank.cp.recognition import RATIONALS, Field, recognised
from capacity.rank.verifier.kinds.algebraic import polynomial

# an element of a number field as a polynomial in its generator, and polynomials over the field by
# their coefficients, of x^0 first
Element: TypeAlias = flint.fmpq_poly
Polynomial: TypeAlias = list[Element]
# a linear form on an algebra: its value at each basis vector
Form: TypeAlias = list[Element]

# bits of the coefficients of real factors, and the largest degree of their field
BITS, DEGREE = 1_200, 8


def generator(ideal: Ideal) -> tuple[flint.fmpq_mat, flint.fmpq_poly] | None:
    """Return coordinates in the powers of a generator, and its minimal polynomial.

    Parameters
    ----------
    ideal : Ideal
        An algebra of dimension d.

    Returns
    -------
    (coordinates, f) or None
        The d x d matrix whose row a has the coefficients of w_a in 1, w, w^2, ...; None if no
        generator is found.
    """
    d = ideal.dimension
    if len(ideal.centre) < d:
        return None
    basis = [flint.fmpq_mat(1, d, [int(i == a) for i in range(d)]) for a in range(d)]
    for w in ideal.some(basis):
        through = ideal.times(w)
        f = through.minpoly()
        if f.degree() == d:
            powers = [ideal.unit]
            for _ in range(d - 1):
                powers.append(powers[-1] * through)
            return flint.fmpq_mat([row.tolist()[0] for row in powers]).inv(), f
    return None


def rational_factors(f: flint.fmpq_poly) -> list[Polynomial]:
    """Return the powers of different irreducible polynomials over Q whose product is f."""
    return [[flint.fmpq_poly([c]) for c in (p**e).coeffs()] for p, e in irreducible_factors(f)]


def real_factors(
    polynomials: Sequence[flint.fmpq_poly], work: Work
) -> tuple[Field, list[list[Polynomial]]] | None:
    """Return the powers of irreducible polynomials over R whose products are some polynomials.

    Parameters
    ----------
    polynomials : sequence of fmpq_poly
        Monic polynomials.
    work : Work
        Work that the recognition of their coefficients may take; it is charged.

    Returns
    -------
    (field, factors) or None
        The number field of their coefficients, and the factors of each polynomial. None if the
        field isn't recognised, or has a high degree.
    """
    found: list[list[tuple[list[int], int]]] = []
    with flint.ctx.workprec(BITS + 100):
        for f in polynomials:
            found.append([])
            for p, e in irreducible_factors(f):
                found[-1] += [(c, e) for c in _real_factors(p)]
    numbers = [x for factors in found for c, _ in factors for x in c]
    read = recognised(numbers, BITS, DEGREE, work)
    if read is None:
        return None
    field, elements = read
    modulus, left = flint.fmpq_poly(list(field.f)), iter(map(polynomial, elements))
    made = [
        [_power([*(next(left) for _ in c), _ONE], e, modulus) for c, e in factors]
        for factors in found
    ]
    return field, made


def _real_factors(p: flint.fmpq_poly) -> list[list[int]]:
    """Coefficients, times 2^BITS and but the leading 1, of the real factors of a polynomial."""
    found: list[list[int]] = []
    roots: Any = p.complex_roots()
    for root, _ in roots:
        if root.imag == 0:
            found.append([_fixed(-root.real)])
        elif root.imag > 0:
            x, y = root.real, root.imag
            found.append([_fixed(x * x + y * y), _fixed(-2 * x)])
    return found


def _fixed(x: flint.arb) -> int:
    mantissa, exponent = (int(of) for of in x.mid().man_exp())
    shift = exponent + BITS
    return mantissa << shift if shift >= 0 else mantissa >> -shift


def values_of_remainders(
    degree: int, factors: Iterable[Polynomial], field: Field = RATIONALS
) -> list[Form]:
    """Return the linear forms that take a polynomial to the values of its remainders.

    Parameters
    ----------
    degree : int
        Number of coefficients of the polynomial.
    factors : iterable of Polynomial
        Monic polynomials over the field, modulo which remainders are taken.
    field : Field
        The field.

    Returns
    -------
    list of Form
        Forms of the coefficients, 2 d - 1 of them for a factor of degree d.
    """
    modulus = flint.fmpq_poly(list(field.f))
    forms: list[Form] = []
    for q in factors:
        d = len(q) - 1
        remainder, table = [_ONE, *[_ZERO] * (d - 1)], list[Polynomial]()
        for _ in range(degree):
            table.append(remainder)
            last = remainder[-1]
            remainder = [
                (low - last * c) % modulus
                for low, c in zip([_ZERO, *remainder[:-1]], q[:-1], strict=True)
            ]
        points = [t for n in range(d) for t in ((n, -n) if n else (0,))][: 2 * d - 2]
        forms += [[sum((c * t**k for k, c in enumerate(r)), _ZERO) for r in table] for t in points]
        forms.append([r[-1] for r in table])
    return forms


def _power(p: Polynomial, e: int, modulus: flint.fmpq_poly) -> Polynomial:
    total = [_ONE]
    for _ in range(e):
        product = [_ZERO] * (len(total) + len(p) - 1)
        for i, x in enumerate(total):
            for j, y in enumerate(p):
                product[i + j] = (product[i + j] + x * y) % modulus
        total = product
    return total


_ZERO, _ONE = flint.fmpq_poly([0]), flint.fmpq_poly([1])
