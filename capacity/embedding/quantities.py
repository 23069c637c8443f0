"""Numbers that the theorems about dimensions use, each computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from capacity.database import Database
from capacity.display import briefly_shown
from capacity.embedding.curves import changes_of_rows, has_gap, seriated, sign_changes
from capacity.embedding.exact_sizes import joint_rank
from capacity.embedding.graph import QueryGraph
from capacity.embedding.one_way import (
    Obstruction,
    asymmetric_relations,
    one_way_cycles,
    one_way_paths,
)
from capacity.embedding.signs.matrices import SignMatrix, of_comparisons, of_objects, of_queries
from capacity.embedding.signs.shattered import Shattered, shattered
from capacity.embedding.signs.spectral import SmallNorm, small_norm
from capacity.rank import (
    Effort,
    RankInterval,
    effective_rank_interval,
    rank_interval,
    unfolding_rank,
)
from capacity.rank.exact.ranks import sparse_rank_by_group
from capacity.rank.types import Indices
from capacity.tensor.graphs import connected_labels

SignProof: TypeAlias = Shattered | SmallNorm
# groups up to which an order is sought for each
MOST_ORDERS = 2_000


@briefly_shown
@dataclass(frozen=True, eq=False)
class Quantities:
    """Numbers of a graph from which bounds of dimensions follow.

    Attributes
    ----------
    db : Database
        The facts.
    graph : QueryGraph
        The same, as queries and answers.
    effort : str
        Work for intervals of ranks, as for `rank_interval`.
    seed : int
        Seed of all searches.
    signs : bool
        Whether signs that prove a bound are sought.
    """

    db: Database
    graph: QueryGraph
    effort: Effort
    seed: int
    signs: bool = True

    @cached_property
    def rank(self) -> RankInterval:
        """The certified interval of the rank."""
        return rank_interval(self.db, effort=self.effort, seed=self.seed).uninterrupted()

    @cached_property
    def effective_rank(self) -> RankInterval:
        """The certified interval of the effective rank, whose scores rank every query."""
        found = effective_rank_interval(self.db, effort=self.effort, seed=self.seed)
        return found.uninterrupted()

    @cached_property
    def object_rank(self) -> int:
        """Rank of the object unfolding."""
        return unfolding_rank(self.db, 2)

    @cached_property
    def subject_rank(self) -> int:
        """Rank of the subject unfolding."""
        return unfolding_rank(self.db, 0)

    @cached_property
    def relation_rank(self) -> int:
        """Rank of the relation unfolding."""
        return unfolding_rank(self.db, 1)

    @cached_property
    def joint_rank(self) -> int:
        """Rank of the subject and object unfoldings beside each other, by shared entities."""
        return joint_rank(self.graph)

    @cached_property
    def relation_ranks(self) -> Indices:
        """Rank of the matrix of each relation, shape (n_relations,)."""
        s, q, o = self.graph.facts.T
        return sparse_rank_by_group(q * self.graph.shape[0] + s, q * self.graph.shape[2] + o, q)

    @cached_property
    def symmetric_ranks(self) -> Indices:
        """Rank of M_q + M_q^T for each relation, shape (n_relations,), by shared entities."""
        s, q, o = self.graph.triples.T
        n = self.graph.n_entities
        places = np.concatenate([(q * n + s) * n + o, (q * n + o) * n + s])
        found, values = np.unique(places, return_counts=True)
        rest, column = np.divmod(found, n)
        relation = rest // n
        return sparse_rank_by_group(rest, relation * n + column, relation, values)

    @cached_property
    def asymmetric(self) -> list[Obstruction]:
        """A one-way fact of each relation that has one."""
        return asymmetric_relations(self.graph)

    @cached_property
    def cycles(self) -> list[Obstruction]:
        """A cycle of one-way facts of each relation that has one."""
        return one_way_cycles(self.graph)

    @cached_property
    def paths(self) -> list[Obstruction]:
        """A path of two one-way facts of each relation that has one."""
        return one_way_paths(self.graph)

    @cached_property
    def fits_a_line(self) -> bool | None:
        """True if one dimension ranks all queries of one answer each; None if some have more.

        Each answer is then the largest or the smallest of the objects' numbers, so there are two
        at most, and the sign of a_s b_q tells which: signs on the edges of a bipartite graph, which
        are such products if and only if the graph is balanced (Harary 1953).
        """
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
        return seriated(graph.query_of, graph.facts[:, 2], graph.shape[2], from_minus=False)

    @cached_property
    def changes(self) -> int:
        """Most sign changes of a query along `common_order`, with entities that answer none."""
        graph, order = self.graph, self.common_order
        query, o = graph.query_of, graph.facts[:, 2]
        apart = graph.places[2] == graph.shape[2] or has_gap(query, o, order)
        return sign_changes(query, o, order, from_minus=not apart)

    @cached_property
    def curve_terms(self) -> Indices:
        """Terms of each relation's matrix, by a curve of objects or of subjects, or by its rank."""
        s, q, o = self.graph.facts.T
        return np.minimum.reduce([_by_group(q, s, o), _by_group(q, o, s), self.relation_ranks])

    @cached_property
    def curve_terms_of_subjects(self) -> Indices:
        """The same for each subject's matrix of relations and objects."""
        s, q, o = self.graph.facts.T
        return np.minimum(_by_group(s, q, o), _by_group(s, o, q))

    @cached_property
    def common_terms(self) -> Indices:
        """Sign changes of each relation's subjects, along an order that all relations share."""
        return self._along_common_order(1)

    @cached_property
    def common_terms_of_subjects(self) -> Indices:
        """Sign changes of each subject's relations, along an order that all subjects share."""
        return self._along_common_order(0)

    def _along_common_order(self, mode: int) -> Indices:
        group, row = self.graph.facts[:, mode], self.graph.query_of
        found = np.zeros(self.graph.shape[mode], np.int64)
        changes = changes_of_rows(row, self.graph.facts[:, 2], self.common_order, from_minus=True)
        np.maximum.at(found, group, changes[row])
        return found

    @cached_property
    def signs_of_objects(self) -> list[SignProof]:
        """Signs that <h, e_o> must have, or less a threshold for each row: of two matrices."""
        return [*self._proofs(of_objects(self.graph)), *self._proofs(of_queries(self.graph))]

    @cached_property
    def signs_of_subjects(self) -> list[SignProof]:
        """Signs of subjects at comparisons of two objects."""
        return [*self._proofs(of_comparisons(self.graph))]

    def _proofs(self, matrix: SignMatrix) -> Iterator[SignProof]:
        if not self.signs:
            return
        yield shattered(matrix, self.seed)
        small = small_norm(matrix, self.seed)
        if small is not None:
            yield small


def _by_group(group: Indices, row: Indices, column: Indices) -> Indices:
    """Most sign changes of a row of each group's matrix, along an order of its columns.

    Where there are many groups, the order is that of the columns' numbers.
    """
    n_groups = int(group.max()) + 1
    if n_groups > MOST_ORDERS:
        _, at = np.unique(group * (int(column.max()) + 1) + column, return_inverse=True)
        _, line = np.unique(group * (int(row.max()) + 1) + row, return_inverse=True)
        first = np.full(n_groups, len(at))
        np.minimum.at(first, group, at)
        at -= first[group]
        changes = changes_of_rows(line, at, np.arange(int(at.max()) + 2), from_minus=True)
        found = np.zeros(n_groups, np.int64)
        np.maximum.at(found, group, changes[line])
        return found
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order])) + 1
    return np.array([_changes(row[part], column[part]) for part in np.split(order, ends)])


def _changes(row: Indices, column: Indices) -> int:
    named, at = np.unique(column, return_inverse=True)
    order = seriated(row, at, len(named), from_minus=True)
    return sign_changes(row, at, order, from_minus=True)
