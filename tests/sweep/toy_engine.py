"""An engine of another library, whose functions processes of their own can import from here.

Nothing registers it when it is imported: whoever trains by it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from capacity.database import Database
from capacity.layer import AttentionLayer, Engine, Recipe, Training, Workload
from capacity.layer.packed import PackedLayers
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots


def why_not(work: Workload) -> str | None:
    return None if work.layer.n_heads < 3 else "it has two hands"


def cost(work: Workload) -> float:
    # half a second: two runs a task
    return 0.45


def run(
    layer: AttentionLayer,
    _db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    _snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Learn nothing, and set the unembedding to random numbers."""
    return fill(layer.W_U.detach(), recipe, rng)


def run_many(
    packed: PackedLayers,
    _databases: Sequence[Database],
    recipe: Recipe,
    rngs: Sequence[np.random.Generator],
) -> list[Training]:
    return [fill(packed.weights(i)["W_U"], recipe, rng) for i, rng in enumerate(rngs)]


def fill(W_U: torch.Tensor, recipe: Recipe, rng: np.random.Generator) -> Training:
    W_U.copy_(torch.as_tensor(rng.standard_normal(W_U.shape)))
    return Training("completed", recipe.epochs, 0.0, "toy")


ALONE = Engine("toy", why_not=why_not, run=run, cost=cost, priority=9)
TOGETHER = Engine("toy", why_not=why_not, run=run, cost=cost, run_many=run_many, priority=9)
