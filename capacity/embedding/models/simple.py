"""SimplE: (sum_r a_s[r] v_q[r] b_o[r] + sum_r a_o[r] w_q[r] b_s[r]) / 2."""

from __future__ import annotations

from collections.abc import Iterator

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.models import cp
from capacity.embedding.queries import Task


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield the bounds of SimplE, which has CP of d dimensions within, and is within CP of 2 d."""
    if task == "exact":
        lower = of.rank_lower
        words = "half the rank, certified: it is CP of twice the dimensions"
        yield nonzero("necessary", -(-lower // 2), words)
        # <a_s, v_q, b_o> + <a_o, w_q, b_s> is linear in the 2 d numbers of an entity
        rank = of.object_rank if of.graph.entities is None else of.joint_rank
        words = "half the rank of the unfoldings of its entities"
        yield nonzero("necessary", -(-rank // 2), words)
    else:
        for one in cp.necessary(of, task):
            yield one.at(-(-one.value // 2), "it is CP of twice the dimensions")
    for one in cp.sufficient(of, task):
        yield one.at(one.value, "CP is within it (Kazemi, Poole 2018)")


MODEL = Model(
    "SimplE",
    "(<a_s, v_q, b_o> + <a_o, w_q, b_s>) / 2",
    bounds,
    lambda of: 2 * (of.graph.n_entities + of.graph.shape[1] - 1),
)
