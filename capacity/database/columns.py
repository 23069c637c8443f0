"""Facts in columns: roles, their tokens and ids, a shape, counts, and the tensor D.

D[k, q, v] = 1 for each fact, shape (n_subjects, n_predicates, n_objects) (Wong 2025, equation (1));
modes 0, 1, 2 are subject, predicate, object. Facts of another arity have a mode for each column,
the last for the object. `capacity.tensor.structure` has unfoldings, slices and components.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from capacity.database.arity import not_triples
from capacity.database.canonical import facts_sha256
from capacity.database.policy import pair_starts
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError
from capacity.tensor.sparse import SparseTensor, dense_zeros

if TYPE_CHECKING:
    import scipy.sparse

# default limit of a dense tensor, in bytes
DENSE_BUDGET = 2**30


class Columns:
    """Facts as rows of token ids; the part of `Database` that follows from them alone.

    Attributes
    ----------
    tokens : sequence of Term
        All tokens.
    role_ids : tuple of ndarray of int32
        Token ids, ascending, of each column.
    tuples : ndarray of int32, shape (n_facts, arity)
        The facts, as indices into the tokens of each column.
    """

    tokens: Sequence[Term]
    role_ids: tuple[NDArray[np.int32], ...]
    tuples: NDArray[np.int32]

    @property
    def arity(self) -> int:
        """The number of columns of the facts, the order of the tensor; 3 for triples."""
        return self.tuples.shape[1]

    @cached_property
    def roles(self) -> tuple[tuple[Term, ...], ...]:
        """The tokens of each column, sorted; the modes of the tensor."""
        return tuple(tuple(self.tokens[i] for i in ids) for ids in self.role_ids)

    @property
    def subjects(self) -> tuple[Term, ...]:
        """The set K, sorted; mode 0 of the tensor. Of triples alone."""
        return self._of_triples("`subjects`").roles[0]

    @property
    def predicates(self) -> tuple[Term, ...]:
        """The set Q, sorted; mode 1 of the tensor. Of triples alone."""
        return self._of_triples("`predicates`").roles[1]

    @property
    def objects(self) -> tuple[Term, ...]:
        """The set V, sorted; the last mode of the tensor."""
        return self.roles[-1]

    @cached_property
    def subject_ids(self) -> NDArray[np.int32]:
        """Token ids of the subjects K, ascending. Of triples alone."""
        return self._of_triples("`subject_ids`").role_ids[0]

    @cached_property
    def predicate_ids(self) -> NDArray[np.int32]:
        """Token ids of the predicates Q, ascending. Of triples alone."""
        return self._of_triples("`predicate_ids`").role_ids[1]

    @property
    def object_ids(self) -> NDArray[np.int32]:
        """Token ids of the objects V, ascending."""
        return self.role_ids[-1]

    @cached_property
    def triples(self) -> NDArray[np.int32]:
        """The facts as indices into subjects, predicates and objects, shape (n_triples, 3)."""
        return self._of_triples("`triples`").tuples

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor D: ``(n_subjects, n_predicates, n_objects)`` for triples."""
        return tuple(len(ids) for ids in self.role_ids)

    @property
    def n_tokens(self) -> int:
        """The number of tokens, the paper's d_vocab."""
        return len(self.tokens)

    @property
    def n_facts(self) -> int:
        """The number of facts."""
        return len(self.tuples)

    @property
    def n_triples(self) -> int:
        """The number of facts. Of triples alone."""
        return len(self.triples)

    @cached_property
    def n_pairs(self) -> int:
        """The number of (subject, predicate) pairs, or of keys, in the domain of D."""
        return len(pair_starts(self.tuples))

    @cached_property
    def n_multi_valued_pairs(self) -> int:
        """The number of pairs, or of keys, that have several objects."""
        return int((np.diff(np.append(pair_starts(self.tuples), self.n_facts)) > 1).sum())

    @property
    def is_functional(self) -> bool:
        """True if every pair has one object, so that D is a partial function."""
        return self.n_pairs == self.n_facts

    @cached_property
    def token_tuples(self) -> NDArray[np.int32]:
        """The facts as token ids, shape (n_facts, arity)."""
        columns = [ids[self.tuples[:, mode]] for mode, ids in enumerate(self.role_ids)]
        ids = np.stack(columns, axis=1)
        ids.setflags(write=False)
        return ids

    @cached_property
    def token_triples(self) -> NDArray[np.int32]:
        """The facts as token ids, shape (n_triples, 3): the sentences a layer trains on."""
        return self._of_triples("`token_triples`").token_tuples

    @cached_property
    def facts_sha256(self) -> str:
        """SHA-256 of the facts in canonical form (`capacity.database.canonical.facts_sha256`)."""
        return facts_sha256(self.tokens, self.role_ids, self.tuples)

    def tensor(self) -> SparseTensor:
        """The tensor D by its nonzero entries, in the order of `tuples`.

        Raises
        ------
        InvalidArgumentError
            For a database without facts.
        """
        if not self.n_facts:
            raise InvalidArgumentError(
                "A tensor needs at least one index per mode; this database has no facts, and so no "
                "tensor and no rank."
            )
        return self._tensor

    @cached_property
    def _tensor(self) -> SparseTensor:
        return SparseTensor(self.tuples, np.ones(self.n_facts, np.int64), self.shape)

    def to_coo(self) -> scipy.sparse.coo_array[Any, Any]:
        """The tensor D as a sparse array of int8, shape `shape`."""
        from scipy.sparse import coo_array

        ones = np.ones(self.n_facts, dtype=np.int8)
        first, *others = self.shape
        return coo_array((ones, tuple(self.tuples.T)), shape=(first, *others))

    def to_numpy(
        self, dtype: DTypeLike = np.int8, *, max_bytes: int = DENSE_BUDGET
    ) -> NDArray[Any]:
        """The tensor D as a dense array, shape `shape`.

        Raises
        ------
        MemoryBudgetError
            Before allocating, if the array would take more than `max_bytes` bytes.
        """
        advice = "Use `to_coo()`, or raise `max_bytes`."
        dense = dense_zeros(self.shape, dtype, max_bytes, advice=advice)
        dense[tuple(self.tuples.T)] = 1
        return dense

    def _of_triples(self, what: str) -> Self:
        if self.arity != 3:
            raise not_triples(what, self.arity)
        return self
