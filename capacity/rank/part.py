"""A small part of a database as a dense tensor, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.tensor import MODES
from capacity.rank.certificate import (
    Decomposition,
    Diagonalization,
    Enclosure,
    Indices,
    Koszul,
    Substitution,
    View,
)
from capacity.rank.factor import lifted
from capacity.rank.stages import Finding


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
    def size(self) -> int:
        """Entries times slices."""
        shape = [len(of) for of in self.indices]
        return math.prod(shape) * sum(shape)

    def tensor(self) -> NDArray[np.int8]:
        """The dense tensor."""
        dense = np.zeros([len(of) for of in self.indices], np.int8)
        dense[tuple(self.places.T)] = 1
        return dense

    def relocated(self, found: Finding) -> Finding:
        """What was found about the tensor, about the whole."""
        if isinstance(found, Decomposition):
            return Decomposition(tuple(lifted(list(found.terms), self.indices)))
        a, b, c = (of[i] for of, i in zip(self.indices, found.view.indices, strict=True))
        view = View((a, b, c), found.view.bases)
        if isinstance(found, Substitution):
            return Substitution(view, found.moves)
        if isinstance(found, Enclosure):
            return Enclosure(view, found.factors, found.varying, found.radius)
        if isinstance(found, Koszul):
            return Koszul(view, found.mode, found.prime, found.value)
        return Diagonalization(view, found.mode, found.combination, found.value)
