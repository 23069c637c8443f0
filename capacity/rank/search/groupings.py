"""Lower bounds of tensors of order 4 and more from tensors of order 3.

Taking modes together keeps simple tensors simple, so the rank of a tensor is at least that of any
tensor of order 3 that arises so (proof in `capacity.rank.verifier.checker`), and every method for
order 3 bounds it from below.
"""

from __future__ import annotations

from collections.abc import Iterator

from capacity.rank.method import Method
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import grouped

# most groupings that are tried; order 5 has 25, and order 6 has 90
MOST = 30
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
    order = tensor.order
    if effective:
        found = [(*two, (order - 1,)) for two in _partitions(tuple(range(order - 1)), 2)]
    else:
        found = list(_partitions(tuple(range(order)), 3))
    # numbering the groups of many partitions takes longer than looking at their sides
    found.sort(key=lambda groups: -_promise(groups, tensor.shape))
    return [(groups, grouped(tensor, groups)) for groups in found[:MOST]]


def lower_methods(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """Return the methods that find lower bounds."""
    return tuple(method for method in methods if "lower" in method.sides)


def _promise(groups: Groups, shape: tuple[int, ...]) -> int:
    """Largest rank that an unfolding of a grouping can have."""
    sides = [1] * len(groups)
    total = 1
    for g, group in enumerate(groups):
        for mode in group:
            sides[g] *= shape[mode]
            total *= shape[mode]
    return max(min(side, total // side) for side in sides)


def _partitions(modes: tuple[int, ...], n: int) -> Iterator[Groups]:
    """Yield the partitions of some modes into n sets, the largest sets first."""
    if n == 1:
        yield (modes,)
        return
    if len(modes) < n:
        return
    first, *others = modes
    for one in _partitions(tuple(others), n - 1):
        yield tuple(sorted(((first,), *one), key=lambda group: (-len(group), group)))
    for one in _partitions(tuple(others), n):
        for g, group in enumerate(one):
            joined = (*one[:g], (first, *group), *one[g + 1 :])
            yield tuple(sorted(joined, key=lambda group: (-len(group), group)))
