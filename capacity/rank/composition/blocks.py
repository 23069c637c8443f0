"""Tensors that are block diagonal in two modes, whose blocks share the third one.

The graph that joins an index of one mode to one of another, if there is an entry at both, may have
several components. Then the tensor is the sum of two blocks: one with the indices of some
components in these two modes, and one with those of the others. So its rank is at most the sum of
theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

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

    found: list[tuple[list[Indices | None], int]] = []
    for pair in combinations(range(3), 2):
        (third,) = {0, 1, 2} - {*pair}
        a, b = np.nonzero(tensor.any(axis=third))
        n, m = (tensor.shape[mode] for mode in pair)
        graph = coo_array((np.ones(len(a)), (a, n + b)), (n + m, n + m))
        count, labels = connected_components(graph, directed=False)
        mine: list[Indices | None] = [None] * 3
        mine[pair[0]], mine[pair[1]] = np.split(labels.astype(np.int64), [n])
        found.append((mine, int(count)))
    return found


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
