"""Relations that scores symmetric in subject and object can't rank, as DistMult's are.

DistMult scores sum_r e_s[r] w_q[r] e_o[r], so that T_q is a symmetric matrix over the entities. A
fact (s, q, o) is *one-way* if (o, q, s) is none. For any family of symmetric matrices, of whatever
size the vectors are:

* it has the signs of the facts if and only if no fact is one-way;
* it ranks every query (s, q, ?) if and only if no relation has a directed cycle of one-way facts;
* it ranks every query (s, q, ?) and (?, q, o) if and only if no relation has a path of two of them.

Proof. A query orders unordered pairs of entities: {s, o} above {s, o'} for each answer o and other
o'. Symmetric scores exist if and only if these orders have no circle, for then any linear extension
yields them. If (s, q, o) and (o, q, o') are one-way, the query at o has o' above s: {s, o} is below
{o, o'}; along a cycle this returns to the start. Conversely take a circle of pairs, each above the
next, which share the query's entity; a pair that is below in one query and above in the next is a
fact in one direction alone, so that successive queries are at successive ends of one-way facts, and
these are a directed cycle. With queries (?, q, o), which order the pairs {s, o} above {s', o} at
the other end, a path s -> o -> o' puts {s, o} below {o, o'} as before, and above it, as o' -> o is
no fact. Without such a path, M_q + M_q^T ranks all of them: its entries are 2 for facts in both
directions, 1 for one-way ones. At an entity that one-way facts leave, none arrives: in (s, q, ?)
the answers have 1 or 2, and all others 0. At one where they arrive and none leaves, the answers of
(s, q, ?) have 2, all others at most 1; and likewise for (?, q, o).

Checked against brute force in the tests. No source is known to the authors; Trouillon et al. (2016)
and Kazemi and Poole (2018) note that symmetric scores can't distinguish a fact from its reverse.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from capacity.display import briefly_shown
from capacity.embedding.queries import QueryGraph
from capacity.exact.types import Indices
from capacity.tensor.structure import numbered


@briefly_shown
@dataclass(frozen=True)
class Obstruction:
    """One-way facts of a relation that no symmetric scores rank.

    Attributes
    ----------
    relation : int
        Number of the relation.
    entities : tuple of int
        Entities along the facts. A cycle ends where it begins.
    """

    relation: int
    entities: tuple[int, ...]


def one_way_facts(graph: QueryGraph) -> Indices:
    """Facts whose reverse is none, as entity, relation, entity.

    Parameters
    ----------
    graph : QueryGraph
        A graph whose entities are shared.

    Returns
    -------
    ndarray of int64, shape (n, 3)
        The facts, in ascending order.

    Raises
    ------
    InvalidArgumentError
        If the entities aren't shared.

    Examples
    --------
    >>> from capacity import Database
    >>> facts = [("Ada", "knows", "Bob"), ("Bob", "knows", "Ada"), ("Bob", "knows", "Eve")]
    >>> db = Database.from_triples(facts, multi="keep")
    >>> one_way_facts(QueryGraph.of(db)).tolist()
    [[1, 0, 2]]
    """
    triples = graph.triples
    sides = graph.n_entities, graph.shape[1], graph.n_entities
    both = numbered(np.concatenate([triples, triples[:, ::-1]]), sides)
    there, back = np.split(both, 2)
    return triples[~np.isin(back, there)]


def asymmetric_relations(graph: QueryGraph) -> list[Obstruction]:
    """Find a one-way fact of each relation that has one."""
    facts = one_way_facts(graph)
    relations, first = np.unique(facts[:, 1], return_index=True)
    return [
        Obstruction(int(q), (int(facts[i, 0]), int(facts[i, 2])))
        for q, i in zip(relations, first, strict=True)
    ]


def one_way_paths(graph: QueryGraph) -> list[Obstruction]:
    """Find a path of two one-way facts of each relation that has one."""
    facts = one_way_facts(graph)
    s, q, o = facts.T
    n = graph.n_entities
    leaving, arriving = q * n + s, q * n + o
    middle, into, out_of = np.intersect1d(arriving, leaving, return_indices=True)
    relations, first = np.unique(middle // n, return_index=True)
    return [
        Obstruction(
            int(relation),
            (int(s[into[i]]), int(middle[i] % n), int(o[out_of[i]])),
        )
        for relation, i in zip(relations, first, strict=True)
    ]


def one_way_cycles(graph: QueryGraph) -> list[Obstruction]:
    """Find a directed cycle of one-way facts of each relation that has one.

    Each is a shortest one through some entity. The time is linear in the facts.
    """
    facts = one_way_facts(graph)
    if not len(facts):
        return []
    s, q, o = facts.T
    n = graph.n_entities
    # a vertex is an entity in a relation
    vertices, at = np.unique(np.concatenate([q * n + s, q * n + o]), return_inverse=True)
    start, end = at[: len(facts)], at[len(facts) :]
    size = len(vertices), len(vertices)
    edges = csr_array((np.ones(len(facts), np.int8), (start, end)), shape=size)
    _, found = connected_components(edges, directed=True, connection="strong")
    labels = found.astype(np.int64)
    sizes = np.bincount(labels)
    within = np.flatnonzero(sizes[labels] > 1)
    # the smallest strongly connected part of each relation
    order = np.lexsort((sizes[labels[within]], vertices[within] // n))
    relations, first = np.unique(vertices[within[order]] // n, return_index=True)
    return [
        Obstruction(
            int(relation),
            tuple(int(vertices[v] % n) for v in _cycle(edges, labels, int(within[order[i]]))),
        )
        for relation, i in zip(relations, first, strict=True)
    ]


def _cycle(edges: csr_array, labels: Indices, start: int) -> list[int]:
    """Return a shortest cycle through a vertex of a strongly connected part, by breadth first."""
    before: dict[int, int] = {}
    queue = deque([start])
    # its part is strongly connected, so there is one
    while True:
        vertex = queue.popleft()
        for after in edges.indices[edges.indptr[vertex] : edges.indptr[vertex + 1]].tolist():
            if after == start:
                path = [start, vertex]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1]
            if after not in before and labels[after] == labels[start]:
                before[after] = vertex
                queue.append(after)
