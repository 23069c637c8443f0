"""Upper bound by boxes: products of sets of subjects, predicates and objects, filled by facts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.rank.types import Indices
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.facts import SORT, Facts, require
from capacity.rank.verifier.kind import Kind

# steps for a pair of a subject and a predicate, for an index, and for a box that contains other
# triples than facts
PAIR, INDEX, BOX = 1_000, 500, 150_000
# bytes for a pair
PAIR_BYTES = 250


@dataclass(frozen=True, eq=False, repr=False)
class Boxes(FromAbove):
    """Boxes filled by facts: all triples of some subjects, some predicates and some objects.

    Attributes
    ----------
    box : ndarray of int64, shape (n_triples,)
        Number of the box of each row of ``Database.triples``, or -1 for none.
    """

    kind: ClassVar[str] = "boxes"
    forms: ClassVar[Forms] = {"box": "boxes"}
    box: Indices

    @property
    def value(self) -> int:
        """Number of boxes."""
        return len(np.unique(self.box[self.box >= 0]))


def facts_of_boxes(argument: Boxes, facts: Facts) -> Indices:
    """Check that each box has facts at all its triples that count; return the rows of its facts.

    For the rank, all triples of a box count; for the effective rank, those in observed fibers.
    """
    require(len(argument.box) == len(facts), "each fact must have a box, or -1")
    facts.budget.spend(4 * SORT * len(facts))
    rows = np.flatnonzero(argument.box >= 0)
    number, box = np.unique(argument.box[rows], return_inverse=True)
    mine = facts.triples[rows]
    sides = np.ones(len(number), dtype=object)
    for mode in range(3):
        pairs = np.unique(np.stack([box.ravel(), mine[:, mode]], axis=1), axis=0)
        # Python integers: a product of three sides can pass 2^63
        sides *= np.bincount(pairs[:, 0], minlength=len(number)).astype(object)
    sizes = np.bincount(box.ravel(), minlength=len(number))
    more = np.flatnonzero(sides != sizes)
    if len(more):
        wrong = f"box {number[more[0]]} has facts at {sizes[more[0]]} of {sides[more[0]]} triples"
        require(facts.effective, wrong)
        _only_unobserved(facts, box.ravel(), mine, number, more)
    return rows


def _only_unobserved(
    facts: Facts, box: Indices, mine: Indices, number: Indices, boxes: Indices
) -> None:
    """Check that all other triples in these boxes lie in unobserved fibers.

    An observed (subject, predicate) pair of a box must have facts with all objects of the box.
    """
    facts.budget.spend(2 * PAIR * len(facts), PAIR_BYTES * len(facts))
    observed: defaultdict[int, set[int]] = defaultdict(set)
    for k, q in np.unique(facts.triples[:, :2], axis=0).tolist():
        observed[k].add(q)
    order = np.argsort(box, kind="stable")
    ends = np.searchsorted(box[order], np.arange(len(number) + 1))
    facts.budget.spend(BOX * len(boxes))
    for b in boxes.tolist():
        inside = mine[order[ends[b] : ends[b + 1]]]
        pairs, times = np.unique(inside[:, :2], axis=0, return_counts=True)
        complete: dict[tuple[int, int], int] = {
            (k, q): n for (k, q), n in zip(pairs.tolist(), times.tolist(), strict=True)
        }
        predicates, n_objects = set(pairs[:, 1].tolist()), len(np.unique(inside[:, 2]))
        for k in np.unique(pairs[:, 0]).tolist():
            facts.budget.spend(PAIR + INDEX * min(len(observed[k]), len(predicates)))
            for q in observed[k] & predicates:
                require(
                    complete.get((k, q)) == n_objects,
                    f"box {number[b]} has triples that aren't facts at {k, q}",
                )


KIND = Kind(Boxes, upper=facts_of_boxes, alone=True)
