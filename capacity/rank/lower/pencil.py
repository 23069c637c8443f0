"""Exact rank of entries whose slices of one mode are combinations of two slices, a pencil."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.exact.types import Indices
from capacity.rank.method import Component, Goal, Method
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.kinds.pencil import Pencil
from capacity.rank.verifier.procedures.kronecker_form import Spend
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank
from capacity.tensor.sparse import SparseTensor


def pencil_of(
    tensor: SparseTensor, rows: Indices, mode: int, largest: int, spend: Spend
) -> Pencil | None:
    """Find the rank of entries whose slices of a mode are combinations of two of them.

    Parameters
    ----------
    tensor : SparseTensor
        The tensor of order 3 that the entries belong to.
    rows : ndarray of int64
        Row numbers of the entries.
    mode : {0, 1, 2}
        The mode, whose unfolding has rank 2.
    largest : int
        Maximum number of entries of a connected block.
    spend : callable
        Charges steps and bytes of the verifier.

    Returns
    -------
    Pencil or None
        None if all slices are multiples of one, a block is too large, or the budget is spent.
    """
    at, entries = tensor.indices[rows], tensor.values[rows]
    a, b = (m for m in range(3) if m != mode)
    places, where = np.unique(at[:, a] * tensor.shape[b] + at[:, b], return_inverse=True)
    numbers, index = np.unique(at[:, mode], return_inverse=True)
    order = np.argsort(index.ravel(), kind="stable")
    slices = np.split(order, np.cumsum(np.bincount(index.ravel()))[:-1])

    place = [where.ravel()[mine] for mine in slices]
    first = entries[slices[0]]
    for i in range(1, len(numbers)):
        second = entries[slices[i]]
        # entries below 2^31: these products fit 64 bits
        if not np.array_equal(place[0], place[i]) or (first[0] * second != second[0] * first).any():
            break
    else:
        return None
    values = np.zeros((len(places), 2), np.int64)
    values[place[0], 0], values[place[i], 1] = first, second
    both = np.flatnonzero(values.any(axis=1))
    pairs = np.divmod(places[both], tensor.shape[b])
    try:
        rank = sparse_pencil_rank(*pairs, values[both], largest=largest, spend=spend)
    except MemoryBudgetError:
        return None
    return Pencil(mode, numbers[[0, i]], rank)


def pencils(component: Component, goal: Goal) -> Iterable[Finding]:
    """Find the rank of a component whose slices of some mode span two dimensions."""
    for mode in np.flatnonzero(np.array(component.unfoldings) == 2).tolist():
        found = pencil_of(
            component.tensor, component.rows, mode, goal.limits.pencil, component.spend
        )
        if found is not None:
            yield (found,)
            return


PENCIL = Method("pencil", find_in_entries=pencils)
