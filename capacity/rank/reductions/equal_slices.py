"""Merging of equal slices, which leaves the rank as it is, for sparse tensors of any size.

If two slices of a mode are equal, the tensor is the image of the one without the second slice under
a linear map of that mode, and the other way round: both have the same rank. A decomposition of the
smaller tensor yields one of the larger with as many terms, whose vectors repeat a coefficient for
each of the merged slices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from capacity.exact.types import Indices, Term, vector
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import numbered


@dataclass(frozen=True)
class Merged:
    """A tensor with one slice for each set of equal ones.

    Attributes
    ----------
    tensor : SparseTensor
        The smaller tensor.
    rows : ndarray of int64, shape (n_entries,)
        For each entry of the whole its row among those of the smaller tensor.
    members : tuple of list of ndarrays of int64
        For each mode and index of the smaller tensor the indices of the whole.
    """

    tensor: SparseTensor
    rows: Indices
    members: tuple[list[Indices], ...]

    def lifted(self, terms: list[Term]) -> list[Term]:
        """Convert simple tensors of the smaller tensor to those of the whole."""
        return [
            tuple(
                vector(
                    [i for one in indices for i in self.members[mode][one].tolist()],
                    [
                        x
                        for one, x in zip(indices, values, strict=True)
                        for _ in self.members[mode][one]
                    ],
                )
                for mode, (indices, values) in enumerate(term)
            )
            for term in terms
        ]


def merge_equal_slices(tensor: SparseTensor) -> Merged:
    """Merge equal slices of each mode, until no two are equal.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor; it may have indices without an entry.

    Returns
    -------
    Merged

    Examples
    --------
    Both slices of the last mode are equal:

    >>> merged = merge_equal_slices(SparseTensor([[0, 0, 0], [0, 0, 1]], [1, 1], (1, 1, 2)))
    >>> merged.tensor.shape, merged.rows.tolist()
    ((1, 1, 1), [0, 0])
    """
    order = tensor.order
    rows, of = np.arange(tensor.n_entries), [np.full(n, -1) for n in tensor.shape]
    at, values = tensor.indices.copy(), tensor.values
    for mode in range(order):
        used, at[:, mode] = np.unique(at[:, mode], return_inverse=True)
        of[mode][used] = np.arange(len(used))
    shape = [int(n) + 1 for n in at.max(axis=0)]
    mode, unchanged = 0, 0
    while unchanged < order:
        classes = _classes(at, values, shape, mode)
        n = int(classes.max()) + 1
        unchanged = 0 if n < shape[mode] else unchanged + 1
        if unchanged == 0:
            shape[mode] = n
            at[:, mode] = classes[at[:, mode]]
            of[mode][of[mode] >= 0] = classes[of[mode][of[mode] >= 0]]
            _, first, same = np.unique(numbered(at, shape), return_index=True, return_inverse=True)
            at, values, rows = at[first], values[first], same.ravel()[rows]
        mode = (mode + 1) % order
    members: list[list[Indices]] = []
    for mode in range(order):
        by_class = np.argsort(of[mode], kind="stable")
        by_class = by_class[np.searchsorted(of[mode][by_class], 0) :]
        sizes = np.bincount(of[mode][by_class], minlength=shape[mode])
        members.append(np.split(by_class, np.cumsum(sizes)[:-1]))
    return Merged(SparseTensor(at, values, shape), rows, tuple(members))


def _classes(at: Indices, values: Indices, shape: list[int], mode: int) -> Indices:
    """Number the slices of a mode so that equal ones have the same number."""
    others = [m for m in range(len(shape)) if m != mode]
    places = numbered(at[:, others], [shape[m] for m in others])
    # rows are in ascending order, and so are the places within a slice
    order = np.argsort(at[:, mode], kind="stable")
    pattern = np.stack([places, values], axis=1)[order]
    begins = np.searchsorted(at[order, mode], np.arange(shape[mode] + 1))
    seen: dict[bytes, int] = {}
    return np.array(
        [
            seen.setdefault(pattern[begin:end].tobytes(), len(seen))
            for begin, end in itertools.pairwise(begins.tolist())
        ],
        np.int64,
    )
