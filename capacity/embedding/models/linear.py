"""Any model with a linear output layer: <h(s, q), e_o>, whatever the encoder h is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.proofs import Shattered, SignProof
from capacity.embedding.queries import Task

# what has the signs at each kind of points
ROWS = {"objects": "queries", "queries": "objects", "comparisons": "subjects"}


def necessary(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield lower bounds of every model whose scores are linear in d numbers of the object."""
    if task == "exact":
        yield nonzero("necessary", of.object_rank, "the rank of the object unfolding")
        return
    yield nonzero("necessary", 1, "a model has one dimension at least")
    less = 0 if task == "signs" else 1
    if less and of.graph.answers.max() == 1 and of.graph.n_named > 2:
        words = "each query has one answer, and only two objects are at the ends of a line"
        yield nonzero("necessary", 2, words)
    yield from by_signs(of.signs_of_objects, less)


def by_signs(proofs: Iterable[SignProof], less: int) -> Iterator[Reason]:
    """Yield lower bounds by the signs of scores, less the dimensions that thresholds take."""
    for found in proofs:
        if found.dimension <= less:
            continue
        if isinstance(found, Shattered):
            shown = f"{found.dimension} {found.kind} on which {ROWS[found.kind]} show all patterns"
            words = f"{shown}, up to negation (Paturi, Simon 1986; Alon, Haussler, Welzl 1987)"
        else:
            m, n = len(found.rows), len(found.points)
            shown = f"the norm of {m} x {n} signs, of {ROWS[found.kind]} at {found.kind}"
            words = f"{shown} (Forster 2002)"
        words += ", less one for the threshold of each row" if less else ""
        yield nonzero("necessary", found.dimension - less, words, found)


def sufficient(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield upper bounds of linear output layers with any encoder."""
    rank = "the rank of the object unfolding"
    if task == "exact":
        yield nonzero("sufficient", of.object_rank, rank)
        return
    more = 1 if task == "signs" else 0
    curve = "objects on a moment curve, in an order with few sign changes (Alon, Frankl, Rodl 1985)"
    yield nonzero("sufficient", of.changes + more, curve)
    yield nonzero("sufficient", of.object_rank + more, f"exact scores: {rank}")
    if not more:
        yield nonzero("sufficient", of.effective_upper, "the effective rank, certified")


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield the bounds of any linear output layer."""
    yield from necessary(of, task)
    yield from sufficient(of, task)


MODEL = Model(
    "linear",
    "<h(s, q), e_o> with any h",
    bounds,
    lambda of: of.graph.n_queries + of.graph.n_named - 1,
    both_sides=False,
)
