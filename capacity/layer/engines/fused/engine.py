"""The fused engine: all of training one small layer in compiled code, on one thread of a CPU.

It does the arithmetic of `reference` in another order, about a hundred times as fast. From the
bottom: `capacity.layer.engines.simd.vector` is a vector as a value in numba, `small_matmul`
products of small matrices, `attention` and `logits` the layer forward and backward, `epochs` the
loop over epochs, and `packing` the conversion of a run to arrays and back.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from capacity.database.facts import Database
from capacity.layer.config import LayerConfig
from capacity.layer.engines.fused import epochs
from capacity.layer.engines.fused.packing import PackedRun
from capacity.layer.engines.fused.start import kept_kernels, needed_kernels
from capacity.layer.forward import Weights
from capacity.layer.recipe import Recipe, Status, Training
from capacity.layer.snapshots import NO_SNAPSHOTS, Snapshots

if TYPE_CHECKING:
    from capacity.layer.model import AttentionLayer

_LOG = logging.getLogger("capacity")
# kernels that this process has loaded or compiled, or is about to
_begun: set[tuple[int, str, bool]] = set()


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
    """Train weights in place, without torch (`Engine.run_weights`); those in `frozen` stay."""
    packed = PackedRun(config, weights, db, recipe, frozen)
    with compilation(config.d_model, packed.dtype.name, batches=recipe.batch_size > 0):
        end, epoch = packed.train(rng, snapshots)
        loss = math.nan if end == epochs.DIVERGED else packed.loss()
    packed.write_back(weights)
    status: Status = "completed"
    if not (math.isfinite(loss) and packed.is_finite):
        status = "diverged"
    elif end == epochs.MEMORISED:
        status = "memorised"
    return Training(status, epoch, loss, "fused", packed.history(epoch, loss))


@contextmanager
def compilation(d_model: int, dtype: str, *, batches: bool, wait: float = 1.0) -> Iterator[None]:
    """Log a warning if a kernel is still being compiled after `wait` seconds."""
    kernels = (epochs.train_epochs, epochs.train_batches)
    before = [len(kernel.signatures) for kernel in kernels]

    def tell() -> None:
        if [len(kernel.signatures) for kernel in kernels] == before:
            message = "compiling the fused engine for d_model = %d in %s%s; this is done once"
            _LOG.warning(message, d_model, dtype, ", in batches" * batches)

    kind = (d_model, dtype, batches)
    timer = threading.Timer(wait, tell)
    timer.daemon = True
    if kind not in _begun:
        _begun.add(kind)
        if not needed_kernels(d_model, dtype, batches=batches) <= kept_kernels():
            timer.start()
    try:
        yield
    finally:
        timer.cancel()
