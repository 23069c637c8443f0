"""The entries of a sparse tensor, by slice and by fiber."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capacity.exact.types import Indices
from capacity.tensor.structure import numbered_fibers


@dataclass(frozen=True)
class SparseLayout:
    """The entries of a tensor of order 3, by slice and by fiber.

    Attributes
    ----------
    shape : ndarray of int64, shape (3,)
        Numbers of slices of the modes.
    modes : ndarray of int64, shape (n_slices,)
        Mode of each slice; slices are numbered through all modes.
    slices : ndarray of int64, shape (n_entries, 3)
        Slices that each entry lies in.
    fibers : ndarray of int64, shape (n_entries, 3)
        For each entry its fibers along the modes, numbered through all modes.
    in_slice, in_fiber : pair of ndarrays of int64
        Entries, slice by slice or fiber by fiber, and where each begins among them.
    """

    shape: Indices
    modes: Indices
    slices: Indices
    fibers: Indices
    in_slice: tuple[Indices, Indices]
    in_fiber: tuple[Indices, Indices]

    @classmethod
    def of(cls, places: Indices) -> SparseLayout:
        """Lay out entries by their places, shape (n_entries, 3), each index of a mode in use."""
        shape = places.max(axis=0) + 1
        first = np.cumsum(shape) - shape
        fibers, slices = numbered_fibers(places, shape.tolist()), places + first
        return cls(
            shape,
            np.repeat(np.arange(3), shape),
            slices,
            fibers,
            _entries_of(slices, int(shape.sum())),
            _entries_of(fibers, int(fibers.max()) + 1),
        )


def _entries_of(numbers: Indices, n: int) -> tuple[Indices, Indices]:
    """Entries with each of n numbers, and where each number begins among them."""
    order = np.argsort(numbers.ravel(), kind="stable")
    begins = np.searchsorted(numbers.ravel()[order], np.arange(n + 1))
    return order // numbers.shape[1], begins
