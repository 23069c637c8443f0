"""Bounds by pencils: the rank of two slices, by Kronecker's canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from capacity.rank.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, Shown, Side
from capacity.rank.verifier.facts import SORT, Facts, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.pencils import sparse_pencil_rank
from capacity.rank.verifier.view import UNOBSERVED


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


def check_pencil(argument: Pencil, facts: Facts) -> Touched:
    """Check the rank of a sub-tensor of two slices, a lower bound of rank(D)."""
    mine = facts.triples[require_pencil(argument, facts)]
    used = [np.unique(mine[:, mode]) for mode in range(3)]
    if facts.effective:
        facts.budget.spend(SORT * len(mine))
        pairs = np.unique(mine[:, :2], axis=0)
        require(len(pairs) == len(used[0]) * len(used[1]), UNOBSERVED)
    return used[0], used[1], used[2]


def facts_of_pencil(argument: Pencil, facts: Facts) -> Indices:
    """Check that the facts of two slices' components have the rank of these two slices.

    Each other slice must be one of the two, their sum or a difference: these are the nonzero
    combinations whose entries are zeros and ones. So the tensor is a matrix times the tensor of the
    two slices, and has no larger rank.
    """
    rows = facts.of_components(require_pencil(argument, facts))
    a, b = (m for m in range(3) if m != argument.mode)
    triples = facts.triples[rows]
    facts.budget.spend(2 * SORT * len(rows))
    places, index = triples[:, a] * facts.shape[b] + triples[:, b], triples[:, argument.mode]
    order = np.argsort(index, kind="stable")
    numbers, starts = np.unique(index[order], return_index=True)
    slices = dict(zip(numbers.tolist(), np.split(places[order], starts[1:]), strict=True))
    first, second = (set(slices.pop(i).tolist()) for i in argument.slices.tolist())
    allowed = [first, second]
    if not first & second:
        allowed.append(first | second)
    allowed += [x - y for x, y in ((first, second), (second, first)) if y <= x]
    for i, mine in slices.items():
        require(set(mine.tolist()) in allowed, f"slice {i} is no combination of the two")
    return rows


def require_pencil(argument: Pencil, facts: Facts) -> Indices:
    """End the check unless two slices have the claimed rank; return the rows of their facts."""
    mode = argument.mode
    require(mode in (0, 1, 2), "a mode must be 0, 1 or 2")
    require(len(argument.slices) == 2, "a pencil must have two slices")
    chosen: list[Indices | None] = [None, None, None]
    chosen[mode] = argument.slices
    rows = facts.among(chosen)
    a, b = (m for m in range(3) if m != mode)
    width = facts.shape[b]
    mine = facts.triples[rows]
    places, at = np.unique(mine[:, a] * width + mine[:, b], return_inverse=True)
    values = np.zeros((len(places), 2), np.int64)
    values[at.ravel(), (mine[:, mode] == argument.slices[1]).astype(np.int64)] = 1
    facts.budget.spend(20 * SORT * len(rows))
    rank = sparse_pencil_rank(*np.divmod(places, width), values, spend=facts.budget.spend)
    require(argument.value == rank, f"the two slices have rank {rank}")
    return rows


KIND = Kind(Pencil, lower=check_pencil, upper=facts_of_pencil)
