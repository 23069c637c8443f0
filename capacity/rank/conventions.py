"""The two conventions for the tensor of a product of matrices.

Here the third mode numbers the entries (i, k) of the product by rows. The tensor whose third mode
numbers them by columns is that of the transposed product, whose decompositions AlphaTensor's files
hold.

References
----------
A. Fawzi et al., Discovering faster matrix multiplication algorithms with reinforcement learning,
Nature 610, 2022.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from numpy.typing import NDArray

from capacity.tensor.sparse import SparseTensor
from capacity.tensor.theory.products import matrix_multiplication


def sides_of_product(tensor: SparseTensor) -> tuple[int, int] | None:
    """Return the sides of the product if a tensor is that of matrices; None if it is another.

    Examples
    --------
    >>> sides_of_product(matrix_multiplication(2, 3, 4))
    (2, 4)
    """
    if len(tensor.shape) != 3 or not all(tensor.shape):
        return None
    a, b, c = tensor.shape
    # of n m, m p and n p
    n, p = isqrt(a * c // b), isqrt(b * c // a)
    m = a // max(n, 1)
    if (n * m, m * p, n * p) != (a, b, c) or tensor.n_entries != n * m * p:
        return None
    return (n, p) if tensor == matrix_multiplication(n, m, p) else None


def of_transposed(matrix: NDArray[Any], sides: tuple[int, int]) -> NDArray[Any]:
    """Number the rows of a third factor by those of the product, which it numbers by columns.

    Parameters
    ----------
    matrix : ndarray, shape (n p, rank)
        The factor.
    sides : (int, int)
        n and p.
    """
    n, p = sides
    return matrix.reshape(p, n, -1).transpose(1, 0, 2).reshape(n * p, -1)


def transposed_product(sides: tuple[int, int], rank: int) -> str:
    """State that factors are those of the transposed product, and what makes them those of this."""
    n, p = sides
    return (
        "but the factors are those of the transposed product, as AlphaTensor's files have it: "
        f"C.reshape({p}, {n}, {rank}).transpose(1, 0, 2).reshape({n * p}, {rank}) in place of the "
        "third, C, proves it"
    )
