"""Upper bound by boxes: products of sets of indices, one set per mode, filled by equal entries."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.entries import Entries, Given, require
from capacity.rank.verifier.kind import Kind
from capacity.tensor.coordinates import distinct, stable_order

# steps and bytes for two modes of a fiber
FIBER, FIBER_BYTES = 1_000, 200
# steps for an entry and a mode
ENTRY = 100
# steps for an index, and for a box that contains other places than those of its entries
INDEX, BOX = 500, 150_000


@dataclass(frozen=True, eq=False, repr=False)
class Boxes(FromAbove):
    """Boxes filled by equal entries: all places of some indices of each mode.

    Attributes
    ----------
    box : ndarray of int64, shape (n_entries,)
        Number of the box of each entry of the tensor, such as each row of ``Database.triples``, or
        -1 for none.
    """

    kind: ClassVar[str] = "boxes"
    forms: ClassVar[Forms] = {"box": "boxes"}
    box: Indices

    @property
    def value(self) -> int:
        """Number of boxes."""
        return len(distinct(self.box[self.box >= 0]))


def entries_of_boxes(argument: Boxes, entries: Entries) -> Given:
    """Check that each box has one and the same entry at all its places that count.

    A box is then the simple tensor of the indicators of its indices, times that entry. For the
    rank, all places of a box count; for the effective rank, those in observed fibers.
    """
    require(len(argument.box) == len(entries), "each entry must have a box, or -1")
    entries.budget.spend((entries.order + 2) * ENTRY * len(entries))
    rows = np.flatnonzero(argument.box >= 0)
    number, first, box = np.unique(argument.box[rows], return_index=True, return_inverse=True)
    box, mine, values = box.ravel(), entries.indices[rows], entries.values[rows]
    require((values == values[first][box]).all(), "a box has different entries")
    sides = np.ones(len(number), dtype=object)
    for mode in range(entries.order):
        pairs = distinct(box * entries.shape[mode] + mine[:, mode])
        # Python integers: a product of the sides can pass 2^63
        sides *= np.bincount(pairs // entries.shape[mode], minlength=len(number)).astype(object)
    sizes = np.bincount(box, minlength=len(number))
    more = np.flatnonzero(sides != sizes)
    if len(more):
        wrong = f"box {number[more[0]]} has entries at {sizes[more[0]]} of {sides[more[0]]} places"
        require(entries.effective, wrong)
        _only_unobserved(entries, box, mine, number, more)
    return entries.given(rows)


def _only_unobserved(
    entries: Entries, box: Indices, mine: Indices, number: Indices, boxes: Indices
) -> None:
    """Check that all other places in these boxes lie in unobserved fibers of the last mode.

    An observed fiber of a box must have entries of the box at all its indices of the last mode.
    """
    modes = 1 + entries.order // 2
    entries.budget.spend(FIBER * modes * len(entries), FIBER_BYTES * modes * len(entries))
    observed: defaultdict[int, set[tuple[int, ...]]] = defaultdict(set)
    for first, *middle in np.unique(entries.indices[:, :-1], axis=0).tolist():
        observed[first].add(tuple(middle))
    order = stable_order(box)
    ends = np.searchsorted(box[order], np.arange(len(number) + 1))
    entries.budget.spend(BOX * len(boxes))
    for b in boxes.tolist():
        inside = mine[order[ends[b] : ends[b + 1]]]
        fibers, times = np.unique(inside[:, :-1], axis=0, return_counts=True)
        complete: dict[tuple[int, ...], int] = {
            tuple(fiber): n for fiber, n in zip(fibers.tolist(), times.tolist(), strict=True)
        }
        sides = [set(of.tolist()) for of in inside[:, 1:-1].T]
        n_last = len(distinct(inside[:, -1]))
        for i in distinct(fibers[:, 0]).tolist():
            n_middle = math.prod(map(len, sides))
            near_by = min(len(observed[i]), n_middle)
            entries.budget.spend(FIBER + INDEX * (1 + entries.order // 4) * near_by)
            if n_middle < len(observed[i]):
                near = [middle for middle in product(*sides) if middle in observed[i]]
            else:
                near = [
                    middle
                    for middle in observed[i]
                    if all(j in side for j, side in zip(middle, sides, strict=True))
                ]
            for middle in near:
                require(
                    complete.get((i, *middle)) == n_last,
                    f"box {number[b]} has places without its entry at {(i, *middle)}",
                )


KIND = Kind(Boxes, upper=entries_of_boxes, alone=True, above_rational=True)
