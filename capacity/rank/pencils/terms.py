"""Simple tensors that add up to a pencil, the tensor of two slices A and B, as few as its rank.

Let P(s) = A + sB be m x n, without zero rows and columns in any bases, and of rank g for most s. In
Kronecker's form it has k = n - g blocks L, h = m - g transposed ones, and a regular part. Ja'Ja's
theorem (`capacity.rank.verifier.procedures.pencils`) states that its rank is r = n + h + delta.

*Terms by kernel vectors.* Let P have h + delta more columns, so that it has r. If r independent
vectors v_i have P(s_i) v_i = 0, then A v_i = -s_i B v_i. With the rows w_i of the inverse of the
matrix of all v_i, A is the sum of -s_i (B v_i) w_i, and B that of (B v_i) w_i: r simple tensors. Of
the rows w_i, the first n coordinates are those of the pencil itself.

*Where there are such vectors.* In the space of the transposed blocks choose a basis of vectors y_i
with y_i P(s_i) = 0, for different s_i, and h columns U(s) with y_i U(s) = (s - s_i) c_i for random
c_i: together with them these blocks have the roots s_i. Let the other delta columns be random. Then
each s has k + delta kernel vectors, and more at the s_i and where the kernel of the regular part is
larger than delta: at a root that is real and has at most delta larger Jordan blocks, by the
definition of delta. Vectors are taken at all these roots, and the others at different numbers.

Coefficients are rational, or lie in the field of a root t of one polynomial x^2 + b x + c. Then
u + t w is a kernel vector if A u = c B w and A w = b B w - B u, and so is its conjugate.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import flint
import numpy as np

from capacity.exact.types import AlgebraicTerm, Indices, sparse
from capacity.rank.composition.ideals import irreducible_factors
from capacity.rank.cp.explicit import ExactTerms
from capacity.rank.cp.recognition import RATIONALS, Field

# terms of the largest pencil, and attempts with random numbers
MOST_TERMS, ATTEMPTS = 60, 8


class _Kernel(NamedTuple):
    """A number s, a kernel vector v of P(s) times B, and its row w, each as rational parts x + y t.

    Without a field there is one part alone.
    """

    s: list[flint.fmpq]
    column: list[flint.fmpq_mat]
    row: list[flint.fmpq_mat]


def pencil_terms(slices: Indices, rank: int) -> ExactTerms | None:
    """Find simple tensors that add up to two slices.

    Parameters
    ----------
    slices : ndarray of int64, shape (2, m, n)
        The slices.
    rank : int
        Their rank over the real numbers.

    Returns
    -------
    ExactTerms or None
        The field and the terms, `rank` of them, with the mode of the slices first. None if the
        rank is larger than `MOST_TERMS`, or some roots don't lie in one quadratic field.

    Examples
    --------
    A rotation by a right angle has no real eigenvectors: three terms, not two.

    >>> found = pencil_terms(np.array([[[1, 0], [0, 1]], [[0, -1], [1, 0]]]), 3)
    >>> found.field.degree, len(found.terms)
    (1, 3)
    """
    if rank > MOST_TERMS:
        return None
    rows, left = _independent(np.hstack([*slices]))
    columns, right = _independent(np.hstack([*slices.transpose(0, 2, 1)]))
    core = [_matrix(M[np.ix_(rows, columns)]) for M in slices]
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng(attempt)
        # in most bases of the plane of both slices, no root is at infinity
        plane = _matrix(rng.integers(-2, 3, (2, 2)) if attempt else np.eye(2, dtype=np.int64))
        if plane.det() == 0:
            continue
        A, B = (core[0] * plane[i, 0] + core[1] * plane[i, 1] for i in range(2))
        found = _kernels(A, B, rank, rng)
        if found is not None:
            field, kernels = found
            terms = [_term(one, plane.inv(), left, right) for one in kernels]
            return ExactTerms(field, terms)
    return None


def _term(
    one: _Kernel, plane: flint.fmpq_mat, left: flint.fmpq_mat, right: flint.fmpq_mat
) -> AlgebraicTerm:
    """The simple tensor of a kernel vector: the pair (-s, 1), B v, and w, in the given bases."""
    pairs = [plane * flint.fmpq_mat([[-s], [flint.fmpq(int(k == 0))]]) for k, s in enumerate(one.s)]
    modes = (pairs, [left * x for x in one.column], [right * x for x in one.row])
    return tuple(
        sparse([tuple(map(_fraction, x)) for x in zip(*(M.entries() for M in parts), strict=True)])
        for parts in modes
    )


def _kernels(
    A: flint.fmpq_mat, B: flint.fmpq_mat, r: int, rng: np.random.Generator
) -> tuple[Field, list[_Kernel]] | None:
    """Kernel vectors of A + sB with more columns, r of each; None by bad luck."""
    n = A.ncols()
    A, B = _with_columns(A, B, r, rng)
    roots = _roots(A, B, rng)
    if roots is None:
        return None
    field, vectors, numbers = RATIONALS, list[list[flint.fmpq_mat]](), list[list[flint.fmpq]]()
    taken: set[flint.fmpq] = set()
    for p, times in irreducible_factors(roots):
        c, b = p[0] / p[p.degree()], p[1] / p[p.degree()]
        if p.degree() == 1:
            taken.add(-c)
            made = [[x] for x in _some(A - B * c, times, rng)]
            numbers += [[-c]] * len(made)
        elif p.degree() == 2 and b * b > 4 * c and field is RATIONALS:
            field = _quadratic(b, c)
            joined = _some(_blocks([[A, B * -c], [B, A - B * b]]), times, rng)
            made = [[_part(x, 0, r), _part(x, r, 2 * r)] for x in joined]
            numbers += [[b, c]] * len(made)
        else:
            return None
        vectors += made
    point = 0
    while sum(map(len, vectors)) < r:
        s = flint.fmpq((point + 1) // 2 * (-1) ** point)
        point += 1
        if s not in taken:
            (x,) = _some(A + B * s, 1, rng) or [None]
            if x is None or point > 4 * r:
                return None
            vectors.append([x])
            numbers.append([s])
    every = [x for of in vectors for x in of]
    V = _stacked(every).transpose()
    if len(every) != r or V.rank() < r:
        return None
    inverse = V.inv().tolist()
    found: list[_Kernel] = []
    for of, number in zip(vectors, numbers, strict=True):
        at = sum(map(len, vectors[: vectors.index(of)]))
        rows = [flint.fmpq_mat([[x] for x in inverse[at + k][:n]]) for k in range(len(of))]
        columns = [B * x for x in of]
        found += (
            _conjugates(number, columns, rows) if len(of) > 1 else [_Kernel(number, columns, rows)]
        )
    return field, found


def _with_columns(
    A: flint.fmpq_mat, B: flint.fmpq_mat, r: int, rng: np.random.Generator
) -> tuple[flint.fmpq_mat, flint.fmpq_mat]:
    """Both slices with more columns, so that they have r."""
    m, n = A.nrows(), A.ncols()
    generic = max((A + B * s).rank() for s in (1_000_003, 2_000_029))
    h, point = m - generic, 0
    basis, points = list[flint.fmpq_mat](), list[int]()
    while h:
        s = (point + 1) // 2 * (-1) ** point
        point += 1
        if (A + B * s).rank() < generic:
            continue
        (y,) = _some((A + B * s).transpose(), 1, rng)
        if _stacked([*basis, y]).rank() == len(basis):
            break
        basis.append(y)
        points.append(s)
    # unit vectors beside the pivots complete the basis
    pivots = _independent_columns(_stacked(basis)) if basis else []
    units = [flint.fmpq_mat([[int(i == j)] for j in range(m)]) for i in range(m) if i not in pivots]
    inverse = _stacked([*basis, *units]).inv()
    first, second = rng.integers(-1, 2, (2, m, r - n))
    first[: len(points), :h] = -second[: len(points), :h] * np.array(points, np.int64)[:, None]
    return _beside(A, inverse * _matrix(first)), _beside(B, inverse * _matrix(second))


def _conjugates(
    bc: list[flint.fmpq], columns: list[flint.fmpq_mat], rows: list[flint.fmpq_mat]
) -> Iterator[_Kernel]:
    """The kernel vectors u + t w for both roots t of x^2 + b x + c, and their rows.

    The rows f of u and g of w are those of the sum of both vectors' rows in this plane: that of u +
    t w is (t g - t' f) / (t - t') with the other root t' = -b - t, where 1 / (t - t') is (2 t + b)
    over the discriminant.
    """
    b, c = bc
    d = b * b - 4 * c
    f, g = rows
    # (g - t' f) / (t - t') = (g + b f + t f) (2 t + b) / d, with t^2 = -b t - c
    one, many = g + f * b, f
    row = [(one * b - many * (2 * c)) * (1 / d), (one * 2 + many * b - many * (2 * b)) * (1 / d)]
    u, w = columns
    yield _Kernel([flint.fmpq(0), flint.fmpq(1)], [u, w], row)
    # the same with t' = -b - t for t
    yield _Kernel([-b, flint.fmpq(-1)], [u - w * b, w * -1], [row[0] - row[1] * b, row[1] * -1])


def _quadratic(b: flint.fmpq, c: flint.fmpq) -> Field:
    """The field of the larger root of x^2 + b x + c."""
    below = lcm(int(b.q), int(c.q))
    middle = _fraction(-b / 2)
    f = (int(c * below), int(b * below), below)
    return Field(f, middle, middle + _fraction(b * b - 4 * c) + 1)


def _roots(
    A: flint.fmpq_mat, B: flint.fmpq_mat, rng: np.random.Generator
) -> flint.fmpq_poly | None:
    """The polynomial of the s with more kernel vectors than others, by two random projections."""
    m, r = A.nrows(), A.ncols()
    points = range(-(m // 2), m - m // 2 + 1)
    powers = flint.fmpq_mat([[flint.fmpq(s) ** k for k in range(m + 1)] for s in points]).inv()
    common = flint.fmpq_poly([0])
    for _ in range(1 if r == m else 2):
        Z = _matrix(np.eye(m, dtype=np.int64) if r == m else rng.integers(-2, 3, (r, m)))
        values = flint.fmpq_mat([[((A + B * s) * Z).det()] for s in points])
        common = common.gcd(flint.fmpq_poly((powers * values).entries()))
    # a root at infinity is missing in the degree
    missing = common.degree() < m if r == m else common == 0
    return None if missing else common


def _some(M: flint.fmpq_mat, n: int, rng: np.random.Generator) -> list[flint.fmpq_mat]:
    """Random vectors of the kernel of a matrix, n if it has a larger dimension or the same."""
    basis, dimension = M.numer_denom()[0].nullspace()
    if dimension < n:
        return []
    kernel = flint.fmpq_mat(
        flint.fmpz_mat([[basis[i, j] for j in range(dimension)] for i in range(M.ncols())])
    )
    return [kernel * _matrix(rng.choice([-2, -1, 1, 2], (dimension, 1))) for _ in range(n)]


def _independent(M: Indices) -> tuple[list[int], flint.fmpq_mat]:
    """Independent rows, and the matrix by which all rows are combinations of them."""
    reduced, rank = _matrix(M.T).rref()
    table = flint.fmpq_mat(reduced.tolist()[:rank])
    return _independent_columns(table), table.transpose()


def _matrix(M: Indices) -> flint.fmpq_mat:
    m, n = M.shape
    return flint.fmpq_mat(m, n, M.ravel().tolist())


def _beside(M: flint.fmpq_mat, N: flint.fmpq_mat) -> flint.fmpq_mat:
    if not N.ncols():
        return M
    return flint.fmpq_mat([x + y for x, y in zip(M.tolist(), N.tolist(), strict=True)])


def _stacked(rows: list[flint.fmpq_mat]) -> flint.fmpq_mat:
    """The matrix whose rows are some columns."""
    return flint.fmpq_mat([x.entries() for x in rows])


def _independent_columns(M: flint.fmpq_mat) -> list[int]:
    reduced, rank = M.rref()
    return [next(j for j, x in enumerate(row) if x != 0) for row in reduced.tolist()[:rank]]


def _blocks(of: list[list[flint.fmpq_mat]]) -> flint.fmpq_mat:
    return flint.fmpq_mat(
        [x + y for M, N in of for x, y in zip(M.tolist(), N.tolist(), strict=True)]
    )


def _part(x: flint.fmpq_mat, start: int, end: int) -> flint.fmpq_mat:
    return flint.fmpq_mat([[y] for y in x.entries()[start:end]])


def _fraction(x: flint.fmpq) -> Fraction:
    return Fraction(int(x.p), int(x.q))
