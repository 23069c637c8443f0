"""Tensors that are Kronecker products of smaller ones, or block diagonal in two modes.

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

The graph that joins an index of one mode to one of another, if there is an entry at both, may have
several components. Then the tensor is the sum of two blocks: one with the indices of some
components in these two modes, and one with those of the others. So its rank is at most the sum of
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from math import prod
from operator import mul
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from capacity.exact.types import Indices


def classes_of_pairs(tensor: Indices) -> list[tuple[list[Indices | None], int]]:
    """Return the components that entries join the indices of two modes to, for each pair of modes.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        A tensor without slices of zeros.

    Returns
    -------
    list of (labels, count)
        For each pair of modes, for each mode the component of each index, or None if the mode isn't
        one of the pair; and the number of components.
    """
    # csgraph takes longer to import than small tensors need
    from scipy.sparse.csgraph import connected_components

    classes: list[tuple[list[Indices | None], int]] = []
    for pair in combinations(range(3), 2):
        (third,) = {0, 1, 2} - {*pair}
        a, b = np.nonzero(tensor.any(axis=third))
        n, m = (tensor.shape[mode] for mode in pair)
        graph = coo_array((np.ones(len(a)), (a, n + b)), (n + m, n + m))
        count, labels = connected_components(graph, directed=False)
        mine: list[Indices | None] = [None] * 3
        mine[pair[0]], mine[pair[1]] = np.split(labels.astype(np.int64), [n])
        classes.append((mine, int(count)))
    return classes


def halves(tensor: Indices) -> Iterator[tuple[tuple[Indices, ...], tuple[Indices, ...]]]:
    """Yield the indices of two blocks that add up to a tensor, once for each pair of modes.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        A tensor without slices of zeros.

    Yields
    ------
    first, second : tuple of ndarrays of int64
        Indices of each mode of both blocks, which have about half of the components each.

    Examples
    --------
    >>> for one, other in halves(np.eye(2, dtype=int).reshape(2, 2, 1)):
    ...     print([i.tolist() for i in one], [i.tolist() for i in other])
    [[0], [0], [0]] [[1], [1], [0]]
    """
    for labels, count in classes_of_pairs(tensor):
        if count < 2:
            continue
        sides = [
            tuple(
                np.arange(n) if of is None else np.flatnonzero((of < count // 2) == first)
                for of, n in zip(labels, tensor.shape, strict=True)
            )
            for first in (True, False)
        ]
        yield sides[0], sides[1]


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
