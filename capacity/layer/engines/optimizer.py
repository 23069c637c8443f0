"""Training epochs by `torch.optim`, for any implementation of loss and gradients."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from capacity.layer.model.decoder import AnyLayer
from capacity.layer.run.history import Recorder
from capacity.layer.run.recipe import Recipe, Status, Training
from capacity.layer.run.snapshots import Arrays, Snapshots


class Looked(NamedTuple):
    """Loss and probabilities that a look finds.

    Attributes
    ----------
    loss : float
        Mean loss.
    least : float
        Least log-probability of a fact's object; NaN if any is NaN.
    share : float
        Share of the facts whose object has a probability above one half.
    """

    loss: float
    least: float
    share: float


class Look(Protocol):
    """Function that evaluates the present weights on some facts, or on all."""

    def __call__(self, members: Tensor | None, *, backward: bool) -> Looked:
        """Evaluate, and set ``.grad`` if `backward`."""
        ...


def train_epochs(
    layer: AnyLayer,
    n_facts: int,
    recipe: Recipe,
    rng: np.random.Generator,
    look: Look,
    snapshots: Snapshots,
    *,
    engine: str,
) -> Training:
    """Train `layer` in place, resuming from its snapshot if there is one."""
    optimizer = _optimizer(layer, recipe)
    rates = recipe.learning_rates().tolist()
    size = recipe.facts_a_step(n_facts)
    whole = not size
    enough = math.log(recipe.stop_tau) if recipe.stop_tau else math.inf
    status: Status = "completed"
    recorder = Recorder(recipe.epochs)

    def arrays() -> Arrays:
        return {**_arrays(layer, optimizer), **recorder.arrays}

    start, held = snapshots.recall(rng, arrays, recipe.epochs)
    tensors = _tensors(layer, optimizer)
    for name, array in held.items():
        if name in recorder.arrays:
            recorder.arrays[name][...] = array
        else:
            tensors[name].copy_(torch.from_numpy(array))
    epoch, finite = start, True
    # the loss of all facts with the weights as they are
    final: Looked | None = None
    for epoch in range(start, recipe.epochs + 1):
        snapshots.offer(epoch, rng, arrays, loss=recorder.loss_before(epoch))
        last = epoch == recipe.epochs
        optimizer.zero_grad(set_to_none=True)
        if whole or recipe.stop_tau:
            # a full batch has the logits that both the stop and the loss look at
            final = look(None, backward=whole and not last)
            # false for NaN
            if final.least >= enough:
                status = "memorised"
                break
        if last:
            break
        for group in optimizer.param_groups:
            group["lr"] = rates[epoch]
        if whole:
            optimizer.step()
            finite = final is not None and math.isfinite(final.loss)
            if final is not None:
                recorder.note(epoch, final.loss, final.share)
        else:
            order = torch.as_tensor(rng.permutation(n_facts), device=layer.W_E.device)
            losses, shares = 0.0, 0.0
            for members in order.split(size):
                optimizer.zero_grad(set_to_none=True)
                found = look(members, backward=True)
                optimizer.step()
                finite = finite and math.isfinite(found.loss)
                losses += found.loss * len(members) / n_facts
                shares += found.share * len(members) / n_facts
            recorder.note(epoch, losses, shares)
        final = None
        if not finite:
            epoch += 1
            break
    optimizer.zero_grad(set_to_none=True)
    if final is None:
        final = look(None, backward=False)
    if not (finite and math.isfinite(final.loss) and _is_finite(layer, optimizer)):
        status = "diverged"
    history = recorder.history(epoch, final.loss, final.share)
    return Training(status, epoch, final.loss, engine, history)


def _optimizer(layer: AnyLayer, recipe: Recipe) -> torch.optim.Optimizer:
    kind = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
    optimizer = kind(
        layer.parameters(),
        lr=recipe.learning_rate,
        betas=(0.9, recipe.beta2),
        weight_decay=recipe.weight_decay,
    )
    for p in layer.parameters():
        if p.requires_grad:
            # as its first step would make them, so that a snapshot can be read into them
            moments = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
            optimizer.state[p] = {"step": torch.tensor(0.0), **moments}
    return optimizer


def _tensors(layer: AnyLayer, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """All tensors that epochs change: weights, and the optimizer's state of each."""
    tensors = {name: p.detach() for name, p in layer.named_parameters()}
    for name, p in layer.named_parameters():
        tensors |= {f"{name}.{kind}": t for kind, t in optimizer.state.get(p, {}).items()}
    return tensors


def _arrays(layer: AnyLayer, optimizer: torch.optim.Optimizer) -> Arrays:
    return {name: t.cpu().numpy() for name, t in _tensors(layer, optimizer).items()}


def _is_finite(layer: AnyLayer, optimizer: torch.optim.Optimizer) -> bool:
    """True if weights and second moments are finite: an overflowed moment freezes its weight."""
    moments = [state["exp_avg_sq"] for state in optimizer.state.values()]
    return all(bool(t.isfinite().all()) for t in [*layer.parameters(), *moments])
