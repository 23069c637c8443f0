"""RESCAL: e_s^T W_q e_o, with a matrix for each relation."""

from __future__ import annotations

from collections.abc import Iterator

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.models import cp
from capacity.embedding.queries import Task


def of_entities(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield bounds of the dimension of entities, where relations have matrices of any rank."""
    graph = of.graph
    if graph.entities is None:
        rank = max(of.subject_rank, of.object_rank)
        words = "the ranks of the subject and the object unfolding"
        most = max(graph.shape[0], graph.shape[2])
    else:
        rank, most = of.joint_rank, graph.n_entities
        words = "the joint rank of the subject and the object unfolding, by entities"
    if task == "exact":
        yield nonzero("necessary", rank, words)
        yield nonzero("sufficient", rank, words)
        return
    yield from cp.necessary(of, task)
    yield nonzero("sufficient", most, "a dimension for each entity")
    yield nonzero("sufficient", rank + (task == "signs"), f"exact scores: {words}")
    each = 1 if graph.entities is None else 2
    # the constant of all signs takes one vector, the same on both sides
    more = int(task == "signs")
    for one in cp.sufficient(of, task):
        yield one.at(each * (one.value - more) + more, f"{each} for each dimension of CP")


MODEL = Model("RESCAL", "e_s^T W_q e_o", of_entities, lambda of: of.graph.n_entities)
