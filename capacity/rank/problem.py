"""Small tensors to be bounded, and what a method of search is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.rank.effort import Limits
from capacity.rank.reductions.core import Core, concise_core
from capacity.rank.reductions.singleton_slices import Peeled, peel_singles
from capacity.rank.types import Indices, Mask, Term
from capacity.rank.verifier.procedures.kronecker_form import Spend


@dataclass(frozen=True)
class Goal:
    """A request to a method of search: the interval so far, and the work it may do.

    Attributes
    ----------
    lower, upper : int
        The interval so far. Games stop at `upper`.
    work : int
        In units of about a nanosecond on a machine of 2025. A method turns it into a number of
        tries, so that the same seed finds the same on any machine.
    limits : Limits
    seed : int
    start : tuple of Term
        A decomposition of the tensor, if one is at hand.
    """

    lower: int
    upper: int
    work: int
    limits: Limits
    seed: int
    start: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Component:
    """Facts of whole components, for methods that need no dense tensor.

    Attributes
    ----------
    db : Database
    facts : ndarray of int64
        Rows of ``Database.triples``.
    unfoldings : tuple of three ints
        Ranks of the unfoldings of these facts.
    spend : callable
        Charges steps of the verifier for what is found; raises `MemoryBudgetError` when a bound's
        share of its budget is spent.
    """

    db: Database
    facts: Indices
    unfoldings: tuple[int, int, int]
    spend: Spend


def all_indices(shape: tuple[int, ...]) -> tuple[Indices, Indices, Indices]:
    """All indices of three modes."""
    a, b, c = shape
    return np.arange(a), np.arange(b), np.arange(c)


@dataclass(frozen=True)
class Problem:
    """A small tensor whose rank, or effective rank, is bounded.

    Attributes
    ----------
    tensor : integer ndarray, shape (n0, n1, n2)
    known : ndarray of bool, shape (n0, n1, n2), or None
        The entries of observed fibers, for the effective rank; None for the rank.
    rest : Peeled, optional
        If the tensor is too large to be dense: what is left of it. It is then empty itself.
    """

    tensor: NDArray[np.integer]
    known: Mask | None = None
    rest: Peeled | None = None

    @classmethod
    def of_rest(cls, rest: Peeled) -> Problem:
        """Make the problem of the rest of a tensor that is too large to be dense."""
        return cls(np.zeros((0, 0, 0), np.int8), rest=rest)

    @cached_property
    def core(self) -> Core:
        """The concise core; there is none for the effective rank."""
        if self.known is not None:
            raise InvalidArgumentError("A core has the rank of the tensor, not its effective rank.")
        return concise_core(self.tensor)

    @cached_property
    def peeled(self) -> Peeled | None:
        """The rest without slices of a single entry; None if there are no such slices."""
        if self.rest is not None:
            return self.rest
        effective = self.known is not None
        return peel_singles(np.argwhere(self.tensor), self.tensor.shape, effective=effective)

    @property
    def size(self) -> int:
        """Entries times slices: what one look at all slices costs."""
        return self.tensor.size * sum(self.tensor.shape)

    @cached_property
    def parts(self) -> list[tuple[Indices, Indices, Indices]]:
        """Sub-tensors to play on: the whole, and the core where that is smaller."""
        whole = all_indices(self.tensor.shape)
        if self.known is not None or self.core.tensor.shape == self.tensor.shape:
            return [whole]
        return [whole, self.core.chosen]

    def part(self, of: tuple[Indices, Indices, Indices]) -> tuple[Indices, Mask]:
        """The sub-tensor of some indices, and which of its entries are known."""
        tensor = self.tensor[np.ix_(*of)].astype(np.int64)
        known = np.ones(tensor.shape, bool) if self.known is None else self.known[np.ix_(*of)]
        return tensor, known
