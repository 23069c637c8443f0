"""Tensors that are Kronecker products of smaller ones, in some order of the indices of each mode.

In an order of the indices of each mode, T[x b + y, ...] = A[x, ...] B[y, ...] holds if and only if
the matrix of T, with a row for the indices x of all modes and a column for their y, has rank 1 (C.
Van Loan, N. Pitsianis, Approximation with Kronecker products, 1993). Two kinds of orders are tried.

* The order as it is.
* Where entries share the indices of two modes only within components: the graph that joins an index
  of one mode to one of another, if there is an entry at both, has components p, and those of the
  other pairs of modes are q and r. A product of matrices has i, j and k there: its indices are
  pairs (p, q), (p, r) and (q, r). If all indices of a mode are different pairs, and all pairs
  occur, they are ordered by them, however they were permuted. Then p = p_1 P + p_2, and so on,
  splits the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from capacity.exact.types import Indices, Term
from capacity.rank.composition.blocks import classes_of_pairs

# indices of each mode, of which x comes first and y last, and the numbers of x
_Order = tuple[tuple[Indices, ...], tuple[int, ...]]


def kronecker_factors(tensor: Indices) -> Iterator[tuple[Indices, Indices, tuple[Indices, ...]]]:
    """Yield pairs of tensors whose Kronecker product a tensor is, in some order of its indices.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor.

    Yields
    ------
    A, B : ndarray of int64
        Both factors, neither with a single entry alone.
    order : tuple of ndarrays of int64
        Indices of each mode, so that ``tensor[np.ix_(*order)]`` is the product.

    Examples
    --------
    >>> A, B = np.array([[[1, 0], [0, 2]]]), np.array([[[3]], [[4]]])
    >>> for factors in kronecker_factors(np.kron(A, B)):
    ...     print(*(f.ravel().tolist() for f in factors[:2]))
    [1, 0, 0, 2] [3, 4]
    """
    seen: set[tuple[bytes, ...]] = set()
    for order, sizes in (*_as_it_is(tensor.shape), *_by_pairs(tensor)):
        found = _factors(tensor[np.ix_(*order)], sizes)
        if found is None:
            continue
        key = tuple(of.tobytes() + str(of.shape).encode() for of in found)
        if key not in seen:
            seen.add(key)
            yield *found, order


def product_of_terms(
    first: list[Term], second: list[Term], sizes: tuple[int, ...], order: tuple[Indices, ...]
) -> list[Term]:
    """Return the terms of a Kronecker product, given those of both factors.

    Parameters
    ----------
    first, second : list of Term
        Decompositions of A and B.
    sizes : tuple of int
        The shape of B.
    order : tuple of ndarrays of int64
        Indices of each mode in the order of the product.
    """
    return [
        tuple(
            (
                tuple(int(of[x * b + y]) for x in xs for y in ys),
                tuple(s * t for s in ss for t in ts),
            )
            for (xs, ss), (ys, ts), b, of in zip(one, other, sizes, order, strict=True)
        )
        for one in first
        for other in second
    ]


def _as_it_is(shape: tuple[int, ...]) -> Iterator[_Order]:
    order = tuple(map(np.arange, shape))
    for sizes in product(*map(_divisors, shape)):
        yield order, sizes


def _by_pairs(tensor: Indices) -> Iterator[_Order]:
    """Orders by pairs of components, and all ways to split these."""
    labels, counts = zip(*classes_of_pairs(tensor), strict=True)
    orders: list[Indices] = []
    for mode in range(3):
        # the pairs of modes with this one, and the number of each index in both
        mine = [pair for pair in range(3) if labels[pair][mode] is not None]
        a, b = (labels[pair][mode] for pair in mine)
        number = a * counts[mine[1]] + b
        if len(number) != counts[mine[0]] * counts[mine[1]] or len({*number.tolist()}) < len(
            number
        ):
            return
        orders.append(np.argsort(number).reshape(counts[mine[0]], counts[mine[1]]))
    for split in product(*map(_divisors, counts)):
        left = [split[pair] for pair in range(3)]
        right = [n // s for n, s in zip(counts, left, strict=True)]
        moved: list[Indices] = []
        for mode, of in enumerate(orders):
            p, q = (pair for pair in range(3) if labels[pair][mode] is not None)
            pairs = of.reshape(left[p], right[p], left[q], right[q])
            moved.append(pairs.transpose(0, 2, 1, 3).ravel())
        sizes = tuple(
            prod(left[pair] for pair in range(3) if labels[pair][mode] is not None)
            for mode in range(3)
        )
        yield tuple(moved), sizes


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _factors(tensor: Indices, sizes: tuple[int, ...]) -> tuple[Indices, Indices] | None:
    """Factors of given numbers of indices of each mode, both of integers."""
    others = tuple(n // a for n, a in zip(tensor.shape, sizes, strict=True))
    if 1 in (prod(sizes), prod(others)):
        return None
    split = tensor.reshape([n for pair in zip(sizes, others, strict=True) for n in pair])
    matrix = split.transpose(0, 2, 4, 1, 3, 5).reshape(prod(sizes), prod(others))
    row, column = np.argwhere(matrix)[0]
    entry = matrix[row, column]
    if not (matrix * entry == np.outer(matrix[:, column], matrix[row])).all():
        return None
    first = matrix[:, column] // np.gcd.reduce(matrix[:, column])
    # a row of integers is a multiple of integers without a common factor by an integer
    return first.reshape(sizes), (matrix[row] // first[row]).reshape(others)
