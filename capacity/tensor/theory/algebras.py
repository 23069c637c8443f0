"""Algebras as tensors: of groups, whose tables are here, of polynomials, and Lie algebras."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import require_choice, require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import integers
from capacity.tensor.dense import from_coo, from_dense
from capacity.tensor.sparse import SparseTensor

# most elements of a group: there are 2^20 products
LARGEST_TABLE = 2**10


def cyclic_group(n: int) -> NDArray[np.int64]:
    """Return the table of the group of integers modulo n under addition.

    Parameters
    ----------
    n : int
        Number of elements.

    Returns
    -------
    ndarray of int64, shape (n, n)
        The sum of g and h modulo n, at (g, h).

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 1,024.

    Examples
    --------
    >>> cyclic_group(2).tolist()
    [[0, 1], [1, 0]]
    """
    elements = np.arange(require_integer("n", n, most=LARGEST_TABLE), dtype=np.int64)
    return (elements[:, None] + elements) % len(elements)


def symmetric_group(n: int) -> NDArray[np.int64]:
    """Return the table of the group of permutations of n things, in lexicographic order.

    Parameters
    ----------
    n : int
        Number of things.

    Returns
    -------
    ndarray of int64, shape (n!, n!)
        (g h)(x) = g(h(x)).

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 6.

    Examples
    --------
    >>> symmetric_group(3).shape
    (6, 6)
    """
    n = require_integer("n", n, most=6)
    elements = list(itertools.permutations(range(n)))
    number = {element: place for place, element in enumerate(elements)}
    table = [[number[tuple(g[x] for x in h)] for h in elements] for g in elements]
    return np.array(table, np.int64)


def dihedral_group(n: int) -> NDArray[np.int64]:
    """Return the table of the group of the 2 n symmetries of a regular polygon with n corners.

    Parameters
    ----------
    n : int
        Number of corners.

    Returns
    -------
    ndarray of int64, shape (2 n, 2 n)
        Number of the product of elements g and h, at (g, h); the first n are rotations.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 512.

    Examples
    --------
    >>> dihedral_group(1).tolist()
    [[0, 1], [1, 0]]
    """
    n = require_integer("n", n, most=LARGEST_TABLE // 2)
    flips, turns = np.divmod(np.arange(2 * n), n)
    # a reflection turns what comes after it the other way
    sign = 1 - 2 * flips[:, None]
    return (turns[:, None] + sign * turns) % n + n * (flips[:, None] ^ flips)


def quaternion_group() -> NDArray[np.int64]:
    """Return the table of the group of the quaternions 1, -1, i, -i, j, -j, k, -k.

    Returns
    -------
    ndarray of int64, shape (8, 8)
        Number of the product of elements g and h, at (g, h).

    Examples
    --------
    >>> quaternion_group()[2].tolist()
    [2, 3, 1, 0, 6, 7, 5, 4]
    """
    unit, negative = np.divmod(np.arange(8), 2)
    # i i, j j, k k, j i, k j and i k are negative
    signs = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])
    sign = negative[:, None] ^ negative ^ signs[unit[:, None], unit]
    return 2 * (unit[:, None] ^ unit) + sign


def product_group(*tables: ArrayLike) -> NDArray[np.int64]:
    """Return the table of the direct product of groups.

    Its group algebra is the Kronecker product of those of the groups.

    Parameters
    ----------
    *tables : array_like of int
        Tables of groups.

    Returns
    -------
    ndarray of int64, shape (n, n)
        n is the product of the numbers of elements; the last group's elements vary fastest.

    Raises
    ------
    InvalidArgumentError
        If a table isn't that of a group, or the product has more than 1,024 elements.

    Examples
    --------
    >>> product_group(cyclic_group(2), cyclic_group(2)).tolist()
    [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    """
    table = np.zeros((1, 1), np.int64)
    for one in map(checked_group, tables):
        n = len(one)
        require_integer("the number of elements", len(table) * n, most=LARGEST_TABLE)
        table = (table[:, None, :, None] * n + one[:, None]).reshape(len(table) * n, -1)
    return table


def checked_group(table: ArrayLike) -> NDArray[np.int64]:
    """Return the table of a group as an array.

    Raises
    ------
    InvalidArgumentError
        Unless it is that of a group of at most 1,024 elements: numbers from 0 to n - 1, each once
        in every row and column, with an associative product.
    """
    products = integers(table, "`table`")
    n = len(products) if products.ndim else 0
    every = np.arange(n)
    fine = products.shape == (n, n) and 1 <= n <= LARGEST_TABLE
    fine = fine and all((np.sort(products, axis=mode) == lines).all()
                        for mode, lines in ((0, every[:, None]), (1, every)))  # fmt: skip
    # row g of products[products] holds the products (g h) k, that of products[g][products] g (h k)
    if not fine or any((products[row] != row[products]).any() for row in products):
        raise InvalidArgumentError(
            f"`table` must be that of a group of at most {LARGEST_TABLE:,} elements: the number of "
            "the product of elements g and h at (g, h), each number once in every row and column, "
            f"with (g h) k = g (h k); got {shown(np.asarray(table).tolist())}."
        )
    return products


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
