"""`Database`: a set of facts (subject, predicate, object) as integer triples over vocabularies.

A database is a partial function D: K x Q -> V, written as the 0/1 tensor D with D[k, q, v] = 1 for
each fact (Wong 2025, section 2, equation (1)). Real knowledge graphs give several objects to one
(k, q); such a database is *multi-valued*. Its tensor and rank are still defined; what needs a
function, such as training, raises a `MultiValuedError`.

References
----------
L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076, section 2.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from capacity.database.canonical import by_role, canonical, checked, facts_sha256, numbered
from capacity.database.policy import (
    MultiPolicy,
    apply_policy,
    check_policy,
    multi_valued_error,
    multi_valued_warning,
    pair_starts,
)
from capacity.database.source import Source
from capacity.database.terms import Term, display, position
from capacity.display import table
from capacity.errors import InvalidArgumentError, UnknownTokenError
from capacity.limits import Seed, generator
from capacity.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    import scipy.sparse

# default limit of a dense tensor, in bytes
DENSE_BUDGET = 2**30


@dataclass(frozen=True, eq=False, repr=False)
class Database:
    """An immutable set of facts. Make one with `from_triples`, or read one with `load`.

    Attributes
    ----------
    tokens : tuple of Term
        The set T of all tokens, sorted; a token may have several roles.
    subject_ids, predicate_ids, object_ids : ndarray of int32
        Token ids, ascending, of the subjects K, predicates Q and objects V.
    triples : ndarray of int32, shape (n_triples, 3)
        Unique facts in ascending order, as indices into subjects, predicates and objects.
    multi : str
        The policy that was applied to multi-valued pairs.
    prefixes : mapping of str to str
        Prefixes of the source file, for display only.
    source : Source or None
        The file, if the facts came from one.

    Notes
    -----
    Two databases are equal if they hold the same facts; policy, prefixes and source may differ.

    Examples
    --------
    >>> db = Database.from_triples([("Astrid", "born_in", "Singapore"),
    ...                             ("Astrid", "lives_in", "Malaysia")])
    >>> db
    Database(2 triples: 1 subjects x 2 predicates x 2 objects, 5 tokens; functional)
    >>> str(db("Astrid", "born_in"))
    'Singapore'
    >>> db.to_numpy().shape
    (1, 2, 2)
    """

    tokens: tuple[Term, ...]
    subject_ids: NDArray[np.int32]
    predicate_ids: NDArray[np.int32]
    object_ids: NDArray[np.int32]
    triples: NDArray[np.int32]
    multi: MultiPolicy = "keep"
    prefixes: Mapping[str, str] = field(default_factory=dict)
    source: Source | None = None

    @classmethod
    def from_ids(
        cls,
        tokens: Sequence[Term],
        id_triples: NDArray[np.integer],
        *,
        multi: MultiPolicy | None = None,
        prefixes: Mapping[str, str] | None = None,
        source: Source | None = None,
    ) -> Database:
        """Make a database from distinct terms in any order and triples of their indices.

        Parameters
        ----------
        tokens : sequence of Term
            Distinct terms; those that no triple uses are omitted.
        id_triples : integer ndarray, shape (n, 3)
            Subject, predicate and object of each fact, as indices into `tokens`.
        multi : MultiPolicy, optional
            By default ``keep``, with a `MultiValuedWarning` if there are multi-valued pairs.

        Raises
        ------
        InvalidArgumentError
            If there is no triple, for an index without a term, for terms that are not distinct, or
            for an unknown policy.
        MultiValuedError
            Under the policy ``error``, or if a policy leaves no fact.
        """
        policy = multi or "keep"
        check_policy(policy)
        terms, triples = apply_policy(*canonical(tokens, checked(tokens, id_triples)), policy)
        if policy != "keep":
            # the policy may have added set tokens or left tokens without a fact
            terms, triples = canonical(terms, triples)
        (k, q, v), local = by_role(triples)
        db = cls(tuple(terms), k, q, v, local, policy, dict(prefixes or {}), source)
        if multi is None and not db.is_functional:
            warnings.warn(multi_valued_warning(db.n_multi_valued_pairs, db.n_pairs), stacklevel=3)
        return db

    @classmethod
    def from_triples(
        cls, triples: Iterable[Sequence[object]], *, multi: MultiPolicy | None = None
    ) -> Database:
        """Make a database from (subject, predicate, object) rows.

        Parameters
        ----------
        triples : iterable of 3-sequences
            Each cell a str (a plain label), a `Term`, or an rdflib node.
        multi : MultiPolicy, optional
            By default ``keep``, with a `MultiValuedWarning` if there are multi-valued pairs.

        Raises
        ------
        InvalidArgumentError
            For a row that doesn't hold three cells, no row at all, or an unknown policy.
        InvalidTypeError
            For a cell of another type.
        MultiValuedError
            Under the policy ``error``, or if a policy leaves no fact.
        """
        return cls.from_ids(*numbered(triples), multi=multi)

    @cached_property
    def subjects(self) -> tuple[Term, ...]:
        """The set K, sorted; mode 0 of the tensor."""
        return tuple(self.tokens[i] for i in self.subject_ids)

    @cached_property
    def predicates(self) -> tuple[Term, ...]:
        """The set Q, sorted; mode 1 of the tensor."""
        return tuple(self.tokens[i] for i in self.predicate_ids)

    @cached_property
    def objects(self) -> tuple[Term, ...]:
        """The set V, sorted; mode 2 of the tensor."""
        return tuple(self.tokens[i] for i in self.object_ids)

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(n_subjects, n_predicates, n_objects)``, the shape of the tensor D."""
        return len(self.subject_ids), len(self.predicate_ids), len(self.object_ids)

    @property
    def n_tokens(self) -> int:
        """The number of tokens, the paper's d_vocab."""
        return len(self.tokens)

    @property
    def n_triples(self) -> int:
        """The number of facts."""
        return len(self.triples)

    @cached_property
    def n_pairs(self) -> int:
        """The number of (subject, predicate) pairs in the domain of D."""
        return len(pair_starts(self.triples))

    @cached_property
    def n_multi_valued_pairs(self) -> int:
        """The number of pairs that have several objects."""
        return int((np.diff(np.append(pair_starts(self.triples), self.n_triples)) > 1).sum())

    @property
    def is_functional(self) -> bool:
        """True if every pair has one object, so that D is a partial function."""
        return self.n_pairs == self.n_triples

    @cached_property
    def token_triples(self) -> NDArray[np.int32]:
        """The facts as token ids, shape (n_triples, 3): the sentences a layer trains on."""
        columns = (self.subject_ids, self.predicate_ids, self.object_ids)
        sentences = np.stack([ids[self.triples[:, m]] for m, ids in enumerate(columns)], axis=1)
        sentences.setflags(write=False)
        return sentences

    @cached_property
    def facts_sha256(self) -> str:
        """SHA-256 of the facts in canonical form (`capacity.database.canonical.facts_sha256`)."""
        return facts_sha256(self.tokens, self.token_triples)

    def __call__(self, subject: object, predicate: object) -> Term:
        """Look up D(k, q).

        Parameters
        ----------
        subject, predicate : Term, rdflib node, or str
            A str stands for the label of that text, or for the only token with that text, short
            name or local name.

        Raises
        ------
        MultiValuedError
            If the database isn't functional.
        UnknownTokenError
            If (k, q) lies outside the domain, or a token is unknown or ambiguous.
        """
        self.require_functional("D(k, q)")
        k = position(subject, self.subjects, self.prefixes)
        q = position(predicate, self.predicates, self.prefixes)
        rows = np.flatnonzero((self.triples[:, 0] == k) & (self.triples[:, 1] == q))
        if not len(rows):
            raise UnknownTokenError(
                f"({subject!s:.60}, {predicate!s:.60}) lies outside the domain of the database."
            )
        return self.objects[self.triples[rows[0], 2]]

    def require_functional(self, what: str) -> None:
        """Raise a `MultiValuedError` that lists the policies unless the database is functional."""
        if not self.is_functional:
            raise multi_valued_error(what, self.n_multi_valued_pairs, self.n_pairs)

    def name(self, term: Term) -> str:
        """Short name of a term, for display: label, text, qname, or the whole IRI."""
        return display(term, self.prefixes)

    def tensor(self) -> SparseTensor:
        """The tensor D by its nonzero entries, in the order of `triples`."""
        return self._tensor

    @cached_property
    def _tensor(self) -> SparseTensor:
        return SparseTensor(self.triples, np.ones(self.n_triples, np.int64), self.shape)

    def to_coo(self) -> scipy.sparse.coo_array[Any, tuple[int, int, int]]:
        """The tensor D as a sparse array of int8, shape `shape`."""
        from capacity.database.tensor import to_coo

        return to_coo(self)

    def to_numpy(
        self, dtype: DTypeLike = np.int8, *, max_bytes: int = DENSE_BUDGET
    ) -> NDArray[Any]:
        """The tensor D as a dense array, shape `shape`.

        Raises
        ------
        MemoryBudgetError
            Before allocating, if the array would take more than `max_bytes` bytes.
        """
        from capacity.database.tensor import to_numpy

        return to_numpy(self, dtype, max_bytes=max_bytes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Database):
            return NotImplemented
        return self.tokens == other.tokens and np.array_equal(
            self.token_triples, other.token_triples
        )

    def __hash__(self) -> int:
        return hash(self.facts_sha256)

    def __repr__(self) -> str:
        k, q, v = self.shape
        pairs = f"{self.n_multi_valued_pairs} of {self.n_pairs} pairs multi-valued"
        return (
            f"Database({self.n_triples} triples: {k} subjects x {q} predicates x {v} objects, "
            f"{self.n_tokens} tokens; {'functional' if self.is_functional else pairs})"
        )

    def _repr_html_(self) -> str:
        k, q, v = self.shape
        rows = [("triples", self.n_triples), ("subjects", k), ("predicates", q), ("objects", v),
                ("tokens", self.n_tokens), ("multi-valued pairs", self.n_multi_valued_pairs),
                *(("such as", " ".join(self.name(self.tokens[i]) for i in fact))
                  for fact in self.token_triples[:3].tolist())]  # fmt: skip
        return table("Database", rows)

    def with_policy(self, multi: MultiPolicy) -> Database:
        """Apply a policy for multi-valued pairs; raises as `from_ids` does."""
        return Database.from_ids(
            self.tokens, self.token_triples, multi=multi, prefixes=self.prefixes
        )

    def subset(self, rows: NDArray[Any]) -> Database:
        """Keep the facts at `rows`, a boolean mask of `triples` or indices into them."""
        return Database.from_ids(
            self.tokens, self.token_triples[rows], multi=self.multi, prefixes=self.prefixes
        )

    def sample_subjects(self, n_subjects: int, seed: Seed) -> Database:
        """Keep the facts of `n_subjects` subjects, drawn at random without replacement."""
        if not 1 <= n_subjects <= self.shape[0]:
            raise InvalidArgumentError(
                f"`n_subjects` must lie between 1 and the {self.shape[0]} subjects of the "
                f"database; got {n_subjects}."
            )
        chosen = generator(seed).choice(self.shape[0], n_subjects, replace=False)
        return self.subset(np.isin(self.triples[:, 0], chosen))
