"""What the checkers share: refusals, the tensor of a view, and the arguments with two sides."""

from __future__ import annotations

import math

import flint
import numpy as np

from capacity.database.facts import Database
from capacity.errors import MemoryBudgetError
from capacity.rank.arrays import Indices, Mask
from capacity.rank.certificate import (
    Diagonalization,
    Pencil,
    Unfolding,
    View,
)
from capacity.rank.diagonal import LARGEST_COEFFICIENT, LARGEST_SIDE, why_not_diagonal
from capacity.rank.pencil import sparse_pencil_rank

# entries of the largest tensor that is made dense
DENSE_BUDGET = 2**25


class Refuted(Exception):  # noqa: N818 - a verdict, not an error
    """A step of a certificate fails."""


def require(holds: object, otherwise: str) -> None:
    """End the check, with the step that fails, unless it holds."""
    if not holds:
        raise Refuted(otherwise)


def require_prime(n: int) -> None:
    """End the check unless n is a prime of 63 bits at most."""
    require(2 <= n < 2**63 and flint.fmpz(n).is_prime(), "the modulus is no prime")


def positions(indices: Indices, n: int) -> Indices:
    """Where each index stands in a list of distinct ones; -1 for the others."""
    require(len(indices) == 0 or (indices.min() >= 0 and indices.max() < n), "index out of range")
    at = np.full(n, -1, np.int64)
    at[indices] = np.arange(len(indices))
    require((at >= 0).sum() == len(indices), "a row is used twice")
    return at


def view_tensor(
    view: View, db: Database, effective: bool, before: Unfolding | None = None
) -> tuple[Indices, Mask]:
    """The tensor of a view, and which of its entries are known.

    All are known of D itself. Of a tensor that represents the facts, known are the observed fibers,
    and of their combinations, those that take only observed ones. If the slices of an unfolding
    were removed `before`, fibers across its mode are known where all these slices vanish.
    """
    require(all(len(of) for of in view.indices), "a sub-tensor must have indices in each mode")
    at = [positions(of, n) for of, n in zip(view.indices, db.shape, strict=True)]
    shape = [len(of) for of in view.indices]
    largest = [max(n, 0 if P is None else len(P)) for n, P in zip(shape, view.bases, strict=True)]
    if math.prod(largest) > DENSE_BUDGET:
        raise MemoryBudgetError(
            f"A certificate must be about {DENSE_BUDGET:,} entries at most; got {shape}."
        )
    places = np.stack([at[mode][db.triples[:, mode]] for mode in range(3)])
    tensor = np.zeros(shape, np.int64)
    tensor[tuple(places[:, (places >= 0).all(axis=0)])] = 1
    across = 2 if before is None else before.mode
    a, b = (mode for mode in range(3) if mode != across)
    hidden = np.zeros((shape[a], shape[b]), np.int64)
    inside = (places[[a, b]] >= 0).all(axis=0)
    if effective:
        hidden[:] = 1
        hidden[places[a, inside], places[b, inside]] = 0
    if before is not None:
        gone = inside & np.isin(db.triples[:, across], before.rows)
        hidden[places[a, gone], places[b, gone]] = 1
    growth = 1
    for mode, P in enumerate(view.bases):
        if P is None:
            continue
        require(P.ndim == 2 and P.shape[1] == shape[mode], "a basis doesn't fit the sub-tensor")
        # Python integers: a sum of 64-bit ones can wrap
        require(P.dtype == np.int64, "a basis must be of integers")
        growth *= max(1, *(sum(map(abs, row)) for row in P.tolist()))
        require(growth < 2**62, "the bases are too large for integers of 64 bits")
        tensor = np.moveaxis(np.tensordot(P, tensor, axes=(1, mode)), 0, mode)
        if mode != across:
            axis = (a, b).index(mode)
            hidden = np.moveaxis(np.tensordot(P != 0, hidden, axes=(1, axis)), 0, axis)
    known = np.broadcast_to(np.expand_dims(hidden == 0, across), tensor.shape).copy()
    return tensor, known


def square_slices(argument: Diagonalization, db: Database) -> tuple[Indices, int]:
    """The slices of a view, shape (m, n, n), and n."""
    require(argument.mode in (0, 1, 2), "there is no such mode")
    require(all(P is None for P in argument.view.bases), "the view must be a part of the facts")
    coefficients = np.abs(argument.combination)
    require((coefficients <= LARGEST_COEFFICIENT).all(), "the coefficients are too large to check")
    slices = np.moveaxis(view_tensor(argument.view, db, False)[0], argument.mode, 0)
    n = slices.shape[1]
    require(n == slices.shape[2], "the slices must be square")
    require(n <= LARGEST_SIDE and len(slices) <= LARGEST_SIDE, "the slices are too large to check")
    return slices, n


def why_slices_are_not_diagonal(argument: Diagonalization, slices: Indices) -> str | None:
    """Why slices aren't diagonal in common bases, if the combination shows that they aren't."""
    require(len(argument.combination) == len(slices), "a coefficient a slice must be given")
    try:
        return why_not_diagonal(slices, argument.combination)
    except ValueError as error:
        raise Refuted(str(error)) from None


def require_pencil(argument: Pencil, db: Database) -> Mask:
    """End the check unless two slices have the rank that is claimed; return their facts."""
    mode = argument.mode
    require(mode in (0, 1, 2), "there is no such mode")
    require(len(argument.slices) == 2, "a pencil has two slices")
    first, second = argument.slices.tolist()
    require(first != second, "the two slices are one")
    facts = np.isin(db.triples[:, mode], argument.slices)
    a, b = (m for m in range(3) if m != mode)
    width = db.shape[b]
    mine = db.triples[facts].astype(np.int64)
    places, at = np.unique(mine[:, a] * width + mine[:, b], return_inverse=True)
    values = np.zeros((len(places), 2), np.int64)
    values[at.ravel(), (mine[:, mode] == second).astype(np.int64)] = 1
    rank = sparse_pencil_rank(*np.divmod(places, width), values)
    require(argument.value == rank, f"the two slices have rank {rank}")
    return facts
