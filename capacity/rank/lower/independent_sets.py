"""Lower bounds from independent sets, for databases of any size.

Let A be subjects and L objects such that no fact joins them. Remove the object slices of L first:
whatever multiples of them are subtracted from other object slices, nothing changes at the subjects
A, where they vanish. So (Alexeev, Forbes, Tsimerman 2011, applied to whole sets)

    rank(D) >= dim span of the object slices of L + rank(D[A]),

and D[A] is bounded by an unfolding, whose minor is the argument. On functional data the object
slices are independent, so the first number is the size of L. The same holds for predicates in the
place of subjects.

The largest independent set of the bipartite graph of subjects and objects is found exactly, from a
largest matching (Koenig 1931): A is the set of subjects that can be reached from unmatched subjects
along alternating paths, and L the set of objects that can't be reached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity.exact.ranks import Minor, minor_by_group
from capacity.exact.types import Indices, Mask
from capacity.rank.verifier.kinds.unfolding import Unfolding
from capacity.tensor.coordinates import distinct
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import SMALL, places_of, unfolding_entries


def as_unfolding(shape: tuple[int, ...], mode: int, minor: Minor) -> tuple[Unfolding, ...]:
    """Write a nonsingular minor of an unfolding as an argument; none if it is empty.

    Parameters
    ----------
    shape : tuple of int
        Shape of the tensor that the unfolding belongs to.
    mode : int
        Mode of the unfolding, whose rows are slices.
    minor : Minor
        Rows and columns, numbered as `unfolding_entries` does.

    Returns
    -------
    tuple of Unfolding
        Of length 1, or 0 for an empty minor.
    """
    if not len(minor.rows):
        return ()
    columns = places_of(minor.columns, [n for m, n in enumerate(shape) if m != mode])
    return (Unfolding(mode, minor.rows, columns, minor.blocks, minor.eliminated, minor.prime),)


def largest_independent_set(
    left: Indices, right: Indices, n_left: int, n_right: int
) -> tuple[Mask, Mask]:
    """Find a largest independent set of a bipartite graph.

    Parameters
    ----------
    left, right : ndarray of int64, shape (n_edges,)
        Ends of the edges; repeated ones count once.
    n_left, n_right : int
        Numbers of vertices.

    Returns
    -------
    in_left, in_right : ndarray of bool, shapes (n_left,) and (n_right,)
        Masks of the vertices in the set.

    Examples
    --------
    A star: its three leaves are independent.

    >>> a, b = largest_independent_set(np.array([0, 0, 0]), np.array([0, 1, 2]), 1, 3)
    >>> a.tolist(), b.tolist()
    ([False], [True, True, True])
    """
    edges = distinct(left * n_right + right)
    left, right = np.divmod(edges, n_right)
    if len(edges) <= SMALL:
        return _small_independent_set(left, right, n_left, n_right)
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_bipartite_matching

    ones = np.ones(len(edges), np.int8)
    graph = csr_array(coo_array((ones, (left, right)), shape=(n_left, n_right)))
    match = np.asarray(maximum_bipartite_matching(graph, perm_type="column")).astype(np.int64)
    # any edge may be walked from left to right, matched ones alone from right to left; a source
    # beside them leads to the unmatched vertices on the left
    source = n_left + n_right
    matched, free = np.flatnonzero(match >= 0), np.flatnonzero(match < 0)
    tails = np.concatenate([left, n_left + match[matched], np.full(len(free), source)])
    heads = np.concatenate([n_left + right, matched, free])
    walks = csr_array(
        coo_array((np.ones(len(tails), np.int8), (tails, heads)), shape=(source + 1, source + 1))
    )
    reached = np.zeros(source + 1, np.bool_)
    reached[breadth_first_order(walks, source, return_predecessors=False)] = True
    return reached[:n_left], ~reached[n_left:source]


def _small_independent_set(
    left: Indices, right: Indices, n_left: int, n_right: int
) -> tuple[Mask, Mask]:
    """Do the same by augmenting paths; every largest matching reaches the same vertices."""
    near = [list[int]() for _ in range(n_left)]
    edges: list[tuple[int, int]] = list(zip(left.tolist(), right.tolist(), strict=True))
    for a, b in edges:
        near[a].append(b)
    of_left, of_right = [-1] * n_left, [-1] * n_right
    for start in range(n_left):
        came_from = _alternating([start], near, of_right, to_free=True)
        free = next(reversed(came_from), -1)
        if free < 0 or of_right[free] >= 0:
            continue
        # the edges of the path change places: those that weren't in the matching are
        while free >= 0:
            a = came_from[free]
            of_right[free], of_left[a], free = a, free, of_left[a]
    unmatched = [a for a in range(n_left) if of_left[a] < 0]
    reached = list(_alternating(unmatched, near, of_right, to_free=False))
    in_left, in_right = np.zeros(n_left, np.bool_), np.ones(n_right, np.bool_)
    in_left[[*unmatched, *(of_right[b] for b in reached)]] = True
    in_right[reached] = False
    return in_left, in_right


def _alternating(
    starts: list[int], near: list[list[int]], of_right: list[int], *, to_free: bool
) -> dict[int, int]:
    """Walk alternating paths from some vertices on the left, to the first free one or to all.

    Returns the vertices on the right that are reached, each with the one on the left before it.
    """
    came_from: dict[int, int] = {}
    queue = list(starts)
    for a in queue:
        for b in near[a]:
            if b in came_from:
                continue
            came_from[b] = a
            if of_right[b] >= 0:
                queue.append(of_right[b])
            elif to_free:
                return came_from
    return came_from


@dataclass(frozen=True)
class IndependentSets:
    """Bounds by independent sets, for each component the better of the two kinds.

    Attributes
    ----------
    values : ndarray of int64, shape (n_components,)
        Lower bound of each component's rank.
    modes : ndarray of int64, shape (n_components,)
        0 if A holds subjects, 1 if it holds predicates.
    minors : list of (mode, kind, Minor)
        Minors of unfoldings along `mode`, in pairs: of the object slices of L, and of D[A]. They
        are for the components with `kind` in `modes`.
    """

    values: Indices
    modes: Indices
    minors: list[tuple[int, int, Minor]]

    def arguments(self, shape: tuple[int, ...], chosen: Mask) -> tuple[Unfolding, ...]:
        """Return the arguments of some components: the object slices of L, and unfoldings of D[A].

        Parameters
        ----------
        shape : tuple of int
            Shape of the tensor that the bounds are about.
        chosen : ndarray of bool, shape (n_components,)
            Mask of the components.

        Returns
        -------
        tuple of Unfolding
        """
        found: list[Unfolding] = []
        for mode, kind, minor in self.minors:
            found += as_unfolding(shape, mode, minor.of_groups(chosen & (self.modes == kind)))
        return tuple(found)


def independent_sets(tensor: SparseTensor, component: Indices) -> IndependentSets:
    """Bound the rank of each component by largest independent sets.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of order 3.
    component : ndarray of int64, shape (n_entries,)
        The component of each entry, numbered from 0.

    Returns
    -------
    IndependentSets
    """
    at = tensor.indices
    n_components = int(component.max()) + 1
    values = np.zeros((2, n_components), np.int64)
    minors: list[tuple[int, int, Minor]] = []
    for mode in (0, 1):
        # there may be far more indices than entries
        left, right = (np.unique(at[:, m], return_inverse=True)[1].ravel() for m in (mode, 2))
        a, of = largest_independent_set(left, right, int(left.max()) + 1, int(right.max()) + 1)
        for some, of_mode in ((of[right], 2), (a[left], mode)):
            rows, columns = (x[some] for x in unfolding_entries(tensor, of_mode))
            ranks, minor = minor_by_group(rows, columns, component[some], tensor.values[some])
            values[mode, : len(ranks)] += ranks
            minors.append((of_mode, mode, minor))
    return IndependentSets(values.max(axis=0), values.argmax(axis=0), minors)
