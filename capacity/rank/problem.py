"""Problems that methods of search are given: small tensors, or sparse entries, with a goal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices, Mask, Term
from capacity.rank.effort import Limits
from capacity.rank.reductions.core import Core, concise_core
from capacity.rank.reductions.singleton_slices import Peeled, peel_singles
from capacity.rank.verifier.procedures.kronecker_form import Spend
from capacity.tensor.sparse import SparseTensor


@briefly_shown
@dataclass(frozen=True)
class Goal:
    """A request to a method of search: the interval so far, and the work it may do.

    Attributes
    ----------
    lower, upper : int
        The interval so far. Lower bounds are sought up to `upper`, decompositions down to `lower`.
    work : int
        Work allowed, in units of about a nanosecond. A method converts it to a number of attempts,
        so that a seed gives the same result on any machine.
    limits : Limits
        Maximum numbers of attempts.
    seed : int
        Seed of the method's random choices.
    start : tuple of Term
        A known decomposition of the tensor to start from; may be empty.
    """

    lower: int
    upper: int
    work: int
    limits: Limits
    seed: int
    start: tuple[Term, ...] = ()


@briefly_shown
@dataclass(frozen=True)
class Component:
    """Entries of whole components, for methods that need no dense tensor.

    Attributes
    ----------
    tensor : SparseTensor
        The whole tensor; that of a database is ``Database.tensor()``.
    rows : ndarray of int64
        Row numbers of the component's entries in ``SparseTensor.indices``.
    unfoldings : tuple of int
        Ranks of the unfoldings of these entries.
    spend : callable
        Charges the steps and bytes that the verifier will need. Raises `MemoryBudgetError` once the
        bound's share of the verifier's budget is spent.
    """

    tensor: SparseTensor
    rows: Indices
    unfoldings: tuple[int, ...]
    spend: Spend


def all_indices(shape: tuple[int, ...]) -> tuple[Indices, ...]:
    """Return all indices of each mode."""
    return tuple(np.arange(n) for n in shape)


@briefly_shown
@dataclass(frozen=True)
class Problem:
    """A small tensor whose rank, or effective rank, is bounded.

    Attributes
    ----------
    tensor : integer ndarray
        The dense tensor, of any order; empty if `rest` is given.
    known : ndarray of bool, of the shape of the tensor, or None
        The entries of observed fibers, for the effective rank; None for the rank.
    rest : Peeled, optional
        The remainder after peeling, for a tensor that is too large to be dense.
    """

    tensor: NDArray[np.integer]
    known: Mask | None = None
    rest: Peeled | None = None

    @classmethod
    def of_rest(cls, rest: Peeled) -> Problem:
        """Make a problem from the peeled remainder of a tensor that is too large to be dense."""
        return cls(np.zeros((0, 0, 0), np.int8), rest=rest)

    @cached_property
    def core(self) -> Core:
        """The concise core of the tensor.

        Raises
        ------
        InvalidArgumentError
            If the problem is about the effective rank, which a core doesn't preserve.
        """
        if self.known is not None:
            raise InvalidArgumentError(
                "A core preserves the rank and not the effective rank: `known` must be None."
            )
        return concise_core(self.tensor)

    @cached_property
    def peeled(self) -> Peeled | None:
        """The remainder without slices of a single entry; None if there are no such slices."""
        if self.rest is not None:
            return self.rest
        if self.tensor.ndim != 3:
            return None
        effective = self.known is not None
        places = np.argwhere(self.tensor)
        values = self.tensor[tuple(places.T)].astype(np.int64)
        return peel_singles(places, values, self.tensor.shape, effective=effective)

    @property
    def size(self) -> int:
        """Number of entries times number of slices: the cost of one pass over all slices."""
        return self.tensor.size * sum(self.tensor.shape)

    @cached_property
    def parts(self) -> list[tuple[Indices, ...]]:
        """Sub-tensors for the substitution method: the whole, and the core if that is smaller."""
        whole = all_indices(self.tensor.shape)
        if self.known is not None or self.core.tensor.shape == self.tensor.shape:
            return [whole]
        return [whole, self.core.chosen]

    def part(self, of: tuple[Indices, ...]) -> tuple[Indices, Mask]:
        """Return the sub-tensor of some indices, and the mask of its known entries."""
        tensor = self.tensor[np.ix_(*of)].astype(np.int64)
        known = np.ones(tensor.shape, bool) if self.known is None else self.known[np.ix_(*of)]
        return tensor, known
