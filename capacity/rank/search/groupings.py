"""Lower bounds of tensors of order 4 and more from tensors of order 3.

Taking modes together keeps simple tensors simple, so the rank of a tensor is at least that of any
tensor of order 3 that arises so (proof in `capacity.rank.verifier.checker`), and every method for
order 3 bounds it from below.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator

from capacity.rank.method import Method
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import grouped

# most groupings that are tried; order 5 has 25, and order 6 has 90
MOST = 30
# most parts of the modes whose groupings are listed, 966 of them at most; more modes are joined to
# parts first, so that the work doesn't grow with the order
PARTS = 8
Groups = tuple[tuple[int, ...], ...]


def groupings(tensor: SparseTensor, *, effective: bool) -> list[tuple[Groups, SparseTensor]]:
    """Take the modes of a tensor together to three, in the most promising ways.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of order 4 or more.
    effective : bool
        True for the effective rank: the last mode is then a group of its own.

    Returns
    -------
    list of (groups, SparseTensor)
        Groups of modes, and the tensor of order 3; those whose unfoldings have the largest shorter
        sides come first.

    Examples
    --------
    >>> T = SparseTensor([[0, 0, 0, 0], [1, 1, 1, 1]], [1, 1], (2, 2, 2, 2))
    >>> [groups for groups, _ in groupings(T, effective=True)]
    [((1, 2), (0,), (3,)), ((0, 1), (2,), (3,)), ((0, 2), (1,), (3,))]
    """
    last = tensor.order - effective
    own = ((last,),) if effective else ()
    n = 3 - len(own)
    parts = _parts(tensor.shape[:last], n)
    found = [
        (*_ordered(tuple(sorted(m for p in one for m in parts[p])) for one in of_parts), *own)
        for of_parts in _partitions(tuple(range(len(parts))), n)
    ]
    # numbering the groups of many partitions takes longer than looking at their sides
    found.sort(key=lambda groups: -_promise(groups, tensor.shape))
    return [(groups, grouped(tensor, groups)) for groups in found[:MOST]]


def lower_methods(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """Return the methods that find lower bounds."""
    return tuple(method for method in methods if "lower" in method.sides)


def _parts(sides: tuple[int, ...], least: int) -> Groups:
    """Join modes to at most `PARTS` parts, in the order of their first modes.

    A mode of size one joins another, as long as `least` parts are left: the tensor stays the same.
    Then the two smallest parts are joined, which keeps the sides of groups balanced.
    """
    parts: list[tuple[int, tuple[int, ...]]] = [(side, (m,)) for m, side in enumerate(sides)]
    heapq.heapify(parts)
    while len(parts) > PARTS or (len(parts) > least and parts[0][0] == 1):
        side, modes = heapq.heappop(parts)
        other, others = parts[0]
        heapq.heapreplace(parts, (side * other, tuple(sorted(modes + others))))
    return tuple(sorted(modes for _, modes in parts))


def _promise(groups: Groups, shape: tuple[int, ...]) -> int:
    """Largest rank that an unfolding of a grouping can have."""
    total = math.prod(shape)
    sides = [math.prod(shape[mode] for mode in group) for group in groups]
    return max(min(side, total // side) for side in sides)


def _ordered(groups: Iterable[tuple[int, ...]]) -> Groups:
    """Return groups in the order in which they are tried, the largest first."""
    return tuple(sorted(groups, key=lambda group: (-len(group), group)))


def _partitions(parts: tuple[int, ...], n: int) -> Iterator[Groups]:
    """Yield the partitions of some parts into n sets."""
    if n == 1:
        yield (parts,)
        return
    if len(parts) < n:
        return
    first, *others = parts
    for one in _partitions(tuple(others), n - 1):
        yield _ordered(((first,), *one))
    for one in _partitions(tuple(others), n):
        for g, group in enumerate(one):
            yield _ordered((*one[:g], (first, *group), *one[g + 1 :]))
