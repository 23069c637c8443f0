"""Tensors of products of matrices, of polynomials, and of elements of algebras.

The tensor of a bilinear map (x, y) -> z has the entry t at (i, j, k) if z_k holds t x_i y_j; for an
algebra it holds the structure constants. Its rank is the number of multiplications, other than by
constants, that computing the map takes (V. Strassen, Vermeidung von Divisionen, 1973; P. Bürgisser,
M. Clausen, M. A. Shokrollahi, Algebraic Complexity Theory, 1997, chapter 14). `KNOWN_RANKS` has the
ranks that are known.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.dense import from_coo
from capacity.tensor.entries.coordinates import integers, require_room
from capacity.tensor.families.groups import checked_group
from capacity.tensor.sparse import SparseTensor

# largest degree of a modulus
LARGEST_DEGREE = 2**10


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


def truncated_polynomials(n: int) -> SparseTensor:
    """Tensor of the algebra R[x] / (x^n): products of polynomials whose degrees from n on vanish.

    Parameters
    ----------
    n : int
        Number of coefficients.

    Returns
    -------
    SparseTensor, shape (n, n, n)
        The basis is 1, x, ..., x^(n - 1).

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 1,024.

    Examples
    --------
    >>> truncated_polynomials(2) == polynomials_modulo([0, 0, 1])
    True
    """
    n = require_integer("n", n, most=LARGEST_DEGREE)
    return polynomials_modulo([0] * n + [1])


def polynomials_modulo(modulus: Sequence[int]) -> SparseTensor:
    """Tensor of the algebra R[x] / (f), for a polynomial f with integer coefficients.

    Parameters
    ----------
    modulus : sequence of int
        Coefficients of f, the constant one first; the last must be 1.

    Returns
    -------
    SparseTensor, shape (n, n, n)
        n is the degree of f.

    Raises
    ------
    InvalidArgumentError
        Unless f is of degree 1 to 1,024 with the leading coefficient 1; if an entry of the tensor
        has more than 63 bits.

    Examples
    --------
    The complex numbers:

    >>> polynomials_modulo([1, 0, 1]).to_numpy().tolist()
    [[[1, 0], [0, 1]], [[0, 1], [-1, 0]]]
    """
    f = integers(modulus, "`modulus`")
    if f.ndim != 1 or not 2 <= len(f) <= LARGEST_DEGREE + 1 or f[-1] != 1:
        raise InvalidArgumentError(
            "`modulus` must be the coefficients of a polynomial of degree 1 to "
            f"{LARGEST_DEGREE:,}, the constant one first and the last 1; got {shown(modulus)}."
        )
    n = len(f) - 1
    # x^k modulo f; Python's integers, for coefficients may grow with k
    power = [1] + [0] * (n - 1)
    entries: list[tuple[int, int, int]] = []
    for k in range(2 * n - 1):
        entries += [(k, place, value) for place, value in enumerate(power) if value]
        shifted, top = [0, *power[:-1]], power[-1]
        power = [a - top * b for a, b in zip(shifted, f[:-1].tolist(), strict=True)]
    indices = [
        (i, k - i, place)
        for k, place, _ in entries
        for i in range(max(0, k - n + 1), min(n, k + 1))
    ]
    values = [value for k, _, value in entries for _ in range(max(0, k - n + 1), min(n, k + 1))]
    return from_coo(indices, values, (n, n, n))


def complex_numbers() -> SparseTensor:
    """Tensor of the product of two complex numbers, given by real and imaginary parts.

    Returns
    -------
    SparseTensor, shape (2, 2, 2)
        The basis is 1, i.

    Examples
    --------
    >>> complex_numbers()
    SparseTensor(2 x 2 x 2, 4 entries from -1 to 1)
    """
    return polynomials_modulo([1, 0, 1])


def quaternions() -> SparseTensor:
    """Tensor of the product of two quaternions, in the basis 1, i, j, k.

    Returns
    -------
    SparseTensor, shape (4, 4, 4)
        Of rank 8 over the reals.

    Examples
    --------
    >>> quaternions()
    SparseTensor(4 x 4 x 4, 16 entries from -1 to 1)
    """
    # 1, i, j, k are numbered by bits, and multiply as these are added, but for the sign
    negative = {(1, 1), (2, 2), (3, 3), (2, 1), (3, 2), (1, 3)}
    places = list(itertools.product(range(4), repeat=2))
    indices = [(a, b, a ^ b) for a, b in places]
    return from_coo(indices, [-1 if pair in negative else 1 for pair in places], (4, 4, 4))


def triangular_matrices(n: int) -> SparseTensor:
    """Tensor of the algebra of upper triangular n x n matrices.

    Parameters
    ----------
    n : int
        Number of rows.

    Returns
    -------
    SparseTensor, shape (d, d, d)
        d = n (n + 1) / 2; the entries on and above the diagonal are numbered by rows.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 100.

    Examples
    --------
    >>> triangular_matrices(2)
    SparseTensor(3 x 3 x 3, 4 entries from 1 to 1)
    """
    n = require_integer("n", n, most=100)
    number = {
        place: d for d, place in enumerate(itertools.combinations_with_replacement(range(n), 2))
    }
    steps = itertools.combinations_with_replacement(range(n), 3)
    indices = [(number[i, j], number[j, k], number[i, k]) for i, j, k in steps]
    return from_coo(indices, np.ones(len(indices), np.int64), (len(number),) * 3)


def group_algebra(table: ArrayLike) -> SparseTensor:
    """Tensor of the algebra of a finite group: the group's elements are the basis.

    Parameters
    ----------
    table : array_like of int, shape (n, n)
        Number of the product of elements g and h, at (g, h): `cyclic_group`, `symmetric_group` and
        `product_group` make such tables.

    Returns
    -------
    SparseTensor, shape (n, n, n)
        Ones at (g, h, g h).

    Raises
    ------
    InvalidArgumentError
        Unless the table is that of a group of at most 1,024 elements: numbers from 0 to n - 1, each
        once in every row and column, with an associative product.

    Examples
    --------
    >>> from capacity.tensor import cyclic_group
    >>> group_algebra(cyclic_group(3))
    SparseTensor(3 x 3 x 3, 9 entries from 1 to 1)
    """
    products = checked_group(table)
    g, h = (axis.ravel() for axis in np.indices(products.shape))
    indices = np.stack([g, h, products.ravel()], axis=1)
    return from_coo(indices, np.ones(len(indices), np.int64), (len(products),) * 3)
