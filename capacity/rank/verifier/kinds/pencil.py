"""Bounds by pencils: the rank of two slices, by Kronecker's canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.exact.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, Shown, Side
from capacity.rank.verifier.entries import SORT, Entries, Given, Refuted, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank
from capacity.rank.verifier.view import UNOBSERVED
from capacity.tensor.coordinates import distinct

# two slices of rank one or zero are no pencil for an upper bound
DEPENDENT = "the two slices are zero, or multiples of each other"
# steps for an entry of a slice that is compared with a combination
TERM = 600


@dataclass(frozen=True, eq=False, repr=False)
class Pencil(Shown):
    """The rank of a tensor of two slices, computed exactly.

    Attributes
    ----------
    mode : int
        Mode of the slices.
    slices : ndarray of int64, shape (2,)
        Two indices of the mode. For an upper bound, the other slices of their components must be
        combinations of these two.
    value : int
        The rank of these two slices.
    """

    kind: ClassVar[str] = "pencil"
    forms: ClassVar[Forms] = {"mode": "integer", "slices": "slices", "value": "integer"}
    mode: int
    slices: Indices
    value: int

    @property
    def sides(self) -> tuple[Side, ...]:
        """Both sides, since the rank of two slices is computed exactly."""
        return ("lower", "upper")


def check_pencil(argument: Pencil, entries: Entries) -> Touched:
    """Check the rank of a sub-tensor of two slices, a lower bound of rank(T)."""
    mine = entries.indices[require_pencil(argument, entries)]
    used = tuple(distinct(of) for of in mine.T)
    if entries.effective:
        entries.budget.spend(SORT * len(mine))
        fibers = np.unique(mine[:, :2], axis=0)
        require(len(fibers) == len(used[0]) * len(used[1]), UNOBSERVED)
    return used


def entries_of_pencil(argument: Pencil, entries: Entries) -> Given:
    """Check that the entries of two slices' components have the rank of these two slices.

    Each other slice must be a combination of the two: the tensor is then a matrix times the tensor
    of the two slices, and has no larger rank. Let p and q be places where the two slices, x and y,
    have a nonzero minor, d = x[p] y[q] - x[q] y[p]. By Cramer's rule a slice z can only be the
    combination with d z = (z[p] y[q] - z[q] y[p]) x + (x[p] z[q] - x[q] z[p]) y.
    """
    rows = entries.of_components(require_pencil(argument, entries))
    require(len(rows) > 0, DEPENDENT)
    a, b = entries.require_mode(argument.mode)
    at = entries.indices[rows]
    entries.budget.spend(3 * SORT * len(rows))
    places, index = at[:, a] * entries.shape[b] + at[:, b], at[:, argument.mode]
    order = np.argsort(index, kind="stable")
    numbers, starts = np.unique(index[order], return_index=True)
    # Python integers: products of three entries can pass 2^63
    slices = {
        number: dict(zip(places[mine].tolist(), entries.values[rows[mine]].tolist(), strict=True))
        for number, mine in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)
    }
    x, y = (slices.pop(i, {}) for i in argument.slices.tolist())
    p = next(iter(x), -1)
    q = next((q for q in (*x, *y) if _minor(x, y, p, q)), None)
    if q is None:
        raise Refuted(DEPENDENT)
    d = _minor(x, y, p, q)
    for number, z in slices.items():
        if z in (x, y):
            continue
        entries.budget.spend(TERM * (len(x) + len(y) + len(z)))
        s, t = _minor(z, y, p, q), _minor(x, z, p, q)
        combination = all(
            d * z.get(r, 0) == s * x.get(r, 0) + t * y.get(r, 0) for r in {*x, *y, *z}
        )
        require(combination, f"slice {number} is no combination of the two")
    return entries.given(rows)


def _minor(x: dict[int, int], y: dict[int, int], p: int, q: int) -> int:
    return x.get(p, 0) * y.get(q, 0) - x.get(q, 0) * y.get(p, 0)


def require_pencil(argument: Pencil, entries: Entries) -> Indices:
    """End the check unless two slices have the claimed rank; return the rows of their entries."""
    entries.require_order_3()
    a, b = entries.require_mode(argument.mode)
    require(len(argument.slices) == 2, "a pencil must have two slices")
    rows = entries.with_index(argument.mode, argument.slices)
    width = entries.shape[b]
    mine = entries.indices[rows]
    places, at = np.unique(mine[:, a] * width + mine[:, b], return_inverse=True)
    values = np.zeros((len(places), 2), np.int64)
    second = (mine[:, argument.mode] == argument.slices[1]).astype(np.int64)
    values[at.ravel(), second] = entries.values[rows]
    entries.budget.spend(20 * SORT * len(rows))

    def spend(steps: int, memory: int) -> None:
        entries.budget.spend(steps * entries.longer, memory)

    rank = sparse_pencil_rank(*np.divmod(places, width), values, spend=spend)
    require(argument.value == rank, f"the two slices have rank {rank}")
    return rows


KIND = Kind(Pencil, lower=check_pencil, upper=entries_of_pencil)
