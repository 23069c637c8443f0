"""Upper bound by a floating-point fit that has an exact real decomposition near it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask
from capacity.rank.verifier.argument import Forms, FromAbove, View
from capacity.rank.verifier.entries import SORT, Entries, Given, require
from capacity.rank.verifier.kind import Kind
from capacity.rank.verifier.procedures.krawczyk import contracts, cost_of_contraction
from capacity.rank.verifier.view import entries_of_view, place, view_tensor
from capacity.tensor.coordinates import distinct


@dataclass(frozen=True, eq=False, repr=False)
class Enclosure(FromAbove):
    """A floating-point CP decomposition, and a box around it that contains an exact real one.

    Attributes
    ----------
    view : View
        Sub-tensor of the entries, without `bases`.
    factors : tuple of ndarrays of float64, shapes (n_m, rank)
        Factors of the floating-point decomposition, one for each mode.
    varying : ndarray of int64
        Unknowns that vary, numbered along the rows of the factors.
    radius : float
        Largest change of an unknown that varies: half the side of the box.
    mode : int
        Mode of the fibers.
    fibers : ndarray of int64, shape (n, 2)
        Fibers of the mode that each get a simple tensor of their own. The decomposition may take
        any values there. Only tensors of order 3 may have such fibers.
    """

    kind: ClassVar[str] = "enclosure"
    forms: ClassVar[Forms] = {
        "view": "view",
        "factors": "factors",
        "varying": "indices",
        "radius": "real",
        "mode": "integer",
        "fibers": "fibers",
    }
    view: View
    factors: tuple[NDArray[np.float64], ...]
    varying: Indices
    radius: float
    mode: int = 2
    fibers: Indices = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    @property
    def value(self) -> int:
        """Number of terms plus number of fibers."""
        return self.factors[0].shape[1] + len(self.fibers)


def entries_of_enclosure(argument: Enclosure, entries: Entries) -> Given:
    """Check that a view has an exact real decomposition, which extends to its components.

    `capacity.rank.verifier.procedures.krawczyk` proves that it exists. The number of unknowns that
    vary is the number of entries that count: all entries of the view or, for the effective rank,
    those of observed fibers.

    If all entries count, the other slices must be combinations of the view's. Otherwise the view
    must contain all entries of its components, because the slices of a completion needn't satisfy
    such combinations. Places in `fibers` don't count, and entries there may lie outside the view:
    the fiber's own simple tensor corrects any values that the decomposition has there.
    """
    view, fibers = argument.view, argument.fibers
    if len(fibers):
        entries.require_order_3()
    require(all(P is None for P in view.bases), "the view must have no bases")
    tensor, known = view_tensor(view, entries)
    rank = argument.factors[0].shape[1]
    shapes = [(n, rank) for n in tensor.shape]
    require([f.shape for f in argument.factors] == shapes, "the factors don't fit the view")
    nothing = np.ones(tensor.shape, bool), np.zeros(0, np.int64)
    beside, in_fibers = _beside_fibers(argument, entries) if len(fibers) else nothing
    # a decomposition of all entries represents the facts as well
    masked = entries.effective and len(argument.varying) < beside.sum()
    counts = known & beside if masked else beside
    fit = argument.factors, argument.varying, argument.radius
    entries.budget.spend(*cost_of_contraction(*fit))
    near = contracts(tensor, *fit, counts)
    require(near, "no exact decomposition is proved to exist near the fit")
    if not (masked or len(fibers)):
        return entries.given(entries_of_view(view, entries))
    inside = entries.with_index(0, view.indices[0])
    rows = entries.of_components(np.union1d(inside, in_fibers))
    entries.budget.spend(4 * SORT * len(rows))
    mine, beside_them = entries.indices[rows], entries.indices[np.setdiff1d(rows, in_fibers)]
    for mode, of in enumerate(view.indices):
        require(np.isin(of, mine[:, mode]).all(), "an index of the view is outside its components")
        require(np.isin(beside_them[:, mode], of).all(), "an entry lies outside the view")
    return entries.given(rows)


def _beside_fibers(argument: Enclosure, entries: Entries) -> tuple[Mask, Indices]:
    """Mask of the view's entries outside the fibers, and the rows of the entries in the fibers."""
    mode, fibers, indices = argument.mode, argument.fibers, argument.view.indices
    a, b = entries.require_mode(mode)
    require(fibers.shape[1] == 2, "fibers must be pairs of indices")
    width = entries.shape[b]
    inside = (fibers >= 0).all() and (fibers < [entries.shape[a], width]).all()
    require(inside, "an index is out of range")
    # 64 bits hold a product of two sizes, which are 32 bits each
    free = distinct(fibers[:, 0] * width + fibers[:, 1])
    require(len(free) == len(fibers), "fibers must be different")
    chosen = np.zeros((len(indices[a]), len(indices[b])), bool)
    mine = fibers[np.isin(fibers[:, 0], indices[a]) & np.isin(fibers[:, 1], indices[b])]
    chosen[place(indices[a], mine[:, 0]), place(indices[b], mine[:, 1])] = True
    beside = ~np.broadcast_to(np.expand_dims(chosen, mode), [len(of) for of in indices])
    rows = entries.with_index(a, distinct(fibers[:, 0]))
    entries.budget.spend(SORT * (len(rows) + len(fibers)))
    in_them = entries.indices[rows]
    return beside, rows[np.isin(in_them[:, a] * width + in_them[:, b], free)]


KIND = Kind(Enclosure, upper=entries_of_enclosure)
