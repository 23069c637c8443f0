"""DistMult: sum_r e_s[r] w_q[r] e_o[r], symmetric in entities that are shared."""

from __future__ import annotations

from collections.abc import Iterator

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.models import cp
from capacity.embedding.queries import Task

SYMMETRIC = "scores are symmetric in subject and object"


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield the bounds of DistMult, or what it can't do at any size."""
    if of.graph.entities is None:
        # subjects and objects are different entities
        yield from cp.bounds(of, task)
        return
    if task in ("exact", "signs"):
        stopped, what = of.asymmetric, "a fact whose reverse is none"
    elif task == "ranking":
        stopped, what = of.cycles, "a cycle of facts without reverses"
    else:
        stopped, what = of.paths, "a path of two facts without reverses"
    if stopped:
        n = len(stopped)
        words = f"{SYMMETRIC}: {n:,} relation{'s have' if n > 1 else ' has'} {what}"
        yield Reason("impossible", 0, words, tuple(stopped))
        return
    if task == "exact":
        yield nonzero("necessary", of.rank_lower, "the rank, certified")
    else:
        yield from cp.necessary(of, task)
    n, relations = of.graph.n_entities, of.graph.shape[1]
    every = min(n * relations, n * (n + 1) // 2)
    yield nonzero("sufficient", every, f"all symmetric matrices of {n:,} entities")
    if task in ("exact", "signs"):
        value = int(of.relation_ranks.sum()) + (task == "signs")
        yield nonzero("sufficient", value, "eigenvectors of each relation's matrix")
    elif not of.paths:
        value = int(of.symmetric_ranks.sum())
        yield nonzero("sufficient", value, "eigenvectors of each M_q + M_q^T, which ranks all")


MODEL = Model(
    "DistMult",
    "sum_r e_s[r] w_q[r] e_o[r]",
    bounds,
    lambda of: of.graph.n_entities + of.graph.shape[1] - 1,
)
