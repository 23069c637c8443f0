"""Search for an order and signs of the indices of each mode by which two tensors are the same.

The entries of a tensor are the edges of a hypergraph, whose nodes are the indices of the modes.
Nodes are coloured, and those of one colour that lie in different numbers of edges of a kind get
different colours, until nothing changes (colour refinement). Where nodes of one colour are left,
one of them is given a colour of its own, in one tensor, and each of its counterparts in turn in the
other (individualisation): a search with backtracking, which a number of refinements limits. A
relabelling that is found is checked entry by entry.

References
----------
B. D. McKay, A. Piperno, Practical graph isomorphism II, J. Symbolic Computation 60, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices
from capacity.tensor.sparse import SparseTensor

# refinements until a search gives up
REFINEMENTS = 200
# multipliers of a hash of 64 bits (D. Knuth; G. Steele, D. Lea, C. Flood, SplitMix)
MIX = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))


@dataclass(frozen=True, eq=False)
class Relabelling:
    """A tensor's indices in the order of another one's, and their signs.

    Attributes
    ----------
    indices : tuple of ndarrays of int64
        Of each mode, the index of the first tensor for each of the second.
    signs : tuple of ndarrays of int64
        1 or -1 for each index of the second tensor: the first one, in this order and times the
        signs of all modes, is the second.
    """

    indices: tuple[Indices, ...]
    signs: tuple[Indices, ...]


def relabelling(tensor: SparseTensor, other: SparseTensor) -> Relabelling | None:
    """Find an order and signs of a tensor's indices by which it is another one.

    Parameters
    ----------
    tensor, other : SparseTensor
        The tensors.

    Returns
    -------
    Relabelling or None
        None if there is none, or `REFINEMENTS` weren't enough.

    Examples
    --------
    >>> from capacity.tensor import from_dense, w_state
    >>> turned = from_dense(w_state(3).to_numpy()[::-1])
    >>> [of.tolist() for of in relabelling(turned, w_state(3)).indices]
    [[1, 0], [0, 1], [0, 1]]
    """
    if tensor.shape != other.shape or tensor.n_entries != other.n_entries:
        return None
    return _Search(tensor, other).result()


class _Search:
    """A search for one relabelling; colours are those of the nodes of both tensors together."""

    def __init__(self, tensor: SparseTensor, other: SparseTensor) -> None:
        self._tensor, self._other = tensor, other
        # the nodes of `tensor` come first, mode by mode, and then those of `other`
        offsets = np.concatenate([[0], np.cumsum(tensor.shape)])
        self._n = int(offsets[-1])
        ours = tensor.indices + offsets[:-1]
        theirs = other.indices + offsets[:-1] + self._n
        self._edges = np.concatenate([ours, theirs])
        values = np.abs(np.concatenate([tensor.values, other.values]))
        self._kinds = np.unique(values, return_inverse=True)[1].ravel()
        modes = np.repeat(np.arange(tensor.order), tensor.shape)
        self._modes = np.concatenate([modes, modes])
        self._left = REFINEMENTS

    def result(self) -> Relabelling | None:
        return self._from(self._modes.copy())

    def _from(self, colours: Indices) -> Relabelling | None:
        """Search from a colouring, one node of each tensor at a time."""
        refined = self._refined(colours)
        if refined is None:
            return None
        mine, theirs = refined[: self._n], refined[self._n :]
        counts = np.bincount(mine)
        if counts.max() == 1:
            return self._checked(mine, theirs)
        chosen = self._next(mine, counts)
        node = self._n + int(np.flatnonzero(theirs == chosen)[0])
        for counterpart in np.flatnonzero(mine == chosen):
            branch = refined.copy()
            branch[counterpart] = branch[node] = len(counts)
            found = self._from(branch)
            if found is not None or self._left <= 0:
                return found
        return None

    def _next(self, colours: Indices, counts: Indices) -> int:
        """A colour of several nodes: the rarest of a mode that has the fewest colours.

        In a Latin square, as the product of a group is, two nodes of one mode don't determine any
        other, and two of different modes do.
        """
        modes = self._modes[: self._n]
        of_modes = (np.unique(colours[modes == mode]) for mode in range(self._tensor.order))
        several = [of for of in of_modes if (counts[of] > 1).any()]
        mine = min(several, key=len)
        return int(min(mine[counts[mine] > 1], key=lambda colour: counts[colour]))

    def _refined(self, colours: Indices) -> Indices | None:
        """Refine until nothing changes; None if the tensors differ, or the limit is reached."""
        n_colours = len(np.unique(colours))
        while True:
            self._left -= 1
            rows = np.column_stack([self._kinds, colours[self._edges]])
            kinds = _mixed(np.unique(rows, axis=0, return_inverse=True)[1].ravel())
            # a sum of hashes stands for the multiset of kinds of edges at a node
            sums = np.zeros(len(colours), np.uint64)
            for nodes in self._edges.T:
                np.add.at(sums, nodes, kinds)
            pairs = np.column_stack([colours.astype(np.uint64), sums])
            colours = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
            n = int(colours.max()) + 1
            mine, theirs = colours[: self._n], colours[self._n :]
            if not np.array_equal(np.bincount(mine, minlength=n), np.bincount(theirs, minlength=n)):
                return None
            if n == n_colours:
                return colours
            if self._left <= 0:
                return None
            n_colours = n

    def _checked(self, mine: Indices, theirs: Indices) -> Relabelling | None:
        """The relabelling of a colouring without two nodes of one colour, if it is one."""
        node = np.argsort(mine)[theirs]
        modes = self._modes[: self._n]
        offsets = np.concatenate([[0], np.cumsum(self._tensor.shape)])
        indices = tuple(node[modes == m] - offsets[m] for m in range(self._tensor.order))
        turned = self._tensor.to_numpy()[np.ix_(*indices)]
        other = self._other.to_numpy()
        if not np.array_equal(np.abs(turned), np.abs(other)):
            return None
        places = np.argwhere(other)
        flipped = turned[tuple(places.T)] != other[tuple(places.T)]
        signs = _signs(places + offsets[:-1], flipped, self._n)
        if signs is None:
            return None
        return Relabelling(indices, tuple(signs[modes == m] for m in range(self._tensor.order)))


def _mixed(numbers: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Hashes of numbers; products wrap."""
    x = (numbers.astype(np.uint64) + np.uint64(1)) * MIX[0]
    for shift, factor in ((30, MIX[1]), (27, MIX[2])):
        x = (x ^ (x >> np.uint64(shift))) * factor
    return x ^ (x >> np.uint64(31))


def _signs(edges: Indices, flipped: Sequence[bool] | NDArray[np.bool_], n: int) -> Indices | None:
    """Solve for a sign of each node whose product along an edge is -1 where it is flipped.

    Signs are numbers modulo 2, and an equation is an integer whose bits are its nodes and, highest,
    its right-hand side.
    """
    pivots: dict[int, int] = {}
    for nodes, flip in zip(edges.tolist(), flipped, strict=True):
        row = sum(1 << node for node in nodes) | (int(flip) << n)
        for pivot, equation in pivots.items():
            if row >> pivot & 1:
                row ^= equation
        if row == 1 << n:
            return None
        if row:
            pivots[(row & -row).bit_length() - 1] = row
    signs = np.ones(n, np.int64)
    # later pivots aren't in earlier equations' eliminated places, so they come first
    for pivot, row in reversed(pivots.items()):
        others = [i for i in range(n) if row >> i & 1 and i != pivot]
        negative = (row >> n & 1) + sum(int(signs[i] < 0) for i in others)
        signs[pivot] = -1 if negative % 2 else 1
    return signs
