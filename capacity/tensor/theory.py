"""Tensors of theory: products of matrices and of polynomials, algebras, groups, and states.

The tensor of a bilinear map (x, y) -> z has the entry t at (i, j, k) if z_k holds t x_i y_j; for an
algebra it holds the structure constants. Its rank is the number of multiplications, other than by
constants, that computing the map takes (V. Strassen, Vermeidung von Divisionen, 1973; P. Bürgisser,
M. Clausen, M. A. Shokrollahi, Algebraic Complexity Theory, 1997, chapter 14). `KNOWN_RANKS` has the
ranks that are known. A finite group is a table of products: the number of the product of elements g
and h, at (g, h). W and GHZ states, determinants and permanents have any order.

None is drawn at random; `capacity.testing` draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import LARGEST_ORDER, integers, require_room
from capacity.tensor.dense import from_coo
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


def matrix_multiplication(n: int, m: int, p: int) -> SparseTensor:
    """Return the tensor of the product of an n x m and an m x p matrix.

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
    """Return the tensor of the product of polynomials with m and n coefficients.

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


# 9! entries take 29 MB
LARGEST_DETERMINANT = 9


def w_state(n: int) -> SparseTensor:
    """Return the W state of n qubits: the sum of the n simple tensors with a single 1 among zeros.

    Its rank is n, and its border rank 2.

    Parameters
    ----------
    n : int
        Order.

    Returns
    -------
    SparseTensor, shape (2, ..., 2)
        Ones at the n places with one index 1.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 32.

    References
    ----------
    W. Dür, G. Vidal, J. I. Cirac, Three qubits can be entangled in two inequivalent ways, 2000.

    Examples
    --------
    >>> w_state(3).indices.tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    n = require_integer("n", n, most=LARGEST_ORDER)
    return from_coo(np.eye(n, dtype=np.int64), np.ones(n, np.int64), (2,) * n)


def ghz_state(n: int, levels: int = 2) -> SparseTensor:
    """Return the GHZ state: the diagonal tensor of ones of order n, whose rank is `levels`.

    Parameters
    ----------
    n : int
        Order.
    levels : int
        Number of indices of each mode, and of ones.

    Returns
    -------
    SparseTensor, shape (levels, ..., levels)
        Ones on the diagonal.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 32, or `levels` isn't one from 1 to 2^20.

    Notes
    -----
    A tensor of order one has rank one, so `levels` is its rank from order two on.

    Examples
    --------
    >>> ghz_state(3).indices.tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    n = require_integer("n", n, most=LARGEST_ORDER)
    levels = require_integer("levels", levels)
    diagonal = np.repeat(np.arange(levels)[:, None], n, axis=1)
    return from_coo(diagonal, np.ones(levels, np.int64), (levels,) * n)


def determinant(n: int) -> SparseTensor:
    """Return the determinant as a multilinear map of n rows, the Levi-Civita tensor.

    Parameters
    ----------
    n : int
        Number of rows, and order.

    Returns
    -------
    SparseTensor, shape (n, ..., n)
        The sign of the permutation at each of the n! places that is one.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 9.

    Examples
    --------
    >>> determinant(2).to_numpy().tolist()
    [[0, 1], [-1, 0]]
    """
    places = _permutations(n)
    signs = np.ones(len(places), np.int64)
    for i, j in itertools.combinations(range(n), 2):
        # the sign is that of the number of pairs in the wrong order
        signs[places[:, i] > places[:, j]] *= -1
    return from_coo(places, signs, (n,) * n)


def permanent(n: int) -> SparseTensor:
    """Return the permanent of an n x n matrix as a multilinear map of its rows.

    Parameters
    ----------
    n : int
        Number of rows, and order.

    Returns
    -------
    SparseTensor, shape (n, ..., n)
        Ones at the n! permutations.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 9.

    Examples
    --------
    >>> permanent(2).to_numpy().tolist()
    [[0, 1], [1, 0]]
    """
    places = _permutations(n)
    return from_coo(places, np.ones(len(places), np.int64), (n,) * n)


def _permutations(n: int) -> np.ndarray:
    n = require_integer("n", n, most=LARGEST_DETERMINANT)
    return np.array(list(itertools.permutations(range(n))), np.int64)
