"""Algebras, by definition: the product in coordinates, and the real factors of their centre."""

from __future__ import annotations

import itertools
from typing import Any

import flint
import numpy as np

from capacity.rank import AlderStrassen
from tests.second_checker.views import dense, indices_of


def proves_algebra(argument: AlderStrassen, D: np.ndarray) -> set[tuple[int, int]] | None:
    T = dense(argument.view, D)
    if T is None or argument.mode not in (0, 1, 2) or len(set(T.shape)) > 1:
        return None
    T, n = np.moveaxis(T, argument.mode, 2), len(T)
    u, v = argument.left.tolist(), argument.right.tolist()
    if len(u) != n or len(v) != n:
        return None
    # T(x, y) of unit vectors, as columns of W
    of_v = _matrix([[sum(T[i, j, k] * u[i] for i in range(n)) for j in range(n)] for k in range(n)])
    of_u = _matrix([[sum(T[i, j, k] * v[j] for j in range(n)) for i in range(n)] for k in range(n)])
    if of_v.det() == 0 or of_u.det() == 0:
        return None
    x_of, y_of = of_u.inv(), of_v.inv()

    def product(a: list[Any], b: list[Any]) -> list[Any]:
        x = [sum((x_of[i, k] * a[k] for k in range(n)), flint.fmpq(0)) for i in range(n)]
        y = [sum((y_of[j, k] * b[k] for k in range(n)), flint.fmpq(0)) for j in range(n)]
        return [
            sum((int(T[i, j, k]) * x[i] * y[j] for i in range(n) for j in range(n)), flint.fmpq(0))
            for k in range(n)
        ]

    unit = [[flint.fmpq(int(i == j)) for j in range(n)] for i in range(n)]
    table = [[product(a, b) for b in unit] for a in unit]

    def times(a: list[Any], b: list[Any]) -> list[Any]:
        return [
            sum((a[i] * b[j] * table[i][j][k] for i in range(n) for j in range(n)), flint.fmpq(0))
            for k in range(n)
        ]

    for a, b, c in itertools.product(unit, repeat=3):
        if times(times(a, b), c) != times(a, times(b, c)):
            return None
    return indices_of(argument.view) if argument.value <= 2 * n - _n_ideals(table) else None


def _n_ideals(table: list[list[list[Any]]]) -> int:
    """Factors R and C of the centre of A / rad A, by the roots of a generic element's polynomial.

    That centre is a product of fields, so that the minimal polynomial of a generic element has a
    real root for each R and a pair of others for each C.
    """
    n = len(table)
    left = [_matrix([[table[a][b][k] for b in range(n)] for k in range(n)]) for a in range(n)]
    form = _matrix([[_trace(x * y) for y in left] for x in left])
    # modulo the radical, which is the kernel of the form
    rows, r = form.rref()
    semisimple = [[rows[i, k] for k in range(n)] for i in range(r)]
    conditions = [
        [sum((row[k] * (table[a][b][k] - table[b][a][k]) for k in range(n)), flint.fmpq(0))
         for a in range(n)]
        for b in range(n) for row in semisimple
    ]  # fmt: skip
    centre = _kernel(_matrix(conditions))
    radical = _kernel(form)
    dimension = len(centre) - len(radical)
    best = None
    for k in range(1, 9):
        z = [sum(((k * k + 3 * m) ** (1 + m % 3) * x[i] for m, x in enumerate(centre)),
                 flint.fmpq(0)) for i in range(n)]  # fmt: skip
        L = flint.fmpq_mat(n, n)
        for a in range(n):
            L = L + left[a] * z[a]
        squarefree = flint.fmpq_poly([1])
        for p, _ in L.charpoly().factor()[1]:
            squarefree = squarefree * p
        if best is None or squarefree.degree() > best.degree():
            best = squarefree
    assert best is not None
    assert best.degree() == dimension
    real = _real_roots(best)
    return real + (dimension - real) // 2


def _real_roots(f: Any) -> int:
    """By Sturm's theorem, for a squarefree polynomial."""
    chain = [f, f.derivative()]
    while chain[-1].degree() > 0:
        chain.append(-(chain[-2] % chain[-1]))

    def changes(sign: int) -> int:
        ends = [p.coeffs()[-1] * (sign ** p.degree()) > 0 for p in chain if p.degree() >= 0]
        return sum(a != b for a, b in itertools.pairwise(ends))

    return changes(-1) - changes(1)


def _kernel(M: Any) -> list[list[Any]]:
    rows, r = M.rref()
    n = M.ncols()
    pivots = [next(k for k in range(n) if rows[i, k] != 0) for i in range(r)]
    found = []
    for free in sorted(set(range(n)) - set(pivots)):
        x = [flint.fmpq(0)] * n
        x[free] = flint.fmpq(1)
        for i, pivot in enumerate(pivots):
            x[pivot] = -rows[i, free]
        found.append(x)
    return found


def _matrix(rows: list[list[Any]]) -> flint.fmpq_mat:
    flat = [x if isinstance(x, flint.fmpq) else flint.fmpq(int(x)) for row in rows for x in row]
    return flint.fmpq_mat(len(rows), len(rows[0]), flat)


def _trace(M: flint.fmpq_mat) -> Any:
    return sum((M[i, i] for i in range(M.nrows())), flint.fmpq(0))
