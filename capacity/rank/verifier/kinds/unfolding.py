"""Lower bound by an unfolding: the size of a nonsingular minor."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.exact.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, FromBelow
from capacity.rank.verifier.entries import SORT, Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.nonsingular import require_nonsingular
from capacity.rank.verifier.view import require_prime
from capacity.tensor.structure import MOST_PLACES, numbered


@dataclass(frozen=True, eq=False, repr=False)
class Unfolding(FromBelow):
    """A nonsingular minor of the unfolding of one mode.

    Attributes
    ----------
    mode : int
        Mode of the unfolding.
    rows : ndarray of int64, shape (r,)
        Distinct indices of the mode.
    columns : ndarray of int64, shape (r, order - 1)
        Distinct places in the other modes, in ascending order of modes.
    blocks : ndarray of int64
        Sizes of the diagonal blocks at the end of the minor, after its single pivots.
    eliminated : ndarray of int64
        Number of leading pivots of each block to eliminate sparsely before the rest is made dense.
    prime : int
        Prime modulo which the blocks are nonsingular.
    """

    kind: ClassVar[str] = "unfolding"
    forms: ClassVar[Forms] = {
        "mode": "integer",
        "rows": "slices",
        "columns": "fibers",
        "blocks": "indices",
        "eliminated": "indices",
        "prime": "integer",
    }
    mode: int
    rows: Indices
    columns: Indices
    blocks: Indices
    eliminated: Indices
    prime: int

    @property
    def value(self) -> int:
        """Size of the minor."""
        return len(self.rows)


def check_unfolding(argument: Unfolding, entries: Entries) -> Touched:
    """Check that a minor is nonsingular; rank(T) >= the rank of the unfolding >= its size.

    A sum of R simple tensors unfolds to a sum of R matrices of rank one. The determinant of the
    minor is expanded along rows or columns with a single nonzero entry, the pivot, among the
    remaining ones; each expansion leaves the pivot times a smaller determinant. In the end there
    are diagonal blocks with zeros below them, each nonsingular modulo a prime, hence nonsingular.
    A determinant that isn't 0 is none in a larger field, nor in tensors near by: the bound holds
    over every field that contains the rational numbers, and for the border rank.

    For the effective rank the mode is the last one and the columns are observed fibers, where every
    tensor that represents the facts has the same entries.
    """
    mode, r = argument.mode, argument.value
    others = entries.require_mode(mode)
    last = mode == entries.order - 1
    require(not entries.effective or last, "only the last unfolding bounds the effective rank")
    require(r > 0 and argument.columns.shape == (r, len(others)), "a minor must be square")
    entries.require_distinct(argument.rows, mode)
    widths = [entries.shape[m] for m in others]
    inside = (argument.columns >= 0) & (argument.columns < widths)
    require(inside.all(), "an index is out of range")
    require((argument.blocks <= r).all(), "the blocks are larger than the minor")
    i, j, x = _places(argument, entries, others)
    t = r - int(argument.blocks.sum())
    require(t >= 0, "the blocks are larger than the minor")
    diagonal, row_goes_on, column_goes_on = (np.zeros(r, bool) for _ in range(3))
    diagonal[i[i == j]] = True
    row_goes_on[i[i < j]] = True
    column_goes_on[j[j < i]] = True
    require(diagonal[:t].all(), "a pivot is zero")
    require(
        not (row_goes_on & column_goes_on)[:t].any(), "a pivot isn't alone in its row or column"
    )
    _check_blocks(i, j, x, np.append(t, t + np.cumsum(argument.blocks)), argument, entries)
    touched = list(argument.columns.T)
    touched.insert(mode, argument.rows)
    return tuple(touched)


def _places(
    argument: Unfolding, entries: Entries, others: list[int]
) -> tuple[Indices, Indices, Indices]:
    """Positions, within the minor, of its nonzero entries, and these entries."""
    rows = entries.with_index(argument.mode, argument.rows)
    mine = entries.indices[rows]
    entries.budget.spend(SORT * (len(mine) + len(argument.columns)))
    sides = [entries.shape[m] for m in others]
    require(math.prod(sides) < MOST_PLACES, "the columns of the unfolding are too many")
    flat = numbered(argument.columns, sides)
    order = np.argsort(flat)
    require((np.diff(flat[order]) > 0).all(), "a column is used twice")
    at = numbered(mine[:, others], sides)
    near = np.searchsorted(flat, at, sorter=order).clip(max=len(flat) - 1)
    inside = flat[order[near]] == at
    row_order = np.argsort(argument.rows)
    wanted: Indices = mine[inside, argument.mode]
    row = np.searchsorted(argument.rows, wanted, sorter=row_order)
    return row_order[row], order[near[inside]], entries.values[rows[inside]]


def _check_blocks(
    i: Indices,
    j: Indices,
    x: Indices,
    bounds: Indices,
    argument: Unfolding,
    entries: Entries,
) -> None:
    """Check that the diagonal blocks between some bounds are nonsingular, with zeros below them."""
    require(
        len(argument.eliminated) == len(bounds) - 1,
        "`eliminated` must have a number for each block",
    )
    if len(bounds) == 1:
        return
    require_prime(argument.prime)
    entries.budget.spend(SORT * (len(i) + 100 * len(bounds)))
    block_i, block_j = (np.searchsorted(bounds, x, side="right") for x in (i, j))
    require(not ((block_i > block_j) & (block_j > 0)).any(), "an entry is below the blocks")
    steps: list[int] = argument.eliminated.tolist()
    order = np.argsort(block_i, kind="stable")
    starts = np.searchsorted(block_i[order], np.arange(len(bounds) + 1)).tolist()
    for number, (start, stop) in enumerate(itertools.pairwise(bounds.tolist()), start=1):
        mine = order[starts[number] : starts[number + 1]]
        mine = mine[block_j[mine] == number]
        places = i[mine] - start, j[mine] - start
        require_nonsingular(
            *places, x[mine], stop - start, steps[number - 1], argument.prime, entries.budget,
            name=f"block {number}",
        )  # fmt: skip


KIND = Kind(
    Unfolding,
    lower=check_unfolding,
    adds=True,
    below_complex=True,
    border=True,
    border_by_mode=True,
)
