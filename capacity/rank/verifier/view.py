"""The tensor of a view, and the arguments with two sides that look at one."""

from __future__ import annotations

import math

import flint
import numpy as np

from capacity.rank.types import Indices, Mask
from capacity.rank.verifier.arguments import (
    Diagonalization,
    Pencil,
    Unfolding,
    View,
)
from capacity.rank.verifier.budget import require_at_most
from capacity.rank.verifier.facts import SORT, Facts, Refuted, require
from capacity.rank.verifier.procedures.pencil_rank import sparse_pencil_rank
from capacity.rank.verifier.procedures.simultaneous_diagonalization import (
    LARGEST_COEFFICIENT,
    LARGEST_SIDE,
    why_not_diagonal,
)

# steps and bytes for each entry of a dense tensor, and steps for each product with a basis
ENTRY, ENTRY_BYTES, PRODUCT = 20, 24, 3


def require_prime(n: int) -> None:
    """End the check unless n is a prime of 63 bits at most."""
    require(2 <= n < 2**63 and flint.fmpz(n).is_prime(), "the modulus is no prime")


def view_tensor(
    view: View, facts: Facts, *, before: Unfolding | None = None
) -> tuple[Indices, Mask]:
    """The tensor of a view, and which of its entries are known.

    All are known of D itself. Of a tensor that represents the facts, known are the observed fibers,
    and of their combinations, those that take only observed ones. If the slices of an unfolding
    were removed `before`, fibers across its mode are known where all these slices vanish.
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
        hidden[_fibers(view, facts, across, before.rows)] = 1
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


def square_slices(argument: Diagonalization, facts: Facts) -> tuple[Indices, int]:
    """The slices of a view, shape (m, n, n), and n; pays for what is done with them."""
    require(argument.mode in (0, 1, 2), "there is no such mode")
    require(all(P is None for P in argument.view.bases), "the view must be a part of the facts")
    small = np.abs(argument.combination) <= LARGEST_COEFFICIENT
    require(small.all(), f"a coefficient of a slice is above {LARGEST_COEFFICIENT:,}")
    sides = [len(of) for of in argument.view.indices]
    require_at_most("slices, or rows of a slice", max(sides), LARGEST_SIDE)
    slices = np.moveaxis(view_tensor(argument.view, facts)[0], argument.mode, 0)
    m, n = slices.shape[:2]
    require(n == slices.shape[2], "the slices must be square")
    # products of all pairs of ratios, and minimal polynomials
    facts.budget.spend(120 * m * m * n**3 + 100 * m * n**4)
    return slices, n


def why_slices_are_not_diagonal(argument: Diagonalization, slices: Indices) -> str | None:
    """Why slices aren't diagonal in common bases, if the combination shows that they aren't."""
    require(len(argument.combination) == len(slices), "a coefficient a slice must be given")
    try:
        return why_not_diagonal(slices, argument.combination)
    except ValueError as error:
        raise Refuted(str(error)) from None


def require_pencil(argument: Pencil, facts: Facts) -> Indices:
    """End the check unless two slices have the rank that is claimed; return their rows."""
    mode = argument.mode
    require(mode in (0, 1, 2), "there is no such mode")
    require(len(argument.slices) == 2, "a pencil has two slices")
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
