"""Hamilton's quaternions, in 8 products of rational forms.

An algebra of dimension 4 whose centre is that of the scalars, and that is no product of smaller
ones, has a basis 1, i, j, ij with i^2 = a, j^2 = b and ji = -ij. Elements of trace 0 are those
whose square is a scalar, but for scalars.

If a = b = -1, the product of x and y is, but for signs, that of the group algebra of Z/2 x Z/2. The
signs that differ are those of three squares, and of one of each pair x_i y_j: with the products s
of the group algebra, which take 4, and 4 more,

    (2 x_0 y_0 - s_0, s_1 - 2 x_3 y_2, s_2 - 2 x_1 y_3, s_3 - 2 x_2 y_1)

(T. D. Howell, J.-C. Lafon, The complexity of the quaternion product, 1975, who prove that 8 is the
least number over the reals).
"""

from __future__ import annotations

from math import isqrt

import flint

from capacity.rank.composition.ideals import Ideal

# linear forms of both factors in 1, i, j, ij: the characters of Z/2 x Z/2, and four coordinates
_CHARACTERS = [[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]
_LEFT = [*_CHARACTERS, [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
_RIGHT = [*_CHARACTERS, [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]]


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
        algebras, and where no elements with the square -1 are found.
    """
    if ideal.dimension != 4 or len(ideal.centre) != 1:
        return None
    traces = flint.fmpq_mat(1, 4, [sum(M[b, b] for b in range(4)) for M in ideal.products])
    kernel, n = traces.numer_denom()[0].nullspace()
    basis = flint.fmpz_mat([[kernel[a, i] for a in range(4)] for i in range(n)]).lll()
    pure = [flint.fmpq_mat(1, 4, row) for row in basis.tolist()]
    for x in ideal.some(pure):
        i = _unit(ideal, x)
        if i is None:
            continue
        for y in pure:
            # the part of y that commutes with i is (y - i y i) / 2
            j = _unit(ideal, y + ideal.product(ideal.product(i, y), i))
            if j is not None:
                quaternions = [ideal.unit, i, j, ideal.product(i, j)]
                inverse = flint.fmpq_mat([row for q in quaternions for row in q.tolist()]).inv()
                left, right = (inverse * flint.fmpq_mat(flint.fmpz_mat(of)).transpose()
                               for of in (_LEFT, _RIGHT))  # fmt: skip
                return left, right
    return None


def _unit(ideal: Ideal, x: flint.fmpq_mat) -> flint.fmpq_mat | None:
    """A multiple with the square -1 of an element of trace 0, if there is one."""
    square, unit = ideal.product(x, x), ideal.unit
    k = next(k for k in range(ideal.dimension) if unit[0, k] != 0)
    size = -square[0, k] / unit[0, k]
    if size <= 0:
        return None
    p, q = isqrt(int(size.p)), isqrt(int(size.q))
    return x * flint.fmpq(q, p) if p * p == size.p and q * q == size.q else None
