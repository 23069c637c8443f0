"""Lower bound by the substitution method, with unknown entries: its number of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from capacity.exact.types import Indices
from capacity.rank.verifier.argument import Forms, FromBelow, View
from capacity.rank.verifier.entries import Entries
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.removals import require_removals
from capacity.rank.verifier.view import Removed


@dataclass(frozen=True, eq=False, repr=False)
class Substitution(FromBelow):
    """Steps of the substitution method: slices of a view that are removed one after the other.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices are removed.
    removals : ndarray of int64, shape (n, 2)
        Pairs (mode, index) of the slices, in the order of their removal. Indices are those of the
        view's tensor, from 0.
    """

    kind: ClassVar[str] = "substitution"
    forms: ClassVar[Forms] = {"view": "view", "removals": "pairs"}
    view: View
    removals: Indices

    @property
    def value(self) -> int:
        """Number of slices that are removed."""
        return len(self.removals)


def check_substitution(argument: Substitution, entries: Entries, before: Removed | None) -> None:
    """Check that each step removes a nonzero slice, which lowers the rank by at least one.

    Let T be a sum of R simple tensors a_r (x) b_r (x) ... (x) z_r, and let its slice T_i, of mode 0
    without loss of generality, be nonzero: it is, since an entry of it is known and nonzero. Then
    some a_r[i] is nonzero. Subtract a_r[j] / a_r[i] times T_i from every other slice T_j: term r
    vanishes from all of them, so the slices without T_i are a tensor of rank at most R - 1. The
    multiples are unknown. So the entries of T_j become unknown (are hidden) wherever T_i isn't
    known to be zero, and the others stay as they were. For the effective rank, the unobserved
    fibers are hidden from the start, and so are those that slices removed `before` may have
    changed. The coefficients may lie in any field that contains the rational numbers.
    """
    require_removals(argument.view, argument.removals, entries, before)


KIND = Kind(
    Substitution,
    lower=lambda argument, _entries: argument.view.indices,
    removals=check_substitution,
    adds=True,
    below_complex=True,
)
