"""The reference engine: autograd, one run at a time, on any device.

Plain PyTorch, written to be read: it defines the result that faster engines must compute.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.engines.optimizer import Looked, train_epochs
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots


def run(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Train `layer` in place; `capacity.layer.train` checks the arguments."""
    sentences = torch.as_tensor(db.token_triples.astype(np.int64), device=layer.W_E.device)

    def look(members: Tensor | None, *, backward: bool) -> Looked:
        batch = sentences if members is None else sentences[members]
        with torch.set_grad_enabled(backward):
            logits = layer(batch[:, :2])
            loss = _loss(logits, batch, recipe)
        if backward:
            loss.backward()
        log_p = _log_p(logits.detach(), batch)
        known = (log_p > math.log(0.5)).double().mean().item()
        return Looked(loss.item(), log_p.min().item(), known)

    return train_epochs(layer, len(sentences), recipe, rng, look, snapshots, engine="reference")


def _loss(logits: Tensor, sentences: Tensor, recipe: Recipe) -> Tensor:
    targets = sentences[:, 1:]
    if recipe.positions == "object":
        logits, targets = logits[:, -1:], targets[:, -1:]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _log_p(logits: Tensor, sentences: Tensor) -> Tensor:
    """Log-probability of each fact's object, in float64."""
    last = logits[:, -1].double()
    return last.gather(1, sentences[:, 2:]).squeeze(1) - last.logsumexp(dim=1)
