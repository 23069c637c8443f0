"""Pairs of slices whose rank together is less than the sum of their ranks.

Two n x n slices of full rank have rank n or little more together, by Jaja's theorem, not 2 n
(`capacity.rank.verifier.procedures.pencils`). Predicates that join the same subjects to the same
objects are such pairs. With A and B their matrices, one below the other and side by side, and a
generic combination of them,

    rank(A, B together) >= rank [A; B] + rank [A B] - rank(A + t B),

so that three ranks of matrices tell which pairs may save anything. The pairs that save most are
taken, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.ranks import sparse_rank
from capacity.exact.types import Indices, Mask
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.paired_slices import PAIR
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank
from capacity.tensor.sparse import SparseTensor

# slices of a mode up to which pairs are looked for, and pairs looked at for each slice
MOST_SLICES, PAIRS_A_SLICE = 1_000, 6
# factor of the second slice in a generic combination
GENERIC = 7_919


class Pair(NamedTuple):
    """Two slices, with the rank that they have together.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of their entries.
    rank, saved : int
        Their rank together, and what it is less than the sum of their ranks.
    """

    rows: Indices
    rank: int
    saved: int


def paired_slices(tensor: SparseTensor, mode: int, chosen: Mask, steps: int) -> Sequence[Pair]:
    """Pair slices of a mode.

    Parameters
    ----------
    tensor : SparseTensor
        A tensor of order 3.
    mode : int
        The mode.
    chosen : ndarray of bool, shape (n_entries,)
        The entries that are looked at.
    steps : int
        Steps that the verifier may need for all pairs that are looked at.

    Returns
    -------
    sequence of Pair
        Pairs of different slices.
    """
    rows = np.flatnonzero(chosen)
    numbers, of = np.unique(tensor.indices[rows, mode], return_inverse=True)
    if not 2 <= len(numbers) <= MOST_SLICES:
        return []
    order = np.argsort(of.ravel(), kind="stable")
    entries = np.split(rows[order], np.cumsum(np.bincount(of.ravel()))[:-1])
    a, b = (m for m in range(3) if m != mode)
    ranks = [
        sparse_rank(tensor.indices[one, a], tensor.indices[one, b], tensor.values[one])
        for one in entries
    ]
    budget = CheckBudget(steps)
    found: list[tuple[int, int, Pair]] = []
    for i, j in _nearest(tensor, rows, of.ravel(), (a, b), np.array(ranks)):
        try:
            pair = _paired(tensor, entries[i], entries[j], (a, b), ranks[i] + ranks[j], budget)
        except MemoryBudgetError:
            # its block is too large, or the budget is spent; a smaller pair may do
            continue
        if pair is not None:
            found.append((i, j, pair))
    taken: set[int] = set()
    best: list[Pair] = []
    for i, j, pair in sorted(found, key=lambda one: -one[2].saved):
        if taken.isdisjoint((i, j)):
            taken |= {i, j}
            best.append(pair)
    return best


def _nearest(
    tensor: SparseTensor, rows: Indices, of: Indices, others: tuple[int, int], ranks: Indices
) -> list[tuple[int, int]]:
    """Return the pairs of slices that share most indices of both other modes.

    Without a common index of either mode, an unfolding of the two has the sum of their ranks.
    """
    from scipy.sparse import coo_array

    shared: list[Any] = []
    for m in others:
        places = np.unique(np.stack([of, tensor.indices[rows, m]]), axis=1)
        ones = np.ones(places.shape[1], np.int64)
        incidence: Any = coo_array((ones, (places[0], places[1])))
        shared.append(incidence.tocsr() @ incidence.T.tocsr())
    common = shared[0].minimum(shared[1]).tocoo()
    upper = common.row < common.col
    i, j, most = common.row[upper], common.col[upper], common.data[upper]
    most = np.minimum(most, np.minimum(ranks[i], ranks[j]))
    order = np.argsort(-most, kind="stable")[: PAIRS_A_SLICE * len(ranks)]
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def _paired(
    tensor: SparseTensor, first: Indices, second: Indices, others: tuple[int, int], apart: int,
    budget: CheckBudget,
) -> Pair | None:  # fmt: skip
    """Find the rank of two slices, if it may be less than the sum of their ranks."""
    rows = np.concatenate([first, second])
    one, other = (tensor.indices[rows, m] for m in others)
    values = tensor.values[rows]
    at = (np.arange(len(rows)) >= len(first)).astype(np.int64)
    height, width = tensor.shape[others[0]], tensor.shape[others[1]]
    stacked = sparse_rank(one + at * height, other, values)
    beside = sparse_rank(one, other + at * width, values)
    places, where = np.unique(one * width + other, return_inverse=True)
    both = np.zeros((len(places), 2), np.int64)
    both[where.ravel(), at] = values
    generic = both[:, 0] + GENERIC * both[:, 1]
    there = generic != 0
    rank = sparse_rank(*np.divmod(places[there], width), generic[there])
    if stacked + beside - rank >= apart:
        return None
    budget.spend(PAIR)
    # the verifier takes longer for larger entries
    longer = 1 + tensor.largest.bit_length() // 8

    def spend(steps: int, memory: int) -> None:
        budget.spend(steps * longer, memory)

    together = sparse_pencil_rank(*np.divmod(places, width), both, spend=spend)
    return Pair(rows, together, apart - together) if together < apart else None
