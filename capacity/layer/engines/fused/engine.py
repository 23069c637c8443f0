"""The fused engine: all of training one small layer in compiled code, on one thread of a CPU.

It does the arithmetic of `reference` in another order, about a hundred times as fast. From the
bottom: `capacity.layer.engines.simd.vector` is a vector as a value in numba, `small_matmul`
products of small matrices, `attention` and `logits` the layer forward and backward, `epochs` the
loop over epochs, `kernels` the choice of one, and `packing` the conversion of a run to arrays and
back.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from capacity.database.facts import Database
from capacity.layer.engines.fused import epochs
from capacity.layer.engines.fused.packing import PackedRun
from capacity.layer.model.config import LayerConfig
from capacity.layer.model.forward import Weights
from capacity.layer.run.recipe import Recipe, Status, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer


def run(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Train `layer` in place; `capacity.layer.train` checks the arguments."""
    from torch.autograd.graph import increment_version

    # these share the layer's memory
    weights = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    frozen = {name for name, p in layer.named_parameters() if not p.requires_grad}
    training = run_weights(layer.config, weights, db, recipe, rng, snapshots, frozen)
    for name, p in layer.named_parameters():
        if name not in frozen:
            # so that torch refuses gradients of what was computed before
            increment_version(p)
    return training


def run_weights(
    config: LayerConfig,
    weights: Weights,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
    frozen: Collection[str] = (),
) -> Training:
    """Train weights in place, without torch (`Engine.run_weights`).

    Those in `frozen` stay, beside those that the recipe freezes.
    """
    packed = PackedRun(config, weights, db, recipe, {*frozen, *recipe.frozen})
    end, epoch = packed.train(rng, snapshots)
    loss = math.nan if end == epochs.DIVERGED else packed.loss()
    packed.write_back(weights)
    status: Status = "completed"
    if not (math.isfinite(loss) and packed.is_finite):
        status = "diverged"
    elif end == epochs.MEMORISED:
        status = "memorised"
    return Training(status, epoch, loss, "fused", packed.history(epoch, loss))
