"""Upper bound by pairs of slices: the rank of each pair, by Kronecker's canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.argument import Forms, FromAbove
from capacity.rank.verifier.entries import SORT, Entries, Given, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank
from capacity.tensor.coordinates import distinct

# steps for a pair, however small
PAIR = 200_000


@dataclass(frozen=True, eq=False, repr=False)
class PairedSlices(FromAbove):
    """Entries of pairs of slices, and the ranks of the pairs, computed exactly.

    Attributes
    ----------
    mode : int
        Mode of the slices.
    pair : ndarray of int64, shape (n_entries,)
        Number of the pair of each entry of the tensor, or -1 for none. Entries of a pair lie in at
        most two slices of the mode; they need not be all entries of these.
    value : int
        Sum of the ranks of the pairs.
    """

    kind: ClassVar[str] = "paired slices"
    forms: ClassVar[Forms] = {"mode": "integer", "pair": "boxes", "value": "integer"}
    mode: int
    pair: Indices
    value: int


def entries_of_pairs(argument: PairedSlices, entries: Entries) -> Given:
    """Check that the pairs have the claimed ranks together.

    The entries of a pair are a tensor of their own, 0 elsewhere, with two nonzero slices at most:
    its rank is that of a pencil (`capacity.rank.verifier.procedures.pencils`). So there is a sum of
    simple tensors, as many as the ranks of the pairs add up to, that has these entries.
    """
    entries.require_order_3()
    a, b = entries.require_mode(argument.mode)
    require(len(argument.pair) == len(entries), "each entry must have a pair, or -1")
    entries.budget.spend(2 * SORT * len(entries))
    rows = np.flatnonzero(argument.pair >= 0)
    require(len(rows) > 0, "there is no pair")
    order = rows[np.argsort(argument.pair[rows], kind="stable")]
    begins = np.flatnonzero(np.diff(argument.pair[order]))
    entries.budget.spend(PAIR * (len(begins) + 1))
    rank, width = 0, entries.shape[b]

    def spend(steps: int, memory: int) -> None:
        entries.budget.spend(steps * entries.longer, memory)

    for mine in np.split(order, begins + 1):
        at = entries.indices[mine]
        slices = distinct(at[:, argument.mode])
        number = argument.pair[mine[0]]
        require(len(slices) <= 2, f"pair {number} has entries in {len(slices)} slices")
        entries.budget.spend(20 * SORT * len(mine))
        places, where = np.unique(at[:, a] * width + at[:, b], return_inverse=True)
        values = np.zeros((len(places), 2), np.int64)
        second = (at[:, argument.mode] != slices[0]).astype(np.int64)
        values[where.ravel(), second] = entries.values[mine]
        rank += sparse_pencil_rank(*np.divmod(places, width), values, spend=spend)
    require(argument.value == rank, f"the pairs have rank {rank}")
    return entries.given(rows)


KIND = Kind(PairedSlices, upper=entries_of_pairs)
