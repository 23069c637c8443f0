"""Lower bound 2 n - t for tensors of associative algebras, by a theorem of Alder and Strassen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import flint
import numpy as np

from capacity.exact.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.budget import require_at_most
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.view import UNOBSERVED, view_tensor

# largest dimension, and coefficient of a vector
MOST_DIMENSIONS, LARGEST_COEFFICIENT = 24, 1_000


@dataclass(frozen=True, eq=False, repr=False)
class AlderStrassen(FromBelow):
    """Two vectors that make an n x n x n tensor the product of an associative algebra.

    Attributes
    ----------
    view : View
        Sub-tensor T of n x n x n, the product U x V -> W of vectors: W is the `mode`, U and V are
        the other two, in ascending order.
    mode : int
        Mode of the products.
    left, right : ndarray of int64
        Vectors u of U and v of V. With the maps lambda = T(u, .) and rho = T(., v), both
        nonsingular, W is an algebra with the product x o y = T(rho^-1 x, lambda^-1 y).
    value : int
        The bound 2 n - t, where t is the number of maximal two-sided ideals of the algebra.
    """

    kind: ClassVar[str] = "algebra"
    forms: ClassVar[Forms] = {
        "view": "view",
        "mode": "integer",
        "left": "coefficients",
        "right": "coefficients",
        "value": "integer",
    }
    view: View
    mode: int
    left: Indices
    right: Indices
    value: int


def check_algebra(argument: AlderStrassen, entries: Entries) -> Touched:
    """Check that the product is associative, and count the algebra's maximal two-sided ideals.

    The tensor of the product has the rank of T: it is T in other bases. The product has the unit
    e = T(u, v), since e o y = T(u, lambda^-1 y) = y, and x o e = x likewise. By the theorem of
    Alder and Strassen (1981) the rank of an associative algebra A with a unit, over any field, is
    at least 2 dim A - t, with t its number of maximal two-sided ideals. It remains to count these
    over the reals.

    The radical of A is the kernel of the form G(x, y) = tr(L_x L_y), with L_x y = x o y (Dickson;
    the characteristic is 0). A / rad A is a product of simple algebras, one for each maximal
    two-sided ideal, and its centre is the product of theirs, which are R or C. Let N be the space
    of all x with x o y - y o x in the radical for every y: N / rad A is that centre. An element of
    a factor R or C of it acts on simple modules of that factor as a scalar, and on others as 0. So
    on this factor G is a positive multiple of the form zw of R, or of the real part of zw on C:
    each factor has one positive square. Hence t is the number of positive squares of G on N. All
    roots of the characteristic polynomial of a symmetric matrix are real, so that Descartes' rule
    of signs counts the positive ones exactly.
    """
    entries.require_order_3()
    u_mode, v_mode = entries.require_mode(argument.mode)
    tensor, known = view_tensor(argument.view, entries)
    require(known.all(), UNOBSERVED)
    T = tensor.transpose(u_mode, v_mode, argument.mode)
    n = len(T)
    require(T.shape == (n, n, n), "the view must be n x n x n")
    require_at_most("dimensions of an algebra", n, MOST_DIMENSIONS)
    vectors = argument.left, argument.right
    require(all(len(x) == n for x in vectors), "a vector must have a coefficient for each slice")
    require(max(np.abs(x).max() for x in vectors) <= LARGEST_COEFFICIENT,
            f"a coefficient of a vector exceeds {LARGEST_COEFFICIENT:,}")  # fmt: skip
    entries.budget.spend(steps_of(T))
    t = n_maximal_ideals(products(T, *vectors))
    require(argument.value == 2 * n - t, f"{n} dimensions and {t} ideals prove {2 * n - t}")
    return argument.view.indices


def steps_of(T: Indices) -> int:
    """Estimate the steps of a check: products of n x n matrices, with numbers that grow with n."""
    n, longer = len(T), 1 + int(np.abs(T).max()).bit_length() // 8
    return 10**6 + 30 * n**5 * (1 + n // 4) * longer


def products(T: Indices, u: Indices, v: Indices) -> list[flint.fmpz_mat]:
    """Matrices of the products w_a o w_b, a row each for b, up to a common positive factor."""
    n = len(T)
    maps = [_matrix(np.tensordot(x.astype(object), T.astype(object), (0, mode)))
            for mode, x in enumerate((u, v))]  # fmt: skip
    require(all(M.det() != 0 for M in maps), "a map of the algebra is singular")
    after_u, after_v = (M.inv() for M in maps)
    # T(x_i, lambda^-1 w_b), for each i
    right = [after_u * _matrix(T[i]) for i in range(n)]
    stacked = flint.fmpq_mat(n, n * n, [x for M in right for x in M.entries()])
    whole, _ = (after_v * stacked).numer_denom()
    flat = whole.entries()
    M = [flint.fmpz_mat(n, n, flat[a * n * n : (a + 1) * n * n]) for a in range(n)]
    # d x o y with the denominator d: d^2 (x o y) o z = sum_c (d x o y)_c (d w_c o z)
    for a in range(n):
        through = M[a] * whole
        for b in range(n):
            expected = (M[b] * M[a]).entries()
            row = [through[b, k] for k in range(n * n)]
            require(row == expected, "the product isn't associative")
    return M


def _matrix(A: Indices) -> flint.fmpq_mat:
    m, n = A.shape
    return flint.fmpq_mat(flint.fmpz_mat(m, n, A.ravel().tolist()))


def n_maximal_ideals(M: list[flint.fmpz_mat]) -> int:
    """Count the maximal two-sided ideals of the algebra over the reals, given its products."""
    n = len(M)
    rows = flint.fmpz_mat(n, n * n, [x for A in M for x in A.entries()])
    turned = flint.fmpz_mat(n, n * n, [x for A in M for x in A.transpose().entries()])
    G = rows * turned.transpose()
    # x o w_b - w_b o x, for the coordinates of x, b by b
    commutators = [
        G * flint.fmpz_mat(n, n, [M[a][b, k] - M[b][a, k] for k in range(n) for a in range(n)])
        for b in range(n)
    ]
    N, dimension = flint.fmpz_mat(
        n * n, n, [x for A in commutators for x in A.entries()]
    ).nullspace()
    basis = flint.fmpz_mat(dimension, n, [N[k, i] for i in range(dimension) for k in range(n)])
    on_centre = basis * G * basis.transpose()
    signs = [c > 0 for c in on_centre.charpoly().coeffs() if c != 0]
    return sum(a != b for a, b in pairwise(signs))


KIND = Kind(AlderStrassen, lower=check_algebra, source=lambda _: "Alder, Strassen 1981")
