"""Upper bounds: what the arguments give, added up densely."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from capacity.rank import (
    AlgebraicDecomposition,
    Boxes,
    Certificate,
    ComplexDecomposition,
    Decomposition,
    Diagonalization,
    Enclosure,
    MaximalRank,
    PairedSlices,
    Pencil,
)
from tests.second_checker.near import given_by_newton
from tests.second_checker.slices import rank_of_two_slices
from tests.second_checker.whole import given_whole

# bits of a root beyond those of the terms' coefficients
BITS = 400


def adds_up(certificate: Certificate, T: np.ndarray, observed: np.ndarray, effective: bool) -> bool:
    total = np.full(T.shape, Fraction(0), dtype=object)
    for argument in certificate.arguments:
        if isinstance(argument, Decomposition):
            given = _sum(argument.terms, T, lambda x: x)
        elif isinstance(argument, AlgebraicDecomposition):
            given = sum_at_a_root(argument, T)
        elif isinstance(argument, ComplexDecomposition):
            given = _complex_sum(argument, T)
        elif isinstance(argument, Pencil | Diagonalization | MaximalRank):
            given = given_whole(argument, T)
        elif isinstance(argument, PairedSlices):
            given = _paired(argument, T)
        elif isinstance(argument, Enclosure):
            given = given_by_newton(argument, T, observed if effective else None)
        else:
            assert isinstance(argument, Boxes)
            given = _filled(argument, T)
        if given is None:
            return False
        total = total + given
    same = np.asarray(total == T)
    return bool(same[observed].all() if effective else same.all())


def _filled(argument: Boxes, T: np.ndarray) -> np.ndarray | None:
    """Each box with the value of its first entry at all places."""
    entries = np.argwhere(T != 0)
    if len(argument.box) != len(entries):
        return None
    total = np.zeros(T.shape, dtype=object)
    for number in set(argument.box[argument.box >= 0].tolist()):
        mine = entries[argument.box == number]
        total[np.ix_(*map(np.unique, mine.T))] += T[tuple(mine[0])]
    return total


def _paired(argument: PairedSlices, T: np.ndarray) -> np.ndarray | None:
    """The entries of all pairs, if their ranks by Smith's normal form add up to the value."""
    entries = np.argwhere(T != 0)
    if T.ndim != 3 or argument.mode not in (0, 1, 2) or len(argument.pair) != len(entries):
        return None
    total, rank = np.zeros(T.shape, dtype=object), 0
    for number in set(argument.pair[argument.pair >= 0].tolist()):
        one = np.zeros(T.shape, dtype=object)
        for place in map(tuple, entries[argument.pair == number].tolist()):
            one[place] = T[place]
        slices = [M for M in np.moveaxis(one, argument.mode, 0) if (M != 0).any()]
        if len(slices) > 2:
            return None
        rank += rank_of_two_slices(np.array([slices[0], slices[-1] * (len(slices) - 1)]))
        total += one
    return total if rank and rank == argument.value else None


def _sum(terms: Any, T: np.ndarray, read: Any) -> np.ndarray | None:
    """The sum of the outer products of the vectors, whose numbers are read by a function."""
    total = np.zeros(T.shape, dtype=object)
    for term in terms:
        vectors: list[Any] = []
        if len(term) != T.ndim:
            return None
        for (indices, values), n in zip(term, T.shape, strict=True):
            vector = np.zeros(n, dtype=object)
            for i, x in zip(indices, values, strict=True):
                if i < 0:
                    return None
                vector[i] += read(x)
            vectors.append(vector)
        total = total + functools.reduce(np.multiply.outer, vectors)
    return total if len(terms) else None


class _Complex:
    """A complex number of two fractions."""

    def __init__(self, real: Any, imag: Any = 0) -> None:
        self.real, self.imag = Fraction(real), Fraction(imag)

    def __add__(self, other: Any) -> _Complex:
        return _Complex(self.real + other.real, self.imag + other.imag)

    __radd__ = __add__

    def __mul__(self, other: Any) -> _Complex:
        real, imag = Fraction(other.real), Fraction(other.imag)
        return _Complex(self.real * real - self.imag * imag, self.real * imag + self.imag * real)

    __rmul__ = __mul__


def _complex_sum(argument: ComplexDecomposition, T: np.ndarray) -> np.ndarray | None:
    """The sum, if it is real."""
    coefficients = [c for term in argument.terms for _, values in term for c in values]
    if any(len(c) > 2 for c in coefficients):
        return None
    total = _sum(argument.terms, T, lambda c: _Complex(*c) if c else _Complex(0))
    if total is None:
        return None
    real = np.zeros(T.shape, dtype=object)
    for place, x in np.ndenumerate(total):
        # a number that isn't real may be in an unobserved fiber
        real[place] = x.real if not x.imag else float("nan")
    return real


def _bits(term: Any) -> int:
    """Bits of the longest product of a term's coefficients, polynomials of small degree."""
    return sum(
        max((x.numerator.bit_length() + x.denominator.bit_length() + 9 for c in values for x in c),
            default=0)
        for _, values in term
    )  # fmt: skip


def sum_at_a_root(argument: AlgebraicDecomposition, T: np.ndarray) -> np.ndarray | None:
    """The sum at a root between the two ends, found by bisection, where it is near integers."""
    if argument.lo >= argument.hi or len(argument.f) < 2 or not argument.f[-1]:
        return None

    f = flint.fmpq_poly(list(argument.f))

    def sign(x: Fraction) -> int:
        value = f(flint.fmpq(x.numerator, x.denominator))
        return (value > 0) - (value < 0)

    lo, hi = argument.lo, argument.hi
    if sign(lo) * sign(hi) >= 0:
        return None
    bits = BITS + max(map(_bits, argument.terms), default=0)
    # binary fractions, or the bisection would take ever longer
    while hi - lo > Fraction(1, 2**bits):
        middle = (lo + hi) / 2
        middle = Fraction(round(middle * 2 ** (bits + 9)), 2 ** (bits + 9))
        lo, hi = (middle, hi) if sign(middle) == sign(lo) else (lo, middle)
    old = flint.ctx.prec
    flint.ctx.prec = 2 * bits
    try:
        root = (flint.arb(flint.fmpq(lo.numerator, lo.denominator))
                + flint.arb(0, flint.arb(2) ** (9 - bits)))  # fmt: skip

        def at_root(coefficients: Any) -> flint.arb:
            total = flint.arb(0)
            for k, x in enumerate(coefficients):
                total += flint.arb(flint.fmpq(x.numerator, x.denominator)) * root**k
            return total

        total = _sum(argument.terms, T, at_root)
        if total is None:
            return None
        near = np.zeros(T.shape, dtype=object)
        for place, x in np.ndenumerate(total):
            ball = flint.arb(x)
            whole = ball.unique_fmpz()
            found = float(ball.rad()) < 1e-60
            # a number that isn't an integer may stand in an unobserved fiber
            near[place] = int(whole) if whole is not None and found else float("nan")
        return near
    finally:
        flint.ctx.prec = old
