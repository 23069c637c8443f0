"""The reference engine: autograd, one run at a time, on any device.

Plain PyTorch, kept so that it can be read: it defines what faster engines must compute.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor

from capacity.database.facts import Database
from capacity.layer.attention import AttentionLayer
from capacity.layer.recipe import Recipe, Status, Training


def run(layer: AttentionLayer, db: Database, recipe: Recipe, rng: np.random.Generator) -> Training:
    """Train `layer` in place; `capacity.layer.train` checks the arguments."""
    sentences = torch.as_tensor(db.token_triples.astype(np.int64), device=layer.W_E.device)
    optimizer = _optimizer(layer, recipe)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(_rate_factor, recipe))
    n = len(sentences)
    size = recipe.batch_size if 0 < recipe.batch_size < n else n
    status: Status = "completed"
    epoch = 0
    finite = True
    for epoch in range(recipe.epochs + 1):
        # a full batch has the logits that both the stop and the loss look at
        logits = layer(sentences[:, :2]) if size == n else None
        if recipe.stop_tau and _all_pass(layer, sentences, logits, recipe.stop_tau):
            status = "memorised"
            break
        if epoch == recipe.epochs:
            break
        order = torch.as_tensor(rng.permutation(n), device=sentences.device) if size < n else None
        for start in range(0, n, size):
            batch = sentences if order is None else sentences[order[start : start + size]]
            optimizer.zero_grad(set_to_none=True)
            loss = _loss(layer(batch[:, :2]) if logits is None else logits, batch, recipe)
            loss.backward()
            optimizer.step()
            finite = finite and math.isfinite(loss.item())
        schedule.step()
        if not finite:
            epoch += 1
            break
    with torch.no_grad():
        final = _loss(layer(sentences[:, :2]), sentences, recipe).item()
    if not (finite and math.isfinite(final) and _is_finite(layer, optimizer)):
        status = "diverged"
    return Training(status, epoch, final, "reference")


def _loss(logits: Tensor, sentences: Tensor, recipe: Recipe) -> Tensor:
    targets = sentences[:, 1:]
    if recipe.positions == "object":
        logits, targets = logits[:, -1:], targets[:, -1:]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def _all_pass(layer: AttentionLayer, sentences: Tensor, logits: Tensor | None, tau: float) -> bool:
    last = (layer(sentences[:, :2]) if logits is None else logits)[:, -1].double()
    log_p = last.gather(1, sentences[:, 2:]).squeeze(1) - last.logsumexp(dim=1)
    # false for NaN
    return bool((log_p >= math.log(tau)).all())


def _optimizer(layer: AttentionLayer, recipe: Recipe) -> torch.optim.Optimizer:
    kind = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
    return kind(
        layer.parameters(),
        lr=recipe.learning_rate,
        betas=(0.9, recipe.beta2),
        weight_decay=recipe.weight_decay,
    )


def _rate_factor(recipe: Recipe, epoch: int) -> float:
    """1, or the half cosine that falls from 1 to 0 over all epochs."""
    if recipe.schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * epoch / max(recipe.epochs, 1)))


def _is_finite(layer: AttentionLayer, optimizer: torch.optim.Optimizer) -> bool:
    """Whether weights and second moments are finite: an overflowed moment freezes its weight."""
    moments = [state["exp_avg_sq"] for state in optimizer.state.values()]
    return all(bool(t.isfinite().all()) for t in [*layer.parameters(), *moments])
