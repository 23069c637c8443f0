"""The tensor of a view, and which of its entries are known."""

from __future__ import annotations

import math
from typing import NamedTuple

import flint
import numpy as np

from capacity.rank.types import Indices, Mask
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.budget import DENSE_BYTES, steps_of_rank
from capacity.rank.verifier.facts import SORT, Facts, require

# steps and bytes for each entry of a dense tensor, and steps for each product with a basis
ENTRY, ENTRY_BYTES, PRODUCT = 20, 24, 3
# modulo this prime a rank is bounded before it is computed exactly
PRIME = 2**31 - 1
# for the effective rank these arguments need a sub-tensor that every completion has
UNOBSERVED = "there are unobserved fibers among its entries"


class Removed(NamedTuple):
    """Slices of a mode that another argument removed before, with multiples of them subtracted."""

    mode: int
    slices: Indices


def require_prime(n: int) -> None:
    """End the check unless n is a prime of 63 bits at most."""
    require(2 <= n < 2**63 and flint.fmpz(n).is_prime(), "the modulus is no prime")


def view_tensor(view: View, facts: Facts, *, before: Removed | None = None) -> tuple[Indices, Mask]:
    """The tensor of a view, and which of its entries are known.

    All are known of D itself. Of a tensor that represents the facts, known are the observed fibers,
    and of their combinations, those that take only observed ones. If slices were removed
    `before`, fibers across its mode are known where all these slices vanish.
    """
    require(all(len(of) for of in view.indices), "a sub-tensor must have indices in each mode")
    shape = [len(of) for of in view.indices]
    fit = all(P is None or P.shape[1] == n for P, n in zip(view.bases, shape, strict=True))
    require(fit, "a basis doesn't fit the sub-tensor")
    _charge(view, shape, facts)
    tensor = np.zeros(shape, np.int64)
    tensor[_places(view, facts, facts.among(view.indices))] = 1
    across = 2 if before is None else before.mode
    a, b = (mode for mode in range(3) if mode != across)
    hidden = np.zeros((shape[a], shape[b]), np.int64)
    if facts.effective:
        hidden[:] = 1
        # across the mode any object will do: the fiber is observed
        hidden[_fibers(view, facts, across, None)] = 0
    if before is not None:
        hidden[_fibers(view, facts, across, before.slices)] = 1
    growth = 1
    for mode, P in enumerate(view.bases):
        if P is None:
            continue
        # entries of at most 2^20 each: these sums can't wrap
        growth *= max(1, int(np.abs(P).sum(axis=1).max()))
        require(growth < 2**62, "the bases are too large for integers of 64 bits")
        tensor = np.moveaxis(np.tensordot(P, tensor, axes=(1, mode)), 0, mode)
        if mode != across:
            axis = (a, b).index(mode)
            hidden = np.moveaxis(np.tensordot(P != 0, hidden, axes=(1, axis)), 0, axis)
    known = np.broadcast_to(np.expand_dims(hidden == 0, across), tensor.shape).copy()
    return tensor, known


def _charge(view: View, shape: list[int], facts: Facts) -> None:
    """Pay for the largest tensor on the way, and for the products with bases."""
    now, largest, products = shape[:], math.prod(shape), 0
    for mode, P in enumerate(view.bases):
        if P is not None:
            products += 2 * math.prod(now) * len(P)
            now[mode] = len(P)
            largest = max(largest, math.prod(now))
    facts.budget.spend(ENTRY * largest + PRODUCT * products, ENTRY_BYTES * largest)


def _places(view: View, facts: Facts, rows: Indices) -> tuple[Indices, ...]:
    """Where facts stand in the sub-tensor of a view that they lie in."""
    return tuple(place(of, facts.triples[rows, mode]) for mode, of in enumerate(view.indices))


def _fibers(view: View, facts: Facts, across: int, indices: Indices | None) -> tuple[Indices, ...]:
    """Which fibers of a view have a fact at some indices of the mode that they go along."""
    chosen: list[Indices | None] = list(view.indices)
    chosen[across] = indices
    rows = facts.among(chosen)
    return tuple(
        place(view.indices[mode], facts.triples[rows, mode]) for mode in range(3) if mode != across
    )


def place(of: Indices, values: Indices) -> Indices:
    """Where each value stands in a list of distinct ones that holds it."""
    order = np.argsort(of)
    return order[np.searchsorted(of, values, sorter=order)]


def facts_of_view(view: View, facts: Facts) -> Indices:
    """The facts of a view's components, if the other slices are combinations of the view's."""
    rows = facts.of_components(facts.among((view.indices[0], None, None)))
    facts.budget.spend(4 * SORT * len(rows))
    used = [np.unique(facts.triples[rows, mode]) for mode in range(3)]
    whole, _ = view_tensor(View((used[0], used[1], used[2])), facts)
    sizes = [len(of) for of in view.indices]
    for mode, n in enumerate(sizes):
        chosen = np.isin(used[mode], view.indices[mode])
        require(chosen.sum() == n, "an index is elsewhere")
        if chosen.all():
            continue
        slices = np.moveaxis(whole, mode, 0).reshape(len(used[mode]), -1)
        # if the view's slices span the others in each mode, its unfolding is as large as this one
        span = _span(slices[chosen], slices, min(n, math.prod(sizes) // n), facts)
        require(span, f"the chosen slices of mode {mode} do not span the others")
    return rows


def _span(some: Indices, rows: Indices, most: int, facts: Facts) -> bool:
    """Return True if all rows are combinations of some, and their rank is `most` at most.

    A large rank takes hours, exactly. Modulo a prime it is no larger, and takes a second.
    """
    facts.budget.spend(4 * SORT * rows.size, DENSE_BYTES * rows.size)
    different = np.unique(rows, axis=0)
    m, n = different.shape
    facts.budget.spend(steps_of_rank(m, n))
    if flint.nmod_mat(m, n, different.ravel().tolist(), PRIME).rank() > most:
        return False
    # fractions of up to `most` rows, and so of minors of that size
    facts.budget.spend(2 * m * n * most * (10 + most))
    return _rank(different) == _rank(some)


def _rank(M: Indices) -> int:
    m, n = M.shape
    return flint.fmpz_mat(m, n, M.ravel().tolist()).rank()
