"""The Kronecker form of a pencil A + sB over the rationals, and the real roots of a polynomial.

*The L blocks* span W, the limit of W_0 = 0 and W_(i+1) = {x: Ax in B W_i}, if s = 0 is no root of
the pencil (Berger, Trenn). The quotient by W has the other blocks; the transposed pencil has the
transposed L blocks.

A root at s = 0 is detected: then B W is larger than A W, and A is replaced by another A + sB.
Otherwise A maps W onto B W, so that W consists of L blocks alone, and A is injective on the
quotient. After the same for the transposed pencil, the rest is regular, with no root at s = 0.

The Sturm sequence of a polynomial f over Q begins with f and f', and continues with the negated
remainders of division. Its signs change more often at minus infinity than at plus infinity, and the
difference is the number of distinct real roots of f (Sturm 1829; also for f with repeated roots).
So f is a product of distinct linear factors over R if and only if that number is its degree.

References
----------
T. Berger, S. Trenn, The quasi-Kronecker form for matrix pencils, SIAM J. Matrix Analysis 2012; F.
R. Gantmacher, The Theory of Matrices, chapter XII.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import flint
import numpy as np

from capacity.exact.types import Indices


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


Row: TypeAlias = list[flint.fmpq]
# called before each part of the work, with estimates of its nanoseconds and bytes
Spend: TypeAlias = Callable[[int, int], None]
PRIME = 2**61 - 1
# nanoseconds for an entry of the slices, times the square of their longer side; for a place of a
# row that is reduced, for an addition there, and for a bit of its fractions
ENTRY, PLACE, SUM, BIT = 25, 30, 200, 8
# nanoseconds for any pencil, however small
LEAST = 1_000_000
# bytes for a place of a dense row, and of its companion, while it is converted for flint
BYTES = 250


@dataclass(frozen=True)
class KroneckerForm:
    """The parts of a Kronecker form that determine the rank.

    Attributes
    ----------
    size : int
        The rank without delta.
    excess : Counter
        Contribution to delta of each root that isn't real, or has a Jordan block larger than 1 x 1.
        Roots are named by the primitive integer coefficients of their irreducible polynomial in s;
        () is the root at infinity.
    """

    size: int
    excess: Counter[tuple[int, ...]]


def nothing(_steps: int, _bytes: int) -> None:
    """Accept any amount of work, for callers without a budget."""


def kronecker_form(slices: Indices, spend: Spend = nothing) -> KroneckerForm:
    """Compute the Kronecker form of the pencil A + sB.

    Parameters
    ----------
    slices : ndarray of int64, shape (2, m, n)
        A and B, with entries of at most 2^31.
    spend : callable, optional
        Called before each part of the work, with estimates of its nanoseconds and bytes.

    Returns
    -------
    KroneckerForm
        The parts of the form that determine the rank.

    Examples
    --------
    >>> kronecker_form(np.array([[[1, 0]], [[0, 1]]])).size
    2
    """
    A, B = slices
    # the rank of A + sB for most s, as far as one prime shows it; any s that is no root will do
    generic = max(_rank_modulo(A + s * B) for s in (1_000_003, 2_000_029))
    for shift in itertools.count():
        m, n = A.shape
        entries = int(((A != 0) | (B != 0)).sum())
        spend(LEAST + ENTRY * entries * max(m, n) ** 2, BYTES * max(m, n) * (m + n))
        if _rank_modulo(A + shift * B) >= generic:
            form = _form(A, B, shift, spend)
            if form is not None:
                return form
    raise AssertionError("a pencil has finitely many roots")


def _form(A: Indices, B: Indices, shift: int, spend: Spend) -> KroneckerForm | None:
    """Compute the Kronecker form by C = A + shift B; None if the shift is a root of the pencil."""
    pencil = _matrix(A + shift * B), _matrix(B)
    size = 0
    for side in ((A, B), (A.T, B.T)):
        # columns that are zero in suitable bases count for no block
        free = side[0].shape[1] - _matrix(np.concatenate(side)).rank()
        found = _without_span(*pencil, spend)
        if found is None:
            return None
        span, rest = found
        size += span - free
        pencil = rest[0].transpose(), rest[1].transpose()
    n = pencil[0].nrows()
    if not n:
        return KroneckerForm(size, Counter())
    spend(2 * n**3 * (1 + n // 8), 0)
    return KroneckerForm(size + n, _excess(pencil[0].inv() * pencil[1], shift, spend))


class _Echelon:
    """Rows in echelon form, each with a companion that takes the same combinations."""

    def __init__(self, spend: Spend) -> None:
        self.rows: dict[int, tuple[Row, Row]] = {}
        # costs of subtracting a multiple of each row, without the bits of the factor
        self._costs: dict[int, tuple[int, int]] = {}
        self._spend = spend

    def reduced(self, row: Row, companion: Row) -> tuple[Row, Row]:
        """Return a row and its companion, less multiples of the rows so far."""
        row, companion = row[:], companion[:]
        self._spend(PLACE * len(self.rows), 0)
        for pivot, (other, its) in self.rows.items():
            if row[pivot]:
                factor = row[pivot]
                nonzero, bits = self._costs[pivot]
                sums = nonzero * (SUM + BIT * (bits + factor.height_bits()))
                self._spend(PLACE * (len(row) + len(companion)) + sums, 0)
                row = [x - factor * y if y else x for x, y in zip(row, other, strict=True)]
                companion = [
                    x - factor * y if y else x for x, y in zip(companion, its, strict=True)
                ]
        return row, companion

    def add(self, row: Row, companion: Row) -> bool:
        """Add a row that is reduced already; return True if it is nonzero."""
        pivot = next((j for j, x in enumerate(row) if x), None)
        if pivot is None:
            return False
        scale = 1 / row[pivot]
        self.rows[pivot] = [x * scale for x in row], [x * scale for x in companion]
        bits = [x.height_bits() for part in self.rows[pivot] for x in part if x]
        self._costs[pivot] = len(bits), max(bits)
        return True


def _without_span(
    C: flint.fmpq_mat, D: flint.fmpq_mat, spend: Spend
) -> tuple[int, tuple[flint.fmpq_mat, flint.fmpq_mat]] | None:
    """Return the dimension of the span W of the L blocks' columns, and the pencil without them.

    None if D W isn't C W.
    """
    m, n = C.nrows(), C.ncols()
    if not m or not n:
        return n, (flint.fmpq_mat(m, 0), flint.fmpq_mat(m, 0))
    # E C = R, reduced; C x = D w has a solution if the last rows of E D w vanish
    joined = [row + unit for row, unit in zip(C.tolist(), _identity(m).tolist(), strict=True)]
    both = flint.fmpq_mat(joined).rref()[0].tolist()
    R, E = [row[:n] for row in both], flint.fmpq_mat([row[n:] for row in both])
    pivots = [next(j for j, x in enumerate(row) if x) for row in R if any(row)]
    r = len(pivots)
    F = E * D
    span, conditions = _Echelon(spend), _Echelon(spend)
    waiting = [x for x in _kernel(R, pivots, n) if span.add(span.reduced(x, [])[0], [])]
    found = waiting[:]
    while waiting:
        w = waiting.pop(0)
        image: Row = (F * flint.fmpq_mat([[x] for x in w])).entries()
        condition, solution = conditions.reduced(image[r:], image[:r])
        if conditions.add(condition, solution):
            continue
        x = [flint.fmpq(0)] * n
        for pivot, value in zip(pivots, solution, strict=True):
            x[pivot] = value
        x, _ = span.reduced(x, [])
        if span.add(x, []):
            waiting.append(x)
            found.append(x)
    if not found:
        return 0, (C, D)
    # the reduced basis of their span has short numbers; ranks of long ones take minutes
    W = flint.fmpq_mat(found).rref()[0].transpose()
    image_c, image_d = C * W, D * W
    # C W is part of D W, by the construction of W
    if image_d.rank() > len(found) - (n - r):
        return None
    left = [j for j in range(n) if j not in span.rows]
    turned = flint.fmpq_mat(image_c.transpose().tolist()).rref()[0].tolist()
    rows = [row for row in turned if any(row)]
    quotient = _kernel(rows, [next(j for j, x in enumerate(row) if x) for row in rows], m)
    if not quotient or not left:
        nothing = flint.fmpq_mat(len(quotient), len(left))
        return len(found), (nothing, nothing)
    # unit vectors beside the pivots span a complement of W
    Q = flint.fmpq_mat(quotient)
    c, d = (Q * flint.fmpq_mat([[row[j] for j in left] for row in M.tolist()]) for M in (C, D))
    return len(found), (c, d)


def _kernel(reduced: list[Row], pivots: list[int], n: int) -> list[Row]:
    """A basis of {x: M x = 0}, for M with n columns, in reduced row echelon form."""
    found: list[Row] = []
    for free in sorted(set(range(n)) - set(pivots)):
        x = [flint.fmpq(j == free) for j in range(n)]
        for i, pivot in enumerate(pivots):
            x[pivot] = -reduced[i][free]
        found.append(x)
    return found


def _excess(J: flint.fmpq_mat, shift: int, spend: Spend) -> Counter[tuple[int, ...]]:
    """Contribution of each root of J to delta."""
    n, bits = J.nrows(), max(x.height_bits() for x in J.entries())
    # the number of primes for the polynomial is proportional to the length of its coefficients
    spend(2 * n**3 * (1 + n * bits // 60), n**2 * (1 + bits // 8))
    excess: Counter[tuple[int, ...]] = Counter()
    for p, times in J.charpoly().factor()[1]:
        d = p.degree()
        spend(cost_of_real_roots(p), 0)
        real = distinct_real_roots(p) == d
        if times == 1:
            count = 0 if real else 1
        else:
            # products of fractions that get longer, the last ones twice as long
            spend(2 * (d + 2) * n**3 * (1 + d * bits // 60), n**2 * (1 + d * bits // 4))
            at_p = _evaluated(p, J)
            # ranks by reduced row echelon form: long fractions take minutes otherwise
            once = at_p.rref()[1]
            # Jordan blocks of a root, or those of size two or more
            count = (once - (at_p * at_p).rref()[1] if real else n - once) // d
        if count:
            excess[_root_name(p, shift)] = count
    return excess


def _evaluated(p: flint.fmpq_poly, J: flint.fmpq_mat) -> flint.fmpq_mat:
    identity = _identity(J.nrows())
    value = identity * 0
    for c in reversed(p.coeffs()):
        value = value * J + identity * c
    return value


def _root_name(p: flint.fmpq_poly, shift: int) -> tuple[int, ...]:
    """Name the roots j of p as roots s of A + sB, where 1/j = shift - s."""
    reverse = flint.fmpq_poly(p.coeffs()[::-1])
    in_s = reverse(flint.fmpq_poly([shift, -1])).numer()
    if in_s.degree() < 1:
        return ()
    content = in_s.content() * (1 if in_s.leading_coefficient() > 0 else -1)
    return tuple(int(c / content) for c in in_s.coeffs())


def _matrix(A: Indices) -> flint.fmpq_mat:
    m, n = A.shape
    return flint.fmpq_mat(m, n, A.ravel().tolist())


def _identity(n: int) -> flint.fmpq_mat:
    return flint.fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])


def _rank_modulo(A: Indices) -> int:
    m, n = A.shape
    return flint.nmod_mat(m, n, (A % PRIME).ravel().tolist(), PRIME).rank()
