"""The tensor of a view, with a mask of its known entries."""

from __future__ import annotations

import math
from typing import NamedTuple

import flint
import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import DENSE_BYTES, steps_of_rank
from capacity.rank.verifier.entries import LARGEST_VALUE, SORT, Entries, require
from capacity.tensor.coordinates import distinct

# steps and bytes for each entry of a dense tensor, and steps for each product with a basis
ENTRY, ENTRY_BYTES, PRODUCT = 20, 24, 3
# prime for a rank that is computed before the exact one, which it doesn't exceed
PRIME = 2**31 - 1
# for the effective rank, these arguments need a sub-tensor that is the same in every completion
UNOBSERVED = "the sub-tensor has entries in unobserved fibers"


class Removed(NamedTuple):
    """Slices of a mode that an earlier argument removed, subtracting multiples of them."""

    mode: int
    slices: Indices


def require_prime(n: int) -> None:
    """End the check unless n is a prime of at most 63 bits."""
    require(2 <= n < 2**63 and flint.fmpz(n).is_prime(), "the modulus is not a prime below 2^63")


def view_tensor(
    view: View, entries: Entries, *, before: Removed | None = None
) -> tuple[Indices, Mask]:
    """Return the tensor of a view, and a mask of its known entries.

    All entries of T itself are known. For the effective rank, the known entries are those of
    observed fibers and, in other bases, of combinations of observed fibers alone. If slices were
    removed `before`, a fiber along their mode is known where all these slices vanish.
    """
    order, shape = entries.order, require_indices(view, entries)
    fit = all(P is None or P.shape[1] == n for P, n in zip(view.bases, shape, strict=True))
    require(fit, "a basis doesn't fit the sub-tensor")
    _charge(view, shape, entries)
    tensor = np.zeros(shape, np.int64)
    rows = entries.among(view.indices)
    tensor[_places(view, entries, rows)] = entries.values[rows]
    across = order - 1 if before is None else before.mode
    others = [mode for mode in range(order) if mode != across]
    hidden = np.zeros([shape[mode] for mode in others], np.int64)
    if entries.effective:
        hidden[:] = 1
        # any index along the mode will do: a fiber with an entry is observed
        hidden[_fibers(view, entries, across, None)] = 0
    if before is not None:
        hidden[_fibers(view, entries, across, before.slices)] = 1
    growth = LARGEST_VALUE
    for mode, P in enumerate(view.bases):
        if P is None:
            continue
        # entries of at most 2^20 each: these sums can't wrap
        growth *= max(1, int(np.abs(P).sum(axis=1).max()))
        require(growth < 2**62, "the bases are too large for integers of 64 bits")
        tensor = np.moveaxis(np.tensordot(P, tensor, axes=(1, mode)), 0, mode)
        if mode != across:
            axis = others.index(mode)
            hidden = np.moveaxis(np.tensordot(P != 0, hidden, axes=(1, axis)), 0, axis)
    known = np.broadcast_to(np.expand_dims(hidden == 0, across), tensor.shape).copy()
    return tensor, known


def sparse_view(
    view: View, entries: Entries, *, before: Removed | None = None
) -> tuple[Indices, Indices, tuple[int, Indices]]:
    """Return what `view_tensor` does, for a view of T itself in the given bases, without zeros.

    These are the places of its nonzero entries, shape (n_entries, order), these entries, and the
    fibers of unknown ones: their mode, and their places in the other modes, shape (n_fibers,
    order - 1).
    """
    order = entries.order
    rows = entries.among(view.indices)
    places = np.stack(_places(view, entries, rows), axis=1)
    if before is None:
        return places, entries.values[rows], (order - 1, np.zeros((0, order - 1), np.int64))
    fibers = np.stack(_fibers(view, entries, before.mode, before.slices), axis=1)
    entries.budget.spend(order * SORT * len(fibers))
    return places, entries.values[rows], (before.mode, np.unique(fibers, axis=0))


def require_indices(view: View, entries: Entries) -> list[int]:
    """End the check unless a view has indices of each mode; return their numbers."""
    order = entries.order
    require(len(view.indices) == len(view.bases) == order, "a view must have indices of each mode")
    require(all(len(of) for of in view.indices), "a sub-tensor must have indices in each mode")
    return [len(of) for of in view.indices]


def _charge(view: View, shape: list[int], entries: Entries) -> None:
    """Charge the largest intermediate tensor, and the products with bases, to the budget."""
    now, largest, products = shape[:], math.prod(shape), 0
    for mode, P in enumerate(view.bases):
        if P is not None:
            products += 2 * math.prod(now) * len(P)
            now[mode] = len(P)
            largest = max(largest, math.prod(now))
    entries.budget.spend(ENTRY * largest + PRODUCT * products, ENTRY_BYTES * largest)


def _places(view: View, entries: Entries, rows: Indices) -> tuple[Indices, ...]:
    """Positions of entries within the sub-tensor of a view that contains them."""
    return tuple(place(of, entries.indices[rows, mode]) for mode, of in enumerate(view.indices))


def _fibers(
    view: View, entries: Entries, across: int, indices: Indices | None
) -> tuple[Indices, ...]:
    """Positions of a view's fibers along a mode that have an entry at some indices of the mode."""
    chosen: list[Indices | None] = list(view.indices)
    chosen[across] = indices
    rows = entries.among(chosen)
    return tuple(
        place(view.indices[mode], entries.indices[rows, mode])
        for mode in range(entries.order)
        if mode != across
    )


def place(of: Indices, values: Indices) -> Indices:
    """Position of each value in an array of distinct values that contains it."""
    order = np.argsort(of)
    return order[np.searchsorted(of, values, sorter=order)]


def entries_of_view(view: View, entries: Entries) -> Indices:
    """Rows of the entries of a view's components.

    The check ends unless their other slices are linear combinations of the view's.
    """
    require(len(view.indices) == entries.order, "a view must have indices of each mode")
    rows = entries.of_components(entries.with_index(0, view.indices[0]))
    entries.budget.spend((entries.order + 1) * SORT * len(rows))
    used = [distinct(of) for of in entries.indices[rows].T]
    whole, _ = view_tensor(View(tuple(used), (None,) * entries.order), entries)
    sizes = [len(of) for of in view.indices]
    for mode, n in enumerate(sizes):
        chosen = np.isin(used[mode], view.indices[mode])
        require(chosen.sum() == n, "an index of the view is outside its components")
        if chosen.all():
            continue
        slices = np.moveaxis(whole, mode, 0).reshape(len(used[mode]), -1)
        # if the view's slices span the others in each mode, its unfolding is as large as this one
        span = _span(slices[chosen], slices, min(n, math.prod(sizes) // n), entries)
        require(span, f"the chosen slices of mode {mode} do not span the others")
    return rows


def _span(some: Indices, rows: Indices, most: int, entries: Entries) -> bool:
    """Return True if all rows are combinations of some of them, and have rank at most `most`.

    A large exact rank takes hours. The rank modulo a prime is no larger, and takes a second.
    """
    entries.budget.spend(4 * SORT * rows.size, DENSE_BYTES * rows.size)
    different = np.unique(rows, axis=0)
    m, n = different.shape
    entries.budget.spend(steps_of_rank(m, n))
    if flint.nmod_mat(m, n, (different % PRIME).ravel().tolist(), PRIME).rank() > most:
        return False
    # entries of at most `most` eliminated rows, which are as long as minors of that size
    entries.budget.spend(2 * m * n * most * (10 + most) * entries.longer)
    return _rank(different) == _rank(some)


def _rank(M: Indices) -> int:
    # flint needs up to 50 times longer for wide matrices of low rank than for tall ones
    m, n = max(M.shape), min(M.shape)
    tall = M if len(M) == m else M.T
    return flint.fmpz_mat(m, n, tall.ravel().tolist()).rank()
