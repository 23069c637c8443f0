"""Facts as queries and answers: what a model that scores triples is asked for, and the tasks.

A *query* is a pair (subject, relation) with at least one fact, (s, q, ?); its answers are the
objects of these facts. A model ranks a query if each answer scores above every other object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.exact.types import Indices
from capacity.tensor.coordinates import distinct

# be the facts, 0 and 1; be above 0 at facts and below 0 elsewhere; rank the answers of every (s, q,
# ?) above all else; of every (?, q, o), too
Task: TypeAlias = Literal["exact", "signs", "ranking", "both-sides"]


@briefly_shown
@dataclass(frozen=True, eq=False)
class QueryGraph:
    """The facts of a database of triples, by numbers.

    Attributes
    ----------
    facts : ndarray of int64, shape (n_facts, 3)
        Subject, relation and object of each fact, in ascending order.
    shape : tuple of int
        Numbers of subjects, relations and objects.
    entities : tuple of ndarray of int64, or None
        The entity of each subject, and of each object, if a model has one vector for an entity on
        both sides; None if subjects and objects are apart. Where they are shared, all entities may
        answer a query, those that are never an object, too.
    n_entities : int
        Number of entities: subjects and objects together.
    """

    facts: Indices
    shape: tuple[int, int, int]
    entities: tuple[Indices, Indices] | None
    n_entities: int

    @classmethod
    def of(cls, db: DatabaseLike, shared: bool | None = None) -> QueryGraph:
        """Number the facts of a database.

        Parameters
        ----------
        db : Database, or what `as_database` takes
            Triples, functional or not.
        shared : bool, optional
            Whether subjects and objects share their vectors; if omitted, they do if some entity is
            both.

        Raises
        ------
        InvalidTypeError
            If `db` isn't a database.
        InvalidArgumentError
            If the facts aren't triples, there is none, or `shared` is neither a bool nor None.

        Examples
        --------
        >>> from capacity import Database
        >>> db = Database.from_triples([("Ada", "knows", "Bob"), ("Bob", "knows", "Eve")])
        >>> graph = QueryGraph.of(db)
        >>> graph.shape, graph.n_entities, graph.n_queries
        ((2, 1, 2), 3, 2)
        """
        db = require_triples(db, "QueryGraph.of(db)")
        if not (shared is None or isinstance(shared, bool)):
            raise InvalidArgumentError(f"`shared` must be True, False or None; got {shared!r}.")
        facts = db.triples.astype(np.int64)
        if not len(facts):
            raise InvalidArgumentError(
                "A graph must have at least one fact; the database is empty."
            )
        subjects, _, objects = db.role_ids
        tokens = np.union1d(subjects, objects)
        both = len(tokens) < len(subjects) + len(objects)
        entities = np.searchsorted(tokens, subjects), np.searchsorted(tokens, objects)
        k, q, v = db.shape
        return cls(facts, (k, q, v), entities if shared or (shared is None and both) else None,
                   len(tokens))  # fmt: skip

    @property
    def n_facts(self) -> int:
        """Number of facts."""
        return len(self.facts)

    @cached_property
    def query_of(self) -> Indices:
        """The query of each fact, numbered from 0 in ascending order."""
        return np.concatenate([[0], np.cumsum(np.diff(self._keys) != 0)])

    @cached_property
    def queries(self) -> Indices:
        """Subject and relation of each query, shape (n_queries, 2)."""
        first = np.concatenate([[True], np.diff(self._keys) != 0])
        return self.facts[first, :2]

    @property
    def n_queries(self) -> int:
        """Number of pairs of a subject and a relation that have a fact."""
        return int(self.query_of[-1]) + 1

    @cached_property
    def answers(self) -> Indices:
        """Number of answers of each query, shape (n_queries,)."""
        return np.bincount(self.query_of)

    @cached_property
    def triples(self) -> Indices:
        """The facts as entity, relation, entity, shape (n_facts, 3), where entities are shared.

        Raises
        ------
        InvalidArgumentError
            If they aren't.
        """
        if self.entities is None:
            raise InvalidArgumentError(
                "Entities must be shared by subjects and objects; here they have separate vectors. "
                "Pass shared=True."
            )
        of_subject, of_object = self.entities
        s, q, o = self.facts.T
        return np.stack([of_subject[s], q, of_object[o]], axis=1)

    @property
    def placed(self) -> Indices:
        """The facts by numbers of all that may be a subject or an object, shape (n_facts, 3)."""
        return self.facts if self.entities is None else self.triples

    @property
    def places(self) -> tuple[int, int, int]:
        """Numbers of what may be a subject, of relations, and of what may be an object."""
        k, q, v = self.shape
        return (k, q, v) if self.entities is None else (self.n_entities, q, self.n_entities)

    @property
    def _keys(self) -> Indices:
        return self.facts[:, 0] * self.shape[1] + self.facts[:, 1]

    @cached_property
    def n_named(self) -> int:
        """Number of objects that some fact has."""
        return len(distinct(self.facts[:, 2]))
