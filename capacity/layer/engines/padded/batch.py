"""Runs of similar size, and some facts of each, as tensors of one shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.model.config import LayerConfig

# runs in a batch
GROUP = 16


class Sizes(NamedTuple):
    """Sizes that the runs of a batch are padded to."""

    facts: int
    tokens: int
    active: int
    d_model: int
    n_heads: int
    d_head: int


@dataclass
class PaddedRun:
    """One run: a layer, its facts by rows of active tokens, and the order of its batches."""

    config: LayerConfig
    weights: Mapping[str, Tensor]
    db: Database
    rng: np.random.Generator
    active: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        config: LayerConfig,
        weights: Mapping[str, Tensor],
        db: Database,
        rng: np.random.Generator,
    ) -> PaddedRun:
        """Number the tokens that are a subject or a predicate."""
        active, rows = np.unique(db.token_triples[:, :2].astype(np.int64), return_inverse=True)
        return cls(config, weights, db, rng, active, rows.reshape(-1, 2))

    @property
    def sizes(self) -> Sizes:
        """Sizes of the run, rounded up to powers of two."""
        c = self.config
        sizes = (self.db.n_triples, self.db.n_tokens, len(self.active), c.d_model, c.n_heads,
                 max(c.d_head_qk, c.d_head_vo))  # fmt: skip
        return Sizes(*(1 << (size - 1).bit_length() for size in sizes))

    @property
    def idle(self) -> NDArray[np.int64]:
        """Tokens that are neither subject nor predicate: weight decay alone moves them."""
        return np.setdiff1d(np.arange(self.db.n_tokens), self.active)


class Batch(NamedTuple):
    """Some facts of each run, with incidence matrices; b runs, n facts, m first rows, a tokens.

    Attributes
    ----------
    subjects, predicates : (b, n, a)
        Subject and predicate of each fact.
    first : (b, m, a)
        Subject of each row that predicts predicates.
    row_weights : (b, m + n, 1)
        Weight of each row in the loss: first rows, then facts.
    targets : (b, m + n, t)
        Weight, in each row, of the tokens that it must predict.
    """

    subjects: Tensor
    predicates: Tensor
    first: Tensor
    row_weights: Tensor
    targets: Tensor


def make_batch(
    tasks: Sequence[PaddedRun],
    members: Sequence[NDArray[np.int64]],
    sizes: Sizes,
    n: int,
    *,
    both: bool,
    like: Tensor,
) -> Batch:
    """Collect some facts of each run, padded to n; a run may have none left.

    With `both`, predicates are learnt too; `like` has the device and the dtype.
    """
    b = GROUP
    m = min(n, sizes.active) if both else 0
    subjects, predicates = (np.zeros((b, n, sizes.active)) for _ in range(2))
    first = np.zeros((b, m, sizes.active))
    targets = np.zeros((b, m + n, sizes.tokens))
    for i, (task, chosen) in enumerate(zip(tasks, members, strict=True)):
        if not len(chosen):
            continue
        rows, ids = task.rows[chosen], task.db.token_triples[chosen]
        at, weight = np.arange(len(chosen)), (0.5 if both else 1.0) / len(chosen)
        subjects[i, at, rows[:, 0]] = predicates[i, at, rows[:, 1]] = 1
        targets[i, m + at, ids[:, 2]] = weight
        if both:
            distinct, of = np.unique(rows[:, 0], return_inverse=True)
            first[i, np.arange(len(distinct)), distinct] = 1
            # facts of one subject differ in their predicates
            targets[i, of, ids[:, 1]] = weight
    weights = targets.sum(axis=2, keepdims=True)
    arrays = (subjects, predicates, first, weights, targets)
    return Batch(*(torch.as_tensor(a, device=like.device, dtype=like.dtype) for a in arrays))
