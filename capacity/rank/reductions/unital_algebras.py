"""Cubic cores that are the product of an associative algebra with a unit, in some bases.

Let T be an n x n x n tensor, a product U x V -> W of vectors, and u, v vectors such that the maps
lambda = T(u, .) and rho = T(., v) are nonsingular. Then x o y = T(rho^-1 x, lambda^-1 y) is a
product on W with the unit T(u, v), and T(a, b) = rho(a) o lambda(b). So T and the product have the
same rank, and a decomposition of one yields one of the other with as many terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import flint
import numpy as np

from capacity.display import briefly_shown
from capacity.exact.types import Indices
from capacity.rank.shares import OF_AN_END
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.algebra import MOST_DIMENSIONS, products, steps_of

# random vectors whose maps are looked at, their largest coefficient, and the largest dimension at
# which sums of two basis vectors are looked at as well
RANDOM, LARGEST, MOST_PAIRED = 6, 3, 12


@briefly_shown
@dataclass(frozen=True)
class Algebra:
    """An algebra whose product is a tensor, in some bases.

    Attributes
    ----------
    mode : int
        Mode of the products; the other two, in ascending order, are those of the factors.
    left, right : ndarray of int64, shape (n,)
        The vectors u and v.
    products : list of fmpz_mat
        For each a the n x n matrix whose row b is a positive multiple, the same for all, of the
        product w_a o w_b of basis vectors of W.
    """

    mode: int
    left: Indices
    right: Indices
    products: list[flint.fmpz_mat]


def algebras_of(tensor: Indices) -> list[Algebra]:
    """Return the algebra of each mode, if the tensor is the product of one.

    One pair of vectors with nonsingular maps decides: if the product that they make isn't
    associative, no other is, since algebras with a unit that are isotopic to an associative algebra
    with one are isomorphic to it (A. A. Albert, Non-associative algebras, 1942).

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        A concise tensor.

    Returns
    -------
    list of Algebra
        None for other shapes, and for tensors that are too large for `verify` to check.

    Examples
    --------
    The complex numbers:

    >>> [one.mode for one in algebras_of(np.array([[[1, 0], [0, 1]], [[0, 1], [-1, 0]]]))]
    [0, 1, 2]
    """
    n = len(tensor)
    if tensor.shape != (n, n, n) or not 0 < n <= MOST_DIMENSIONS or steps_of(tensor) > OF_AN_END:
        return []
    found: list[Algebra] = []
    for mode in range(3):
        u_mode, v_mode = (m for m in range(3) if m != mode)
        turned = tensor.transpose(u_mode, v_mode, mode)
        u, v = _regular(turned), _regular(turned.transpose(1, 0, 2))
        if u is None or v is None:
            continue
        try:
            found.append(Algebra(mode, u, v, products(turned, u, v)))
        except Refuted:
            continue
    return found


def _regular(T: Indices) -> Indices | None:
    """Return a vector u with a nonsingular T(u, .), of the smallest determinant among some.

    Then the numbers of the product are small: those of a group algebra, or of matrices, are 0 and
    1.
    """
    n = len(T)
    units = np.eye(n, dtype=np.int64)
    pairs = [units[i] + units[j] for i, j in combinations(range(n), 2)] if n <= MOST_PAIRED else []
    rng = np.random.default_rng(0)
    some = rng.integers(-LARGEST, LARGEST + 1, (RANDOM, n))
    vectors = np.concatenate([units, np.ones((1, n), np.int64), some, *(p[None] for p in pairs)])
    sizes = np.linalg.slogdet(np.tensordot(vectors, T, (1, 0)).astype(np.float64)).logabsdet
    # determinants are integers; floating point shows which of them are 0
    sizes[sizes < np.log(0.5)] = np.inf
    best = int(sizes.argmin())
    return vectors[best] if np.isfinite(sizes[best]) else None
