"""`Database`: a set of facts (subject, predicate, object) as integer triples over vocabularies.

A database is a partial function D: K x Q -> V, written as the 0/1 tensor D with D[k, q, v] = 1 for
each fact (Wong 2025, section 2, equation (1)). Real stores give several objects to one (k, q); such
a database is *multi-valued*, its tensor and rank are still defined, and only what needs the
function refuses it.

References
----------
L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076, section 2.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.canonical import canonical, facts_sha256
from capacity.database.interchange import Interchange
from capacity.database.policy import (
    CHOICE,
    POLICIES,
    MultiPolicy,
    apply_policy,
    check_policy,
    pair_starts,
)
from capacity.database.terms import Term, as_term, display
from capacity.errors import (
    InvalidArgumentError,
    MultiValuedError,
    MultiValuedWarning,
    UnknownTokenError,
)


@dataclass(frozen=True)
class Source:
    """Where facts were read from: the file's name, its SHA-256 and the format it was read as."""

    name: str
    sha256: str
    format: str


@dataclass(frozen=True, eq=False, repr=False)
class Database(Interchange):
    """An immutable set of facts. Make one with a ``from_...`` method or `Database.load`.

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
    Two databases are equal when they hold the same facts; policy, prefixes and source don't count.

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
            Distinct; those that no triple uses are left out.
        id_triples : integer ndarray, shape (n, 3)
        multi : MultiPolicy, optional
            Left out: ``keep``, with a `MultiValuedWarning` where it matters.

        Raises
        ------
        ValueError
            Without any triple, for an index without a term, for terms that are not distinct, or for
            an unknown policy.
        MultiValuedError
            As the policy says.
        """
        policy = multi or "keep"
        check_policy(policy)
        given = np.asarray(id_triples)
        if not given.size:
            raise InvalidArgumentError("A database must hold at least one fact; got none.")
        if given.ndim != 2 or given.shape[1] != 3 or not np.issubdtype(given.dtype, np.integer):
            raise InvalidArgumentError(
                f"`id_triples` must be integers of shape (n, 3); got {given.dtype} of shape "
                f"{given.shape}."
            )
        triples = given.astype(np.int64)
        if triples.min() < 0 or triples.max() >= len(tokens) or len(set(tokens)) < len(tokens):
            raise InvalidArgumentError(
                f"`id_triples` must be indices into distinct `tokens`; got {len(tokens)} tokens, "
                f"{len(set(tokens))} distinct, and indices {triples.min()}..{triples.max()}."
            )
        terms, triples = apply_policy(*canonical(tokens, triples), policy)
        if policy != "keep":
            # the policy may have added set tokens or left tokens without a fact
            terms, triples = canonical(terms, triples)
        k, q, v = (np.unique(triples[:, mode]).astype(np.int32) for mode in range(3))
        local = np.stack(
            [np.searchsorted(ids, triples[:, mode]) for mode, ids in enumerate((k, q, v))], axis=1
        ).astype(np.int32)
        for array in (k, q, v, local):
            array.setflags(write=False)
        db = cls(tuple(terms), k, q, v, local, policy, dict(prefixes or {}), source)
        if multi is None and not db.is_functional:
            warnings.warn(
                f"{db.n_multi_valued_pairs} of {db.n_pairs} (subject, predicate) pairs have "
                f"several objects, and all are kept. Choose with multi=: {', '.join(POLICIES)}.",
                MultiValuedWarning,
                stacklevel=3,
            )
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

        Raises
        ------
        ValueError
            For a row that hasn't three cells, or no row at all.
        TypeError
            For a cell of another type.
        """
        ids: dict[Term, int] = {}
        rows: list[tuple[int, ...]] = []
        for number, row in enumerate(triples):
            if isinstance(row, str) or not isinstance(row, Sized) or len(row) != 3:
                raise InvalidArgumentError(
                    "Each row must hold a subject, a predicate and an object; row "
                    f"{number} is {row!r:.60}."
                )
            rows.append(tuple(ids.setdefault(as_term(cell), len(ids)) for cell in row))
        return cls.from_ids(list(ids), np.array(rows, dtype=np.int64), multi=multi)

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
        """Whether every pair has one object, so that D is a partial function."""
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
        """SHA-256 of the canonical facts; `capacity.database.canonical` says of what."""
        return facts_sha256(self.tokens, self.token_triples)

    def __call__(self, subject: object, predicate: object) -> Term:
        """Look up D(k, q).

        Parameters
        ----------
        subject, predicate : Term, rdflib node, or str
            A str is the label of that text, or the only token that is displayed so.

        Raises
        ------
        MultiValuedError
            If the database isn't functional.
        UnknownTokenError
            If (k, q) lies outside the domain, or a token isn't known.
        """
        self.require_functional("D(k, q)")
        k, q = self._find(subject, self.subjects), self._find(predicate, self.predicates)
        rows = np.flatnonzero((self.triples[:, 0] == k) & (self.triples[:, 1] == q))
        if not len(rows):
            raise UnknownTokenError(
                f"({subject!s:.60}, {predicate!s:.60}) lies outside the domain of the database."
            )
        return self.objects[self.triples[rows[0], 2]]

    def _find(self, value: object, vocabulary: tuple[Term, ...]) -> int:
        term = as_term(value)
        if term in vocabulary:
            return vocabulary.index(term)
        found = [i for i, t in enumerate(vocabulary) if value in (self.name(t), t.text)]
        if len(found) != 1:
            what = "several tokens are" if found else "no token is"
            raise UnknownTokenError(f"{what} called {value!r:.60} in this role; give a Term.")
        return found[0]

    def require_functional(self, what: str) -> None:
        """Raise a `MultiValuedError` that lists the policies unless the database is functional."""
        if not self.is_functional:
            raise MultiValuedError(
                f"{what} needs one object a (subject, predicate) pair; "
                f"{self.n_multi_valued_pairs} of {self.n_pairs} pairs have several. Choose a "
                f"policy, with_policy() or multi: {CHOICE}."
            )

    def name(self, term: Term) -> str:
        """Short name of a term for people: label, text, qname, or the whole IRI."""
        return display(term, self.prefixes)

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

    def with_policy(self, multi: MultiPolicy) -> Database:
        """Apply a policy for multi-valued pairs to these facts."""
        return Database.from_ids(
            self.tokens, self.token_triples, multi=multi, prefixes=self.prefixes
        )

    def subset(self, rows: NDArray[Any]) -> Database:
        """Keep the facts at `rows` (a boolean mask or indices into `triples`)."""
        return Database.from_ids(
            self.tokens, self.token_triples[rows], multi=self.multi, prefixes=self.prefixes
        )

    def sample_subjects(self, n_subjects: int, seed: int | np.random.Generator) -> Database:
        """Keep the facts of `n_subjects` subjects drawn without replacement."""
        if not 1 <= n_subjects <= self.shape[0]:
            raise InvalidArgumentError(
                f"`n_subjects` must lie between 1 and the {self.shape[0]} subjects there are; "
                f"got {n_subjects}."
            )
        chosen = np.random.default_rng(seed).choice(self.shape[0], n_subjects, replace=False)
        return self.subset(np.isin(self.triples[:, 0], chosen))
