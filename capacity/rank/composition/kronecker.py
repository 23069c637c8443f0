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

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from operator import mul
from typing import Any

import numpy as np

from capacity.exact.types import Indices
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
    [3, 4] [1, 0, 0, 2]
    """
    entries = np.argwhere(tensor), tensor[np.nonzero(tensor)]
    seen: set[tuple[bytes, ...]] = set()
    for order, sizes in (*_as_it_is(tensor.shape), *_by_pairs(tensor)):
        found = _factors(*entries, order, sizes)
        if found is None:
            continue
        key = tuple(of.tobytes() + str(of.shape).encode() for of in found)
        if key not in seen:
            seen.add(key)
            yield *found, order


def product_of_terms(
    first: Sequence[Any],
    second: Sequence[Any],
    sizes: tuple[int, ...],
    order: tuple[Indices, ...],
    times: Callable[[Any, Any], Any] = mul,
) -> list[Any]:
    """Return the terms of a Kronecker product, given those of both factors.

    Parameters
    ----------
    first, second : list of Term, or of AlgebraicTerm
        Decompositions of A and B.
    sizes : tuple of int
        The shape of B.
    order : tuple of ndarrays of int64
        Indices of each mode in the order of the product.
    times : callable
        Multiplies coefficients of A and B.
    """
    return [
        tuple(
            (
                tuple(int(of[x * b + y]) for x in xs for y in ys),
                tuple(times(s, t) for s in ss for t in ts),
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


def _factors(
    places: Indices, values: Indices, order: tuple[Indices, ...], sizes: tuple[int, ...]
) -> tuple[Indices, Indices] | None:
    """Factors of given numbers of indices of each mode, both of integers."""
    others = tuple(len(of) // a for of, a in zip(order, sizes, strict=True))
    if 1 in (prod(sizes), prod(others)):
        return None
    at = [np.argsort(of)[places[:, mode]] for mode, of in enumerate(order)]
    x, y = zip(*(np.divmod(of, b) for of, b in zip(at, others, strict=True)), strict=True)
    rows, row = np.unique(np.ravel_multi_index(x, sizes), return_inverse=True)
    columns, column = np.unique(np.ravel_multi_index(y, others), return_inverse=True)
    # both factors of each entry aren't 0, and neither is the product of any two such
    if len(rows) * len(columns) != len(places):
        return None
    matrix = np.zeros((len(rows), len(columns)), np.int64)
    matrix[row, column] = values
    if not (matrix * matrix[0, 0] == np.outer(matrix[:, 0], matrix[0])).all():
        return None
    first, second = np.zeros(sizes, np.int64), np.zeros(others, np.int64)
    common = np.gcd.reduce(matrix[:, 0])
    first.flat[rows] = matrix[:, 0] // common
    # a row of integers is a multiple of integers without a common factor by an integer
    second.flat[columns] = matrix[0] // (matrix[0, 0] // common)
    return first, second
