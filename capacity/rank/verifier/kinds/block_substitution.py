"""Lower bound by the substitution method where slices may also be removed several at once."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

from capacity.exact.types import Indices
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.entries import Entries, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.removals import require_removals
from capacity.rank.verifier.procedures.sparse_removals import Group
from capacity.rank.verifier.view import Removed, require_prime


@dataclass(frozen=True, eq=False, repr=False)
class BlockSubstitution(FromBelow):
    """Steps of the substitution method, of a slice each or of several independent slices at once.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices are removed.
    removals : ndarray of int64, shape (n, 2)
        Pairs (mode, index) of the slices, in the order of their removal. Indices are those of the
        view's tensor, from 0.
    groups : ndarray of int64, shape (n_groups, 2)
        First removal and number of removals of each group, in ascending order. The slices of a
        group are of one mode.
    columns : ndarray of int64, shape (n_columns, order - 1)
        For each group as many places in the other modes, in ascending order of modes: the columns
        of a nonsingular minor, whose rows are the slices. Indices are those of the view's tensor.
    eliminated : ndarray of int64, shape (n_groups,)
        Number of leading pivots of each minor to eliminate sparsely before the rest is made dense.
    prime : int
        Prime modulo which the minors are nonsingular.
    """

    kind: ClassVar[str] = "block substitution"
    forms: ClassVar[Forms] = {
        "view": "view",
        "removals": "pairs",
        "groups": "pairs",
        "columns": "places",
        "eliminated": "indices",
        "prime": "integer",
    }
    view: View
    removals: Indices
    groups: Indices
    columns: Indices
    eliminated: Indices
    prime: int

    @property
    def value(self) -> int:
        """Number of slices that are removed."""
        return len(self.removals)


def check_block_substitution(
    argument: BlockSubstitution, entries: Entries, before: Removed | None
) -> None:
    """Check that each step removes n independent slices, which lowers the rank by at least n.

    A slice by itself, and what is hidden from the start, are as in
    `capacity.rank.verifier.kinds.substitution`. Let T, the tensor that is left before a step, be a
    sum of R simple tensors a_r (x) b_r (x) ... (x) z_r, and let its slices T_i, of mode 0 without
    loss of generality, for i in a set I, be linearly independent: they are, since a minor whose
    rows are these slices has known entries alone and is nonsingular. Then the R vectors (a_r[i], i
    in I) span R^I, for if c were orthogonal to all of them, the sum of the c_i T_i would vanish. So
    |I| of the terms have vectors that are a basis; from each other slice T_j, a combination of the
    T_i can be subtracted such that these terms vanish from it. What remains is a tensor of rank at
    most R - |I|. The coefficients, of any field that contains the rational numbers, are unknown, so
    the entries of T_j are hidden wherever one of the T_i isn't known to be zero.
    """
    removals, groups = argument.removals, argument.groups
    require(len(groups) > 0, "there must be a group")
    # large numbers would wrap
    small = ((groups >= 0) & (groups <= len(removals))).all()
    first, n = groups.T
    ends = first + n
    apart = (n > 0).all() and (ends[:-1] <= first[1:]).all() and ends[-1] <= len(removals)
    require(small and apart, "the groups must be parts of the removals, one after the other")
    fits = argument.columns.shape == (int(n.sum()), entries.order - 1)
    require(fits, "a group must have a place for each of its slices")
    require(len(argument.eliminated) == len(groups), "`eliminated` must have one number per group")
    require_prime(argument.prime)
    starts = [0, *n.cumsum().tolist()]
    found: list[Group] = []
    for number, (start, stop) in enumerate(itertools.pairwise(starts)):
        modes = removals[first[number] : ends[number], 0]
        require((modes == modes[0]).all(), "the slices of a group must be of one mode")
        eliminated = int(argument.eliminated[number])
        columns = argument.columns[start:stop]
        found.append(Group(int(first[number]), columns, eliminated, argument.prime))
    require_removals(argument.view, removals, entries, before, tuple(found))


KIND = Kind(
    BlockSubstitution,
    lower=lambda argument, _entries: argument.view.indices,
    removals=check_block_substitution,
    adds=True,
    below_complex=True,
)
