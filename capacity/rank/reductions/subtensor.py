"""A small part of a database as a dense tensor, and the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.tensor import MODES
from capacity.rank.exact.sparse_terms import lifted
from capacity.rank.problem import Finding
from capacity.rank.types import Indices
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.diagonalization import Diagonalization
from capacity.rank.verifier.kinds.enclosure import Enclosure
from capacity.rank.verifier.kinds.koszul import Koszul
from capacity.rank.verifier.kinds.substitution import Substitution
from capacity.rank.verifier.kinds.unfolding import Unfolding


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
        """Of the tensor."""
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
        """What was found about the tensor, about the whole."""
        if isinstance(found, tuple):
            minor, *games = found
            others = [m for m in MODES if m != minor.mode]
            columns = [self.indices[m][minor.columns[:, n]] for n, m in enumerate(others)]
            moved = Unfolding(
                minor.mode,
                self.indices[minor.mode][minor.rows],
                np.stack(columns, axis=1),
                minor.blocks,
                minor.eliminated,
                minor.prime,
            )
            if not games:
                return (moved,)
            game = games[0]
            return (moved, Substitution(self._view(game.view), game.moves))
        if isinstance(found, Decomposition):
            return Decomposition(tuple(lifted(list(found.terms), self.indices)))
        view = self._view(found.view)
        if isinstance(found, Substitution):
            return Substitution(view, found.moves)
        if isinstance(found, Enclosure):
            a, b = (m for m in MODES if m != found.mode)
            fibers = np.stack(
                [self.indices[a][found.fibers[:, 0]], self.indices[b][found.fibers[:, 1]]], axis=1
            )
            return replace(found, view=view, fibers=fibers)
        if isinstance(found, Koszul):
            return Koszul(view, found.mode, found.p, found.prime, found.value)
        if isinstance(found, Diagonalization):  # pyright: ignore[reportUnnecessaryIsInstance]
            return Diagonalization(view, found.mode, found.combination, found.value)
        raise AssertionError(f"an argument of the kind {found.kind} is relocated nowhere")

    def _view(self, view: View) -> View:
        a, b, c = (of[i] for of, i in zip(self.indices, view.indices, strict=True))
        return View((a, b, c), view.bases)
