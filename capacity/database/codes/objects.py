"""Lengths in bits of codes for the objects of one predicate, which the decoder reads one by one.

A table holds an object for each subject (row) and predicate (column), -1 where there is none; the
decoder knows which cells have one, and the number of objects in all. What follows is the length
for each *family* of codes. None of the lengths depends on the order of subjects or objects.

*Its own objects*: a code may first name the objects that the predicate uses: their number m, and
which of the n_objects they are, log2 of a binomial coefficient.

An *adaptive* code of a sequence over an alphabet of a objects expects the next to be v with
probability (n_v + s / a) / (n + s), where v occurred n_v times among the n before it. With
s = a / 2 it is that of Krichevsky and Trofimov; with s = 1 it is *quick to learn*: it pays log2(a)
and some bits for an object that is new to the sequence (the escape), and little for one that comes
back.

References
----------
R. E. Krichevsky, V. K. Trofimov, The performance of universal encoding, IEEE Trans. Inf. Theory
27 (1981) 199-207.
P. D. Grünwald, The minimum description length principle, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from capacity.display import briefly_shown

ALONE = ("uniform", "uniform on own objects", "frequencies", "no repetition")
GIVEN = ("conditional", "conditional on own objects", "conditional by Krichevsky-Trofimov",
         "copy with exceptions", "copy with exceptions of own objects")  # fmt: skip
OF_CLASS = ("class", "class on own objects", "class by Krichevsky-Trofimov")


@briefly_shown
@dataclass(frozen=True)
class Cells:
    """A table of objects with what its codes have in common.

    Attributes
    ----------
    table : ndarray of int64, shape (n_subjects, n_predicates)
        Object of each cell, -1 for none.
    n_objects : int
        Number of objects in all.
    subjects : tuple of ndarray of int64
        Rows that have an object, for each predicate.
    local : tuple of ndarray of int64
        The objects of these rows, numbered within the predicate.
    own : ndarray of int64, shape (n_predicates,)
        Number of objects of each predicate.
    """

    table: NDArray[np.int64]
    n_objects: int
    subjects: tuple[NDArray[np.int64], ...]
    local: tuple[NDArray[np.int64], ...]
    own: NDArray[np.int64]

    @classmethod
    def of(cls, table: NDArray[np.int64], n_objects: int) -> Cells:
        """Number the objects of each predicate, all of which have a cell at least."""
        subjects = tuple(np.flatnonzero(column >= 0) for column in table.T)
        found = [
            np.unique(column[rows], return_inverse=True)
            for column, rows in zip(table.T, subjects, strict=True)
        ]
        own = np.array([len(objects) for objects, _ in found], np.int64)
        return cls(table, n_objects, subjects, tuple(local for _, local in found), own)

    def naming_bits(self, q: int) -> float:
        """Bits that name the objects of a predicate: how many, and which."""
        return float(_naming(len(self.subjects[q]), self.own[q], self.n_objects))


def log2_factorial(n: ArrayLike) -> NDArray[np.float64]:
    """Binary logarithm of n!."""
    return gammaln(np.asarray(n, float) + 1) / np.log(2)


def log2_binomial(n: ArrayLike, k: ArrayLike) -> NDArray[np.float64]:
    """Binary logarithm of the number of k of n things."""
    n, k = np.asarray(n, float), np.asarray(k, float)
    return log2_factorial(n) - log2_factorial(k) - log2_factorial(n - k)


def _rising(first: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Binary logarithm of first (first + 1) ... (first + n - 1)."""
    first, n = np.asarray(first, float), np.asarray(n, float)
    return (gammaln(first + n) - gammaln(first)) / np.log(2)


def _naming(n: ArrayLike, own: ArrayLike, n_objects: int) -> NDArray[np.float64]:
    return np.log2(np.minimum(n, n_objects)) + log2_binomial(n_objects, own)


def bits_alone(cells: Cells) -> NDArray[np.float64]:
    """Lengths of the codes of `ALONE`, which use the predicate's own objects only.

    Returns
    -------
    ndarray of float64, shape (n_predicates, 4)
        Infinite for the code without repetition where an object repeats.
    """
    rows = []
    for q, local in enumerate(cells.local):
        n, own, counts = len(local), cells.own[q], np.bincount(local)
        naming = cells.naming_bits(q)
        # how often each of the own objects occurs, at least once; then in which order
        order = log2_factorial(n) - log2_factorial(counts).sum()
        falling = log2_factorial(cells.n_objects) - log2_factorial(cells.n_objects - own)
        rows.append([
            n * np.log2(cells.n_objects),
            naming + n * np.log2(own),
            naming + log2_binomial(n - 1, own - 1) + order,
            falling if own == n else np.inf,
        ])  # fmt: skip
    return np.array(rows)


def bits_in_groups(cells: Cells, groups: NDArray[np.int64], q: int) -> NDArray[np.float64]:
    """Lengths of adaptive codes of a predicate's objects, one sequence for each group of subjects.

    Subjects without a group have a sequence of their own, by Krichevsky and Trofimov's code.

    Parameters
    ----------
    cells : Cells
        The objects.
    groups : ndarray of int64, shape (n_subjects, n_groupings)
        Number of each subject's group, -1 for none, in each of several groupings.
    q : int
        The predicate.

    Returns
    -------
    ndarray of float64, shape (n_groupings, 3)
        Quick to learn on all objects; the same on the predicate's own; Krichevsky and Trofimov's on
        these.
    """
    n_groupings = groups.shape[1]
    # one number for each (grouping, group)
    width = int(groups.max()) + 2
    member = groups[cells.subjects[q]] + 1 + width * np.arange(n_groupings)
    size = max(int(cells.own[q]), 1)
    group, n_group = np.unique(member, return_counts=True)
    pair, n_pair = np.unique(member * size + cells.local[q][:, None], return_counts=True)
    lengths = []
    for alphabet, quick in ((cells.n_objects, True), (size, True), (size, False)):
        half = alphabet / 2
        start = np.where((group % width > 0) & quick, 1.0, half)
        ours = np.where((pair // size % width > 0) & quick, 1.0 / alphabet, 0.5)
        bits = np.bincount(group // width, _rising(start, n_group), n_groupings)
        bits -= np.bincount(pair // size // width, _rising(ours, n_pair), n_groupings)
        lengths.append(bits)
    naming = cells.naming_bits(q)
    return np.stack([lengths[0], naming + lengths[1], naming + lengths[2]], axis=1)


def bits_of_copies(cells: Cells, q: int) -> NDArray[np.float64]:
    """Lengths of a predicate's objects as those of another one, with exceptions.

    The number of the subjects with both that agree, and which they are; then the exceptions, either
    uniform on the objects that remain, or adaptively on their own objects.

    Returns
    -------
    ndarray of float64, shape (n_predicates, 2)
        For each other predicate; row q itself means nothing.
    """
    rows, size = cells.subjects[q], max(int(cells.own[q]), 1)
    others = cells.table[rows]
    hit = others == cells.table[rows, q][:, None]
    common, hits = (others >= 0).sum(axis=0), hit.sum(axis=0)
    which = np.log2(common + 1) + log2_binomial(common, hits)
    misses = len(rows) - hits
    uniform = (common - hits) * np.log2(max(cells.n_objects - 1, 1))
    uniform += (len(rows) - common) * np.log2(cells.n_objects)
    # exceptions by (other predicate, object)
    missed = np.arange(len(hits)) * size + cells.local[q][:, None]
    pair, n_pair = np.unique(missed[~hit], return_counts=True)
    own = np.bincount(pair // size, minlength=len(hits))
    some = misses > 0
    adaptive = np.zeros(len(hits))
    adaptive[some] = _naming(misses[some], own[some], cells.n_objects)
    adaptive[some] += _rising(own[some] / 2, misses[some])
    adaptive -= np.bincount(pair // size, _rising(0.5, n_pair), len(hits))
    return np.stack([which + uniform, which + adaptive], axis=1)


def partition_bits(labels: NDArray[np.int64]) -> float:
    """Bits that encode a partition of subjects: the number of classes, their sizes, the members.

    Parameters
    ----------
    labels : ndarray of int64, shape (n_subjects,)
        Class of each subject, numbered from 0; classes have no names.

    Examples
    --------
    >>> round(partition_bits(np.array([0, 0, 1])), 6)  # log2 of 3 numbers, 2 sizes, 3 members, / 2!
    3.169925
    """
    sizes = np.bincount(labels)
    n, k = len(labels), len(sizes)
    members = log2_factorial(n) - log2_factorial(sizes).sum()
    # each partition is reached under all k! names of its classes
    return float(np.log2(n) + log2_binomial(n - 1, k - 1) + members - log2_factorial(k))
