"""Ranks that are the sizes of models whose scores are the facts themselves, 0 and 1.

With H and E arbitrary, T = H E^T is the tensor if and only if their width is at least the rank of
its object unfolding. If an entity has one vector on both sides, the columns of every T_q and of
every T_q^T lie in the span of these vectors; so RESCAL (E W_q E^T) and TuckER need the *joint*
rank, that of the subject unfolding beside the object unfolding, with a row for each entity. It is
enough, too: with E a basis of that space, W_q = E^+ T_q (E^+)^T. TuckER's relation vectors need the
rank of the relation unfolding likewise.

All of them are exact (`capacity.exact.ranks`).
"""

from __future__ import annotations

import numpy as np

from capacity.embedding.graphs.queries import QueryGraph
from capacity.exact.ranks import sparse_rank
from capacity.exact.types import Spend, free


def joint_rank(graph: QueryGraph, *, spend: Spend = free) -> int:
    """Rank of the subject unfolding beside the object unfolding, by entities that are shared.

    Parameters
    ----------
    graph : QueryGraph
        The facts.
    spend : callable
        Is told the steps and bytes of the work before each part of it, and may refuse it.

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
