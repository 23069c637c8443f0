"""Square slices that are diagonal in common bases, and the rank of two slices."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from capacity.rank import Diagonalization
from tests.second_checker.views import dense, indices_of, matrix_rank, rational_rank


def square_slices(argument: Diagonalization, D: np.ndarray) -> list[flint.fmpq_mat] | None:
    T = dense(argument.view, D)
    if T is None or argument.mode not in (0, 1, 2):
        return None
    X = np.moveaxis(T, argument.mode, 0)
    n = X.shape[1]
    if X.shape[2] != n:
        return None
    return [flint.fmpq_mat(n, n, [int(x) for x in M.ravel()]) for M in X]


def diagonal(argument: Diagonalization, slices: list[flint.fmpq_mat]) -> bool | None:
    """Whether slices over a nonsingular sum are diagonal in common bases: by eigenspaces."""
    n = slices[0].nrows()
    coefficients = argument.combination.tolist()
    if len(coefficients) != len(slices):
        return None
    X = flint.fmpq_mat(n, n)
    for c, M in zip(coefficients, slices, strict=True):
        X = X + M * c
    if X.det() == 0:
        return None
    ratios = [M * X.inv() for M in slices]
    if any(a * b != b * a for a, b in itertools.combinations(ratios, 2)):
        return False
    for ratio in ratios:
        squarefree = flint.fmpq_poly([1])
        for p, _ in ratio.charpoly().factor()[1]:
            if not real_rooted(p):
                return False
            squarefree = squarefree * p
        value = flint.fmpq_mat(n, n)
        one = flint.fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
        for c in reversed(squarefree.coeffs()):
            value = value * ratio + one * c
        # diagonalisable: the squarefree part of the characteristic polynomial annihilates it
        if value != flint.fmpq_mat(n, n):
            return False
    return True


def rank_of_two_slices(two: np.ndarray) -> int:
    """Jaja's theorem by Smith's normal form and polynomial kernels, for small slices.

    After a shift that leaves no root at infinity Smith's form of A + sB has the invariant
    polynomials. The number of polynomial kernel vectors of degree at most d gives the sizes of the
    L blocks.
    """
    A, B = two.astype(int)
    used = ((A != 0) | (B != 0)).any(axis=1)
    A, B = A[used], B[used]
    if not A.size:
        return 0
    ranks = {t: matrix_rank(A * t + B) for t in range(-7, 8)}
    shift = max(ranks, key=lambda t: ranks[t])
    lead = A * shift + B  # the coefficient of s
    other = A
    m, n = A.shape
    r = ranks[shift]
    pencil = [[flint.fmpq_poly([int(other[i, j]), int(lead[i, j])]) for j in range(n)]
              for i in range(m)]  # fmt: skip
    invariants = smith_form(pencil)
    delta = 0
    for f in invariants:
        if f.degree() > 0:
            delta += not (real_rooted(f) and f.gcd(f.derivative()).degree() == 0)
    size = sum(f.degree() for f in invariants)
    for C, E in ((other, lead), (other.T, lead.T)):
        count, before, width = C.shape[1] - r, 0, C.shape[1]
        d = free = 0
        while True:
            # coefficients x_0 .. x_d of a kernel vector
            T = np.zeros(((d + 2) * len(C), (d + 1) * width), int)
            for i in range(d + 1):
                T[i * len(C) : (i + 1) * len(C), i * width : (i + 1) * width] = C
                T[(i + 1) * len(C) : (i + 2) * len(C), i * width : (i + 1) * width] = E
            kernel = T.shape[1] - matrix_rank(T)
            # so many blocks have size at most d; those of size 0 don't count
            if d == 0:
                free = kernel
            if kernel - before == count:
                break
            before, d = kernel, d + 1
        total = count * (d + 1) - kernel  # the sum of the blocks' sizes
        size += total + count - free
    return size + delta


def real_rooted(f: flint.fmpq_poly) -> bool:
    roots: Any = f.numer().complex_roots()
    return all(root.imag == 0 for root, _ in roots)


def smith_form(M: list[list[Any]]) -> list[Any]:
    """The invariant polynomials of a matrix of polynomials, but for constants.

    An entry of least degree is made to clear its row and column; a remainder has a smaller degree
    and takes its place. If it doesn't divide some other entry, that entry's row is added to its.
    """
    M = [row[:] for row in M]
    found: list[Any] = []
    while True:
        left = [(x.degree(), i, j) for i, row in enumerate(M) for j, x in enumerate(row) if x]
        if not left:
            return found
        _, i, j = min(left)
        pivot = M[i][j]
        for a in set(range(len(M))) - {i}:
            factor = M[a][j] // pivot
            M[a] = [x - factor * y for x, y in zip(M[a], M[i], strict=True)]
        for b in set(range(len(M[0]))) - {j}:
            factor = M[i][b] // pivot
            for row in M:
                row[b] -= factor * row[j]
        if any(row[j] for row in M if row is not M[i]) or any(M[i][:j] + M[i][j + 1 :]):
            continue
        others = [a for a, row in enumerate(M) if a != i and any(x % pivot for x in row)]
        if others:
            M[i] = [x + y for x, y in zip(M[i], M[others[0]], strict=True)]
            continue
        found.append(pivot)
        del M[i]
        for row in M:
            del row[j]


def proves_more_than_n(argument: Diagonalization, D: np.ndarray) -> set[tuple[int, int]] | None:
    slices = square_slices(argument, D)
    if slices is None or argument.value != slices[0].nrows() + 1:
        return None
    if len(argument.combination):
        return indices_of(argument.view) if diagonal(argument, slices) is False else None
    n = slices[0].nrows()
    for point in itertools.product(range(n + 1), repeat=len(slices)):
        X = flint.fmpq_mat(n, n)
        for c, M in zip(point, slices, strict=True):
            X = X + M * c
        if X.det() != 0:
            return None
    across = [[M.tolist()[i] for M in slices] for i in range(n)]
    down = [[M.transpose().tolist()[i] for M in slices] for i in range(n)]
    for unfolded in (across, down):
        rows = [[Fraction(int(x.p), int(x.q)) for row in rows for x in row] for rows in unfolded]
        if rational_rank(rows) < n:
            return None
    return indices_of(argument.view)
