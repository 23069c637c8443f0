"""Tables of finite groups: the number of the product of elements g and h, at (g, h)."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import integers

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
