"""Small sub-tensors of a database, and the conversion of arguments about them to the whole."""

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

# arguments that are found together, and whose values add up
Finding: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True)
class Part:
    """Some facts as a small tensor, with its indices in the whole.

    Attributes
    ----------
    indices : tuple of three ndarrays of int64
        Subjects, predicates and objects of the facts, as indices of the whole.
    places : ndarray of int64, shape (n_facts, 3)
        Positions of the facts in the small tensor.
    """

    indices: tuple[Indices, Indices, Indices]
    places: Indices

    @classmethod
    def of(cls, db: Database, facts: Indices) -> Part:
        """Make the part for some rows of the facts; nothing dense is allocated yet."""
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
        """Number of entries times number of slices."""
        return math.prod(self.shape) * sum(self.shape)

    def tensor(self) -> NDArray[np.int8]:
        """The dense tensor."""
        dense = np.zeros(self.shape, np.int8)
        dense[tuple(self.places.T)] = 1
        return dense

    def relocated(self, found: Finding) -> Finding:
        """Convert arguments about the tensor to arguments about the whole."""
        return tuple(relocated(argument, self.indices) for argument in found)


def relocated(argument: Argument, indices: tuple[Indices, Indices, Indices]) -> Argument:
    """Convert an argument about a sub-tensor to one about the whole.

    Parameters
    ----------
    argument : Argument
        An argument about the sub-tensor.
    indices : tuple of three ndarrays of int64
        Indices of the sub-tensor in the whole.

    Returns
    -------
    Argument
        An argument of the same kind about the whole.

    Raises
    ------
    InvalidArgumentError
        If the argument has boxes, which are numbered for all facts.
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
        elif form in ("terms", "algebraic terms"):
            value = tuple(lifted(list(value), indices))
        fields[name] = value
    kind: type[Any] = type(argument)
    return kind(**fields)


def _mode(argument: Any) -> int:
    """Mode of the slices and fibers of an argument."""
    return argument.mode
