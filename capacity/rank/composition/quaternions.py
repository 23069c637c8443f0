"""Quaternion algebras over the rationals: 2 x 2 matrices in 7 products, Hamilton's in 8.

An algebra of dimension 4 whose centre is that of the scalars, and that is no product of smaller
ones, has a basis 1, i, j, ij with i^2 = a, j^2 = b and ji = -ij. Elements of trace 0 are those
whose square is a scalar, but for scalars.

If a = 1 or b = 1, it is that of 2 x 2 matrices: with i^2 = 1, the matrices of a single entry are (1
+ i) / 2, (1 + i) j / 2, (1 - i) j / (2 b) and (1 - i) / 2. Strassen's algorithm multiplies them.

If a = b = -1, the product of x and y is, but for signs, that of the group algebra of Z/2 x Z/2. The
signs that differ are those of three squares, and of one of each pair x_i y_j: with the products s
of the group algebra, which take 4, and 4 more,

    (2 x_0 y_0 - s_0, s_1 - 2 x_3 y_2, s_2 - 2 x_1 y_3, s_3 - 2 x_2 y_1)

(T. D. Howell, J.-C. Lafon, The complexity of the quaternion product, 1975, who prove that 8 is the
least number over the reals).

References
----------
V. Strassen, Gaussian elimination is not optimal, 1969.
"""

from __future__ import annotations

from math import isqrt

import flint

from capacity.rank.composition.ideals import Ideal

# forms of the coordinates in e_11, e_12, e_21, e_22: Strassen's seven products
STRASSEN = (
    [[1, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [-1, 0, 1, 0],
     [0, 1, 0, -1]],
    [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0],
     [0, 0, 1, 1]],
)  # fmt: skip
# of those in 1, i, j, ij: the characters of Z/2 x Z/2, and four products of coordinates
_CHARACTERS = [[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]
HAMILTON = (
    [*_CHARACTERS, [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]],
    [*_CHARACTERS, [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]],
)


def forms_of_quaternions(ideal: Ideal) -> tuple[flint.fmpq_mat, flint.fmpq_mat] | None:
    """Return the linear forms of both factors whose products determine the product of quaternions.

    Parameters
    ----------
    ideal : Ideal
        An algebra.

    Returns
    -------
    (left, right) or None
        Matrices with a row for each basis vector and a column for each form. None for other
        algebras, and where no elements with the squares 1, or -1 and -1, are found.
    """
    if ideal.dimension != 4 or len(ideal.centre) != 1:
        return None
    traces = flint.fmpq_mat(1, 4, [sum(M[b, b] for b in range(4)) for M in ideal.products])
    kernel, n = traces.numer_denom()[0].nullspace()
    basis = flint.fmpz_mat([[kernel[a, i] for a in range(4)] for i in range(n)]).lll()
    pure = [flint.fmpq_mat(1, 4, row) for row in basis.tolist()]
    of_square: dict[int, list[flint.fmpq_mat]] = {1: [], -1: []}
    for x in ideal.some(pure):
        square = _square(ideal, x)
        root = _root(abs(square))
        if root:
            of_square[1 if square > 0 else -1].append(x * (1 / root))
    for sign, found in of_square.items():
        for i in found:
            for x in pure:
                # i x i = x + ..., with the part of x that commutes with i subtracted
                j = x - ideal.product(ideal.product(i, x), i) * sign
                square = _square(ideal, j)
                if sign == 1 and square != 0:
                    return _forms(_entries(ideal, i, j, square), STRASSEN)
                root = _root(-square) if square < 0 else None
                if root:
                    j *= 1 / root
                    return _forms([ideal.unit, i, j, ideal.product(i, j)], HAMILTON)
    return None


def _entries(
    ideal: Ideal, i: flint.fmpq_mat, j: flint.fmpq_mat, square: flint.fmpq
) -> list[flint.fmpq_mat]:
    """The matrices of a single entry 1, for i^2 = 1."""
    half = flint.fmpq(1, 2)
    first, last = (ideal.unit + i) * half, (ideal.unit - i) * half
    return [first, ideal.product(first, j), ideal.product(last, j) * (1 / square), last]


def _forms(
    basis: list[flint.fmpq_mat], forms: tuple[list[list[int]], list[list[int]]]
) -> tuple[flint.fmpq_mat, flint.fmpq_mat]:
    """Convert forms of coordinates in a basis to forms of the ideal's coordinates."""
    coordinates = flint.fmpq_mat([row for x in basis for row in x.tolist()]).inv()
    left, right = (coordinates * flint.fmpq_mat(flint.fmpz_mat(of)).transpose() for of in forms)
    return left, right


def _square(ideal: Ideal, x: flint.fmpq_mat) -> flint.fmpq:
    """The number that is the square of an element of trace 0."""
    square, unit = ideal.product(x, x), ideal.unit
    k = next(k for k in range(ideal.dimension) if unit[0, k] != 0)
    return square[0, k] / unit[0, k]


def _root(x: flint.fmpq) -> flint.fmpq | None:
    """The square root of a rational number that isn't negative, if it is rational."""
    p, q = isqrt(int(x.p)), isqrt(int(x.q))
    return flint.fmpq(p, q) if p * p == x.p and q * q == x.q else None
