"""Facts by numbers, as certificates and witnesses name them; apart from the search's `QueryGraph`.

Each number is a position in a sorted list without gaps, so that products of two of them fit 64
bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from capacity.database import Database
from capacity.exact.types import Indices, Mask
from capacity.tensor.coordinates import compacted, distinct, stable_order

# steps and bytes for a fact
FACT, FACT_BYTES = 150, 160
# steps for looking up a fact
LOOKUP = 300


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts by numbers.

    Attributes
    ----------
    triples : ndarray of int64, shape (n_facts, 3)
        Subject, relation and object of each fact, in ascending order. Where entities are shared,
        subjects and objects have the numbers of their entities.
    shape : tuple of int
        Numbers of all that may be a subject, of relations, and of all that may be an object.
    shared : bool
        Whether entities are shared, so that each may answer any query.
    """

    triples: Indices
    shape: tuple[int, int, int]
    shared: bool

    @classmethod
    def of(cls, db: Database, *, shared: bool) -> Facts:
        """Number the facts of a database, with entities that are shared or not."""
        triples, (k, q, v) = db.triples.astype(np.int64), db.shape
        if shared:
            tokens = distinct(np.concatenate([db.role_ids[0], db.role_ids[2]]))
            for mode in (0, 2):
                number = np.searchsorted(tokens, db.role_ids[mode])
                triples[:, mode] = number[triples[:, mode]]
            k = v = len(tokens)
        pairs = compacted(triples[:, 0] * q + triples[:, 1])
        return cls(triples[stable_order(pairs * v + triples[:, 2])], (k, q, v), shared)

    @property
    def n_entities(self) -> int:
        """Number of vectors of entities: one each if shared, subjects before objects if not."""
        return self.shape[0] if self.shared else self.shape[0] + self.shape[2]

    @cached_property
    def queries(self) -> Indices:
        """Subject and relation of each query that has a fact, ascending, shape (n_queries, 2)."""
        return np.stack(np.divmod(self._pairs, self.shape[1]), axis=1)

    @cached_property
    def query_of(self) -> Indices:
        """The query of each fact, shape (n_facts,)."""
        return np.cumsum(np.diff(self._pair_of, prepend=-1) != 0) - 1

    def are_facts(self, subjects: Indices, relations: Indices, objects: Indices) -> Mask:
        """Look up triples whose numbers are within the shape; the arguments broadcast."""
        pair = subjects * self.shape[1] + relations
        query = np.minimum(np.searchsorted(self._pairs, pair), len(self._pairs) - 1)
        fact = query * self.shape[2] + objects
        at = np.minimum(np.searchsorted(self._keys, fact), len(self._keys) - 1)
        return (self._pairs[query] == pair) & (self._keys[at] == fact)

    @cached_property
    def _pairs(self) -> Indices:
        return self._pair_of[np.diff(self._pair_of, prepend=-1) != 0]

    @property
    def _pair_of(self) -> Indices:
        return self.triples[:, 0] * self.shape[1] + self.triples[:, 1]

    @cached_property
    def _keys(self) -> Indices:
        return self.query_of * self.shape[2] + self.triples[:, 2]
