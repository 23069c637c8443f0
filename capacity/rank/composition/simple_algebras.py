"""The linear forms of simple algebras: those of matrices, and of Hamilton's quaternions.

A sum of idempotents e_1 + ... + e_n = 1 with e_i e_j = 0 that can't be split further is found as
the direct factors of a commutative algebra are: an element x of a corner e A e whose minimal
polynomial has different irreducible factors splits e into idempotents, by Chinese remainders.
Corners of dimension 1 aren't split. Then e_1 A e_j and e_j A e_1 have dimension 1, and with e_1j
and e_j1 in them, whose product is e_1, the matrices of a single entry are e_ij = e_i1 e_1j.

An algebra of dimension 4 whose centre is that of the scalars, and that is no product of smaller
ones, has a basis 1, i, j, ij with i^2 = a, j^2 = b and ji = -ij. Elements of trace 0 are those
whose square is a scalar, but for scalars.

If a = b = -1, the product of x and y is, but for signs, that of the group algebra of Z/2 x Z/2. The
signs that differ are those of three squares, and of one of each pair x_i y_j: with the products s
of the group algebra, which take 4, and 4 more,

    (2 x_0 y_0 - s_0, s_1 - 2 x_3 y_2, s_2 - 2 x_1 y_3, s_3 - 2 x_2 y_1)

(T. D. Howell, J.-C. Lafon, The complexity of the quaternion product, 1975, who prove that 8 is the
least number over the reals).

References
----------
R. S. Pierce, Associative Algebras, 1982, chapter 6 (the Peirce decomposition); V. Strassen,
Gaussian elimination is not optimal, 1969 (seven products for 2 x 2 matrices).
"""

from __future__ import annotations

from math import isqrt

import flint

from capacity.rank.composition.ideals import Ideal, idempotents

# linear forms of the entries of both factors, by rows: Strassen's seven products
STRASSEN = (
    [[1, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [-1, 0, 1, 0],
     [0, 1, 0, -1]],
    [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0],
     [0, 0, 1, 1]],
)  # fmt: skip


def entries_of_matrices(ideal: Ideal) -> flint.fmpq_mat | None:
    """Return the entries of the basis vectors as matrices, if an algebra is one of matrices.

    Parameters
    ----------
    ideal : Ideal
        An algebra of dimension n^2.

    Returns
    -------
    fmpq_mat, shape (n^2, n^2), or None
        For each basis vector its entries, by rows. None for other algebras, and where no elements
        that split it are found.
    """
    n = isqrt(ideal.dimension)
    if n * n != ideal.dimension or len(ideal.centre) != 1:
        return None
    parts = _primitive(ideal, ideal.unit)
    if parts is None or len(parts) != n:
        return None
    first = parts[0]
    across, back = [first], [first]
    for e in parts[1:]:
        out, again = _some_of(ideal, first, e), _some_of(ideal, e, first)
        scale = _ratio(ideal.product(out, again), first)
        across.append(out)
        back.append(again * (1 / scale))
    units = [ideal.product(to, of) for to in back for of in across]
    return flint.fmpq_mat([row for x in units for row in x.tolist()]).inv()


def _corner(ideal: Ideal, left: flint.fmpq_mat, right: flint.fmpq_mat) -> flint.fmpq_mat:
    """The products e w f with all basis vectors w, a row each."""
    after = flint.fmpq_mat([(right * M).tolist()[0] for M in ideal.products])
    return ideal.times(left) * after


def _some_of(ideal: Ideal, left: flint.fmpq_mat, right: flint.fmpq_mat) -> flint.fmpq_mat:
    """An element of e A f that isn't 0."""
    rows = _corner(ideal, left, right).tolist()
    return flint.fmpq_mat([next(row for row in rows if any(x != 0 for x in row))])


def _ratio(x: flint.fmpq_mat, of: flint.fmpq_mat) -> flint.fmpq:
    k = next(k for k in range(of.ncols()) if of[0, k] != 0)
    return x[0, k] / of[0, k]


def _primitive(ideal: Ideal, e: flint.fmpq_mat) -> list[flint.fmpq_mat] | None:
    """Idempotents with the sum e whose corners have dimension 1; None if some aren't found."""
    reduced, dimension = _corner(ideal, e, e).rref()
    if dimension == 1:
        return [e]
    rows = reduced.tolist()[:dimension]
    pivots = [next(k for k, x in enumerate(row) if x != 0) for row in rows]
    for x in ideal.some([flint.fmpq_mat([row]) for row in rows]):
        images = (flint.fmpq_mat(rows) * ideal.times(x)).tolist()
        f = flint.fmpq_mat([[row[p] for p in pivots] for row in images]).minpoly()
        parts = idempotents(f)
        if len(parts) > 1:
            found: list[flint.fmpq_mat] = []
            for of in parts:
                split = _primitive(ideal, ideal.at(of, x, e))
                if split is None:
                    return None
                found += split
            return found
    return None


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
