"""Upper bounds of the effective rank: tensors of low rank that represent the facts.

A tensor represents a database if it agrees with D on the observed fibers D[k, q, :] (Wong 2025,
section 2.1). Two subjects can be *merged* if no predicate has different objects for them: a tensor
with the same slice for both represents both. So can two predicates. Merging leaves a smaller
database; a decomposition of its tensor, spread over the merged tokens, represents the original
database, so its rank bounds the effective rank from above.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.exact.types import Indices, Term
from capacity.rank.method import Component, Goal, Method
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.upper.slices import slice_terms
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import n_fibers


def merged(triples: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Merge subjects, and predicates, of a functional database until no two can be.

    Parameters
    ----------
    triples : ndarray of int64, shape (n, 3)
        Subject, predicate and object of each fact, by number.
    rng : numpy.random.Generator
        Generator for ties.

    Returns
    -------
    subject_group, predicate_group : ndarray of int64
        The group of each subject and of each predicate, numbered from 0.
    """
    groups = [np.arange(int(triples[:, mode].max()) + 1) for mode in (0, 1)]
    mode, unchanged = 0, 0
    while unchanged < 2:
        quotient = np.unique(
            np.stack([groups[0][triples[:, 0]], groups[1][triples[:, 1]], triples[:, 2]], axis=1),
            axis=0,
        )
        found = _merge_mode(quotient, mode, rng)
        unchanged = unchanged + 1 if len(np.unique(found)) == len(found) else 0
        groups[mode] = found[groups[mode]]
        mode = 1 - mode
    return groups[0], groups[1]


def _merge_mode(triples: Indices, mode: int, rng: np.random.Generator) -> Indices:
    """Group the slices of one mode, largest first; each joins the group it agrees with most."""
    n = int(triples[:, mode].max()) + 1
    answers: list[dict[int, int]] = [{} for _ in range(n)]
    for row in triples.tolist():
        answers[row[mode]][row[1 - mode]] = row[2]
    order = sorted(range(n), key=lambda i: (-len(answers[i]), rng.random()))
    group_answers: list[dict[int, int]] = []
    found = np.zeros(n, np.int64)
    for i in order:
        fits = [
            (sum(q in known for q in answers[i]), -g)
            for g, known in enumerate(group_answers)
            if all(known.get(q, v) == v for q, v in answers[i].items())
        ]
        if fits:
            g = -max(fits)[1]
        else:
            g = len(group_answers)
            group_answers.append({})
        group_answers[g].update(answers[i])
        found[i] = g
    return found


def merged_arguments(triples: Indices, rng: np.random.Generator) -> Finding:
    """Return boxes and terms of the merged database's object slices, spread over merged tokens."""
    subject_group, predicate_group = merged(triples, rng)
    rows = np.stack(
        [subject_group[triples[:, 0]], predicate_group[triples[:, 1]], triples[:, 2]], axis=1
    )
    quotient, stands_for = np.unique(rows, axis=0, return_inverse=True)
    small = SparseTensor(quotient, np.ones(len(quotient), np.int64), quotient.max(axis=0) + 1)
    box, terms = slice_terms(small, (2,), np.arange(len(quotient)))
    spread: list[Term] = []
    for (ks, a), (qs, b), c in terms:
        k = [(i, x) for g, x in zip(ks, a, strict=True) for i in np.flatnonzero(subject_group == g)]
        q = [
            (i, x) for g, x in zip(qs, b, strict=True) for i in np.flatnonzero(predicate_group == g)
        ]
        spread.append(
            (
                (tuple(int(i) for i, _ in k), tuple(x for _, x in k)),
                (tuple(int(i) for i, _ in q), tuple(x for _, x in q)),
                c,
            )
        )
    boxes = (Boxes(box[stands_for.ravel()]),) if (box >= 0).any() else ()
    return (*boxes, *((Decomposition(tuple(spread)),) if spread else ()))


def mergers(component: Component, goal: Goal) -> Iterable[Finding]:
    """Merge a functional database several times, breaking ties differently."""
    tensor = component.tensor
    if n_fibers(tensor) < tensor.n_entries or (tensor.values != 1).any():
        return
    rng = np.random.default_rng(goal.seed)
    k, q, _ = tensor.shape
    # each attempt compares slices pair by pair
    tries = goal.work // (100 * tensor.n_entries * (k + q))
    for _ in range(min(goal.limits.orders, tries)):
        yield merged_arguments(tensor.indices, rng)


MERGING = Method(
    "merging", find_in_entries=mergers, sides=("upper",), limit="orders", effective="alone"
)
