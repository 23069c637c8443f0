"""Small sub-tensors, and the conversion of arguments about them to the whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices, lifted
from capacity.rank.verifier.argument import Argument, View
from capacity.tensor.coordinates import distinct
from capacity.tensor.sparse import SparseTensor

# arguments that are found together, and whose values add up
Finding: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True)
class Part:
    """Some entries as a small tensor, with its indices in the whole.

    Attributes
    ----------
    indices : tuple of ndarrays of int64
        Indices of the whole that the entries have in each mode.
    places : ndarray of int64, shape (n_entries, order)
        Positions of the entries in the small tensor.
    values : ndarray of int64, shape (n_entries,)
        The entries.
    """

    indices: tuple[Indices, ...]
    places: Indices
    values: Indices

    @classmethod
    def of(cls, tensor: SparseTensor, rows: Indices) -> Part:
        """Make the part for some rows of the entries; nothing dense is allocated yet."""
        mine = tensor.indices[rows]
        used = tuple(distinct(of) for of in mine.T)
        places = [np.searchsorted(of, mine[:, m]) for m, of in enumerate(used)]
        return cls(used, np.stack(places, axis=1), tensor.values[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(map(len, self.indices))

    @property
    def size(self) -> int:
        """Number of entries times number of slices."""
        return math.prod(self.shape) * sum(self.shape)

    def tensor(self) -> NDArray[np.integer]:
        """The dense tensor, of int8 where its entries fit."""
        small = self.values.max(initial=0) < 2**7 and self.values.min(initial=0) >= -(2**7)
        dense = np.zeros(self.shape, np.int8 if small else np.int64)
        dense[tuple(self.places.T)] = self.values
        return dense

    def relocated(self, found: Finding) -> Finding:
        """Convert arguments about the tensor to arguments about the whole."""
        return tuple(relocated(argument, self.indices) for argument in found)


def relocated(argument: Argument, indices: tuple[Indices, ...]) -> Argument:
    """Convert an argument about a sub-tensor to one about the whole.

    Parameters
    ----------
    argument : Argument
        An argument about the sub-tensor.
    indices : tuple of ndarrays of int64
        Indices of the sub-tensor in the whole, for each mode.

    Returns
    -------
    Argument
        An argument of the same kind about the whole.

    Raises
    ------
    InvalidArgumentError
        If the argument has boxes, which are numbered for all entries.
    """
    fields: dict[str, Any] = {}
    for name, form in argument.forms.items():
        value = getattr(argument, name)
        if form == "boxes":
            raise InvalidArgumentError(
                f"An argument with boxes, such as {argument.kind!r}, must be about the whole "
                "tensor; got one about a sub-tensor. Find it by `find_in_entries`."
            )
        if form == "view":
            lifted_to = tuple(of[i] for of, i in zip(indices, value.indices, strict=True))
            value = View(lifted_to, value.bases)
        elif form == "slices":
            value = indices[_mode(argument)][value]
        elif form == "fibers":
            others = [of for m, of in enumerate(indices) if m != _mode(argument)]
            value = np.stack([of[value[:, n]] for n, of in enumerate(others)], axis=1)
        elif form in ("terms", "algebraic terms"):
            value = tuple(lifted(list(value), indices))
        fields[name] = value
    kind: type[Any] = type(argument)
    return kind(**fields)


def _mode(argument: Any) -> int:
    """Mode of the slices and fibers of an argument."""
    return argument.mode
