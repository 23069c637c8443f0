"""Ranks of layers that hold their database: as they are, truncated, penalised, and of what is kept.

`experiments.held_layers.least_rank` explains them.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from capacity import Database
from capacity.evaluator import memorises
from capacity.layer import AttentionLayer, layer_rank_upper, layer_tensor
from capacity.rank import numerical_rank_estimates

THRESHOLD = 1e-4
LEARNING_RATE = 0.01


def rank_upper(layer: AttentionLayer, directions: int, db: Database) -> int:
    """Upper end of rank(L), numerical or proved; W_U has as many directions."""
    estimate = numerical_rank_estimates(layer_tensor(layer, db).L, threshold=THRESHOLD)
    # L is made of as many slices, each with the rank of a K x Q matrix at most
    proved = min(layer_rank_upper(layer.config, db.shape), directions * min(db.shape[:2]))
    return min(estimate.decomposition_size, proved)


def truncated_layer(layer: AttentionLayer, db: Database) -> tuple[AttentionLayer, int]:
    """The layer with W_U projected to as few directions as put every fact first, and their number.

    Directions are singular vectors of the logits at the facts; with d_model of them nothing
    changes.
    """
    pairs = torch.as_tensor(db.token_triples[:, :2].astype(np.int64))
    _, _, directions = torch.linalg.svd(layer(pairs)[:, -1], full_matrices=False)
    weights = dict(layer.named_parameters())
    for r in range(1, layer.config.d_model):
        projected = layer.W_U @ directions[:r].T @ directions[:r]
        made = AttentionLayer.of_weights(layer.config, {**weights, "W_U": projected})
        if memorises(made, db, "argmax"):
            return made, r
    return layer, layer.config.d_model


def penalised_layer(
    layer: AttentionLayer, db: Database, penalty: float, epochs: int
) -> AttentionLayer:
    """The layer trained further on cross entropy and `penalty` times `spread`."""
    weights = {name: weight.detach().clone() for name, weight in layer.named_parameters()}
    made = AttentionLayer.of_weights(layer.config, weights)
    facts = torch.as_tensor(db.token_triples.astype(np.int64))
    optimizer = torch.optim.Adam(made.parameters(), lr=LEARNING_RATE)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(made(facts[:, :2])[:, -1], facts[:, 2])
        (loss + penalty * spread(layer_tensor(made, db).L, layer.config.d_model)).backward()
        optimizer.step()
    return made


def spread(L: torch.Tensor, d_model: int) -> torch.Tensor:
    """Sum of the singular values of the slices that L is made of, over its norm.

    Over its norm, since a scale changes no rank.
    """
    slices, _ = slices_of(L, d_model)
    return torch.linalg.matrix_norm(slices, "nuc").sum() / torch.linalg.vector_norm(slices)


def slices_of(L: torch.Tensor, d_model: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Slices (d_model, K, Q) that L is made of, and the directions (d_model, V) of each."""
    _, _, directions = torch.linalg.svd(L.detach().flatten(0, 1), full_matrices=False)
    directions = directions[:d_model]
    return (L @ directions.T).movedim(-1, 0), directions


def kept_rank(layer: AttentionLayer, db: Database) -> int:
    """Least number of the largest singular values of L's slices that put every fact first."""
    slices, directions = slices_of(layer_tensor(layer, db).L, layer.config.d_model)
    U, S, Vh = torch.linalg.svd(slices, full_matrices=False)
    k, q, v = torch.as_tensor(db.triples.T.astype(np.int64))
    # of each singular value what it adds to the logits at the facts: (slices, values, facts)
    added = (U[:, k] * S[:, None] * Vh[:, :, q].movedim(1, 2)).movedim(1, 2)
    largest = S.flatten().argsort(descending=True)
    logits = torch.zeros(len(k), directions.shape[1], dtype=S.dtype)
    for rank, place in enumerate(largest.tolist(), start=1):
        of_slice, value = divmod(place, S.shape[1])
        logits += added[of_slice, value][:, None] * directions[of_slice]
        others = logits.clone()
        others[range(len(v)), v] = -math.inf
        if (logits.gather(1, v[:, None])[:, 0] > others.max(dim=1).values).all():
            return rank
    return len(largest)
