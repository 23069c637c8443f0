"""The entries of the tensor that a certificate is checked against, by index and by component.

A checker asks for the entries that its argument is about, and only these are charged to the budget:
a certificate may have as many arguments as a tensor has components.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.budget import CheckBudget
from capacity.tensor.coordinates import distinct, stable_order
from capacity.tensor.sparse import SparseTensor
from capacity.tensor.structure import component_labels, is_complete

# steps for sorting a row, for sorting a number, and for reading a row
SORT, NUMBER, PASS = 220, 60, 30
# entries are smaller than this, so that sums of products of two of them fit 64 bits
LARGEST_VALUE = 2**31


class Refuted(Exception):  # noqa: N818 - a verdict, not an error
    """The check of a certificate failed at some step."""


def require(holds: object, otherwise: str) -> None:
    """End the check, with a reason, unless a condition holds."""
    if not holds:
        raise Refuted(otherwise)


class Given(NamedTuple):
    """The contribution of an argument to a sum: values at some entries, each once, 0 elsewhere.

    For the effective rank, "elsewhere" means the other places of observed fibers.
    """

    rows: Indices
    values: Indices


class Entries:
    """The nonzero entries of a tensor, and the budget for checking bounds of its rank.

    Parameters
    ----------
    tensor : SparseTensor
        The tensor T.
    effective : bool
        True to check a bound of the effective rank.
    budget : CheckBudget
        Budget that the checks draw on.

    Attributes
    ----------
    indices : ndarray of int64, shape (n_entries, order)
        Places of the entries; a product of two indices fits 64 bits.
    values : ndarray of int64, shape (n_entries,)
        The entries, each below 2^31 in absolute value.
    shape : tuple of int
        Numbers of indices of the modes.
    effective : bool
        True if the bound must hold for every tensor that agrees with T on the observed fibers, and
        not only for T. False if every fiber is observed, since T alone does so then.
    budget : CheckBudget
        Budget that the checks draw on.
    """

    def __init__(self, tensor: SparseTensor, *, effective: bool, budget: CheckBudget) -> None:
        budget.spend(PASS * tensor.n_entries)
        require(tensor.order >= 2, "a tensor must have two modes or more")
        require(tensor.largest < LARGEST_VALUE, "an entry must be below 2^31 in absolute value")
        self._tensor = tensor
        self.indices, self.values, self.shape = tensor.indices, tensor.values, tensor.shape
        self.effective = effective and not is_complete(tensor)
        self.budget = budget

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.indices)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def longer(self) -> int:
        """Factor by which exact arithmetic takes longer than for entries of 1, as measured."""
        return 1 + self._tensor.largest.bit_length() // 8

    @cached_property
    def labels(self) -> Indices:
        """Components of the entries, numbered from 0, shape (n_entries,)."""
        self.budget.spend((self.order - 1) * SORT * len(self))
        return component_labels(self._tensor)

    def among(self, indices: Sequence[Indices | None]) -> Indices:
        """Rows of the entries within some indices of each mode; None denotes all indices.

        The search starts from the mode that leaves the fewest entries.
        """
        found: Indices | None = None
        for mode, of in enumerate(indices):
            if of is None:
                continue
            self.require_distinct(of, mode)
            order, numbers = self._by_index[mode]
            begin, end = (np.searchsorted(numbers, of, side=side) for side in ("left", "right"))
            if found is None or (end - begin).sum() < len(found):
                found = _ranges(order, begin, end)
        rows = np.arange(len(self)) if found is None else found
        for mode, of in enumerate(indices):
            if of is not None:
                self.budget.spend(SORT * (len(rows) + len(of)))
                rows = rows[np.isin(self.indices[rows, mode], of)]
        return np.sort(rows)

    def with_index(self, mode: int, of: Indices) -> Indices:
        """Rows of the entries within some indices of one mode."""
        chosen: list[Indices | None] = [None] * self.order
        chosen[mode] = of
        return self.among(chosen)

    def of_first(self, i: int) -> list[int]:
        """Rows of the entries of one slice of the first mode."""
        order, numbers = self._by_index[0]
        begin, end = (np.searchsorted(numbers, i, side=side) for side in ("left", "right"))
        return order[begin:end].tolist()

    def require_distinct(self, indices: Indices, mode: int) -> None:
        """End the check unless these are distinct indices of a mode."""
        self.budget.spend(SORT * len(indices))
        inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < self.shape[mode])
        require(inside, "an index is out of range")
        require(len(distinct(indices)) == len(indices), "an index is used twice")

    def require_mode(self, mode: int) -> list[int]:
        """End the check unless this is a mode; return the other modes."""
        require(0 <= mode < self.order, f"a mode must be from 0 to {self.order - 1}")
        return [m for m in range(self.order) if m != mode]

    def require_order_3(self) -> None:
        """End the check unless there are three modes."""
        require(self.order == 3, "an argument of this kind is about tensors of order 3")

    def of_components(self, rows: Indices) -> Indices:
        """Rows of all entries in the components of some entries."""
        order, numbers = self._by_component
        components = distinct(self.labels[rows])
        begin, end = (np.searchsorted(numbers, components, side=s) for s in ("left", "right"))
        found = _ranges(order, begin, end)
        self.budget.spend(SORT * (len(rows) + len(found)))
        return np.sort(found)

    def given(self, rows: Indices) -> Given:
        """Return the contribution of an argument that contains some entries of T themselves."""
        return Given(rows, self.values[rows])

    @cached_property
    def _by_index(self) -> list[tuple[Indices, Indices]]:
        """Rows in the order of each mode's indices, and these indices.

        A tensor may have far more indices than entries; they take neither time nor memory.
        """
        self.budget.spend(self.order * NUMBER * len(self), 20 * self.order * len(self))
        return [_sorted(of) for of in self.indices.T]

    @cached_property
    def _by_component(self) -> tuple[Indices, Indices]:
        self.budget.spend(NUMBER * len(self))
        return _sorted(self.labels)


def _sorted(numbers: Indices) -> tuple[Indices, Indices]:
    """Rows in the order of their numbers, and the numbers in this order."""
    order = stable_order(numbers)
    return order, numbers[order]


def _ranges(order: Indices, begin: Indices, end: Indices) -> Indices:
    """Concatenate the parts of an order between each beginning and its end."""
    lengths = end - begin
    offsets = np.repeat(begin - np.cumsum(lengths) + lengths, lengths)
    return order[offsets + np.arange(len(offsets))]
