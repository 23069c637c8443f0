"""Decide if the rank of a tensor of m slices X_1, ..., X_m of shape n x n is n, or larger.

If the rank is n, the slices are A D_i B^T with diagonal D_i and n x n matrices A, B, not depending
on i. If some combination X of the slices is nonsingular, then so are A, B and the D of X, and

    X_i X^-1 = A D_i D^-1 A^-1

are diagonal in one basis: they commute, and each is diagonalisable over R. Conversely matrices that
commute and are diagonalisable have a common basis of eigenvectors A; with B^T = A^-1 X they yield n
simple tensors. So with any one nonsingular X the rank is n if and only if the X_i X^-1 pass, and at
least n + 1 if they fail. A matrix is diagonalisable over R if and only if its minimal polynomial is
a product of distinct linear factors over R.

If all combinations are singular, but the unfoldings of the two modes of size n have rank n, the
rank is at least n + 1 as well. In a sum of n simple tensors, A and B would be nonsingular and each
term would occur in some slice, because otherwise the unfoldings would have a smaller rank; but then
most combinations would be nonsingular.

References
----------
V. Strassen, Rank and optimal computation of generic tensors, LAA 1983 (commutators); J. M.
Landsberg, Tensors: Geometry and Applications, section 3.8; P. Koiran, On tensor rank and commuting
matrices, 2020, arXiv 2006.02374.
"""

from __future__ import annotations

from itertools import combinations, product

import flint
import numpy as np

from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices
from capacity.rank.verifier.procedures.kronecker_form import distinct_real_roots

# limits of what is decided, within seconds: n and m, coefficients, and the number of determinants
# for showing that all combinations are singular
LARGEST_SIDE = 24
LARGEST_COEFFICIENT = 1_000
MOST_DETERMINANTS = 20_000


def why_not_diagonal(slices: Indices, combination: Indices) -> str | None:
    """Return the reason why slices aren't diagonal in common bases, or None if they are.

    Parameters
    ----------
    slices : ndarray of int64, shape (m, n, n)
        The slices.
    combination : ndarray of int64, shape (m,)
        Coefficients of a nonsingular combination of the slices.

    Returns
    -------
    str or None
        The step that fails, with the numbers of the slices.

    Raises
    ------
    InvalidArgumentError
        If the combination is singular, and so decides nothing.

    Examples
    --------
    >>> one, rotation = np.eye(2, dtype=int), np.array([[0, -1], [1, 0]])
    >>> why_not_diagonal(np.stack([one, rotation]), np.array([1, 0]))
    'slice 1 has eigenvalues that are not real, or too few eigenvectors'
    """
    matrices = [_matrix(M) for M in slices]
    X = _sum(matrices, combination.tolist())
    if X.det() == 0:
        raise InvalidArgumentError("The combination of the slices must be nonsingular.")
    inverse = X.inv()
    ratios = [M * inverse for M in matrices]
    for (i, a), (j, b) in combinations(enumerate(ratios), 2):
        if a * b != b * a:
            return f"slices {i} and {j} do not commute"
    for i, ratio in enumerate(ratios):
        polynomial = ratio.minpoly()
        if distinct_real_roots(polynomial) < polynomial.degree():
            return f"slice {i} has eigenvalues that are not real, or too few eigenvectors"
    return None


def all_singular(slices: Indices) -> bool | None:
    """Return True if all combinations of slices are singular, None if deciding it takes too long.

    The determinant is a homogeneous polynomial of degree n in the m coefficients. It is zero if it
    vanishes wherever the first of them is 1, and for that it suffices that it vanishes there for
    all values of the others in {0, ..., n}.

    Examples
    --------
    >>> all_singular(np.array([[[1, 0], [0, 0]], [[0, 1], [0, 0]]]))
    True
    """
    m, n = slices.shape[:2]
    if n_determinants(slices) > MOST_DETERMINANTS or n > LARGEST_SIDE:
        return None
    exact = slices.astype(object)
    return all(
        flint.fmpz_mat(n, n, np.tensordot([1, *others], exact, axes=1).ravel().tolist()).det() == 0
        for others in product(range(n + 1), repeat=m - 1)
    )


def n_determinants(slices: Indices) -> int:
    """Count the determinants that `all_singular` computes."""
    m, n = slices.shape[:2]
    return (n + 1) ** (m - 1)


def _sum(matrices: list[flint.fmpq_mat], coefficients: list[int]) -> flint.fmpq_mat:
    total = matrices[0] * coefficients[0]
    for M, c in zip(matrices[1:], coefficients[1:], strict=True):
        total = total + M * c
    return total


def _matrix(M: Indices) -> flint.fmpq_mat:
    m, n = M.shape
    return flint.fmpq_mat(m, n, M.ravel().tolist())
