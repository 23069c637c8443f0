"""Candidates for classes of subjects that have the same objects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# subjects: the search compares all pairs of them at each step
LARGEST_SEARCH = 512


def merged_classes(table: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Merge subjects into ever fewer classes, those whose objects agree most often first.

    Two classes agree in a share of the cells that members of both have under the same predicate. At
    each step all pairs of classes with the greatest share are merged at once, so that the order of
    subjects can't matter. The steps end where no two classes agree at all.

    Parameters
    ----------
    table : ndarray of int64, shape (n_subjects, n_predicates)
        Object of each cell, -1 for none.

    Yields
    ------
    ndarray of int64, shape (n_subjects,)
        Class of each subject, numbered from 0.

    Examples
    --------
    >>> table = np.array([[0, 1], [0, 1], [2, 1], [3, 4]])
    >>> [labels.tolist() for labels in merged_classes(table)]
    [[0, 0, 1, 2], [0, 0, 0, 1]]
    """
    n = len(table)
    agree, both = np.zeros((n, n), np.int64), np.zeros((n, n), np.int64)
    for column in table.T:
        there = column >= 0
        common = there[:, None] & there
        both += common
        agree += common & (column[:, None] == column)
    labels = np.arange(n)
    while len(agree) > 1:
        # quotients of the same integers are the same floats, whatever the order of subjects
        share = agree / np.maximum(both, 1)
        np.fill_diagonal(share, 0)
        most = share.max()
        if most <= 0:
            return
        merged = _joined(share == most)
        labels = merged[labels]
        agree, both = _summed(agree, merged), _summed(both, merged)
        yield labels


def _joined(pairs: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Connected components of a graph with few edges, numbered from 0."""
    component = np.arange(len(pairs))
    for i, j in np.argwhere(pairs):
        low, high = sorted((component[i], component[j]))
        if low != high:
            component[component == high] = low
    return np.unique(component, return_inverse=True)[1]


def _summed(counts: NDArray[np.int64], merged: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(merged, kind="stable")
    starts = np.flatnonzero(np.diff(merged[order], prepend=-1))
    rows = np.add.reduceat(counts[order], starts, axis=0)
    return np.add.reduceat(rows[:, order], starts, axis=1)
