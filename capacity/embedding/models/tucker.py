"""TuckER: sum_ijk W[i, k, j] e_s[i] w_q[k] e_o[j], with a core that relations share."""

from __future__ import annotations

from collections.abc import Iterator

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason
from capacity.embedding.models import rescal
from capacity.embedding.queries import Task


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield the bounds of the dimension of TuckER's entities, with as many of relations as needed.

    With d_r up to the number of relations it is RESCAL. Exact scores need the rank of the relation
    unfolding there.
    """
    for one in rescal.of_entities(of, task):
        words = f"; for relations {of.relation_rank:,}, the rank of their unfolding"
        yield one if task != "exact" else Reason(one.side, one.value, one.words + words)


MODEL = Model("TuckER", "W x_1 e_s x_2 w_q x_3 e_o", bounds, lambda of: of.graph.n_entities)
