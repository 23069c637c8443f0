"""Bounds by square slices: rank n if diagonal in common bases, at least n + 1 if not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import flint
import numpy as np

from capacity.exact.types import Indices, Touched
from capacity.rank.verifier.argument import Forms, Shown, Side, View
from capacity.rank.verifier.budget import require_at_most
from capacity.rank.verifier.entries import Entries, Given, Refuted, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.simultaneous_diagonalization import (
    LARGEST_COEFFICIENT,
    LARGEST_SIDE,
    MOST_DETERMINANTS,
    all_singular,
    n_determinants,
    why_not_diagonal,
)
from capacity.rank.verifier.view import UNOBSERVED, entries_of_view, view_tensor

# steps for a slice, however small
SLICE = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class Diagonalization(Shown):
    """A claim that the n x n slices of a mode are diagonal in common bases, or that they are not.

    Attributes
    ----------
    view : View
        Sub-tensor whose slices in the mode are n x n.
    mode : int
        Mode of the slices.
    combination : ndarray of int64
        Coefficients of a nonsingular combination of the slices; empty if all are singular.
    value : int
        The bound: n for an upper bound, n + 1 for a lower bound.
    """

    kind: ClassVar[str] = "diagonalization"
    forms: ClassVar[Forms] = {
        "view": "view",
        "mode": "integer",
        "combination": "coefficients",
        "value": "integer",
    }
    view: View
    mode: int
    combination: Indices
    value: int

    @property
    def sides(self) -> tuple[Side, ...]:
        """The upper side if the value is n, otherwise the lower side."""
        mode = (self.mode + 1) % len(self.view.indices)
        basis = self.view.bases[mode]
        n = len(self.view.indices[mode] if basis is None else basis)
        return ("upper",) if self.value == n else ("lower",)


def check_not_diagonal(argument: Diagonalization, entries: Entries) -> Touched:
    """Check that the n x n slices of X are not diagonal in common bases, so rank(X) >= n + 1.

    `capacity.rank.verifier.procedures.simultaneous_diagonalization` decides this, and has the
    proof. If all combinations of the slices are singular, the unfoldings of the other two modes
    must have rank n.
    """
    require(view_tensor(argument.view, entries)[1].all(), UNOBSERVED)
    slices, n = square_slices(argument, entries)
    require(argument.value == n + 1, f"slices of {n} x {n} prove the lower bound {n + 1}")
    if len(argument.combination):
        why = why_slices_are_not_diagonal(argument, slices)
        require(why is not None, "the slices are diagonal in common bases")
    else:
        determinants = n_determinants(slices)
        require_at_most("determinants of sums of slices", determinants, MOST_DETERMINANTS)
        each = 20 * n**3 + 100 * n**2 + 10_000
        entries.budget.spend(determinants * each * entries.longer)
        require(all_singular(slices), "some combination of the slices may be nonsingular")
        for turned in (slices, slices.transpose(0, 2, 1)):
            unfolded = turned.transpose(1, 0, 2).reshape(n, -1)
            rank = flint.fmpz_mat(n, unfolded.shape[1], unfolded.ravel().tolist()).rank()
            require(rank == n, f"an unfolding has rank {rank}")
    return argument.view.indices


def entries_of_diagonal(argument: Diagonalization, entries: Entries) -> Given:
    """Check that the entries of a view's components have the rank n of the view.

    `capacity.rank.verifier.procedures.simultaneous_diagonalization` decides that the view's n x n
    slices are diagonal in common bases. Its sub-tensor has the rank of all entries of its
    components if, in each mode, their slices are linear combinations of its own; that is, if the
    unfolding of all these entries has no larger rank.
    """
    slices, n = square_slices(argument, entries)
    require(argument.value == n, f"slices of {n} x {n} prove the upper bound {n}")
    why = why_slices_are_not_diagonal(argument, slices)
    require(why is None, f"the slices are not diagonal in common bases: {why}")
    return entries.given(entries_of_view(argument.view, entries))


def square_slices(argument: Diagonalization, entries: Entries) -> tuple[Indices, int]:
    """Return the slices of a view, shape (m, n, n), and n; charge the work on them."""
    entries.require_order_3()
    entries.require_mode(argument.mode)
    require(all(P is None for P in argument.view.bases), "the view must have no bases")
    small = np.abs(argument.combination) <= LARGEST_COEFFICIENT
    require(small.all(), f"a coefficient of a slice exceeds {LARGEST_COEFFICIENT:,}")
    sides = [len(of) for of in argument.view.indices]
    require_at_most("slices, or rows of a slice", max(sides), LARGEST_SIDE)
    slices = np.moveaxis(view_tensor(argument.view, entries)[0], argument.mode, 0)
    m, n = slices.shape[:2]
    require(n == slices.shape[2], "the slices must be square")
    # products of all pairs of ratios, and minimal polynomials
    entries.budget.spend(m * (120 * m * n**3 + 100 * n**4) * entries.longer + SLICE * m)
    return slices, n


def why_slices_are_not_diagonal(argument: Diagonalization, slices: Indices) -> str | None:
    """Return the reason why slices aren't diagonal in common bases, or None if they are."""
    require(len(argument.combination) == len(slices), "each slice must have a coefficient")
    try:
        return why_not_diagonal(slices, argument.combination)
    except ValueError as error:
        raise Refuted(str(error)) from None


KIND = Kind(Diagonalization, lower=check_not_diagonal, upper=entries_of_diagonal)
