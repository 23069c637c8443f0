"""Counts and exact ranks, which follow from the facts, for the theorems about dimensions.

Each is computed when it is first asked for, and announces its costs before. Nothing is searched but
orders of objects, subjects and relations, which need no trust: sign changes are counted along them.

Among the ranks are the sizes of models whose scores are the facts themselves, 0 and 1. With H and E
arbitrary, T = H E^T is the tensor if and only if their width is at least the rank of its object
unfolding. If an entity has one vector on both sides, the columns of every T_q and of every T_q^T
lie in the span of these vectors; so RESCAL (E W_q E^T) and TuckER need the *joint* rank, that of
the subject unfolding beside the object unfolding, with a row for each entity. It is enough, too:
with E a basis of that space, W_q = E^+ T_q (E^+)^T. TuckER's relation vectors need the rank of the
relation unfolding likewise. All of them are exact (`capacity.exact.ranks`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from capacity.database import Database
from capacity.display import briefly_shown
from capacity.embedding.curves import changes_of_rows, has_gap, seriated, sign_changes
from capacity.embedding.one_way import (
    Obstruction,
    asymmetric_relations,
    one_way_cycles,
    one_way_paths,
)
from capacity.embedding.proofs import SignProof
from capacity.embedding.queries import QueryGraph
from capacity.exact.ranks import sparse_rank, sparse_rank_by_group
from capacity.exact.types import Indices, Spend, free
from capacity.tensor.structure import connected_labels, unfolding_entries


def joint_rank(graph: QueryGraph, *, spend: Spend = free) -> int:
    """Compute the rank of the subject unfolding beside the object unfolding, by shared entities.

    Parameters
    ----------
    graph : QueryGraph
        The facts.
    spend : callable
        Called with the steps and bytes of each part of the work before it, and may refuse it.

    Returns
    -------
    int

    Raises
    ------
    InvalidArgumentError
        If the entities aren't shared.
    MemoryBudgetError
        If a part that has to be dense exceeds its budget.

    Examples
    --------
    >>> from capacity import Database
    >>> db = Database.from_triples([("a", "p", "b"), ("b", "p", "c")])
    >>> joint_rank(QueryGraph.of(db))
    3
    """
    s, q, o = graph.triples.T
    n = graph.n_entities
    width = graph.shape[1] * n
    rows = np.concatenate([s, o])
    columns = np.concatenate([q * n + o, width + q * n + s])
    return sparse_rank(rows, columns, spend=spend)


# groups up to which an order is sought for each
MOST_ORDERS = 2_000
# steps for sorting a fact once, bytes for it in arrays, and steps for a group of facts
SORT, FACT_BYTES, GROUP = 100, 200, 150_000


@briefly_shown
@dataclass(frozen=True, eq=False)
class Counts(ABC):
    """Numbers of a graph from which bounds of dimensions follow.

    Attributes
    ----------
    db : Database
        The facts.
    graph : QueryGraph
        The same, as queries and answers.
    """

    db: Database
    graph: QueryGraph

    def spend(self, steps: int, memory: int) -> None:
        """Note the steps and bytes of the work that follows; a search may take what it needs."""
        free(steps, memory)

    @property
    @abstractmethod
    def rank_lower(self) -> int:
        """A certified lower bound of the rank."""

    @property
    @abstractmethod
    def rank_upper(self) -> int:
        """A certified upper bound of the rank."""

    @property
    @abstractmethod
    def effective_upper(self) -> int:
        """A certified upper bound of the effective rank, whose scores rank every query."""

    @property
    @abstractmethod
    def signs_of_objects(self) -> Sequence[SignProof]:
        """Signs that <h, e_o> must have, or less a threshold for each row."""

    @property
    @abstractmethod
    def signs_of_subjects(self) -> Sequence[SignProof]:
        """Signs of subjects at comparisons of two objects."""

    def _charge(self, sorts: int = 1) -> None:
        self.spend(sorts * SORT * self.graph.n_facts, FACT_BYTES * self.graph.n_facts)

    @cached_property
    def object_rank(self) -> int:
        """Rank of the object unfolding."""
        return self._unfolding_rank(2)

    @cached_property
    def subject_rank(self) -> int:
        """Rank of the subject unfolding."""
        return self._unfolding_rank(0)

    @cached_property
    def relation_rank(self) -> int:
        """Rank of the relation unfolding."""
        return self._unfolding_rank(1)

    def _unfolding_rank(self, mode: int) -> int:
        self._charge()
        return sparse_rank(*unfolding_entries(self.db.tensor(), mode), spend=self.spend)

    @cached_property
    def joint_rank(self) -> int:
        """Rank of the subject and object unfoldings beside each other, by shared entities."""
        self._charge()
        return joint_rank(self.graph, spend=self.spend)

    @cached_property
    def relation_ranks(self) -> Indices:
        """Rank of the matrix of each relation, shape (n_relations,)."""
        self._charge()
        s, q, o = self.graph.facts.T
        rows, columns = q * self.graph.shape[0] + s, q * self.graph.shape[2] + o
        return sparse_rank_by_group(rows, columns, q, spend=self.spend)

    @cached_property
    def symmetric_ranks(self) -> Indices:
        """Rank of M_q + M_q^T for each relation, shape (n_relations,), by shared entities."""
        self._charge(4)
        s, q, o = self.graph.triples.T
        n = self.graph.n_entities
        # rows are numbered without gaps, so that a place fits 64 bits
        named, row = np.unique(np.concatenate([q * n + s, q * n + o]), return_inverse=True)
        places, values = np.unique(row * n + np.concatenate([o, s]), return_counts=True)
        row, column = np.divmod(places, n)
        relation = named[row] // n
        columns = relation * n + column
        return sparse_rank_by_group(row, columns, relation, values, spend=self.spend)

    @cached_property
    def asymmetric(self) -> list[Obstruction]:
        """A one-way fact of each relation that has one."""
        self._charge(2)
        return asymmetric_relations(self.graph)

    @cached_property
    def cycles(self) -> list[Obstruction]:
        """A cycle of one-way facts of each relation that has one."""
        self._charge(9)
        return one_way_cycles(self.graph)

    @cached_property
    def paths(self) -> list[Obstruction]:
        """A path of two one-way facts of each relation that has one."""
        self._charge(5)
        return one_way_paths(self.graph)

    @cached_property
    def fits_a_line(self) -> bool | None:
        """True if one dimension ranks all queries of one answer each; None if some have more.

        Each answer is then the largest or the smallest of the objects' numbers, so there are two
        at most, and the sign of a_s b_q determines which: signs on the edges of a bipartite graph,
        which are such products if and only if the graph is balanced (Harary 1953).
        """
        self._charge(2)
        graph = self.graph
        if graph.answers.max() > 1:
            return None
        named, sign = np.unique(graph.facts[:, 2], return_inverse=True)
        if len(named) != 2:
            return len(named) < 2
        s, q, _ = graph.facts.T
        k, n = graph.shape[0], sum(graph.shape[:2])
        # two copies of each vertex; an edge of sign -1 leads to the other copy
        first = np.concatenate([s, s + n])
        second = np.concatenate([k + q + n * sign, k + q + n * (1 - sign)])
        labels = connected_labels(first, second, 2 * n)
        return bool((labels[:n] != labels[n:]).all())

    @cached_property
    def common_order(self) -> Indices:
        """An order of the objects along which no query has many sign changes."""
        graph = self.graph
        rows, columns = graph.query_of, graph.facts[:, 2]
        return seriated(rows, columns, graph.shape[2], from_minus=False, spend=self.spend)

    @cached_property
    def changes(self) -> int:
        """Most sign changes of a query along `common_order`, with entities that answer none."""
        self._charge(3)
        graph, order = self.graph, self.common_order
        query, o = graph.query_of, graph.facts[:, 2]
        apart = graph.places[2] == graph.shape[2] or has_gap(query, o, order)
        return sign_changes(query, o, order, from_minus=not apart)

    @cached_property
    def curve_terms(self) -> Indices:
        """Terms of each relation's matrix, by a curve of objects or of subjects, or by its rank."""
        s, q, o = self.graph.facts.T
        by_curves = self._by_group(q, s, o), self._by_group(q, o, s)
        return np.minimum.reduce([*by_curves, self.relation_ranks])

    @cached_property
    def curve_terms_of_subjects(self) -> Indices:
        """The same for each subject's matrix of relations and objects."""
        s, q, o = self.graph.facts.T
        return np.minimum(self._by_group(s, q, o), self._by_group(s, o, q))

    @cached_property
    def common_terms(self) -> Indices:
        """Sign changes of each relation's subjects, along an order that all relations share."""
        return self._along_common_order(1)

    @cached_property
    def common_terms_of_subjects(self) -> Indices:
        """Sign changes of each subject's relations, along an order that all subjects share."""
        return self._along_common_order(0)

    def _along_common_order(self, mode: int) -> Indices:
        self._charge(3)
        group, row = self.graph.facts[:, mode], self.graph.query_of
        found = np.zeros(self.graph.shape[mode], np.int64)
        changes = changes_of_rows(row, self.graph.facts[:, 2], self.common_order, from_minus=True)
        np.maximum.at(found, group, changes[row])
        return found

    def _by_group(self, group: Indices, row: Indices, column: Indices) -> Indices:
        """Most sign changes of a row of each group's matrix, along an order of its columns.

        Where there are many groups, the order is that of the columns' numbers.
        """
        n_groups = int(group.max()) + 1
        self._charge(2)
        if n_groups > MOST_ORDERS:
            return _as_numbered(n_groups, group, row, column)
        self.spend(GROUP * n_groups, 0)
        order = np.argsort(group, kind="stable")
        ends = np.flatnonzero(np.diff(group[order])) + 1
        return np.array([self._changes(row[of], column[of]) for of in np.split(order, ends)])

    def _changes(self, row: Indices, column: Indices) -> int:
        named, at = np.unique(column, return_inverse=True)
        order = seriated(row, at, len(named), from_minus=True, spend=self.spend)
        return sign_changes(row, at, order, from_minus=True)


def _as_numbered(n_groups: int, group: Indices, row: Indices, column: Indices) -> Indices:
    """Most sign changes of a row of each group's matrix, along the numbers of its columns."""
    _, at = np.unique(group * (int(column.max()) + 1) + column, return_inverse=True)
    _, line = np.unique(group * (int(row.max()) + 1) + row, return_inverse=True)
    first = np.full(n_groups, len(at))
    np.minimum.at(first, group, at)
    at -= first[group]
    changes = changes_of_rows(line, at, np.arange(int(at.max()) + 2), from_minus=True)
    found = np.zeros(n_groups, np.int64)
    np.maximum.at(found, group, changes[line])
    return found
