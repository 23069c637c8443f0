"""The size of a database as the length of its shortest description, of those that are tried.

*Minimum description length* (Rissanen 1978): facts are as large as the shortest text from which
they can be decoded. The code here knows subjects, predicates, objects and their numbers, and no
rule by which facts were made. It has two parts: which code each predicate has, and the text in that
code.

References
----------
J. Rissanen, Modeling by shortest data description, Automatica 14 (1978) 465-471.
P. D. Grünwald, The minimum description length principle, 2007.
R. E. Krichevsky, V. K. Trofimov, The performance of universal encoding, IEEE Trans. Inf. Theory
27 (1981) 199-207.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.database.codes.forests import Forest, Weights, code_profiles
from capacity.database.codes.objects import (
    ALONE,
    GIVEN,
    OF_CLASS,
    Cells,
    bits_in_groups,
    partition_bits,
)
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.terms.term import Term
from capacity.display import briefly_shown
from capacity.errors import MemoryBudgetError

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


# cells of the table of subjects and predicates: several arrays of 128 MiB
LARGEST_TABLE = 2**24
# plain, by predicates, by predicates and classes
FORMS = 3


@briefly_shown
@dataclass(frozen=True)
class PredicateCode:
    """The code of one predicate's objects.

    Attributes
    ----------
    predicate : Term
        The predicate.
    code : str
        Name of the code.
    given : Term or None
        The predicate that has to be known before, if the code needs one.
    bits : float
        Length of the objects, and of the choice of the code and of the predicate before.
    """

    predicate: Term
    code: str
    given: Term | None
    bits: float


@briefly_shown
@dataclass(frozen=True)
class DescriptionLength:
    """Length of a description of the objects of a database, in bits.

    Attributes
    ----------
    bits : float
        The total.
    form_bits : float
        Part that chooses the form: no codes of predicates, or how often to expect each of them, and
        with classes or without.
    classes : int
        Number of classes of subjects; 0 if no class is used.
    class_bits : float
        Part that encodes the class of each subject.
    predicates : tuple of PredicateCode
        A code for each predicate, in the order of `Database.predicates`. Where several choices have
        the least total, these are those of one of them.
    """

    bits: float
    form_bits: float
    classes: int
    class_bits: float
    predicates: tuple[PredicateCode, ...]


def description_length(db: DatabaseLike) -> DescriptionLength:
    """Compute the length in bits of a code for the objects of a database, whose pairs are known.

    The decoder knows which subjects have which predicates, and the numbers of tokens; it reads the
    object of each pair. The objects of each predicate have the cheapest of these codes:

    * uniform on all objects, or on the predicate's own, which are named first; by the frequencies
      of its own objects; or without repetition;
    * conditional on another predicate: an adaptive code for each of its objects, so that a copy is
      cheap under the same names and under others, and at a share of the subjects;
    * a copy of another predicate, with exceptions;
    * conditional on a class of subjects, in one partition for all predicates.

    Which predicate is conditional on which is the lightest arborescence (Edmonds), so that no other
    choice of parents is shorter. The partition is the best of those that merging the most similar
    subjects passes through (of at most 512 subjects), and is used if the total falls. Among more
    than 500 predicates none is conditional on another.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Functional facts.

    Returns
    -------
    DescriptionLength
        At most n_triples log2(n_objects) + log2(3) bits.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        If its facts have another arity than 3.
    MultiValuedError
        If it isn't functional.
    MemoryBudgetError
        If it has more than 2^24 pairs of a subject and a predicate, with an object or without.

    Notes
    -----
    The lengths satisfy Kraft's inequality: over all objects that the same pairs can have, the sum
    of 2^-bits is at most 1. They don't change if tokens are renamed.

    It is an upper bound of the shortest description, up to a constant, and not that description,
    which no program finds. Rules that join more than two slices aren't among its codes: the table
    of a group is no shorter than another Latin square, though a line describes it.

    References
    ----------
    J. Rissanen, Automatica 14 (1978) 465-471.

    Examples
    --------
    >>> from capacity.database import structured_database
    >>> [round(description_length(structured_database(0, "same", c)).bits) for c in (0, 0.5, 1)]
    [518, 453, 121]
    """
    db = require_triples(db, "description_length(db)")
    cells = _cells(db, "description_length")
    each, form = float(np.log2(cells.n_objects)), float(np.log2(FORMS))
    uniform = tuple(
        PredicateCode(predicate, ALONE[0], None, each * len(rows))
        for predicate, rows in zip(db.predicates, cells.subjects, strict=True)
    )
    found = [DescriptionLength(each * db.n_triples + form, form, 0, 0.0, uniform)]
    if db.shape[1]:
        weights = Weights.of(cells)
        found.append(_shortest(db, weights, None))
        # what a class may save is held against the codes that predicates have without classes
        labels = _classes(cells, np.array([one.bits for one in found[1].predicates]))
        if labels is not None:
            found.append(_shortest(db, weights, (labels, _class_bits(cells, labels))))
    return min(found, key=lambda one: one.bits)


def object_entropy(db: DatabaseLike) -> float:
    """Sum, over predicates, the number of facts times the entropy of their objects, in bits.

    It is the length of all objects under a code that knows how often each predicate has each
    object, and no more.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Functional facts.

    Returns
    -------
    float
        From 0, where each predicate has one object, to n_triples log2(n_objects).

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        If its facts have another arity than 3.
    MultiValuedError
        If it isn't functional.
    MemoryBudgetError
        If it has more than 2^24 pairs of a subject and a predicate, with an object or without.

    Examples
    --------
    >>> rows = [("a", "p", "x"), ("b", "p", "y"), ("a", "q", "x"), ("b", "q", "x")]
    >>> object_entropy(Database.from_triples(rows))
    2.0
    """
    total = 0.0
    for local in _cells(db, "object_entropy").local:
        # sorted, so that renamed facts have the same sum to the last bit
        counts = np.sort(np.bincount(local))
        total += float((counts * np.log2(len(local) / counts)).sum())
    return total


def _cells(facts: DatabaseLike, call: str) -> Cells:
    db = require_triples(facts, f"{call}(db)")
    db.require_functional(f"`{call}`")
    n_subjects, n_predicates = db.shape[:2]
    if n_subjects * n_predicates > LARGEST_TABLE:
        raise MemoryBudgetError(
            f"Subjects times predicates must be at most {LARGEST_TABLE:,}; got {n_subjects:,} "
            f"times {n_predicates:,}. Take a part of the facts: db.sample_subjects or db.select."
        )
    table = np.full((n_subjects, n_predicates), -1, np.int64)
    table[db.tuples[:, 0], db.tuples[:, 1]] = db.tuples[:, 2]
    return Cells.of(table, max(db.shape[2], 1))


def _shortest(
    db: Database,
    weights: Weights,
    classes: tuple[NDArray[np.int64], NDArray[np.float64]] | None,
) -> DescriptionLength:
    """Choose parents and codes under each profile of expected codes, and the best profile."""
    names, roots = ALONE, weights.alone
    used, class_bits = 0, 0.0
    if classes is not None:
        names, roots = (*ALONE, *OF_CLASS), np.hstack([roots, classes[1]])
        used, class_bits = int(classes[0].max()) + 1, partition_bits(classes[0])
    n = len(names) + weights.given.shape[2]
    names = (*names, *GIVEN)
    profiles = code_profiles(n)
    forests = [Forest.lightest(roots, weights.given, profile) for profile in profiles]
    best = min(forests, key=lambda forest: forest.bits.sum())
    form = float(np.log2(FORMS) + np.log2(len(profiles)))
    parts = tuple(
        PredicateCode(q, names[code], None if parent < 0 else db.predicates[parent], float(bits))
        for q, parent, code, bits in zip(
            db.predicates, best.parents, best.codes, best.bits, strict=True
        )
    )
    total = float(best.bits.sum()) + form + class_bits
    return DescriptionLength(total, form, used, class_bits, parts)


def _class_bits(cells: Cells, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Lengths of the codes of `OF_CLASS`, shape (n_predicates, 3)."""
    return np.vstack([bits_in_groups(cells, labels[:, None], q) for q in range(len(cells.own))])


def _classes(cells: Cells, without: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Choose the partition with which codes of classes save most; None if none saves."""
    n = len(cells.table)
    if n > LARGEST_SEARCH:
        return None
    best, chosen = 0.0, None
    for labels in merged_classes(cells.table):
        # as many classes as subjects tell nothing
        if 2 * (labels.max() + 1) > n:
            continue
        with_class = _class_bits(cells, labels).min(axis=1)
        saved = float(np.maximum(without - with_class, 0).sum()) - partition_bits(labels)
        # floats differ by less than this where subjects are renamed
        if saved > best + 1e-6:
            best, chosen = saved, labels
    return chosen
