"""The reference engine: autograd, one run at a time, on any device.

Plain PyTorch, written to be read: it defines the result that faster engines must compute. Torch is
loaded when it first trains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.layer.engines.engine import Engine, StepCost, Workload
from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.database.facts import Database
    from capacity.layer.engines.optimizer import Looked
    from capacity.layer.model.decoder import AnyLayer


def run(
    layer: AnyLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
    weights: NDArray[np.float64] | None = None,
) -> Training:
    """Train `layer` in place; `capacity.layer.train` checks the arguments."""
    import torch

    from capacity.layer.engines.optimizer import Looked, train_epochs

    device = layer.W_E.device
    sentences = torch.as_tensor(db.token_tuples.astype(np.int64), device=device)
    given = None if weights is None else torch.as_tensor(weights, device=device).to(layer.W_E)

    def look(members: Tensor | None, *, backward: bool) -> Looked:
        batch = sentences if members is None else sentences[members]
        masses = given if given is None or members is None else given[members]
        with torch.set_grad_enabled(backward):
            logits = layer(batch[:, :-1])
            loss = _loss(logits, batch, recipe, masses)
        if backward:
            loss.backward()
        log_p = _log_p(logits.detach(), batch)
        known = (log_p > math.log(0.5)).double().mean().item()
        return Looked(loss.item(), log_p.min().item(), known)

    return train_epochs(layer, len(sentences), recipe, rng, look, snapshots, engine="reference")


def _loss(logits: Tensor, sentences: Tensor, recipe: Recipe, masses: Tensor | None) -> Tensor:
    from torch.nn.functional import cross_entropy

    targets = sentences[:, 1:]
    if recipe.positions == "object":
        logits, targets = logits[:, -1:], targets[:, -1:]
    if masses is None:
        return cross_entropy(logits.flatten(0, 1), targets.flatten())
    each = cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (masses * each.view_as(targets).mean(dim=1)).mean()


def _log_p(logits: Tensor, sentences: Tensor) -> Tensor:
    """Log-probability of each fact's object, in float64."""
    last = logits[:, -1].double()
    return last.gather(1, sentences[:, -1:]).squeeze(1) - last.logsumexp(dim=1)


def _why_not(_work: Workload) -> str | None:
    return None


def _start(_works: Iterable[Workload]) -> float:
    # what torch's optimizers import at their first step
    return 1.1


REFERENCE = Engine(
    name="reference",
    why_not=_why_not,
    run=run,
    cost=StepCost(
        run=1e-3,
        step=1.2e-3,
        head=1.5e-6,
        logit=1.1e-8,
        product=2.5e-10,
        weight=8e-9,
        projection=2e-9,
        double=1.3,
    ),
    start=_start,
    priority=0,
    any_arity=True,
    weighs_facts=True,
)
