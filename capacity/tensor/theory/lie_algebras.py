"""Lie algebras by their structure constants, and the exterior algebra."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_choice, require_integer
from capacity.tensor.dense import from_coo, from_dense
from capacity.tensor.sparse import SparseTensor

FAMILIES = ("gl", "sl", "so", "heisenberg")
LARGEST_LIE, LARGEST_EXTERIOR = 5, 8


def lie_algebra(family: str, n: int) -> SparseTensor:
    """Return the tensor of the bracket [x, y] = x y - y x of a Lie algebra of n x n matrices.

    Parameters
    ----------
    family : {'gl', 'sl', 'so', 'heisenberg'}
        All matrices, those of trace 0, the skew-symmetric ones, or the strictly upper triangular
        ones whose entries are in the first row or the last column.
    n : int
        Number of rows.

    Returns
    -------
    SparseTensor, shape (d, d, d)
        In the basis of matrices E_ij, of differences E_ii - E_nn, or of E_ij - E_ji.

    Raises
    ------
    InvalidArgumentError
        If there is no such family, or `n` isn't an integer from 2 to 5.

    Examples
    --------
    The cross product of vectors, but for signs, is the bracket of so(3):

    >>> lie_algebra("so", 3)
    SparseTensor(3 x 3 x 3, 6 entries from -1 to 1)
    """
    require_choice("`family`", family, FAMILIES)
    n = require_integer("n", n, least=2, most=LARGEST_LIE)
    basis = _basis(family, n)
    brackets = np.einsum("aij,bjk->abik", basis, basis)
    brackets = brackets - brackets.transpose(1, 0, 2, 3)
    # the coordinates of a matrix of the algebra are some of its entries
    rows, columns = zip(*_places(family, n), strict=True)
    return from_dense(brackets[:, :, list(rows), list(columns)])


def _places(family: str, n: int) -> list[tuple[int, ...]]:
    """Places of a matrix of the algebra that are its coordinates in the basis."""
    every = itertools.product(range(n), repeat=2)
    if family == "sl":
        return [place for place in every if place != (n - 1, n - 1)]
    if family == "so":
        return list(itertools.combinations(range(n), 2))
    if family == "heisenberg":
        return [(i, j) for i, j in itertools.combinations(range(n), 2) if i == 0 or j == n - 1]
    return list(every)


def _basis(family: str, n: int) -> NDArray[np.int64]:
    places = _places(family, n)
    basis = np.zeros((len(places), n, n), np.int64)
    for matrix, (i, j) in zip(basis, places, strict=True):
        matrix[i, j] = 1
        if family == "so":
            matrix[j, i] = -1
        elif family == "sl" and i == j:
            matrix[n - 1, n - 1] = -1
    return basis


def exterior_algebra(n: int) -> SparseTensor:
    """Return the tensor of the exterior algebra of a space of n dimensions.

    Parameters
    ----------
    n : int
        Dimension of the space.

    Returns
    -------
    SparseTensor, shape (2^n, 2^n, 2^n)
        The basis is the products of basis vectors, numbered by their bits.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 8.

    Examples
    --------
    >>> exterior_algebra(2)
    SparseTensor(4 x 4 x 4, 9 entries from -1 to 1)
    """
    n = require_integer("n", n, most=LARGEST_EXTERIOR)
    pairs = [(a, b) for a, b in itertools.product(range(2**n), repeat=2) if not a & b]
    signs = [(-1) ** sum((a >> (i + 1)).bit_count() for i in range(n) if b >> i & 1)
             for a, b in pairs]  # fmt: skip
    return from_coo([(a, b, a | b) for a, b in pairs], signs, (2**n,) * 3)
