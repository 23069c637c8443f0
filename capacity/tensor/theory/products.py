"""Bilinear maps of matrices and of polynomials."""

from __future__ import annotations

import numpy as np

from capacity.checks import require_integer
from capacity.tensor.coordinates import require_room
from capacity.tensor.dense import from_coo
from capacity.tensor.sparse import SparseTensor


def matrix_multiplication(n: int, m: int, p: int) -> SparseTensor:
    """Tensor of the product of an n x m and an m x p matrix.

    Parameters
    ----------
    n, m, p : int
        Sizes.

    Returns
    -------
    SparseTensor, shape (n m, m p, n p)
        Matrices are numbered by rows.

    Raises
    ------
    InvalidArgumentError
        If a size isn't a positive integer.
    MemoryBudgetError
        If the n m p entries would take more than 1 GiB.

    Examples
    --------
    >>> matrix_multiplication(2, 2, 2)
    SparseTensor(4 x 4 x 4, 8 entries from 1 to 1)
    """
    n, m, p = (require_integer(name, k) for name, k in (("n", n), ("m", m), ("p", p)))
    require_room(n * m * p, 3)
    i, j, k = (axis.ravel() for axis in np.indices((n, m, p)))
    indices = np.stack([i * m + j, j * p + k, i * p + k], axis=1)
    return from_coo(indices, np.ones(len(indices), np.int64), (n * m, m * p, n * p))


def polynomial_product(m: int, n: int) -> SparseTensor:
    """Tensor of the product of polynomials with m and n coefficients.

    Parameters
    ----------
    m, n : int
        Numbers of coefficients, the constant one first.

    Returns
    -------
    SparseTensor, shape (m, n, m + n - 1)
        Of rank m + n - 1.

    Raises
    ------
    InvalidArgumentError
        If a number isn't a positive integer.
    MemoryBudgetError
        If the m n entries would take more than 1 GiB.

    Examples
    --------
    >>> polynomial_product(2, 3)
    SparseTensor(2 x 3 x 4, 6 entries from 1 to 1)
    """
    m, n = require_integer("m", m), require_integer("n", n)
    require_room(m * n, 3)
    i, j = (axis.ravel() for axis in np.indices((m, n)))
    indices = np.stack([i, j, i + j], axis=1)
    return from_coo(indices, np.ones(len(indices), np.int64), (m, n, m + n - 1))
