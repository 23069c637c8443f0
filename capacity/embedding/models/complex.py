"""ComplEx: the real part of sum_r e_s[r] w_q[r] conj(e_o[r]), with complex vectors."""

from __future__ import annotations

from collections.abc import Iterator

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.models import cp
from capacity.embedding.queries import Task


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield the bounds of ComplEx, by those of CP.

    Its scores are linear in 2 d real numbers of each entity and of each relation, and each
    dimension is a real tensor of rank 3. A term a_s b_q c_o of CP takes two dimensions, as
    X = a c^T is the real part of the normal matrix X + i X^T, of rank 2 at most (Trouillon et al.
    2017); one if subjects and objects are different entities, whose vectors are then real.
    """
    if task == "exact":
        lower = of.rank_lower
        words = "a third of the rank, certified: a dimension is a tensor of rank 3"
        yield nonzero("necessary", -(-lower // 3), words)
        words = "half the rank of the relation unfolding"
        yield nonzero("necessary", -(-of.relation_rank // 2), words)
        rank = of.object_rank if of.graph.entities is None else of.joint_rank
        words = "half the rank of the unfoldings of its entities"
        yield nonzero("necessary", -(-rank // 2), words)
    else:
        for one in cp.necessary(of, task):
            yield one.at(-(-one.value // 2), "two real numbers a dimension")
    each = 1 if of.graph.entities is None else 2
    # the constant of all signs is symmetric, and takes one
    more = int(task == "signs")
    for one in cp.sufficient(of, task):
        yield one.at(
            each * (one.value - more) + more,
            f"{each} for each dimension of CP (Trouillon et al. 2017)",
        )


MODEL = Model(
    "ComplEx",
    "Re sum_r e_s[r] w_q[r] conj(e_o[r])",
    bounds,
    lambda of: 2 * (of.graph.n_entities + of.graph.shape[1]) - 2,
)
