"""Associative algebras of finite dimension by their structure constants."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import integers
from capacity.tensor.dense import from_coo
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.theory.groups import checked_group

# largest degree of a modulus
LARGEST_DEGREE = 2**10


def truncated_polynomials(n: int) -> SparseTensor:
    """Return the tensor of the algebra R[x] / (x^n), in which degrees from n on vanish.

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
    """Return the tensor of the algebra R[x] / (f), for a polynomial f with integer coefficients.

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
    """Return the tensor of the product of complex numbers, by their real and imaginary parts.

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
    """Return the tensor of the product of two quaternions, in the basis 1, i, j, k.

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
    """Return the tensor of the algebra of upper triangular n x n matrices.

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
    """Return the tensor of the algebra of a finite group, whose elements are the basis.

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
