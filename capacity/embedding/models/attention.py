"""The single-layer attention-only decoder of this project: its dimension is ``d_model``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity.embedding.graph_counts import Counts
from capacity.embedding.model import Model, Reason, nonzero
from capacity.embedding.models import linear
from capacity.embedding.queries import Task


def bounds(of: Counts, task: Task) -> Iterator[Reason]:
    """Yield bounds of d_model, with any number of heads of any size."""
    # logits are linear in the d_model numbers of an object's column of W_U
    yield from linear.necessary(of, task)
    if task == "ranking" and of.graph.answers.max() == 1:
        n = of.graph.shape[1]
        apart = not np.intersect1d(of.db.subject_ids, of.db.predicate_ids).size
        words = "facts written into attention (capacity.layer.store_in_query_key)"
        yield nonzero("sufficient", n + 1 if apart else 2 * n + 2, words)


MODEL = Model(
    "attention",
    "logits of a layer of attention at the tokens (s, q)",
    bounds,
    lambda of: of.db.n_tokens + of.graph.n_named - 1,
    both_sides=False,
    trained=False,
)
