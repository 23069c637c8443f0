"""Bilinear maps of matrices, of structured matrices, and of polynomials."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_choice, require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import require_room
from capacity.tensor.dense import from_coo, from_dense
from capacity.tensor.sparse import SparseTensor


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


# of each structure the free entries (i, j), and the sign with which (j, i) repeats one, or 0
STRUCTURES: dict[str, tuple[Callable[[int, int], bool], int]] = {
    "general": (lambda *_: True, 0),
    "upper": (operator.le, 0),
    "lower": (operator.ge, 0),
    "symmetric": (operator.le, 1),
    "skew": (operator.lt, -1),
    # the sum of a skew-symmetric and a diagonal matrix
    "wedge": (operator.le, -1),
}
LARGEST_STRUCTURED = 12


def structured_product(left: str, right: str, n: int) -> SparseTensor:
    """Return the tensor of the product of two n x n matrices of some structure.

    Parameters
    ----------
    left : {'general', 'upper', 'lower', 'symmetric', 'skew', 'wedge'}
        Structure of the first matrix X; 'wedge' is the sum of a skew-symmetric and a diagonal one.
    right : {'general', 'upper', 'lower', 'symmetric', 'skew', 'wedge', 'transpose'}
        Structure of the second matrix Y. 'transpose' is X Z^T, with Z of the structure of X, of
        which only the entries on and above the diagonal are computed: for Z = X the product is
        symmetric.
    n : int
        Number of rows.

    Returns
    -------
    SparseTensor, shape (p, q, r)
        For p and q free entries, numbered by rows, and r = n^2 entries of the product, or
        n (n + 1) / 2 for 'transpose'. Of a symmetric or skew-symmetric matrix those above the
        diagonal are free.

    Raises
    ------
    InvalidArgumentError
        If there is no such structure, or `n` isn't an integer from 1 to 12, or from 2 for 'skew'.

    References
    ----------
    K. Khoruzhii, P. Gelß, S. Pokutta, Faster algorithms for structured matrix multiplication via
    flip graph search, 2025, arXiv 2511.10786.

    Examples
    --------
    >>> structured_product("skew", "general", 3)
    SparseTensor(3 x 9 x 9, 18 entries from -1 to 1)
    >>> structured_product("general", "general", 2) == matrix_multiplication(2, 2, 2)
    True
    """
    require_choice("`left`", left, STRUCTURES)
    require_choice("`right`", right, [*STRUCTURES, "transpose"])
    # a skew-symmetric matrix has a free entry from two rows on
    least = 2 if "skew" in (left, right) else 1
    n = require_integer("n", n, least=least, most=LARGEST_STRUCTURED)
    X = _free(left, n)
    if right != "transpose":
        product = np.einsum("aij,bjk->abik", X, _free(right, n))
        return from_dense(product.reshape(len(X), -1, n * n))
    upper = np.triu_indices(n)
    return from_dense(np.einsum("aij,bkj->abik", X, X)[:, :, *upper])


def _free(structure: str, n: int) -> NDArray[np.int64]:
    """Return a basis of the matrices of a structure, shape (free entries, n, n)."""
    is_free, repeats = STRUCTURES[structure]
    places = [(i, j) for i in range(n) for j in range(n) if is_free(i, j)]
    basis = np.zeros((len(places), n, n), np.int64)
    for number, (i, j) in enumerate(places):
        basis[number, i, j] = 1
        if repeats and i != j:
            basis[number, j, i] = repeats
    return basis


# Laderman's products: a combination of a's, one of b's, and the entries of C that it adds to
LADERMAN = (
    "+11+12+13-21-22-32-33|+22|+12", "+11-21|-12+22|+21+22", "+22|-11+12+21-22-23-31+33|+21",
    "-11+21+22|+11-12+22|+12+21+22", "+21+22|-11+12|+12+22", "+11|+11|+11+12+13+21+22+31+33",
    "-11+31+32|+11-13+23|+13+31+33", "-11+31|+13-23|+31+33", "+31+32|-11+13|+13+33",
    "+11+12+13-22-23-31-32|+23|+13", "+32|-11+13+21-22-23-31+32|+31",
    "-13+32+33|+22+31-32|+12+31+32", "+13-33|+22-32|+31+32", "+13|+31|+11+12+13+21+23+31+32",
    "+32+33|-31+32|+12+32", "-13+22+23|+23+31-33|+13+21+23", "+13-23|+23-33|+21+23",
    "+22+23|-31+33|+13+23", "+12|+21|+11", "+23|+32|+22", "+21|+13|+23", "+31|+12|+32",
    "+33|+33|+33",
)  # fmt: skip


def laderman_products(*numbers: int) -> SparseTensor:
    """Return the sum of some of the 23 products of Laderman's algorithm for 3 x 3 matrices.

    All of them add up to `matrix_multiplication` (3, 3, 3).

    Parameters
    ----------
    *numbers : int
        Numbers of the products, from 1 to 23, as in Laderman's paper.

    Returns
    -------
    SparseTensor, shape (9, 9, 9)
        Entries of matrices are numbered by rows.

    Raises
    ------
    InvalidArgumentError
        Unless these are different numbers from 1 to 23.

    References
    ----------
    J. D. Laderman, A noncommutative algorithm for multiplying 3 x 3 matrices using 23
    multiplications, Bull. AMS 82, 1976.

    Examples
    --------
    >>> laderman_products(*range(1, 24)) == matrix_multiplication(3, 3, 3)
    True
    """
    if not numbers or not {*numbers} <= {*range(1, 24)} or len({*numbers}) < len(numbers):
        raise InvalidArgumentError(
            f"Laderman's products are numbered from 1 to 23, each once; got {shown(numbers)}."
        )
    total = np.zeros((9, 9, 9), np.int64)
    for number in numbers:
        a, b, c = (_combination(part) for part in LADERMAN[number - 1].split("|"))
        total += np.einsum("i,j,k->ijk", a, b, c)
    return from_dense(total)


def _combination(text: str) -> NDArray[np.int64]:
    """Read a combination of entries, such as +11-23."""
    vector = np.zeros(9, np.int64)
    for sign, row, column in zip(text[::3], text[1::3], text[2::3], strict=True):
        vector[3 * int(row) + int(column) - 4] = 1 if sign == "+" else -1
    return vector
