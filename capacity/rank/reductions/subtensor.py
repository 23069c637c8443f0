"""A small part of a database as a dense tensor, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.tensor import MODES
from capacity.errors import InvalidArgumentError
from capacity.rank.exact.sparse_terms import lifted
from capacity.rank.types import Indices
from capacity.rank.verifier.argument import Argument, View

# arguments that are found together: their values add up
Finding: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True)
class Part:
    """Some facts as a small tensor, and the indices of the whole that it is made of."""

    indices: tuple[Indices, Indices, Indices]
    places: Indices

    @classmethod
    def of(cls, db: Database, facts: Indices) -> Part:
        """The tensor of some facts; nothing dense is made yet."""
        triples = db.triples[facts].astype(np.int64)
        k, q, v = (np.unique(triples[:, mode]) for mode in MODES)
        places = [np.searchsorted(of, triples[:, m]) for m, of in enumerate((k, q, v))]
        return cls((k, q, v), np.stack(places, axis=1))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the tensor."""
        k, q, v = self.indices
        return len(k), len(q), len(v)

    @property
    def size(self) -> int:
        """Entries times slices."""
        return math.prod(self.shape) * sum(self.shape)

    def tensor(self) -> NDArray[np.int8]:
        """The dense tensor."""
        dense = np.zeros(self.shape, np.int8)
        dense[tuple(self.places.T)] = 1
        return dense

    def relocated(self, found: Finding) -> Finding:
        """Arguments about the tensor, as arguments about the whole."""
        return tuple(relocated(argument, self.indices) for argument in found)


def relocated(argument: Argument, indices: tuple[Indices, Indices, Indices]) -> Argument:
    """Write an argument about a sub-tensor as one about the whole.

    Parameters
    ----------
    argument : Argument
    indices : tuple of three ndarrays of int64
        The indices of the whole that the sub-tensor is made of.
    """
    fields: dict[str, Any] = {}
    for name, form in argument.forms.items():
        value = getattr(argument, name)
        if form == "boxes":
            raise InvalidArgumentError(
                f"An argument with boxes, such as {argument.kind!r}, must be about the whole "
                "database; got one about a sub-tensor. Find it by `find_in_facts`."
            )
        if form == "view":
            a, b, c = (of[i] for of, i in zip(indices, value.indices, strict=True))
            value = View((a, b, c), value.bases)
        elif form == "slices":
            value = indices[_mode(argument)][value]
        elif form == "fibers":
            others = [indices[m] for m in MODES if m != _mode(argument)]
            value = np.stack([of[value[:, n]] for n, of in enumerate(others)], axis=1)
        elif form == "terms":
            value = tuple(lifted(list(value), indices))
        fields[name] = value
    kind: type[Any] = type(argument)
    return kind(**fields)


def _mode(argument: Any) -> int:
    """The mode that slices and fibers of an argument belong to."""
    return argument.mode
