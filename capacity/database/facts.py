"""`Database`: a set of facts (subject, predicate, object) as integer tuples over vocabularies.

A database is a partial function D: K x Q -> V, written as the 0/1 tensor D with D[k, q, v] = 1 for
each fact (Wong 2025, section 2, equation (1)). Real knowledge graphs have several objects for one
(k, q); such a database is *multi-valued*. Its tensor and rank are still defined; what needs a
function, such as training, raises a `MultiValuedError`.

Facts may also have another number of columns, the *arity* of the database: the last column is the
object, the others are the key, and the tensor has a mode for each column. "Pair" then means key.

References
----------
L. Z. Wong, Paying Attention to Facts, 2025, arXiv 2502.05076, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, generator
from capacity.database.arity import key_names, require_arity, role_names
from capacity.database.canonical import by_role, canonical, checked, numbered
from capacity.database.collection import (
    at,
    each_fact,
    holds,
    intersection,
    sampled,
    union,
    with_other_objects,
)
from capacity.database.columns import Columns
from capacity.database.policy import (
    MultiPolicy,
    apply_policy,
    check_policy,
    multi_valued_error,
    multi_valued_warning,
)
from capacity.database.source import Source
from capacity.database.terms.term import Term, display
from capacity.display import table
from capacity.errors import InvalidArgumentError, warn_caller

if TYPE_CHECKING:
    import pandas as pd

    from capacity.database.choosing.selection import Selected, SelectionOptions
    from capacity.database.describing.dataset import Description
    from capacity.database.io.sparql.reading import SparqlOptions
    from capacity.database.io.table_options import TableTerms


@dataclass(frozen=True, eq=False, repr=False)
class Database(Columns):
    """An immutable set of facts. Make one with `from_triples`, or read one with `load`.

    Attributes
    ----------
    tokens : sequence of Term
        The set T of all tokens, sorted; a token may have several roles. A tuple, or columns from
        which terms are made when they are asked for (`TermColumns`).
    role_ids : tuple of ndarray of int32
        Token ids, ascending, of each column; those of triples are `subject_ids`, `predicate_ids`
        and `object_ids`.
    tuples : ndarray of int32, shape (n_facts, arity)
        Unique facts in ascending order, as indices into the tokens of each column; `triples` if the
        arity is 3.
    multi : str
        The policy that was applied to multi-valued pairs.
    prefixes : mapping of str to str
        Prefixes of the source file, for display only.
    source : Source or None
        The file, if the facts came from one.
    selected : Selected or None
        What `select` omitted, in numbers, if it made this database.

    Notes
    -----
    Two databases are equal if they hold the same facts; all else may differ. A database is a
    collection: it has a length, ``for s, p, o in db`` yields the terms of each fact, ``("Ada",
    "knows", "Alan") in db`` takes names as a lookup does, ``db[0]`` is a fact, ``db[:9]`` and
    ``db[mask]`` are databases, as are ``db | other`` and ``db & other``.
    What names subjects, predicates or triples raises an `InvalidArgumentError` unless the arity
    is 3.

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
    >>> len(db), ("Astrid", "born_in", "Singapore") in db, len(db[1:]), (db[:1] | db[1:]) == db
    (2, True, 1, True)
    >>> [str(o) for s, p, o in db]
    ['Singapore', 'Malaysia']
    """

    tokens: Sequence[Term]
    role_ids: tuple[NDArray[np.int32], ...]
    tuples: NDArray[np.int32]
    multi: MultiPolicy = "keep"
    prefixes: Mapping[str, str] = field(default_factory=dict)
    source: Source | None = None
    selected: Selected | None = None

    @classmethod
    def from_triples(
        cls, triples: Iterable[Sequence[object]], *, multi: MultiPolicy | None = None
    ) -> Self:
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
        return cls.from_ids(*numbered(triples, 3), multi=multi)

    @classmethod
    def from_tuples(
        cls, rows: Iterable[Sequence[object]], *, multi: MultiPolicy | None = None
    ) -> Self:
        """Make a database from rows of any one length, the arity: a key and its object.

        Parameters
        ----------
        rows : iterable of sequences
            Rows of the same length, from 2 to 32; the last cell is the object, the others are the
            key. Each cell a str (a plain label), a `Term`, or an rdflib node.
        multi : MultiPolicy, optional
            By default ``keep``, with a `MultiValuedWarning` if there are multi-valued keys.

        Raises
        ------
        InvalidArgumentError
            For a row of another length than the first, no row at all, an unknown policy, or one
            that needs predicates for rows of another length than 3.
        InvalidTypeError
            For a cell of another type.
        MultiValuedError
            Under the policy ``error``, or if a policy leaves no fact.

        Examples
        --------
        >>> sums = Database.from_tuples([("0", "1", "1", "even"), ("1", "1", "1", "odd")])
        >>> sums
        Database(2 facts of arity 4: 2 x 1 x 1 x 2, 4 tokens; functional)
        >>> str(sums("1", "1", "1"))
        'odd'
        """
        tokens, tuples = numbered(rows, None)
        # without rows there is no arity, and `from_ids` says so
        arity = tuples.shape[1] if len(tuples) else 3
        return cls.from_ids(tokens, tuples, arity=arity, multi=multi)

    @classmethod
    def from_ids(
        cls,
        tokens: Sequence[Term],
        id_tuples: NDArray[np.integer],
        *,
        arity: int = 3,
        multi: MultiPolicy | None = None,
        prefixes: Mapping[str, str] | None = None,
        source: Source | None = None,
        allow_empty: bool = False,
    ) -> Self:
        """Make a database from distinct terms in any order and tuples of their indices.

        Parameters
        ----------
        tokens : sequence of Term
            Distinct terms; those that no fact uses are omitted.
        id_tuples : integer ndarray, shape (n, arity)
            Subject, predicate and object of each fact, as indices into `tokens`; in facts of
            another arity the key and the object.
        arity : int
            Number of columns of the facts, from 2 to 32.
        multi : MultiPolicy, optional
            By default ``keep``, with a `MultiValuedWarning` if there are multi-valued pairs.
        prefixes : mapping of str to str, optional
            Prefixes, for display only.
        source : Source, optional
            The file of the facts.
        allow_empty : bool
            Whether there may be no facts; such a database has the shape (0, 0, 0), and no tensor.

        Raises
        ------
        InvalidArgumentError
            If there is no fact (unless `allow_empty`), for an array of another shape or dtype, for
            an index without a term, for terms that are not distinct, for an unknown policy, or one
            that needs predicates for facts of another arity than 3.
        MultiValuedError
            Under the policy ``error``, or if a policy leaves no fact.
        """
        policy = multi or "keep"
        check_policy(policy, require_arity(arity))
        given = checked(tokens, id_tuples, arity, allow_empty)
        terms, tuples = apply_policy(*canonical(tokens, given), policy, prefixes or {})
        if policy != "keep":
            # the policy may have added set tokens or left tokens without a fact
            terms, tuples = canonical(terms, tuples)
        db = cls(tuple(terms), *by_role(tuples), policy, dict(prefixes or {}), source)
        if multi is None and not db.is_functional:
            said = multi_valued_warning(db.n_multi_valued_pairs, db.n_pairs, db.arity)
            warn_caller(said)
        return db

    @classmethod
    def from_sparql(cls, endpoint: str, query: str, **options: Unpack[SparqlOptions]) -> Database:
        """Make a database of what a query selects at a SPARQL endpoint, all of it or none.

        Parameters
        ----------
        endpoint : str
            Address of the endpoint.
        query : str
            A SELECT of the columns of facts, or a CONSTRUCT.
        **options
            Options of `capacity.database.from_sparql`, which has the errors, too.
        """
        # readers are made of this class
        from capacity.database import from_sparql

        return from_sparql(endpoint, query, **options)

    def __call__(self, *key: object) -> Term:
        """Look up D(k, q), or the object of a longer or shorter key.

        Parameters
        ----------
        *key : Term, rdflib node, or str
            Subject and predicate; for another arity, a token for each column but the last. A str
            denotes the label of that text, or the only token with that text, short name,
            local name, or label in the facts (``rdfs:label``, ``skos:prefLabel``).

        Raises
        ------
        InvalidTypeError
            For another number of tokens.
        MultiValuedError
            If the database isn't functional.
        UnknownTokenError
            If (k, q) lies outside the domain, or a token is unknown or ambiguous.
        """
        from capacity.database.choosing.lookup import lookup

        return lookup(self, key)

    def describe(self) -> Description:
        """Describe what the facts are made of; `capacity.rank.describe` has the errors.

        Returns
        -------
        Description
            One row per predicate, the rank of each, what repeats, and advice.

        Examples
        --------
        >>> db = Database.from_triples([("Oslo", "in", "Norway"), ("Bergen", "in", "Norway")])
        >>> [(row.name, row.facts, row.rank) for row in db.describe().predicates]
        [('in', 2, 1)]
        """
        from capacity.database.describing.dataset import describe

        return describe(self)

    def require_functional(self, what: str) -> None:
        """Raise a `MultiValuedError` that lists the policies unless the database is functional."""
        if not self.is_functional:
            pairs = self.n_multi_valued_pairs, self.n_pairs
            raise multi_valued_error(what, *pairs, self.arity)

    def name(self, term: Term) -> str:
        """Short name of a term, for display: label, text, qname, or the whole IRI."""
        return display(term, self.prefixes)

    @cached_property
    def labels(self) -> Mapping[Term, tuple[str, ...]]:
        """Texts of the labels that the facts themselves assign to tokens, in any language."""
        from capacity.database.choosing.lookup import labels_of

        return labels_of(self)

    def __len__(self) -> int:
        return self.n_facts

    def __iter__(self) -> Iterator[tuple[Term, ...]]:
        return each_fact(self)

    def __contains__(self, fact: object) -> bool:
        return holds(self, fact)

    @overload
    def __getitem__(self, key: int | np.integer) -> tuple[Term, ...]: ...
    @overload
    def __getitem__(self, key: slice | list[int] | NDArray[Any] | pd.Series[Any]) -> Database: ...
    def __getitem__(
        self, key: int | np.integer | slice | list[int] | NDArray[Any] | pd.Series[Any]
    ) -> tuple[Term, ...] | Database:
        return at(self, key)

    def __or__(self, other: object) -> Database:
        from capacity.database.given_facts import require_database

        return union(self, require_database(other, "db | other"))

    def __and__(self, other: object) -> Database:
        from capacity.database.given_facts import require_database

        return intersection(self, require_database(other, "db & other"))

    def sample(self, n: int, seed: Seed = 0) -> Database:
        """Keep `n` facts, drawn at random without replacement.

        Parameters
        ----------
        n : int
            Number of facts, from 1 to all of them.
        seed : int or numpy.random.Generator
            Seed of the choice.

        Raises
        ------
        InvalidArgumentError
            For another number.

        Examples
        --------
        >>> db = Database.from_triples([("Oslo", "in", "Norway"), ("Bergen", "in", "Norway")])
        >>> len(db.sample(1))
        1
        """
        return sampled(self, n, seed)

    def to_frame(self, *, terms: TableTerms | None = None) -> pd.DataFrame:
        """Write the facts as a DataFrame, one row per fact, by `capacity.database.to_pandas`.

        Parameters
        ----------
        terms : {'label', 'n3'}, optional
            Form of the cells, as `to_pandas` has it.

        Examples
        --------
        >>> Database.from_triples([("Oslo", "in", "Norway")]).to_frame().loc[0, "object"]
        'Norway'
        """
        # writers are made for this class
        from capacity.database import to_pandas

        return to_pandas(self, terms=terms)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Database):
            return NotImplemented
        return self.tokens == other.tokens and np.array_equal(self.token_tuples, other.token_tuples)

    def __hash__(self) -> int:
        return hash(self.facts_sha256)

    def __repr__(self) -> str:
        return _in_a_line(self)

    def _repr_html_(self) -> str:
        return _as_table(self)

    def with_policy(self, multi: MultiPolicy) -> Database:
        """Apply a policy for multi-valued pairs; raises as `from_ids` does."""
        made = self._of_ids(self.token_tuples, multi)
        return replace(made, source=self.source, selected=self.selected)

    def select(self, **criteria: Unpack[SelectionOptions]) -> Database:
        """Keep the facts that all criteria let stay; `selected` has what each omits, in numbers.

        Parameters
        ----------
        **criteria
            The options of `Selection`: ``schema``, ``literals``, ``annotations`` and
            ``blank_nodes`` are ``keep`` or ``drop``; ``predicates``, ``exclude``, ``namespaces``
            and ``types`` are names. What ``fold`` names is folded before: ``lists``,
            ``restrictions`` and ``statements``.

        Raises
        ------
        InvalidArgumentError
            If no fact stays, or for a wrong criterion.
        InvalidTypeError
            For an unknown option, or a name of another type.
        UnknownTokenError
            If no predicate, class or namespace has a name, or several do.

        Examples
        --------
        >>> db = Database.from_triples([("Oslo", "in", "Norway"), ("Oslo", "name", "Christiania")])
        >>> print(db.select(exclude="name").selected)
        1 of 2 facts are selected; omitted by exclude 1
        """
        from capacity.database.choosing.criteria import rows_of, with_kinds
        from capacity.database.choosing.folding.fold import fold
        from capacity.database.choosing.selection import Selection

        selection = Selection(**criteria)
        every, folded = fold(self, tuple(selection.fold))
        rows, found = rows_of(every, selection)
        made = every.subset(rows) if len(rows) else every
        found = with_kinds(replace(found, folded=folded), self, made)
        return replace(made, source=self.source, selected=found)

    def with_noise(self, share: float, seed: Seed = 0) -> Database:
        """Replace the objects of a share of the facts by others, drawn at random.

        Parameters
        ----------
        share : float
            Share of the facts, from 0 to 1; the number is rounded.
        seed : int or numpy.random.Generator
            Seed of the facts and of their new objects.

        Returns
        -------
        Database
            The same keys; each new object is one of the others that occur in this database, all as
            likely. A token that no fact has any more is omitted. If the database is multi-valued a
            new fact may be one that is there, so that there are fewer facts.

        Raises
        ------
        InvalidArgumentError
            For another share, or if there is no other object.

        Examples
        --------
        >>> db = Database.from_triples([(f"s{i}", "p", f"o{i % 3}") for i in range(10)])
        >>> noisy = db.with_noise(0.3, seed=1)
        >>> len(noisy), len(db & noisy)
        (10, 7)
        """
        return with_other_objects(self, share, seed)

    def subset(self, rows: NDArray[Any]) -> Database:
        """Keep the facts at `rows`, a boolean mask of `tuples` or indices into them."""
        return self._of_ids(self.token_tuples[rows], self.multi)

    def _of_ids(self, id_tuples: NDArray[np.int32], multi: MultiPolicy) -> Database:
        return Database.from_ids(
            self.tokens, id_tuples, arity=self.arity, multi=multi, prefixes=self.prefixes,
            allow_empty=not self.n_facts,
        )  # fmt: skip

    def sample_subjects(self, n_subjects: int, seed: Seed) -> Database:
        """Keep the facts of `n_subjects` subjects, drawn at random without replacement.

        The subjects of facts of any arity are the tokens of their first column.
        """
        if not 1 <= n_subjects <= self.shape[0]:
            raise InvalidArgumentError(
                f"`n_subjects` must lie between 1 and the {self.shape[0]} subjects of the "
                f"database; got {n_subjects}."
            )
        chosen = generator(seed).choice(self.shape[0], n_subjects, replace=False)
        return self.subset(np.isin(self.tuples[:, 0], chosen))


def _in_a_line(db: Database) -> str:
    """Number of facts, shape, number of tokens, and whether the database is functional."""
    if db.arity == 3:
        k, q, v = db.shape
        facts = f"{db.n_facts} triples: {k} subjects x {q} predicates x {v} objects"
    else:
        sides = " x ".join(map(str, db.shape))
        facts = f"{db.n_facts} facts of arity {db.arity}: {sides:.100}"
    pairs = key_names(db.arity)[1]
    several = f"{db.n_multi_valued_pairs} of {db.n_pairs} {pairs} multi-valued"
    functional = "functional" if db.is_functional else several
    return f"Database({facts}, {db.n_tokens} tokens; {functional})"


def _as_table(db: Database) -> str:
    """Sizes and the first facts, as a table in HTML."""
    is_triples = db.arity == 3
    sizes = zip(role_names(db.arity), db.shape, strict=True)
    rows = [("triples" if is_triples else "facts", db.n_facts),
            *((f"{role}s" if is_triples else role, n) for role, n in sizes),
            ("tokens", db.n_tokens),
            (f"multi-valued {key_names(db.arity)[1]}", db.n_multi_valued_pairs),
            *(("such as", " ".join(db.name(db.tokens[i]) for i in fact))
              for fact in db.token_tuples[:3].tolist())]  # fmt: skip
    return table("Database", rows)
